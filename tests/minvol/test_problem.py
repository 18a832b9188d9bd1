"""The objective of minimum-volume NMF: value, majorizer, gradient, volume."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.mixtures import mixtures

from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError, ShapeError
from nonneg.minvol.descent import minimize_volume
from nonneg.minvol.factorize import minimum_volume
from nonneg.minvol.problem import CONSTRAINTS, Problem


@pytest.fixture
def planted():
    return mixtures(200, 20, 4, purity=0.75, snr=30.0, rng=0)


def problem_of(X, *, lam=0.1, delta=1e-4, nonnegative=True, constraint="sum-to-one"):
    return Problem(as_data_matrix(X), lam=lam, delta=delta, nonnegative=nonnegative, constraint=constraint)


def objective(X, W, H, lam, delta, constraint):
    edges = H if constraint == "at-most-one" else (H - H.mean(axis=0))
    values = np.linalg.eigvalsh(edges @ edges.T)
    values = values if constraint == "at-most-one" else values[1:]
    return 0.5 * np.sum((X - W @ H) ** 2) + 0.5 * lam * np.sum(np.log(values + delta))


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_objective_is_the_one_that_is_documented(planted, constraint, dtype):
    problem = problem_of(planted.X.astype(dtype), constraint=constraint)
    fit = problem.fit(planted.H.T)
    expected = objective(planted.X, fit.W, planted.H, 0.1, 1e-4, constraint)
    assert fit.loss == pytest.approx(expected, rel=1e-9 if dtype == np.float64 else 1e-4)
    sums = fit.W.sum(axis=1)
    assert fit.W.min() >= 0
    assert np.all(sums <= 1 + 1e-6)
    if constraint == "sum-to-one":
        np.testing.assert_allclose(sums, 1.0, atol=1e-6)


@pytest.mark.parametrize("nonnegative", [True, False])
def test_the_objective_never_increases_and_the_gradient_vanishes(planted, nonnegative):
    problem = problem_of(planted.X, nonnegative=nonnegative)
    rng = np.random.default_rng(4)
    run = minimize_volume(problem, planted.X[rng.choice(200, 4, replace=False)].T, max_iter=300, tol=1e-3)
    losses = np.array(run.history.loss)
    assert np.all(np.diff(losses) < 0)
    # It begins at 243. With SciPy 1.13 the objective stops decreasing, by rounding, at 1.1e-3.
    assert run.history["kkt_residual"][-1] <= 2e-3
    assert run.state.Ht.min() >= 0 or not nonnegative


def test_vertices_are_nonnegative(rng):
    weights = rng.dirichlet(np.full(3, 0.8), 400)
    weights = weights[weights.max(axis=1) < 0.75]
    X = np.maximum(weights + 0.02 * rng.standard_normal(weights.shape), 0)
    assert minimum_volume(as_data_matrix(X), 3).H.min() >= 0


def test_components_that_are_given_are_checked(rng):
    X = rng.random((9, 4))
    data = as_data_matrix(X)
    for init, error, words in (
        (X[:2], ShapeError, r"init of shape .* = \(3, 4\), got \(2, 4\)"),
        (np.full((3, 4), np.nan), InvalidDataError, "Expected a finite init"),
        (X[:3] - 0.9, InvalidDataError, "Expected a nonnegative init"),
    ):
        with pytest.raises(error, match=words):
            minimum_volume(data, 3, init=init)
    with pytest.raises(
        InvalidParameterError, match="n_components=10 is larger than the number of samples, 9"
    ):
        minimum_volume(data, 10)
