"""How a run of MERIT starts, stops, is watched, saved and refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

from nonneg import select_anchors
from nonneg.data import as_data_matrix
from nonneg.datasets import separable_dirichlet
from nonneg.exceptions import (
    InterruptedFitWarning,
    InvalidParameterError,
    NonnegWarning,
    ShapeError,
    UnknownNameError,
    UnsupportedInputError,
)
from nonneg.iteration import StopReason
from nonneg.kernels.sparse_columns import columns_of
from nonneg.separable.merit.initialization import first_iteration, from_anchors, warm_start_condition
from nonneg.separable.merit.merit import merit
from nonneg.separable.merit.penalty_weight import estimated_number, penalty_weight
from nonneg.separable.registry import split_params


@pytest.fixture(scope="module")
def data():
    """70 points of 15 features between 6 anchors at 15 dB."""
    return separable_dirichlet(70, 15, 6, snr=15, rng=5)


@pytest.fixture(scope="module")
def clean():
    """50 points of 12 features between 4 anchors, without noise."""
    return separable_dirichlet(50, 12, 4, rng=1)


def test_stops_at_the_gap_of_the_iterate_returned(clean):
    found = select_anchors(clean.X, 4, method_params={"lam": 0.0}, tol=0.05, max_iter=500)
    assert found.stop_reason is StopReason.CONVERGED
    assert found.gap <= 0.05
    assert found.history["gap"][-2] > 0.05
    assert found.gap == found.history["gap"][-1]


def test_a_start_within_the_gap_is_returned_as_it_is(clean):
    found = select_anchors(clean.X, 4, method_params={"lam": 0.0}, tol=1e-9, init=clean.anchors)
    assert found.n_iter == 0
    assert found.stop_reason is StopReason.CONVERGED
    assert set(found.anchors) == set(clean.anchors)
    assert found.gap <= 1e-9


def test_stops_at_a_residual(data):
    limit = 0.4
    found = select_anchors(
        data.X, 6, method_params={"lam": 0.0, "residual_tol": limit}, max_iter=500, tol=0.0
    )
    assert found.stop_reason is StopReason.CONVERGED
    assert "`residual_tol`" in found.stop_sentence
    assert found.stop_sentence in repr(found)
    residual = np.linalg.norm(data.X.T @ found.coefficients.toarray() - data.X.T, axis=0)
    assert residual.max() == pytest.approx(found.facts["largest_residual"])
    assert residual.max() <= limit < found.history["largest_residual"][-2]


def test_stops_at_a_relative_change(data):
    found = select_anchors(data.X, 6, method_params={"change_tol": 1e-3}, max_iter=500, tol=0.0)
    losses = np.array(found.history.loss)
    assert found.stop_reason is StopReason.CONVERGED
    change = np.abs(np.diff(losses)) / losses[1:]
    assert change[-1] <= 1e-3
    assert np.all(change[:-1] > 1e-3)


def test_stops_when_the_anchors_stay(data):
    found = select_anchors(data.X, 6, method_params={"anchor_window": 5}, max_iter=500, tol=0.0)
    assert found.stop_reason is StopReason.CONVERGED
    assert not any(found.history["new_anchors"][-5:])
    assert found.history["new_anchors"][-6] > 0
    again = select_anchors(data.X, 6, max_iter=found.n_iter, tol=0.0)
    assert set(again.anchors) == set(found.anchors)


def test_the_weight_is_the_residual_of_successive_projections(data):
    points = as_data_matrix(data.X)
    found, published = (penalty_weight(points, 6, rule) for rule in ("auto", "paper"))
    spa = select_anchors(data.X, 6, method="spa").anchors
    assert np.array_equal(found.anchors, spa)
    W = data.X[spa]
    gram = W @ W.T
    weights = [_simplex_fit(gram, W @ x) for x in data.X]
    norm = np.linalg.norm(data.X - np.array(weights) @ W)
    assert published.lam == pytest.approx(norm / 12, rel=1e-6)
    assert found.lam == pytest.approx(0.5 * norm**2 / len(data.X), rel=1e-6)
    # The printed weight is the norm over the smoothed sum of the row maxima of these mixtures.
    mu = 0.01
    C = np.zeros((len(data.X),) * 2)
    C[spa] = np.array(weights).T
    smoothed = mu * logsumexp(C / mu, axis=1, b=1 / len(data.X)).sum()
    assert penalty_weight(points, 6, "printed", mu=mu).lam == pytest.approx(norm / smoothed, rel=1e-3)
    printed = penalty_weight(points, 6, "printed")
    assert printed.lam == pytest.approx(2 * published.lam, rel=1e-3)
    converged = penalty_weight(points, 6, converges=True).lam
    assert converged == pytest.approx(0.3 * norm**2 / 6, rel=1e-6)
    # Without noise, a share of the variance.
    W = np.eye(6)[np.arange(70) % 6]
    quiet = as_data_matrix(W)
    assert penalty_weight(quiet, 6).lam == pytest.approx(0.0, abs=1e-12)
    assert penalty_weight(quiet, 6, converges=True).lam == pytest.approx(0.05 * W.var(axis=0).sum() * 70 / 6)
    for rule, weight in (("auto", found), ("paper", published), ("printed", printed)):
        params = {"lam": rule, "steps": "open-loop"}
        assert select_anchors(data.X, 6, method_params=params, max_iter=1).lam == weight.lam


def _simplex_fit(gram, cross):
    from scipy.optimize import minimize

    k = len(cross)
    found = minimize(
        lambda h: 0.5 * h @ gram @ h - cross @ h,
        np.full(k, 1 / k),
        jac=lambda h: gram @ h - cross,
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda h: h.sum() - 1, "jac": lambda h: np.ones(k)},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    return found.x


def test_the_weight_of_many_points_comes_from_some_of_them(monkeypatch):
    data = as_data_matrix(separable_dirichlet(2000, 15, 6, snr=15, rng=5).X)
    whole = penalty_weight(data, 6)
    monkeypatch.setattr("nonneg.separable.merit.penalty_weight.MOST_POINTS", 300)
    some = penalty_weight(data, 6)
    assert some.lam != whole.lam
    assert some.lam == pytest.approx(whole.lam, rel=0.05)


@pytest.mark.parametrize(("k", "snr"), [(5, 20), (20, 20), (40, 15)])
def test_the_guess_of_the_number_is_near(k, snr):
    data = separable_dirichlet(300, 50, k, snr=snr, rng=0)
    assert 0.5 * k <= estimated_number(as_data_matrix(data.X)).number <= 1.2 * k


@pytest.mark.parametrize("init", ["spa", "anchors", "result", "coefficients"])
def test_warm_starts(init, data):
    spa = select_anchors(data.X, 6, method="spa")
    first = select_anchors(
        data.X, 6, init=spa.anchors, method_params={"lam": 0.0, "steps": "line-search"}, tol=1e9
    )
    assert first.n_iter == 0
    given = {"spa": "spa", "anchors": spa.anchors, "result": spa, "coefficients": first.coefficients}[init]
    found = select_anchors(
        data.X, 6, init=given, method_params={"lam": 0.2, "steps": "open-loop"}, max_iter=10, tol=0.0
    )
    assert found.facts["t_init"] >= 1
    same = select_anchors(
        data.X, 6, init=spa.anchors, method_params={"lam": 0.2, "steps": "open-loop"}, max_iter=10, tol=0.0
    )
    assert abs(found.coefficients - same.coefficients).max() <= 1e-12


@pytest.mark.parametrize("as_held", [np.asarray, sp.csr_array])
def test_a_start_writes_an_anchor_as_itself_without_rounding(as_held, rng):
    X = rng.standard_normal((40, 6))
    # Equal to an anchor, and two anchors that are equal.
    X[30], X[8] = X[3], X[7]
    anchors = np.array([3, 11, 7, 8])
    C = from_anchors(as_data_matrix(as_held(X)), anchors).coefficients.toarray()
    assert np.array_equal(C[:, anchors], np.eye(40)[:, anchors])
    assert np.array_equal(C[:, 30], np.eye(40)[:, 3])
    np.testing.assert_allclose(C.sum(axis=0), 1.0, atol=1e-12)
    assert np.all((X.T @ C - X.T)[:, [*anchors, 30]] == 0.0)


def test_both_rules_of_the_first_iteration(rng):
    residual = 0.02 * rng.standard_normal((200, 7))
    rmse = np.sqrt(np.sum(residual**2) / 200)
    assert first_iteration("paper", residual, np) == round(1 / rmse)
    # 1 / RMSE = 2.7 is rounded, not cut off.
    assert first_iteration("paper", residual / rmse / 2.7, np) == 3
    spectral = np.linalg.norm(residual, 2) / np.sqrt(200)
    assert first_iteration("authors", residual, np) == int(1 / spectral)
    # A large residual would give 0, with which the first step forgets the start.
    assert first_iteration("paper", 100 * residual, np) == 1
    assert first_iteration("authors", 100 * residual, np) == 1
    assert first_iteration("authors", residual[:5], np) == int(
        1 / (np.linalg.norm(residual[:5], 2) / np.sqrt(5))
    )
    assert first_iteration(3, residual, np) == 3


def test_proposition_1_of_a_start():
    C = np.zeros((4, 4))
    C[0], C[1] = [1.0, 0.5, 0.25, 0.0], [0.0, 0.5, 0.75, 1.0]
    columns = columns_of(C)
    # t = 1 scales by 1, t = 3 by 6, t = 7 by 28, with which all entries are whole.
    assert warm_start_condition(columns, 1, np.array([0, 1])).xi == pytest.approx(0.25)
    assert warm_start_condition(columns, 3, np.array([0, 1])).xi == pytest.approx(0.5)
    assert not warm_start_condition(columns, 7, np.array([0, 1])).holds
    assert not warm_start_condition(columns, 1, np.array([2])).holds


def test_the_history_and_the_callback(data):
    seen = []

    def watch(progress):
        seen.append((progress.n_iter, progress.state.gap, len(progress.history)))
        return progress.n_iter == 4

    found = select_anchors(data.X, 6, callback=watch, max_iter=50, method_params={"steps": "open-loop"})
    assert found.stop_reason is StopReason.CALLBACK
    assert found.n_iter == 4
    assert [n for n, _, _ in seen] == [1, 2, 3, 4]
    assert found.history["entries"][-1] == found.coefficients.nnz == found.facts["entries"]


def test_an_interrupted_run_returns_what_it_has(data):
    def interrupt(progress):
        if progress.n_iter == 3:
            raise KeyboardInterrupt

    with pytest.warns(InterruptedFitWarning, match="Interrupted after 3 iterations"):
        found = select_anchors(data.X, 6, callback=interrupt, max_iter=50)
    plain = select_anchors(data.X, 6, max_iter=3)
    assert found.stop_reason is StopReason.INTERRUPTED
    assert abs(found.coefficients - plain.coefficients).max() == 0
    assert found.gap == plain.gap


@pytest.mark.covering(1)
@pytest.mark.parametrize(
    ("steps", "container"), [("open-loop", "dense"), ("pairwise", "dense"), ("open-loop", "strict")]
)
def test_a_resumed_run_equals_an_uninterrupted_one(steps, container, data, tmp_path):
    from tests.references.containers import as_container

    X = as_container(data.X, container)
    params = {"steps": steps, "anchor_window": 40, "lam": 0.2}
    options = {"method_params": params, "init": "spa"}
    whole = select_anchors(X, 6, max_iter=12, **options)
    for n_iter in (5, 12):
        parts = select_anchors(X, 6, max_iter=n_iter, checkpoint=tmp_path, **options)
    assert parts.n_iter == 12
    assert abs(whole.coefficients - parts.coefficients).max() == 0
    assert whole.history["gap"] == parts.history["gap"]
    other = select_anchors(
        X, 6, max_iter=2, checkpoint=tmp_path, **(options | {"method_params": params | {"lam": 0.3}})
    )
    assert other.n_iter == 2


def test_progress_is_shown(data, capsys):
    select_anchors(data.X, 6, max_iter=3, verbose=1)
    assert "merit: iteration 3/3, loss" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tol": 0.5}, "the duality gap is at most `tol`"),
        ({"residual_tol": 0.5, "tol": 0.0}, "the largest residual is at most `residual_tol`"),
        ({"change_tol": 0.5}, "the relative change of the objective is at most `change_tol`"),
        ({"anchor_window": 2}, "the anchors have not changed for `anchor_window` iterations"),
        ({"tol": 0.0, "max_iter": 2}, "`max_iter` iterations were done"),
    ],
)
def test_the_last_line_says_which_rule_ended_the_run(data, capsys, options, said):
    options = {"lam": 0.0, "max_iter": 500} | options
    select_anchors(data.X, 6, verbose=1, **split_params(options))
    assert f"stopped because {said}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lam": -0.1}, "lam must be 'auto', 'paper', 'printed' or a finite number not below 0, got -0.1"),
        ({"lam": float("inf")}, "not below 0, got inf"),
        ({"mu": 0.0}, "mu must be a finite number above 0, for example 1e-5, got 0.0"),
        ({"max_iter": -1}, "max_iter must be an integer of at least 1, got -1"),
        ({"tol": -1.0}, "tol must be None or a number not below 0, got -1.0"),
        ({"t_init": 0, "init": "spa"}, "t_init must be one of .* or an integer of at least 1, got 0"),
        ({"t_init": "half", "init": "spa"}, "t_init='half' is not known"),
        ({"steps": "newton"}, "steps='newton' is not known. Expected one of .*'pairwise'"),
        ({"corrective_steps": 2}, "corrective_steps need a line search"),
        (
            {"corrective_steps": -1, "steps": "away"},
            "corrective_steps must be None or an integer of at least 0",
        ),
        ({"skip_converged": True, "tol": 0.0}, "tol must be above 0"),
        ({"residual_tol": -1}, "residual_tol must be None or a number not below 0, got -1"),
        ({"change_tol": "x"}, "change_tol must be None or a number not below 0, got 'x'"),
        ({"anchor_window": 0}, "anchor_window must be None or an integer of at least 1, got 0"),
        ({"init": "vertex"}, "init='vertex' is not known. Expected one of .*'spa'"),
        ({"init": [0, 70]}, "init contains 70, but samples are 0 to 69"),
        ({"init": [3, 3]}, "init names a sample twice"),
        ({"init": [0.5, 1.5]}, "init must be None, the name of a greedy method"),
        ({"init": 2 * np.eye(70)}, "must sum to one; column 0 sums to 2"),
        ({"init": np.eye(70) - 0.1}, "must be finite and nonnegative"),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(options, said, data):
    with pytest.raises(InvalidParameterError, match=said):
        select_anchors(data.X, 6, **split_params(options))


def test_wrong_starts_are_named(data):
    with pytest.raises(ShapeError, match="must be 70 x 70, one column per sample; got"):
        select_anchors(data.X, 6, init=sp.eye_array(69))
    with pytest.raises(InvalidParameterError, match="init='spa' needs n_components"):
        select_anchors(data.X, None, init="spa")
    with pytest.raises(UnknownNameError, match="init='merit' is not known"):
        select_anchors(data.X, 6, init="merit")


def test_chunked_data_are_not_taken_directly(data):
    dask = pytest.importorskip("dask.array")
    with pytest.raises(UnsupportedInputError, match="points in this process"):
        merit(as_data_matrix(dask.from_array(data.X, chunks=(20, 15))), 6)


def test_sparse_points_with_too_many_features(data, monkeypatch):
    monkeypatch.setattr("nonneg.separable.merit.merit.RESIDUAL_LIMIT", 16.0 * 70 * 14)
    with pytest.raises(UnsupportedInputError, match=r"70 x 15 dense numbers: 0\.0 GB. Pass reduce="):
        select_anchors(sp.csr_array(data.X), 6)
    assert select_anchors(sp.csr_array(data.X), 6, reduce=12, max_iter=2).n_components == 6


def test_residuals_made_anew_are_the_same(data, monkeypatch):
    kept = select_anchors(data.X, 6, method_params={"lam": 0.2, "steps": "open-loop"}, max_iter=25)
    monkeypatch.setattr("nonneg.separable.merit.frank_wolfe.REFRESH", 4)
    made = select_anchors(data.X, 6, method_params={"lam": 0.2, "steps": "open-loop"}, max_iter=25)
    assert abs(kept.coefficients - made.coefficients).max() == 0
    assert made.gap == pytest.approx(kept.gap, rel=1e-10)
    assert made.history["gap"] != kept.history["gap"]


def test_more_anchors_than_distinct_points():
    X = np.repeat(np.eye(3) + 1, 4, axis=0)
    with pytest.raises(InvalidParameterError, match="found 3 anchors, fewer than n_components=4"):
        select_anchors(X, 4)


def test_more_anchors_than_the_rank():
    # What counts are vertices: a square has four of them in a plane.
    rng = np.random.default_rng(0)
    square = np.array([[0.0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]])
    X = np.concatenate([square, rng.dirichlet(np.ones(4), 30) @ square])
    assert set(select_anchors(X, 4, method_params={"lam": 0.01}, max_iter=200).anchors) == {0, 1, 2, 3}


def test_points_of_zeros_and_a_single_point():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.3], [0.0, 0.0]])
    with pytest.warns(NonnegWarning, match="Sample 0 was found as an anchor, but it is all zeros"):
        assert set(select_anchors(X, 3, max_iter=300).anchors) == {0, 1, 2}
    one = select_anchors(np.array([[1.0, 2.0]]), 1)
    assert one.anchors.tolist() == [0]
    assert one.gap == 0.0
    with pytest.raises(InvalidParameterError, match="n_components=2 is more than the 1 samples"):
        select_anchors(np.array([[1.0, 2.0]]), 2)
    with pytest.raises(InvalidParameterError, match="All samples are zero"):
        select_anchors(np.zeros((3, 2)), 1)
