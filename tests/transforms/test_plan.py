"""Which parts `learn_transform` runs, from where and with which options; the runs are stand-ins."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import numpy as np
import pytest
from tests.transforms.cases import composite_frames

from nonneg.estimators import TransformNMF
from nonneg.exceptions import FileFormatError, InvalidParameterError, ShapeError
from nonneg.transforms.covariances import frame_covariances
from nonneg.transforms.initialization import dct_iv_matrix, dct_matrix

learn = importlib.import_module("nonneg.transforms.learn")
DATA = frame_covariances(composite_frames(2, 9, 4, 2))


@pytest.fixture
def plan(monkeypatch):
    """Note the runs."""
    made = SimpleNamespace(runs=[], cross=[], jd=[])

    def run(loop, method, state, data, options, name=""):
        made.runs.append(SimpleNamespace(loop=loop, method=method, state=state, options=options, name=name))
        return "batch"

    def cross(data, k, **options):
        made.cross.append(options)
        return SimpleNamespace(tl="both, tl", jd="both, jd")

    monkeypatch.setattr(learn.LoopOptions, "run", run)
    monkeypatch.setattr(learn, "cross_init", cross)
    monkeypatch.setattr(learn, "best_jd", lambda *given: made.jd.append(given) or "best jd")
    monkeypatch.setattr(learn, "best_tl", lambda batches, work, options: batches)
    monkeypatch.setattr(learn, "replace", lambda found, method: (found, method))
    return made


@pytest.mark.parametrize(
    ("method", "init", "transform"),
    [
        ("dct", None, dct_matrix(4)),
        ("dct", "random", dct_matrix(4)),
        ("dct", "dct-iv", dct_iv_matrix(4)),
        ("dct", (np.eye(4),), np.eye(4)),
        ("tl", "dct", dct_matrix(4)),
        ("tl", np.eye(4), np.eye(4)),
    ],
)
def test_a_fixed_transform_is_where_it_is_asked_for(plan, method, init, transform):
    found = learn.learn_transform(DATA, 2, method=method, init=init, eps0=1e-3, rng=0, tol=1e-5, max_iter=7)
    assert found == (["batch"], method)
    (run,) = plan.runs
    assert (run.method, run.name) == ("tl", method)
    np.testing.assert_allclose(run.state.transform[0], transform, atol=1e-12)
    assert (run.loop.max_iter, run.loop.tol, run.loop.gradient_tol, run.loop.prune_every) == (
        7,
        1e-5,
        1e-5,
        None,
    )
    assert run.options.n_rotation_updates == (0 if method == "dct" else 1)


def test_joint_diagonalization_ends_with_factors(plan):
    assert learn.learn_transform(DATA, 2, method="jd", eps0=1e-3, n_init=3, rng=0) == "best jd"
    (run,) = plan.runs
    assert (run.method, run.state.batch) == ("jd", 3)
    assert plan.jd[0][0] == ["batch"]
    assert plan.jd[0][1] is run.state


def test_a_joint_diagonalizer_begins_every_restart(plan, monkeypatch):
    seen = []
    turned = np.eye(4)[::-1]

    def diagonalize(data, **options):
        seen.append(options)
        return SimpleNamespace(transform=turned)

    monkeypatch.setattr(learn, "joint_diagonalize", diagonalize)
    learn.learn_transform(DATA, 2, method="tl", init="jd", eps0=1e-3, n_init=2, rng=5)
    np.testing.assert_allclose(plan.runs[0].state.transform, [turned, turned], atol=1e-12)
    assert seen == [{"eps0": 1e-3, "max_iter": learn.JD_ITERATIONS, "rng": 5}]
    # It is its own beginning.
    learn.learn_transform(DATA, 2, method="jd", init="jd", eps0=1e-3, rng=5)
    assert len(seen) == 1


@pytest.mark.parametrize("method", ["tl", "jd"])
def test_both_methods_share_what_both_have(plan, method):
    params = {"n_nmf_updates": 3, "line_search": "backtracking"}
    options = {"method": method, "method_params": params, "eps0": 1e-3, "n_init": 2}
    assert learn.learn_transform(DATA, 2, cross_initialize=True, **options) == f"both, {method}"
    (given,) = plan.cross
    own, other = (given[f"{name}_options"] for name in ((method, "jd") if method == "tl" else (method, "tl")))
    assert (own.n_nmf_updates, own.line_search) == (3, "backtracking")
    assert other.n_nmf_updates == 3
    assert other.line_search == ("backtracking" if method == "tl" else "wolfe")  # its own default
    assert (given["n_init"], own.eps0, other.eps0) == (2, 1e-3, 1e-3)
    assert plan.runs == []


def test_a_fixed_transform_has_nobody_to_begin_from(plan):
    learn.learn_transform(DATA, 2, method="dct", cross_initialize=True, eps0=1e-3)
    assert plan.cross == []


@pytest.mark.parametrize(
    ("name", "least"), [("n_components", 1), ("n_init", 1), ("max_iter", 0), ("prune_every", 1)]
)
def test_numbers_begin_where_they_make_sense(plan, name, least):
    options = {"n_components": 2, "eps0": 1e-3, "rng": 0}
    learn.learn_transform(DATA, **options | {name: least})
    with pytest.raises(InvalidParameterError, match=f"{name} must be an integer of at least {least}"):
        learn.learn_transform(DATA, **options | {name: least - 1})


@pytest.fixture
def model():
    found = TransformNMF(2)
    found.n_features_in_, found.eps0_ = 4, 1e-3
    found.transform_, found.components_ = dct_matrix(4), np.full((2, 4), 0.25)
    return found


def test_coefficients_have_the_shape_of_the_frames(model):
    Y = np.random.default_rng(0).standard_normal((2, 5, 4))
    np.testing.assert_allclose(model.analyze(Y), Y @ dct_matrix(4).T)
    assert model.analyze(Y[0]).shape == (5, 4)
    assert model.analyze(Y[:1]).shape == (1, 5, 4)
    np.testing.assert_allclose(model.synthesize(model.analyze(Y)), Y, atol=1e-12)
    np.testing.assert_allclose(model.synthesize([1.0, 0.0, 0.0, 0.0]), dct_matrix(4)[0])
    for wrong in (np.ones(3), np.array(1.0), np.ones((4, 3))):
        with pytest.raises(ShapeError, match=r"of shape \(\.\.\., 4\)"):
            model.synthesize(wrong)


@pytest.mark.parametrize(
    ("off", "eps0", "good"), [(0.0, 0.0, True), (1e-4, 1e-3, True), (1e-2, 1e-3, False), (0.0, -1.0, False)]
)
def test_a_loaded_transform_is_orthogonal(model, off, eps0, good):
    model.transform_, model.eps0_ = model.transform_ + off, eps0
    if good:
        model._complete_loaded()
    else:
        with pytest.raises(FileFormatError, match="orthogonal transform of 4 atoms and eps0 >= 0"):
            model._complete_loaded()


def test_the_score_is_the_mean_over_frames(model):
    Y = np.random.default_rng(1).standard_normal((3, 5, 4))
    W = model.transform(Y)
    V, variances = np.mean((Y @ dct_matrix(4).T) ** 2, axis=0) + 1e-3, W @ model.components_ + 1e-3
    rows = (V / variances + np.log(variances)).mean(axis=1)
    assert model.score(Y) == pytest.approx(-rows.mean())
    weights = np.arange(1.0, 6.0)
    assert model.score(Y, sample_weight=weights) == pytest.approx(-weights @ rows / weights.sum())
