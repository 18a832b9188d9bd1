"""Fully corrective steps: bounds that are bounds, a monotone objective, and one optimum from any start."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import select_anchors
from nonneg.data import as_data_matrix
from nonneg.datasets import separable_dirichlet
from nonneg.exceptions import InvalidParameterError, NonnegWarning
from nonneg.kernels.self_dictionary import dictionary_of
from nonneg.kernels.self_dictionary.types import Dictionary
from nonneg.separable.merit.fully_corrective import FullyCorrective
from nonneg.separable.merit.problem import SelfDictionary
from nonneg.separable.spa import spa

torch = pytest.importorskip("torch")

LAM = 2.0


@pytest.fixture(scope="module")
def planted():
    return separable_dirichlet(90, 20, 6, snr=12, rng=1)


def corrective(X, n_components=6, **options):
    params = {"steps": "fully-corrective", "lam": LAM, **options.pop("method_params", {})}
    return select_anchors(X, n_components, method_params=params, **options)


@pytest.fixture(scope="module")
def accurate(planted):
    return corrective(planted.X, tol=1e-8)


def objective(X, C, lam=LAM):
    C = C.toarray() if sp.issparse(C) else C
    return 0.5 * np.sum((X.T - X.T @ C) ** 2) + lam * np.sum(C.max(axis=1))


def test_the_objective_is_that_of_the_coefficients(planted, accurate):
    C = accurate.coefficients.toarray()
    assert C.min() >= 0
    np.testing.assert_allclose(C.sum(axis=0), 1.0, atol=1e-12)
    assert accurate.objective == pytest.approx(objective(planted.X, C), rel=1e-10)
    np.testing.assert_allclose(accurate.row_maxima, C.max(axis=1), atol=1e-12)


def test_accurate_solution_meets_the_optimality_conditions(planted, accurate):
    # Independent of the solver: with t the multipliers of the columns' sums, every row with entries has
    # sum (t - x'r)+ = lam and no other row more.
    X, C = planted.X, accurate.coefficients.toarray()
    R = C.T @ X - X
    scores = X @ R.T
    caps = C.max(axis=1, keepdims=True)
    inside = (C > 1e-4) & (caps - C > 1e-4)
    levels = np.array([scores[inside[:, j], j].mean() for j in range(len(X)) if inside[:, j].any()])
    kept = inside.any(axis=0)
    sums = np.clip(levels - scores[:, kept], 0.0, None).sum(axis=1)
    assert kept.mean() > 0.9
    assert sums.max() <= 1.001 * LAM
    assert accurate.gap <= 1e-8 * accurate.objective


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_lower_bound_is_a_bound(planted, accurate, max_iter):
    early = corrective(planted.X, max_iter=max_iter, tol=1e-12)
    minimum = accurate.objective - accurate.gap
    assert early.objective >= minimum
    assert early.objective - early.gap <= accurate.objective * (1 + 1e-12)


def test_lower_bound_holds_for_frank_wolfe_too(planted, accurate):
    other = select_anchors(
        planted.X, 6, method_params={"steps": "pairwise", "lam": LAM, "corrective_steps": 5}, max_iter=30
    )
    assert objective(planted.X, other.coefficients) >= accurate.objective - accurate.gap


def test_objective_decreases_and_gap_closes(planted):
    result = corrective(planted.X, tol=1e-6)
    losses, gaps = np.array(result.history.loss), np.array(result.history["gap"])
    assert (np.diff(losses) <= 0).all()
    assert (np.diff(gaps) <= 0).all()
    assert result.gap <= 1e-6 * result.objective
    assert "times the objective" in result.stop_sentence


def test_same_optimum_from_any_start(planted, accurate):
    rng = np.random.default_rng(0)
    starts = [rng.choice(90, size=6, replace=False), "spa", select_anchors(planted.X, 6).coefficients]
    for init in starts:
        other = corrective(planted.X, init=init, tol=1e-6)
        assert other.objective == pytest.approx(accurate.objective, rel=2e-6)
        np.testing.assert_allclose(other.row_maxima, accurate.row_maxima, atol=0.02)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_unit_of_the_data_does_not_matter(planted, unit):
    params = {"steps": "fully-corrective"}
    one = select_anchors(planted.X, 6, method_params=params)
    other = select_anchors(unit * planted.X, 6, method_params=params)
    assert other.lam == pytest.approx(unit**2 * one.lam, rel=1e-9)
    assert other.objective == pytest.approx(unit**2 * one.objective, rel=1e-4)
    np.testing.assert_array_equal(other.anchors, one.anchors)


def test_row_bounds_hold_at_the_solution(planted, accurate):
    # Screening is safe: no row of the solution exceeds its bound, whatever the gap at which it was found.
    problem = SelfDictionary(dictionary_of(planted.X), LAM, 1e-5)
    solver = FullyCorrective(problem, 1e-6)
    state = solver.initial_iterate(spa(as_data_matrix(planted.X), 6).anchors)
    excluded = []
    for _ in range(6):
        state, _ = solver.step(state)
        assert (accurate.row_maxima <= state.row_bounds + 1e-7).all()
        excluded.append(int(np.sum(state.row_bounds < 1e-3)))
    assert excluded[-1] > excluded[0]
    assert (accurate.row_maxima[state.row_bounds < 1e-3] < 1e-3).all()


def test_float32_sparse_and_tensor_agree(planted, accurate):
    X = planted.X.astype(np.float32)
    results = [corrective(given, tol=1e-3) for given in (X, sp.csr_array(X), torch.from_numpy(X))]
    assert results[0].coefficients.dtype == np.float32
    for result in results:
        assert result.gap <= 1e-3 * result.objective
        assert result.objective == pytest.approx(accurate.objective, rel=1.1e-3)


def test_array_path_follows_the_compiled_one(planted):
    X = planted.X.astype(np.float32)
    host = dictionary_of(X)
    other = Dictionary(torch.from_numpy(X), torch.from_numpy(np.asarray(host.center)), host.radius)
    losses = []
    for dictionary in (host, other):
        solver = FullyCorrective(SelfDictionary(dictionary, LAM, 1e-5), 0.01)
        state = solver.initial_iterate(np.arange(10))
        for _ in range(3):
            state, _ = solver.step(state)
            losses.append((state.loss, state.lower))
    # The sums of float32 scores are raised by up to 1024 rounding errors.
    np.testing.assert_allclose(losses[0], losses[3], rtol=1e-4)
    # Later the last digits may decide which iteration is the last one.
    np.testing.assert_allclose(losses[1:3], losses[4:], rtol=0.01)


def test_data_are_not_modified_and_runs_repeat(planted):
    X = planted.X.copy()
    one, two = corrective(X), corrective(X)
    np.testing.assert_array_equal(X, planted.X)
    np.testing.assert_array_equal(one.row_maxima, two.row_maxima)


def test_interrupted_run_resumes(planted, tmp_path):
    whole = corrective(planted.X, tol=1e-6)
    corrective(planted.X, tol=1e-6, checkpoint=tmp_path, callback=lambda progress: progress.n_iter == 2)
    resumed = corrective(planted.X, tol=1e-6, checkpoint=tmp_path)
    assert resumed.n_iter == whole.n_iter
    assert resumed.objective == whole.objective


def test_weight_of_zero_is_refused(planted):
    with pytest.raises(InvalidParameterError, match="lam"):
        corrective(planted.X, method_params={"lam": 0.0})


def test_possible_anchors_are_counted(planted):
    few, many = (corrective(planted.X, tol=tol).facts["possible_anchors"] for tol in (1e-6, 0.1))
    assert 6 <= few < many <= 90


def test_working_set_that_does_not_fit_is_an_early_end_with_a_warning(planted, monkeypatch):
    monkeypatch.setattr("nonneg.separable.merit.fully_corrective.HOST_LIMIT", 6.0 * 8 * 90 * 20)
    with pytest.warns(NonnegWarning, match="A larger lam makes it smaller"):
        result = corrective(planted.X)
    assert result.n_iter == 1
    assert result.gap > 0.01 * result.objective
