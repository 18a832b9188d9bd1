"""A pass of Newton's method over rows: the sums that the update of H needs, against plain formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.data import as_data_matrix
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers import newton as newton_module
from nonneg.solvers import newton_pass as module
from nonneg.solvers.newton import SCHEDULE, SHORTEST, NewtonProblem, NewtonState, _factor
from nonneg.solvers.newton_pass import (
    RowPass,
    _added,
    _squares_and_weights,
    multiplicative_where,
    newton_pass,
)
from nonneg.solvers.row_newton import DAMPING, shared_correlations

WEIGHTS = np.linspace(0.0, 2.0, 14)
PENALTIES = Penalties(l1_W=0.1, l2_W=0.2)


def divergence(x, v, beta):
    if beta == 1:
        return np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / v), 0) - x + v
    if beta == 0:
        return x / v - np.log(x / v) - 1
    return (x**beta + (beta - 1) * v**beta - beta * x * v ** (beta - 1)) / (beta * (beta - 1))


@pytest.mark.parametrize("beta", [0.0, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("kind", ["dense", "weighted", "masked", "sparse", "strict"])
@pytest.mark.parametrize("momentum", [0.0, 0.4])
def test_sums_are_those_at_the_new_rows(beta, kind, momentum, rng, monkeypatch):
    monkeypatch.setattr(module, "PIECE_ROWS", 4)  # pieces of a few rows
    monkeypatch.setattr(module, "PIECE_ENTRIES", 30)
    W, before, Ht = rng.random((14, 3)) + 0.1, rng.random((14, 3)) + 0.1, rng.random((7, 3)) + 0.1
    X = W @ Ht.T * (0.7 + 0.6 * rng.random((14, 7)))
    weights = mask = None
    given = X
    if kind == "weighted":
        weights = WEIGHTS
    elif kind == "masked":
        mask = rng.random(X.shape) < 0.8
    elif kind == "sparse":
        if beta != 1.0:
            pytest.skip("only the Kullback-Leibler divergence is read at nonzeros")
        X = np.where(rng.random(X.shape) < 0.6, X, 0.0)
        given = sp.csr_array(X)
    elif kind == "strict":
        given = pytest.importorskip("array_api_strict").asarray(X)
    data = as_data_matrix(given, weights=weights, mask=mask)
    loss, unit = BetaLoss.of(data, beta), 7 * float(X.mean())
    right = data.to_device(Ht)
    model = shared_correlations(loss, right, data.xp.sum(right, axis=1), None)
    shared = RowPass(right, loss, PENALTIES, model, momentum, unit)
    rows = (W, before) if momentum else (W,)
    (new,), sums = newton_pass(data, *(data.to_device(each) for each in rows), shared=shared)
    at_start, at_end, gradient, diagonal, gram, total, penalty = (
        np.asarray(part) if hasattr(part, "shape") else part for part in sums
    )
    new = np.asarray(new)
    counted = np.ones(14) if weights is None else weights
    seen = np.ones_like(X) if mask is None else mask.astype(float)
    start = W if not momentum else np.maximum(W + momentum * (W - before), 0.1 * W)
    if momentum:
        assert at_start == 0.0
    else:
        expected = counted @ (seen * divergence(X, start @ Ht.T, beta))
        np.testing.assert_allclose(at_start, expected, rtol=1e-9, atol=1e-12)
    v = new @ Ht.T
    np.testing.assert_allclose(at_end, counted @ (seen * divergence(X, v, beta)), rtol=1e-8, atol=1e-11)
    heavy = counted[:, None] * new
    slope = seen * (v ** (beta - 1) - X * v ** (beta - 2))
    np.testing.assert_allclose(gradient, slope.T @ heavy, rtol=1e-7, atol=1e-9)
    true = (beta - 1) * v ** (beta - 2) + (2 - beta) * X * v ** (beta - 3)
    curvature = seen * (true if 1 <= beta <= 2 else v ** (beta - 2))
    squares = np.hstack([heavy * new, counted[:, None]])
    np.testing.assert_allclose(diagonal, curvature.T @ squares, rtol=1e-7)
    means = np.maximum(new @ (Ht.sum(axis=0) / unit), 1e-6)
    np.testing.assert_allclose(gram, (heavy * means[:, None] ** (beta - 2)).T @ new, rtol=1e-7)
    np.testing.assert_allclose(total, heavy.sum(axis=0), rtol=1e-9)
    assert float(penalty) == pytest.approx(counted @ np.sum(0.1 * new + 0.1 * new**2, axis=1))
    objective = np.sum(seen * divergence(X, v, beta), axis=1) + np.sum(0.1 * new + 0.1 * new**2, axis=1)
    began = np.sum(seen * divergence(X, start @ Ht.T, beta), axis=1) + np.sum(
        0.1 * start + 0.1 * start**2, axis=1
    )
    assert (objective <= began * (1 + 1e-12)).all()


def test_sums_are_added_without_touching_the_parts():
    first, second = (np.array([1.0, 2.0]), 3.0), (np.array([10.0, 20.0]), 30.0)
    total = _added((), first)
    total = _added(total, second)
    assert total[0].tolist() == [11.0, 22.0]
    assert total[1] == 33.0
    assert first[0].tolist() == [1.0, 2.0]


def test_squares_have_a_column_for_the_damping(rng):
    rows, weights = rng.random((5, 2)), rng.random(5)
    found = _squares_and_weights(np, rows * weights[:, None], rows, weights)
    np.testing.assert_allclose(found, np.hstack([weights[:, None] * rows**2, weights[:, None]]))
    np.testing.assert_allclose(
        _squares_and_weights(np, rows, rows, None), np.hstack([rows**2, np.ones((5, 1))])
    )


@pytest.mark.parametrize("own", [False, True])
def test_rows_with_short_steps_take_multiplicative_ones(rng, own):
    start, new, pull = (rng.random((4, 2)) + 0.1 for _ in range(3))
    sums = rng.random((4, 2)) + 0.1 if own else rng.random(2) + 0.1
    steps, residuals = np.array([0.01, 0.01, 0.5, 0.02]), np.array([1.0, 0.0, 1.0, 1.0])
    plain = new.copy()
    found = multiplicative_where(steps, residuals, new.copy(), start, pull, sums, Penalties(l1_W=0.3))
    cost = np.broadcast_to(sums, (4, 2))
    np.testing.assert_allclose(found[0], start[0] * pull[0] / (cost[0] + 0.3))
    np.testing.assert_array_equal(found[1:], plain[1:])
    strict = pytest.importorskip("array_api_strict")
    given = [strict.asarray(each) for each in (steps, residuals, plain, start, pull, sums)]
    np.testing.assert_allclose(multiplicative_where(*given, Penalties(l1_W=0.3)), found)


@pytest.mark.parametrize("most", [0.5, 2.0])
@pytest.mark.parametrize("lowest", [0.05, 0.2, 0.4, 0.8, 1.5, 9.0])
def test_the_factor_is_a_power_of_two_near_the_lowest_point(most, lowest):
    # A parabola slope t + bend t^2, lowest at -slope / (2 bend).
    slope = np.array([-1.0])
    bend = 1.0 / (2.0 * lowest)
    powers = [power for power in (0.25, 0.5, 1.0, 2.0) if power <= most and lowest >= 0.7 * power]
    expected = max(powers, default=0.125)
    assert _factor(np, slope, slope + bend, most=most).tolist() == [expected]


def test_penalties_of_columns_and_momentum_after_an_iteration(rng):
    data, Ht = as_data_matrix(rng.random((6, 4))), rng.random((4, 2))
    loss = BetaLoss.of(data, 1.0)
    problem = NewtonProblem(data, loss, Penalties(l1_H=0.3, l2_H=0.5), None, True, 1.0)
    np.testing.assert_allclose(problem.column_penalties(Ht), np.sum(0.3 * Ht + 0.25 * Ht**2, axis=1))
    for penalties in (Penalties(l1_H=0.3), Penalties(l2_H=0.3)):
        assert np.ndim(NewtonProblem(data, loss, penalties, None, True, 1.0).column_penalties(Ht)) == 1
    assert NewtonProblem(data, loss, PENALTIES, None, True, 1.0).column_penalties(Ht) == 0.0
    state = NewtonState(rng.random((6, 2)), Ht)
    faster = problem.accepted(state, 0.5, 0.9)
    assert (faster.momentum, faster.ceiling) == SCHEDULE.accepted(0.5, 0.9)[:2]
    fresh = problem.accepted(state, 0.0, 1.0)
    assert (fresh.momentum, fresh.ceiling) == SCHEDULE.accepted(0.0, 1.0)[:2]
    below = problem.accepted(state, 0.0, 0.6)
    assert (below.momentum, below.ceiling) == SCHEDULE.rejected(0.6)[:2]
    still = NewtonProblem(data, loss, PENALTIES, None, False, 1.0)
    assert still.accepted(state, 0.5, 0.9) is state


class Attempts:
    """Columns with given directions, slopes and losses."""

    def __init__(self, monkeypatch, columns, at_start, after):
        self.direction = np.array([[1.0, -0.5], [0.5, 0.25], [-0.2, 0.1], [0.3, 0.3]])
        self.slopes = np.array([-4.0, -1.0, 0.0, -2.0])
        self.columns, self.at_start, self.after, self.seen = columns, at_start, after, []
        monkeypatch.setattr(NewtonProblem, "direction", lambda problem, state: (self.direction, self.slopes))
        monkeypatch.setattr(NewtonProblem, "evaluate", self.evaluate)

    def evaluate(self, state, Ht, momentum, **changes):
        self.seen.append((Ht, momentum, changes))
        return replace(state, Ht=Ht, columns=self.after, **changes), self.at_start


@pytest.mark.parametrize("known", [True, False])
def test_steps_of_columns_follow_their_losses(monkeypatch, known):
    columns = np.array([10.0, 10.0, 10.0, 10.0])
    change = np.array([-3.0, 2.0, 0.0, 0.5])
    tries = Attempts(monkeypatch, columns, columns + change, np.array([7.0, 12.0, 9.0, 1e13]))
    data, Ht = as_data_matrix(np.ones((6, 4))), np.full((4, 2), 2.0)
    problem = NewtonProblem(data, BetaLoss.of(data, 1.0), PENALTIES, None, True, 1.0)
    steps = np.array([1.0, 0.5, 0.25, 0.5]) if known else None
    state = NewtonState(np.ones((6, 2)), Ht, columns=columns, steps=steps)
    after, gained, shorter = problem.attempt(state, 0.0)
    own = np.ones(4) if steps is None else steps
    np.testing.assert_allclose(tries.seen[0][0], Ht + own[:, None] * tries.direction)
    assert tries.seen[0][1] == 0.0
    np.testing.assert_allclose(after.Ht_plain, after.Ht)
    assert gained == pytest.approx(own @ tries.slopes)
    best = _factor(np, own * tries.slopes, change, most=2.0)
    # Where nothing is to be gained beyond rounding the next step is twice as long.
    wanted = np.where(-own * tries.slopes < 1e-12 * after.columns, 2.0 * own, own * best)
    np.testing.assert_allclose(after.steps, np.clip(wanted, SHORTEST, 1.0))
    half = _factor(np, own * tries.slopes, change, most=0.5)
    np.testing.assert_allclose(shorter, np.where(change > 0, own * half, own))


def test_penalties_count_in_what_columns_gained(monkeypatch):
    columns = np.full(4, 10.0)
    data, Ht = as_data_matrix(np.ones((6, 4))), np.full((4, 2), 2.0)
    tries = Attempts(monkeypatch, columns, columns.copy(), columns)
    penalties = Penalties(l1_H=0.3, l2_H=0.2)
    problem = NewtonProblem(data, BetaLoss.of(data, 1.0), penalties, None, True, 1.0)
    after, _, shorter = problem.attempt(NewtonState(np.ones((6, 2)), Ht, columns=columns), 0.0)

    def penalty(Ht):
        return np.sum(0.3 * Ht + 0.1 * Ht**2, axis=1)

    change = penalty(after.Ht) - penalty(Ht)
    np.testing.assert_allclose(
        shorter, np.where(change > 0, _factor(np, tries.slopes, change, most=0.5), 1.0)
    )


def test_after_extrapolation_steps_are_doubled(monkeypatch):
    columns = np.full(4, 10.0)
    tries = Attempts(monkeypatch, columns, None, columns)
    data, Ht = as_data_matrix(np.ones((6, 4))), np.full((4, 2), 2.0)
    problem = NewtonProblem(data, BetaLoss.of(data, 1.0), PENALTIES, None, True, 1.0)
    steps = np.array([1.0, 0.5, 0.25, 0.125])
    state = NewtonState(np.ones((6, 2)), Ht, columns=columns, steps=steps, Ht_plain=Ht - 0.5)
    after, gained, shorter = problem.attempt(state, 0.4)
    plain = Ht + steps[:, None] * tries.direction
    np.testing.assert_allclose(after.Ht, plain + 0.4 * (plain - (Ht - 0.5)))
    np.testing.assert_allclose(after.Ht_plain, plain)
    np.testing.assert_allclose(after.steps, [1.0, 1.0, 0.5, 0.25])
    assert shorter is None
    assert gained == pytest.approx(steps @ tries.slopes)


def test_directions_are_damped_and_lead_down(monkeypatch, rng):
    data, Ht = as_data_matrix(np.ones((6, 4)), weights=np.arange(1.0, 7.0)), rng.random((4, 2))
    penalties = Penalties(l1_H=0.3, l2_H=0.2)
    problem = NewtonProblem(data, BetaLoss.of(data, 1.0), penalties, "free", True, 1.0)
    gradient, diagonal, total = rng.random((4, 2)), rng.random((4, 3)), rng.random(2)
    gram = np.array([[2.0, 1.0], [1.0, 3.0]])
    seen = []

    def targets(Ht, gradient, diagonal, correlations, free, l1, l2):
        seen.append((gradient, diagonal, correlations, free, l1, l2))
        return np.ones((4, 2)), None, None, None, np.array([-1.0, 0.0, 2.0, -3.0])

    monkeypatch.setattr(newton_module, "newton_targets", targets)
    state = NewtonState(np.ones((6, 2)), Ht, gradient=gradient, diagonal=diagonal, gram=gram, total=total)
    direction, slopes = problem.direction(state)
    np.testing.assert_array_equal(direction, np.array([1.0, 0.0, 0.0, 1.0])[:, None] * np.ones((1, 2)))
    np.testing.assert_array_equal(slopes, [-1.0, 0.0, 0.0, -3.0])
    found, squares, correlations, *rest = seen[0]
    np.testing.assert_allclose(found, gradient + 0.3 + 0.2 * Ht)
    np.testing.assert_allclose(
        squares, diagonal[:, :2] + diagonal[:, 2:] * DAMPING * (total / 21.0) ** 2 + 0.2
    )
    np.testing.assert_allclose(correlations, [[1.0, 1 / np.sqrt(6)], [1 / np.sqrt(6), 1.0]])
    assert rest == ["free", 0.3, 0.2]


@pytest.mark.parametrize(("dtype", "share"), [(np.float64, 1e-14), (np.float32, 1e-9)])
def test_what_drowns_in_rounding(dtype, share):
    data = as_data_matrix(np.ones((3, 2), dtype=dtype))
    assert NewtonProblem(data, BetaLoss.of(data, 1.0), PENALTIES, None, True, 1.0).nothing == share
