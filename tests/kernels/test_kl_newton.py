"""The compiled iterations on small tables against those that they replace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.iteration import StopReason
from nonneg.iteration.lookahead import Descent
from nonneg.kernels.kl_newton import ENTRIES, ENTRIES_OF_H, is_supported
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers.newton import NewtonProblem, NewtonState, scaled_newton

N_ROWS, N_COLUMNS = 70, 37  # neither a multiple of the rows that go through a pass together


def problem_of(rng, *, weights=None, penalties=None, dtype=np.float64, k=5, free=None):
    X = rng.poisson(rng.gamma(0.5, 20.0, size=(N_ROWS, 3)) @ rng.dirichlet(np.full(N_COLUMNS, 0.3), size=3))
    data = as_data_matrix(X.astype(dtype))
    data.weights = weights
    penalties = penalties or Penalties()
    shared = data, BetaLoss.of(data, 1.0), penalties, free, True, N_COLUMNS * data.mean()
    W, Ht = rng.random((N_ROWS, k)).astype(dtype), rng.random((N_COLUMNS, k)).astype(dtype)
    return NewtonProblem(*shared), W, Ht


def iterations(problem, state, n_iter):
    """Do what `scaled_newton` does on all other data."""
    if state.gradient is None:
        state = replace(problem.evaluate(state, state.Ht, 0.0)[0], W_before=None)
    losses = []
    for _ in range(n_iter):
        state, measures = Descent(problem.candidates)(state)
        losses.append(measures["loss"])
    return state, losses


def assert_same(problem, state, n_iter):
    one, losses = iterations(problem, state, n_iter)
    other, rows = problem.compiled(state, n_iter)
    np.testing.assert_allclose([row["loss"] for row in rows], losses, rtol=1e-10)
    for name in ("W", "W_before", "Ht", "Ht_plain", "gradient", "diagonal", "gram", "total", "columns",
                 "steps", "momentum", "ceiling"):  # fmt: skip
        wanted, found = getattr(one, name), getattr(other, name)
        assert (wanted is None) == (found is None), name
        if wanted is not None:
            np.testing.assert_allclose(
                found, wanted, rtol=1e-6, atol=1e-7 * np.abs(wanted).max(), err_msg=name
            )
    return other


@pytest.mark.parametrize("penalties", [Penalties(), Penalties(0.3, 0.2, 0.1, 0.4)])
@pytest.mark.parametrize("k", [1, 5])
def test_iterations_equal_those_of_all_other_data(rng, penalties, k):
    for weights in (None, rng.integers(0, 3, N_ROWS).astype(float)):
        problem, W, Ht = problem_of(rng, weights=weights, penalties=penalties, k=k)
        # A row that is far away; zeros that stay or come alive.
        W[3] *= 1e4
        W[5] = 0.0
        Ht[2] *= 1e-3
        state = NewtonState(W, Ht)
        given = W.copy(), Ht.copy()
        for n_iter in (1, 2, 6):
            state = assert_same(problem, state, n_iter)
        assert state.n_iter == 9
        np.testing.assert_array_equal(W, given[0])
        np.testing.assert_array_equal(Ht, given[1])


def test_rejected_steps_are_tried_again(rng):
    problem, W, Ht = problem_of(rng)
    state = problem.compiled(NewtonState(W, Ht), 3)[0]
    # A momentum that overshoots.
    far = replace(state, momentum=0.9, Ht_plain=state.Ht * rng.choice([0.0, 3.0], size=Ht.shape))
    after = assert_same(problem, far, 1)
    assert (after.momentum, after.ceiling) == (0.45, 0.9)
    # Nothing is better than the best: steps become shorter, and the pair stays.
    best = replace(state, loss=0.5 * state.loss)
    after = assert_same(problem, best, 2)
    assert after.loss == best.loss
    assert after.W_before is None
    np.testing.assert_array_equal(after.W, best.W)


@pytest.mark.parametrize("penalties", [Penalties(), Penalties(0.3, 0.2, 0.1, 0.4)])
def test_multiplicative_steps_of_rows_without_a_good_newton_step(rng, monkeypatch, penalties):
    problem, W, Ht = problem_of(rng, penalties=penalties)
    newton = problem.compiled(NewtonState(W, Ht), 1)[0].W
    for module in ("newton", "row_newton"):  # all steps count as too short
        monkeypatch.setattr(f"nonneg.solvers.{module}.SHORTEST_STEP", 2.0)
    multiplicative = assert_same(problem, NewtonState(W, Ht), 2).W
    assert np.abs(newton - multiplicative).max() > 1e-3 * newton.max()


def test_several_iterations_per_call_change_neither_history_nor_end(rng):
    problem, W, Ht = problem_of(rng)
    seen = []
    options = {"penalties": Penalties(), "max_iter": 200, "tol": 1e-4}
    run = scaled_newton(problem.data, W, Ht, **options)
    each = scaled_newton(problem.data, W, Ht, **options, callback=lambda now: seen.append(now.n_iter))
    assert seen == list(range(1, run.n_iter + 1))
    assert run.stop_reason is each.stop_reason is StopReason.CONVERGED
    np.testing.assert_array_equal(run.history.loss, each.history.loss)
    np.testing.assert_array_equal(run.state.W, each.state.W)
    short = scaled_newton(problem.data, W, Ht, **options | {"max_iter": 7})
    assert (short.n_iter, short.stop_reason) == (7, StopReason.MAX_ITER)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_run_is_the_same_to_rounding(rng, monkeypatch, dtype):
    plain, W, Ht = problem_of(rng, weights=rng.integers(1, 9, N_ROWS).astype(dtype), dtype=dtype)
    options = {"penalties": Penalties(), "max_iter": 30, "tol": 0.0}
    small = scaled_newton(plain.data, W, Ht, **options)
    monkeypatch.setattr("nonneg.solvers.newton.is_supported", lambda data, k: False)
    other = scaled_newton(plain.data, W, Ht, **options)
    assert small.state.W.dtype == dtype
    np.testing.assert_allclose(
        small.history.loss, other.history.loss, rtol=1e-9 if dtype == np.float64 else 1e-4
    )
    losses = np.array(small.history.loss)
    assert np.all(np.diff(losses) <= 0)


def test_components_that_are_held_stay(rng):
    small, W, Ht = problem_of(rng, free=np.array([0, 2]))
    run = scaled_newton(small.data, W, Ht, penalties=Penalties(), free=np.array([0, 2]), max_iter=5, tol=0.0)
    np.testing.assert_array_equal(run.state.Ht[:, [1, 3, 4]], Ht[:, [1, 3, 4]])
    assert not np.allclose(run.state.Ht[:, 0], Ht[:, 0])


def test_which_data_are_small():
    data = as_data_matrix(np.ones((ENTRIES // 64, 64)))
    assert is_supported(data, ENTRIES_OF_H // 64)
    assert not is_supported(data, ENTRIES_OF_H // 64 + 1)
    assert not is_supported(as_data_matrix(np.ones((ENTRIES // 64 + 1, 64))), 2)
