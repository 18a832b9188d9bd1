"""The objective of minimum-volume NMF: value, majorizer, gradient, volume."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.references.mixtures import mixtures

from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError, ShapeError
from nonneg.iteration import History
from nonneg.minvol import factorize
from nonneg.minvol.descent import (
    LEAST_GAIN,
    WINDOW,
    State,
    Stationary,
    _applied,
    advance,
    minimize_volume,
)
from nonneg.minvol.factorize import minimum_volume
from nonneg.minvol.problem import CONSTRAINTS, Problem, contrasts, simplex_weights


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


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_weights_cannot_be_improved(planted, constraint):
    W = simplex_weights(as_data_matrix(planted.X), planted.H, constraint)
    best = np.sum((planted.X - W @ planted.H) ** 2)
    rng = np.random.default_rng(1)
    for _ in range(20):
        other = rng.dirichlet(np.ones(4), len(W)) * (1.0 if constraint == "sum-to-one" else 0.9)
        mixed = 0.99 * W + 0.01 * other
        assert np.sum((planted.X - mixed @ planted.H) ** 2) >= best


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_gradient_is_that_of_the_objective(planted, constraint):
    problem = problem_of(planted.X, constraint=constraint, nonnegative=False)
    Ht = planted.H.T + 0.05
    fit = problem.fit(Ht)
    gradient = problem.gradient(Ht, fit)
    pull = problem.lam * (Ht @ fit.curvature)
    direction = np.random.default_rng(2).standard_normal(Ht.shape)
    step = 1e-6
    slope = (problem.fit(Ht + step * direction).loss - problem.fit(Ht - step * direction).loss) / (2 * step)
    assert slope == pytest.approx(np.sum(gradient * direction), rel=1e-5)
    assert problem.imbalance(Ht, fit) == pytest.approx(np.linalg.norm(gradient) / np.linalg.norm(pull))


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("nonnegative", [True, False])
def test_the_plain_update_minimizes_a_majorizer(planted, constraint, nonnegative):
    problem = problem_of(planted.X, constraint=constraint, nonnegative=nonnegative)
    Ht = np.abs(planted.H.T + 0.1 * np.random.default_rng(3).standard_normal(planted.H.T.shape))
    fit = problem.fit(Ht)
    new = problem.minimize_majorizer(Ht, fit)
    assert problem.fit(new).loss < fit.loss
    system, cross = problem.system(fit), planted.X.T @ fit.W

    def majorizer(Ht):
        return float(np.sum(Ht * (0.5 * Ht @ system - cross)))

    for seed in range(10):
        other = new + 0.01 * np.random.default_rng(seed).standard_normal(new.shape)
        other = np.maximum(other, 0.0) if nonnegative else other
        assert majorizer(other) >= majorizer(new)
        # It lies above the objective, and touches it at the present factors.
        bound = fit.loss + majorizer(other) - majorizer(Ht)
        assert problem.fit(other).loss <= bound + 1e-9 * abs(bound)


def test_contrasts_are_orthonormal_and_orthogonal_to_ones():
    D = contrasts(5, "sum-to-one")
    np.testing.assert_allclose(D @ D.T, np.eye(4), atol=1e-14)
    np.testing.assert_allclose(D.sum(axis=1), 0.0, atol=1e-14)
    assert contrasts(1, "sum-to-one").shape == (0, 1)


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


def test_vertices_are_nonnegative_unless_told_otherwise(rng):
    weights = rng.dirichlet(np.full(3, 0.8), 400)
    weights = weights[weights.max(axis=1) < 0.75]
    X = np.maximum(weights + 0.02 * rng.standard_normal(weights.shape), 0)
    assert minimum_volume(as_data_matrix(X), 3).H.min() >= 0
    assert minimum_volume(as_data_matrix(X), 3, nonnegative=False).H.min() < 0


def test_a_run_is_stationary_at_the_tolerance_or_when_it_gains_nothing():
    def history(residual, losses=(2.0, 1.0)):
        return History({"n_iter": [0] * len(losses), "seconds": [0.0] * len(losses), "loss": list(losses),
                        "kkt_residual": [9.0] * (len(losses) - 1) + [residual]})  # fmt: skip

    stop = Stationary(0.25, 1.0)
    assert stop(history(0.25))
    assert not stop(history(0.26))
    assert not Stationary(0.0, 1.0)(history(0.0))
    assert not stop(History())
    falling = [2.0, *np.linspace(1.0, 1.0 - 0.9 * LEAST_GAIN, WINDOW + 1)]
    assert stop(history(9.0, falling))
    assert not stop(history(9.0, falling[:-1]))
    assert not stop(history(9.0, [2.0, *np.linspace(1.0, 1.0 - 1.1 * LEAST_GAIN, WINDOW + 1)]))
    assert Stationary(0.25, 2.0)(history(9.0, [2.0, *np.linspace(1.0, 1.0 - 1.9 * LEAST_GAIN, WINDOW + 1)]))


def test_the_first_of_equal_restarts_is_returned(monkeypatch, rng):
    ends = []

    def tied(problem, Ht, **options):
        run = minimize_volume(problem, Ht, **options)
        state = replace(run.state, loss=1.0, Ht=run.state.Ht + len(ends))
        ends.append(state)
        return replace(run, state=state)

    monkeypatch.setattr(factorize, "minimize_volume", tied)
    X = rng.dirichlet(np.ones(2), 12) @ rng.random((2, 3))
    found = minimum_volume(as_data_matrix(X), 2, init="vca", n_init=3, max_iter=2, rng=0)
    assert len(ends) == 3
    np.testing.assert_allclose(found.H, ends[0].Ht.T)


def inverse_hessian(moves, bends, inverse, shape):
    """Return the inverse Hessian of BFGS, formed update by update (Nocedal & Wright, equation 6.17)."""
    found = np.kron(np.eye(shape[0]), inverse)
    if len(moves):
        found = found * max(moves[-1] @ bends[-1] / (bends[-1] @ found @ bends[-1]), 1.0)
    for s, y in zip(moves, bends, strict=True):
        left = np.eye(len(s)) - np.outer(s, y) / (s @ y)
        found = left @ found @ left.T + np.outer(s, s) / (s @ y)
    return found


@pytest.mark.parametrize("n_pairs", [0, 1, 3])
@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_a_step_is_that_of_bfgs(n_pairs, scale, rng):
    shape = (4, 2)
    moves = rng.standard_normal((n_pairs, 8))
    curved = rng.standard_normal((8, 8))
    bends = moves @ (curved @ curved.T + np.eye(8))
    inverse = scale * np.array([[2.0, 0.5], [0.5, 1.0]])
    state = State(None, np.zeros(shape), None, None, None, 0.0, moves, bends)
    slope = rng.standard_normal(shape)
    expected = inverse_hessian(moves, bends, inverse, shape) @ slope.ravel()
    np.testing.assert_allclose(_applied(state, slope, inverse).ravel(), expected, rtol=1e-7)


@pytest.mark.parametrize("nonnegative", [True, False])
def test_entries_that_the_sign_keeps_at_zero_do_not_count(nonnegative, rng):
    problem = problem_of(rng.random((20, 5)), nonnegative=nonnegative)
    Ht = rng.random((5, 3)) * (rng.random((5, 3)) < 0.5)
    fit = problem.fit(Ht)
    gradient = problem.gradient(Ht, fit)
    kept = np.where((Ht == 0) & (gradient >= 0), 0.0, gradient) if nonnegative else gradient
    pull = np.linalg.norm(problem.lam * Ht @ fit.curvature)
    assert problem.imbalance(Ht, fit) == pytest.approx(np.linalg.norm(kept) / pull)
    free = problem_of(rng.random((20, 5)), lam=0.0, nonnegative=nonnegative)
    assert free.imbalance(Ht, free.fit(Ht)) == 0.0


def test_a_step_lowers_the_objective_and_is_remembered(planted):
    problem = problem_of(planted.X)
    Ht = planted.X[[0, 50, 100, 150]].T.copy()
    fit = problem.fit(Ht)
    none = np.zeros((0, Ht.size))
    first = State(fit.W, Ht, fit.gram, fit.misfit, fit.curvature, fit.loss, none, none)
    second = advance(problem, first)
    assert second.loss < first.loss
    np.testing.assert_allclose(second.moves, (second.Ht - Ht).reshape(1, -1))
    bend = problem.gradient(second.Ht, second.fit) - problem.gradient(Ht, fit)
    np.testing.assert_allclose(second.bends, bend.reshape(1, -1), atol=1e-9)
    assert len(advance(problem, second).moves) == 2


def test_components_that_are_given_are_checked(rng):
    X = rng.random((9, 4))
    data = as_data_matrix(X)
    for init, error, words in (
        (X[:2], ShapeError, r"an array of shape \(3, 4\).*got shape \(2, 4\)"),
        (np.full((3, 4), np.nan), InvalidDataError, "NaN or infinite"),
        (X[:3] - 0.9, InvalidDataError, "negative entries, but nonnegative=True"),
    ):
        with pytest.raises(error, match=words):
            minimum_volume(data, 3, init=init)
    with pytest.raises(InvalidParameterError, match="n_init=2 with init='snpa': all restarts would be equal"):
        minimum_volume(data, 3, init="snpa", n_init=2)
    with pytest.raises(
        InvalidParameterError, match="n_components=10 is larger than the number of samples, 9"
    ):
        minimum_volume(data, 10)
    assert minimum_volume(data, 3, init=X[:3] - 0.9, nonnegative=False, max_iter=1).n_iter == 1
    assert minimum_volume(data, 3, init="snpa", n_init=1, max_iter=1).n_iter == 1
