"""What solvers decide between iterations, with iterations whose losses are given."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.iteration import History, RelativeMeasure, StopReason
from nonneg.iteration.loop import Stalled
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers import acceleration, newton, together
from nonneg.solvers.acceleration import AcceleratedProblem, Level
from nonneg.solvers.alternating import SCHEDULE, AlternatingState
from nonneg.solvers.hals import hals_problem, inner_passes
from nonneg.solvers.newton import NewtonProblem, NewtonState

X = np.random.default_rng(0).random((6, 4))


def alternating(**fields):
    W, Ht = np.ones((6, 2)), np.ones((4, 2))
    begun = {"loss": 10.0, "W_plain": W, "Ht_plain": Ht, "momentum": 0.5, "ceiling": 0.9}
    return AlternatingState(W, Ht, **begun | fields)


def turns_of(before, results):
    """Send results to the turns; return what was asked for, and the end."""
    problem = hals_problem(as_data_matrix(X), 2, penalties=Penalties())
    turns, asked = problem.turns(before), []
    wanted = next(turns)
    for result in results:
        asked.append(wanted)
        try:
            wanted = turns.send(result)
        except StopIteration as end:
            return asked, end.value
    raise AssertionError("more was asked for")


def test_the_first_iteration_has_no_momentum():
    asked, (after, measures) = turns_of(alternating(W_plain=None), [(alternating(loss=9.0), 2.0)])
    assert [momentum for _, momentum in asked] == [0.0]
    assert measures == {"loss": 9.0, "violation": 2.0}
    assert after.momentum == 0.5


@pytest.mark.parametrize("loss", [9.0, 10.0])
def test_an_iteration_whose_loss_does_not_rise_speeds_up(loss):
    asked, (after, _) = turns_of(alternating(), [(alternating(loss=loss), 2.0)])
    assert [momentum for _, momentum in asked] == [0.5]
    wanted = SCHEDULE.accepted(0.5, 0.9)
    assert (after.momentum, after.ceiling, after.restarts) == tuple(wanted)


def test_one_whose_loss_rises_is_done_again_without_momentum():
    before = alternating(restarts=1)
    slower = SCHEDULE.rejected(0.5, 1)
    asked, (after, measures) = turns_of(
        before, [(alternating(loss=11.0), 3.0), (alternating(loss=9.5, momentum=slower.momentum), 2.0)]
    )
    assert [momentum for _, momentum in asked] == [0.5, 0.0]
    again = asked[1][0]
    assert (again.momentum, again.ceiling, again.restarts) == tuple(slower)
    assert again.W is before.W
    assert (after.loss, measures["violation"]) == (9.5, 2.0)
    assert after.momentum == slower.momentum


def test_what_rounding_made_worse_is_not_kept():
    before = alternating(momentum=0.0)
    small = 1e-14 * float(np.sum(X**2))
    _, (after, _) = turns_of(before, [(alternating(loss=10.0 + small), 2.0)])
    assert after.loss == 10.0 + small  # within what rounding may add
    _, (after, measures) = turns_of(before, [(alternating(loss=10.1), 2.0)])
    assert (after.loss, after.momentum, measures["loss"]) == (10.0, 0.0, 10.0)
    assert after.W is after.W_plain is before.W
    assert after.Ht_plain is before.Ht


@pytest.mark.parametrize(("dtype", "share"), [(np.float64, 1e-13), (np.float32, 1e-6)])
def test_the_slack_is_rounding_of_the_squared_norm(dtype, share):
    problem = hals_problem(as_data_matrix(X.astype(dtype)), 2, penalties=Penalties())
    assert problem.slack == pytest.approx(share * np.sum(X**2), rel=1e-6)


class Scripted:
    """A level, or the exact problem, that gives losses and violations in turn."""

    def __init__(self, *outcomes, restarts=0):
        self.outcomes, self.restarts, self.seen = list(outcomes), restarts, []
        self.data, self.squared_norm = as_data_matrix(X), 0.0

    def step(self, state):
        self.seen.append(("step", state))
        loss, violation = self.outcomes.pop(0)
        after = replace(state, loss=loss, W=state.W + 1.0, restarts=self.restarts)
        return after, {"loss": loss, "violation": violation}

    def advance(self, state, momentum):
        self.seen.append(("advance", state))
        loss, violation = self.outcomes.pop(0)
        return replace(state, loss=loss, W=state.W + 1.0), violation


def accelerated(exact, *levels, max_iter=50, tol=1e-3):
    problem = AcceleratedProblem(
        hals_problem(as_data_matrix(X), 2, penalties=Penalties()), 2, inner_passes, max_iter=max_iter, tol=tol
    )
    problem.exact = exact
    problem._kinds = [lambda level=level: level for level in levels]
    return problem


def level_of(*outcomes, cost=0.5, unit=2.0, comparable=False, restarts=0):
    return Level(Scripted(*outcomes, restarts=restarts), cost, unit, comparable)


def test_cheap_iterations_cost_two_exact_ones_and_are_told_in_exact_units():
    # Losses are in fourth powers of the unit of the factors, violations in third ones.
    level = level_of(*[(16.0 * loss, 8.0 * 5.0) for loss in (9.0, 8.0, 7.0, 6.0)], cost=0.5)
    problem = accelerated(Scripted(), level)
    state = alternating(first=1.0, n_iter=1)
    trial, own, cost = problem._descend(level, state, 2.0)
    assert len(level.problem.seen) == 4
    first = level.problem.seen[0][1]
    np.testing.assert_array_equal(first.W, 2.0 * state.W)
    assert first.loss == math.inf  # another problem: nothing to compare with
    np.testing.assert_array_equal(trial.W, (2.0 * state.W + 4.0) / 2.0)
    assert trial.W.dtype == np.float64
    assert (trial.loss, own, cost) == (6.0, 5.0, 2)


def test_a_level_that_differs_by_rounding_begins_with_the_exact_loss():
    level = level_of((16.0 * 9.0, 8.0), cost=1.0, comparable=True)
    problem = accelerated(SimpleNamespace(squared_norm=1e7), level)
    trial, _, cost = problem._descend(level, alternating(first=1.0), 1.0)
    assert level.problem.seen[0][1].loss == 16.0 * 10.0
    assert trial.loss == pytest.approx(9.0 + 1.0)  # what rounding in float32 may add
    assert cost == 1


def test_a_level_ends_where_its_own_violation_is_small():
    level = level_of((16.0 * 9.0, 8.0 * 0.5), (16.0 * 8.0, 8.0 * 1e-3), (1.0, 1.0), cost=0.1)
    _, own, cost = accelerated(Scripted(), level)._descend(level, alternating(first=1.0), 2.0)
    assert (own, cost, len(level.problem.seen)) == (1e-3, 1, 2)


@pytest.mark.parametrize("restarts", [1, 2])
def test_two_rejected_extrapolations_in_a_row_end_a_level(restarts):
    level = level_of((16.0 * 9.0, 8.0), (16.0 * 8.0, 8.0), cost=1.0, restarts=restarts)
    problem = accelerated(Scripted(), level)
    trial, own, cost = problem._descend(level, alternating(first=1.0, ceiling=0.7), 2.0)
    if restarts == acceleration.STALLED:
        assert (trial.momentum, trial.ceiling, trial.restarts) == (SCHEDULE.initial, 1.0, 0)
        assert (own, cost) == (0.0, 1)
    else:
        assert (trial.ceiling, trial.restarts, own, cost) == (0.7, 1, 1.0, 2)


@pytest.mark.parametrize(("violation", "faithful"), [(3.0, True), (3.1, False)])
def test_a_level_is_left_where_its_violation_is_not_the_exact_one(violation, faithful):
    level = level_of((16.0 * 9.0, 8.0), (16.0 * 8.0, 8.0), cost=1.0)
    exact = Scripted((7.0, violation))
    after, measures = accelerated(exact, level).step(alternating(first=1.0, n_iter=4))
    assert [kind for kind, _ in exact.seen] == ["advance"]
    assert measures == {"loss": 7.0, "violation": violation, "iterations": 3}
    assert (after.n_iter, after.level) == (7, 0 if faithful else 1)


def test_the_next_level_follows_one_that_gained_nothing_and_then_exact_iterations():
    levels = [level_of((16.0 * 9.0, 8.0), (16.0 * 8.0, 8.0), cost=1.0, comparable=at == 1) for at in range(2)]
    exact = Scripted((10.0, 1.0), (10.5, 1.0), (9.9, 4.0))
    problem = accelerated(exact, *levels)
    after, measures = problem.step(alternating(first=1.0, n_iter=4))
    assert [kind for kind, _ in exact.seen] == ["advance", "step", "step"]
    assert exact.seen[2][1].loss == 10.0  # from where it began
    assert (after.level, after.n_iter, after.loss) == (2, 11, 9.9)
    assert measures == {"loss": 9.9, "violation": 4.0, "iterations": 7}


@pytest.mark.parametrize(
    ("fields", "max_iter"), [({"first": 0.0}, 50), ({"first": 1.0, "level": 1}, 50), ({"first": 1.0}, 5)]
)
def test_exact_iterations_come_first_and_last(fields, max_iter):
    exact, level = Scripted((9.0, 4.0)), level_of()
    after, measures = accelerated(exact, level, max_iter=max_iter).step(alternating(n_iter=4, **fields))
    assert level.problem.seen == []
    assert (after.n_iter, measures["iterations"]) == (5, 1)
    assert after.first == (fields["first"] or 4.0)


def test_a_level_that_cannot_be_built_is_skipped_and_none_is_built_twice():
    built = []
    level = level_of(*[(16.0 * 9.0, 8.0)] * 20, cost=1.0)
    problem = accelerated(Scripted((9.0, 1.0), (8.0, 1.0)), None, level)
    problem._kinds = [lambda at=at: built.append(at) or (None, level)[at] for at in range(2)]
    after, _ = problem.step(alternating(first=1.0, n_iter=4))
    problem.step(after)
    assert built == [0, 1]
    assert after.level == 1


@pytest.mark.parametrize(
    ("n_iter", "max_iter", "share"), [(1, 90, 2.0), (40, 90, 6.0), (80, 990, 10), (4, 6, 1)]
)
def test_cheap_iterations_cost_a_part_of_all_so_far(n_iter, max_iter, share, monkeypatch):
    problem = accelerated(Scripted((9.0, 1.0)), level_of(), max_iter=max_iter)
    shares = []

    def descend(level, state, share):
        shares.append(share)
        return state, 1.0, 1

    monkeypatch.setattr(problem, "_descend", descend)
    problem.step(alternating(first=1.0, n_iter=n_iter))
    assert shares == [pytest.approx(share)]


def newton_problem(extrapolate=True):
    data = as_data_matrix(X)
    return NewtonProblem(data, BetaLoss.of(data, 1.0), Penalties(), None, extrapolate, 1.0)


def candidates_of(monkeypatch, state, gains):
    """Return the candidates where each try was to gain something, and the tries."""
    tries = []

    def started(self, begin, momentum):
        tries.append((begin.steps, momentum))
        after = replace(begin, loss=99.0, W=begin.W + 1.0)
        return after, gains.pop(0), None if momentum else f"shorter {len(tries)}"

    monkeypatch.setattr(NewtonProblem, "started", started)
    return list(newton_problem().candidates(state)), tries


def newton_state(**fields):
    W, Ht = np.ones((6, 2)), np.ones((4, 2))
    begun = {"loss": 10.0, "steps": "first", "W_before": W, "Ht_plain": Ht, "momentum": 0.5, "ceiling": 0.9}
    return NewtonState(W, Ht, **begun | fields)


def test_a_rejected_newton_step_is_tried_without_momentum_and_then_shorter(monkeypatch):
    state = newton_state()
    found, tries = candidates_of(monkeypatch, state, [-1.0] * newton.TRIES)
    assert len(tries) == newton.TRIES
    assert tries[:4] == [("first", 0.5), ("first", 0.0), ("shorter 2", 0.0), ("shorter 3", 0.0)]
    wanted = newton.SCHEDULE.accepted(0.5, 0.9)
    assert (found[0].momentum, found[0].ceiling) == (wanted.momentum, wanted.ceiling)
    below = newton.SCHEDULE.rejected(0.5)
    assert all((each.momentum, each.ceiling) == (below.momentum, below.ceiling) for each in found[1:-1])
    # The last one is the state itself, without memory.
    last = found[-1]
    assert last.W is state.W
    assert (last.loss, last.momentum, last.ceiling, last.W_before, last.Ht_plain) == (
        10.0,
        0.0,
        1.0,
        None,
        None,
    )


def test_tries_end_where_nothing_is_to_be_gained(monkeypatch):
    # 1e-14 of the loss drowns in rounding.
    _, tries = candidates_of(monkeypatch, newton_state(), [0.0, -1e-12, -0.9e-13])
    assert len(tries) == 3
    _, tries = candidates_of(monkeypatch, newton_state(momentum=0.0), [-0.9e-13])
    assert len(tries) == 1


@pytest.mark.parametrize(("fields", "n"), [({"W_before": None}, 1), ({"W_before": None, "steps": None}, 8)])
def test_after_an_iteration_that_kept_its_pair_one_try_is_enough(monkeypatch, fields, n):
    _, tries = candidates_of(monkeypatch, newton_state(momentum=0.0, **fields), [-1.0] * 8)
    assert len(tries) == n


@pytest.mark.parametrize(
    ("n_iter", "max_iter", "callback", "wanted"),
    [
        (0, 50, None, 1),
        (1, 50, None, 10),
        (8, 50, None, 3),
        (11, 50, None, 10),
        (11, 14, None, 3),
        (8, 50, 1, 1),
    ],
)
def test_small_tables_do_iterations_until_the_rule_looks(monkeypatch, n_iter, max_iter, callback, wanted):
    asked = []

    def compiled(self, state, n):
        asked.append(n)
        raise Stalled

    monkeypatch.setattr(NewtonProblem, "compiled", compiled)
    monkeypatch.setattr(newton, "NewtonState", lambda W, Ht: NewtonState(W, Ht, n_iter=n_iter))
    newton.scaled_newton(
        as_data_matrix(X), np.ones((6, 2)), np.ones((4, 2)), penalties=Penalties(), max_iter=max_iter,
        callback=(lambda progress: None) if callback else None,
    )  # fmt: skip
    assert asked == [wanted]


class Restart:
    """A restart that notes what is saved."""

    def __init__(self, seed, found=None):
        rng = np.random.default_rng(seed)
        self.W, self.Ht, self.options, self.run = rng.random((6, 2)), rng.random((4, 2)), {}, None
        self.saved = SimpleNamespace(
            load=lambda first: found, save=lambda *given: setattr(self, "kept", given)
        )


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_restarts_that_wait_take_the_place_of_those_that_ended(size, weighted):
    data = as_data_matrix(X, weights=np.arange(1.0, 7.0) if weighted else None)
    options = {"beta": 2.0, "penalties": Penalties(0.01, 0.02, 0.03, 0.04), "tol": 0.0, "free": None}
    problem = hals_problem(data, 2, penalties=options["penalties"], passes=inner_passes(data, 2), free=None)
    each = [Restart(seed) for seed in range(3)]
    together.advance_together(data, options, deque(each), 4, size)
    for seed, one in enumerate(each):
        assert (one.run.n_iter, one.run.stop_reason) == (4, StopReason.MAX_ITER)
        assert one.kept[:2] == (one.run.state, 4)
        assert one.kept[2] == one.run.history.seconds[-1] > 0
        state = AlternatingState(
            *(getattr(Restart(seed), name) for name in ("W", "Ht")), momentum=SCHEDULE.initial
        )
        for loss, violation in zip(one.run.history.loss, one.run.history["violation"], strict=True):
            state, measures = problem.step(state)
            assert (loss, violation) == pytest.approx((measures["loss"], measures["violation"]), rel=1e-7)
        np.testing.assert_allclose(one.run.state.W, state.W, rtol=1e-6, atol=1e-9)


def test_a_restart_with_enough_iterations_or_a_small_violation_ends():
    options = {"beta": 2.0, "penalties": Penalties(), "tol": 0.9, "free": None}
    begun = AlternatingState(*(np.ones(shape) for shape in ((6, 2), (4, 2))), momentum=SCHEDULE.initial)
    history = History({"n_iter": [1, 2], "seconds": [0.1, 0.2], "loss": [2.0, 1.0], "violation": [4.0, 3.9]})
    done = Restart(0, (begun, 2, 0.2, history))
    other = Restart(1)
    together.advance_together(as_data_matrix(X), options, deque([done, other]), 2, 1)
    assert (done.run.n_iter, done.run.stop_reason, done.run.state) == (2, StopReason.MAX_ITER, begun)
    assert other.run.n_iter == 2
    assert RelativeMeasure("violation", 0.9)(other.run.history) == (
        other.run.stop_reason is StopReason.CONVERGED
    )
    more = Restart(1)
    together.advance_together(as_data_matrix(X), options, deque([more]), 100, 1)
    assert more.run.stop_reason is StopReason.CONVERGED
    violations = more.run.history["violation"]
    assert violations[-1] <= 0.9 * violations[0] < min(violations[:-1])


def test_an_iteration_begins_with_the_extrapolated_factor():
    state = alternating(Ht_next=np.full((4, 2), 3.0))
    np.testing.assert_array_equal(state.initial_Ht(0.5), 3.0)
    np.testing.assert_array_equal(state.initial_Ht(0.0), 1.0)
