"""IntegrativeNMF and mini-batches: what is passed on and kept, and formulas of its methods."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.least_squares import nonnegative_rows

from nonneg import NMF, IntegrativeNMF
from nonneg.estimators import _base, integrative_online, online
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError
from nonneg.solvers.online import OnlineState

rng = np.random.default_rng(0)
SETS = {"a": rng.gamma(0.7, size=(9, 5)) + 0.1, "b": rng.gamma(0.7, size=(6, 5)) + 0.1}
LAM = 0.7


@pytest.fixture(scope="module")
def model():
    """Components that are given, not learned."""
    found = IntegrativeNMF(2, lam=LAM)
    rng = np.random.default_rng(1)
    found.n_features_in_, found.n_components_ = 5, 2
    found.batch_names_ = ["a", "b"]
    found.components_, found.specific_components_ = rng.random((2, 5)), rng.random((2, 2, 5))
    found.batch_scale_ = np.stack([np.sqrt(np.mean(X**2, axis=0)) for X in SETS.values()])
    return found


def weights_of(model, X, at):
    """Minimize the objective of every row, by SciPy."""
    V = 0.0 * model.components_ if at is None else model.specific_components_[at]
    scale = np.sqrt(np.mean(model.batch_scale_**2, axis=0)) if at is None else model.batch_scale_[at]
    system = np.hstack([model.components_ + V, np.sqrt(LAM) * V])
    return nonnegative_rows(system.T, np.hstack([X / scale, np.zeros_like(X)])), model.components_ + V, scale


def test_weights_errors_and_products_are_those_of_the_data_set(model):
    X = SETS["b"]
    found = model.transform(SETS)
    errors = []
    for at, (name, own) in enumerate(SETS.items()):
        W, K, scale = weights_of(model, own, at)
        np.testing.assert_allclose(found[name], W, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(model.inverse_transform(W, batch=name), W @ K * scale)
        errors.append((own / scale - W @ K) ** 2)
    assert model.score(SETS) == pytest.approx(-np.concatenate(errors).mean())
    weights = np.arange(1.0, 16.0)
    rows = np.concatenate(errors).mean(axis=1)
    assert model.score(SETS, sample_weight=weights) == pytest.approx(-weights @ rows / weights.sum())
    W, K, scale = weights_of(model, X, None)
    np.testing.assert_allclose(model.transform(X), W, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(W), W @ K * scale)
    assert model.score(X) == pytest.approx(-np.mean((X / scale - W @ K) ** 2))
    with pytest.raises(UnknownNameError, match="'c' is not known"):
        model.transform(X, batch="c")


@pytest.fixture
def steps(monkeypatch):
    """Note what every mini-batch is given."""
    seen = []
    plain = integrative_online.online_step

    def noted(data, at, found, past, **options):
        seen.append({"data": data, "at": at, "found": found, "past": list(past)} | options)
        return plain(data, at, found, past, **options)

    monkeypatch.setattr(integrative_online, "online_step", noted)
    return seen


@pytest.mark.parametrize("scale", [True, False])
def test_batches_add_to_the_sums_of_their_data_set(steps, scale):
    model = IntegrativeNMF(2, lam=LAM, scale=scale, batch_size=3, forget_factor=0.7)
    first = SETS["a"][:6]
    model.partial_fit(first, batch="a")
    assert model.batch_names_ == ["a"]
    expected = np.sqrt(np.mean(first**2, axis=0)) if scale else np.ones(5)
    np.testing.assert_allclose(model.batch_scale_, expected[None])
    call = steps.pop()
    assert (call["at"], call["first"], call["lam"], call["decay"]) == (0, True, LAM, 0.7 ** (3 / 6))
    assert not call["past"][0].gram.any()
    assert call["past"][0].cross.shape == (5, 2)
    gram = model._gram.copy()
    # A known data set keeps its scale, and a new one has that of its first batch.
    model.partial_fit(5.0 * SETS["a"][6:], batch="a")
    call = steps.pop()
    assert (call["at"], call["first"], call["decay"]) == (0, False, 0.7)
    np.testing.assert_allclose(call["data"].scale[:, 0], expected)
    np.testing.assert_array_equal(call["past"][0].gram, gram[0])
    model.partial_fit(SETS["b"], batch="b")
    call = steps.pop()
    assert (call["at"], call["first"], len(call["past"])) == (1, False, 2)
    assert not call["past"][1].gram.any()
    assert call["found"].Vt.shape == (2, 5, 2)
    assert not call["found"].Vt[1].any()
    assert (model.batch_names_, model.n_batches_, model.n_steps_) == (["a", "b"], 2, 3)
    assert model.batch_scale_.shape == (2, 5)
    assert model.specific_components_.shape == (2, 2, 5)
    assert (model._gram.shape, model._cross.shape) == ((2, 2, 2), (2, 5, 2))


def test_a_dict_is_a_batch_of_each_of_its_data_sets(steps):
    model = IntegrativeNMF(2).partial_fit(SETS)
    assert [(call["at"], call["first"]) for call in steps] == [(0, True), (1, False)]
    assert model.n_steps_ == 1
    model.fit(SETS)
    assert not hasattr(model, "n_steps_")
    assert model.reconstruction_err_ == pytest.approx(np.sqrt(2 * model.history_.loss[-1]), rel=1e-2)
    np.testing.assert_allclose(
        model.batch_scale_, [np.sqrt(np.mean(X**2, axis=0)) for X in SETS.values()], rtol=1e-12
    )


@pytest.fixture
def noted(monkeypatch):
    seen = []
    plain = online.online_step

    def step(data, Ht, past, **options):
        seen.append((Ht, past, options))
        return plain(data, Ht, past, **options)

    monkeypatch.setattr(online, "online_step", step)
    return seen


@pytest.mark.parametrize(("fresh", "limit"), [(False, None), (True, 7)])
def test_batches_of_nmf_know_the_past(noted, fresh, limit):
    X = SETS["a"]
    options = {"fresh_restarts": fresh, "fresh_restarts_max_iter": 7, "batch_size": 3, "forget_factor": 0.7}
    model = NMF(2, init="random", random_state=0, **options).partial_fit(X[:6])
    _, past, given = noted.pop()
    assert (past.numerator, past.n_samples, past.decay) == (None, 0.0, 0.7 ** (3 / 6))
    assert given["max_iter"] == limit
    kept = model._online
    assert (kept.n_samples, model.n_steps_, model.n_components_) == (6.0, 1, 2)
    before = model.components_.copy()
    model.partial_fit(X[6:])
    Ht, past, _ = noted.pop()
    np.testing.assert_array_equal(Ht, before.T)
    np.testing.assert_array_equal(past.numerator, kept.numerator)
    assert past.decay == kept.decay  # that of the first batch
    assert (model.n_steps_, model._online.n_samples) == (2, 0.7**0.5 * 6 + 3)
    assert model.components_.flags.c_contiguous


def test_a_scale_cannot_be_that_of_one_batch():
    with pytest.raises(InvalidParameterError, match="partial_fit does not accept scale='max'"):
        NMF(2, scale="max").partial_fit(SETS["a"])


@pytest.mark.parametrize(
    ("numerator", "denominator", "good"),
    [
        (None, None, True),
        (np.ones((5, 2)), np.ones((2, 2)), True),
        (np.ones((5, 2)), np.ones((5, 2)), True),
        (np.ones((5, 2)), np.ones((3, 2)), False),
        (np.ones((5, 2)), None, False),
    ],
)
def test_sums_of_past_batches_fit_the_components(numerator, denominator, good):
    model = NMF(2)
    model._complete_loaded()
    model.components_, model._online = np.ones((2, 5)), OnlineState(numerator, denominator)
    if good:
        model._complete_loaded()
    else:
        with pytest.raises(ValueError, match="do not fit the components"):
            model._complete_loaded()


@pytest.mark.parametrize("W", [np.ones(2), np.ones((3, 3)), np.ones((1, 3, 2)), [[1.0]]], ids=str)
def test_weights_have_a_column_per_component(W):
    with pytest.raises(ShapeError, match=r"of shape \(n_samples, 2\)"):
        _base.reconstructed(W, np.ones((2, 5)))


def test_products_of_lists_and_frames():
    H = np.arange(10.0).reshape(2, 5)
    np.testing.assert_array_equal(_base.reconstructed([[1, 0], [0, 2]], H), [H[0], 2 * H[1]])
    pandas = pytest.importorskip("pandas")
    model = NMF(2, max_iter=3, tol=0).fit(pandas.DataFrame(SETS["a"], columns=list("pqrst")))
    assert list(model.inverse_transform(pandas.DataFrame(np.ones((3, 2)))).columns) == list("pqrst")
    plain = model.score(pandas.DataFrame(SETS["a"], columns=list("pqrst")))
    model.set_output(transform="pandas")
    assert model.score(pandas.DataFrame(SETS["a"], columns=list("pqrst"))) == pytest.approx(plain)
