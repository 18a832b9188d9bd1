"""A batch of restarts in the loop: rules, pruning, histories, and how it ended."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.transforms.cases import composite_frames

from nonneg.iteration import History, Run, StopReason
from nonneg.iteration.loop import Stalled
from nonneg.transforms import frame_covariances, loop, theory
from nonneg.transforms.initialization import initial_state
from nonneg.transforms.loop import (
    BatchRun,
    SmallDecrease,
    SmallGradient,
    _LoopStep,
    last_values,
    restart_history,
)
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.state import FactorState, TransformState

NAN = float("nan")


def history_of(**columns):
    found = History()
    for at, values in enumerate(zip(*columns.values(), strict=True)):
        found.record(at + 1, 0.5 * at, dict(zip(columns, values, strict=True)))
    return found


def state_of(n_restarts, n_done=0):
    transform = np.tile(np.eye(2), (n_restarts, 1, 1))
    return TransformState(transform, transform, None, None, np.arange(n_restarts), n_done=n_done)


def test_a_decrease_is_judged_over_ten_iterations_per_entry():
    losses = [np.array([100.0 - at, 50.0]) for at in range(11)]
    history = history_of(loss=losses)
    assert not SmallDecrease(0.99 / 4, 4)(history)
    assert not SmallDecrease(9.99 / 4, 4)(history)
    assert SmallDecrease(10.0 / 4, 4)(history)  # ten in ten iterations
    assert not SmallDecrease(0.0, 4)(history)
    assert not SmallDecrease(100.0, 4)(history_of(loss=losses[:10]))


def test_all_gradients_must_be_small():
    history = history_of(gradient=[np.array([5.0, 5.0]), np.array([1.0, 2.0])])
    assert SmallGradient(2.0)(history)
    assert not SmallGradient(1.9)(history)
    assert not SmallGradient(0.0)(history)


def test_restarts_that_ended_earlier_have_their_last_values():
    history = history_of(
        loss=[np.array([3.0, 9.0, NAN]), np.array([2.0, NAN, NAN]), np.array([1.0, NAN, NAN])]
    )
    values, counts = last_values(history, "loss", 3)
    np.testing.assert_array_equal(values, [1.0, 9.0, NAN])
    np.testing.assert_array_equal(counts, [3, 1, 0])
    values, counts = last_values(history, "other", 2)
    assert np.isnan(values).all()
    assert counts.tolist() == [0.0, 0.0]
    first, second = (restart_history(history, at, 3) for at in (0, 1))
    assert (first.loss, first.n_iter, first.seconds) == ([3.0, 2.0, 1.0], [1, 2, 3], [0.0, 0.5, 1.0])
    assert second.loss == [9.0]
    alone = history_of(loss=[2.0, 1.0])
    assert restart_history(alone, 0, 1) is alone
    assert last_values(alone, "loss", 1)[0].tolist() == [1.0]


def batch_run(losses, restarts, n, reason=StopReason.CONVERGED):
    state = replace(state_of(len(restarts)), restarts=np.array(restarts))
    return BatchRun(Run(state, len(losses), reason, history_of(loss=losses), reason.value), n)


def test_the_best_restart_is_one_that_was_not_pruned():
    losses = [np.array([1.0, 5.0, 4.0]), np.array([NAN, 3.0, 2.0])]
    run = batch_run(losses, [1, 2], 3)
    assert (run.best, run.best_index) == (2, 1)
    assert run.pruned.tolist() == [True, False, False]
    assert run.n_iter.tolist() == [1, 2, 2]
    assert run.losses.tolist() == [1.0, 3.0, 2.0]
    assert run.best_history.loss == [4.0, 2.0]
    lost = batch_run([np.array([NAN, NAN, NAN])], [1, 2], 3)
    assert lost.best == 1
    stopped = [StopReason.INTERRUPTED, StopReason.CALLBACK]
    for reason in StopReason:
        assert batch_run(losses, [1, 2], 3, reason).was_stopped is (reason in stopped)


def step_of(losses, *, steps=1.0, n_restarts=None, **options):
    """A step that returns given losses, one row after another."""
    rows = iter(np.asarray(losses, dtype=float))

    def step(state):
        found = next(rows)[: state.batch] if state.batch < len(losses[0]) else next(rows)
        values = {"loss": found, "step": np.full(len(found), steps)}
        return replace(state, n_done=state.n_done + 1), values

    given = {"prune_every": None, "max_iter": 100, "may_stall": False} | options
    return _LoopStep(step, None, len(losses[0]) if n_restarts is None else n_restarts, **given)


def test_measures_are_numbers_of_one_restart_and_arrays_of_several():
    _, measures = step_of([[3.0]])(state_of(1))
    assert measures == {"loss": 3.0, "step": 1.0}
    _, measures = step_of([[3.0, 4.0]], n_restarts=3)(replace(state_of(2), restarts=np.array([0, 2])))
    np.testing.assert_array_equal(measures["loss"], [3.0, NAN, 4.0])


@pytest.mark.parametrize(
    ("may_stall", "steps", "stalls"), [(True, 0.0, True), (True, 0.1, False), (False, 0.0, False)]
)
def test_a_search_that_moves_nowhere_ends_after_it_was_recorded(may_stall, steps, stalls):
    step = step_of([[3.0, 4.0]] * 2, steps=steps, may_stall=may_stall)
    state, _ = step(state_of(2))
    if stalls:
        with pytest.raises(Stalled):
            step(state)
    else:
        assert step(state)[0].n_done == 2


def test_restarts_without_hope_are_pruned():
    # Two rounds of two iterations: what is left is three rounds at the rate of the last one.
    step = step_of([[9.0] * 3, [10.0, 12.0, 20.0], [9.0] * 3, [9.0, 10.0, 19.9]], prune_every=2, max_iter=10)
    state = state_of(3)
    for _ in range(4):
        state, _ = step(state)
        if state.n_done == 2:
            np.testing.assert_array_equal(state.pruning_losses, [10.0, 12.0, 20.0])
            assert state.batch == 3
    # 19.9 - 3 x 0.1 stays above 9; 10 - 3 x 2 does not.
    assert state.restarts.tolist() == [0, 1]
    np.testing.assert_array_equal(state.pruning_losses, [9.0, 10.0])


def test_none_is_pruned_at_the_last_iteration_or_between_rounds():
    step = step_of([[1.0, 9.0]] * 4, prune_every=2, max_iter=4)
    state = state_of(2)
    for _ in range(4):
        state, _ = step(state)
    assert state.batch == 2


def test_transforms_are_made_orthogonal_now_and_then(monkeypatch):
    made = []
    monkeypatch.setattr(loop, "reorthogonalized", lambda state, data: made.append(state.n_done) or state)
    step = step_of([[1.0]] * 60)
    state = state_of(1)
    for data in (None, "frames"):
        step.data, state = data, replace(state, n_done=0)
        for _ in range(30):
            state, _ = step(state)
    assert made == [loop.REORTHOGONALIZATION_PERIOD]


def test_the_bounds_of_a_divergence_come_from_four_searches(monkeypatch):
    seen = []

    def searched(found, true, **options):
        seen.append(options)
        return 2.0, np.eye(3)

    monkeypatch.setattr(theory, "largest_sampling_divergence", searched)
    rng = np.random.default_rng(0)
    true = np.tile(np.eye(3), (5, 1, 1))
    found = true * (1 + 0.1 * rng.random((5, 1, 1)))
    bounds = theory.divergence_bounds(0.5, found, true)
    assert seen == [{"eps0": 0.0, "n_init": 4, "rng": None}]
    assert (bounds.divergence, bounds.largest, bounds.gap) == (0.5, 2.0, 1.5)
    deviation = theory.uniform_deviation(found, true)
    assert bounds.deviation == pytest.approx(15 * deviation**2 / (1 - deviation))


@pytest.mark.parametrize("method", ["tl", "jd", "nmf"])
def test_every_part_counts_its_iterations_and_knows_its_rule(method, monkeypatch):
    data = frame_covariances(composite_frames(4, 12, 6, 3))
    options = TransformOptions(eps0=1e-3)
    state = initial_state(data, 3, init=None, n_init=2, rng=0)
    given = data
    if method == "nmf":
        state = FactorState(state.activations, state.components, state.restarts)
        given = data.variances(np.eye(6))[None]
    elif method == "jd":
        state = replace(state, activations=None, components=None)
    seen = {}

    def noted(step, state, **more):
        seen.update(more)
        return iterate(step, state, **more)

    iterate = loop.iterate
    monkeypatch.setattr(loop, "iterate", noted)
    run = loop.LoopOptions(3, tol=1e-9, gradient_tol=1e-9).run(method, state, given, options)
    assert run.state.n_done == 3
    assert run.n_iter.tolist() == [3, 3]
    rule = seen["stop"]
    assert rule == (SmallGradient(1e-9) if method == "jd" else SmallDecrease(1e-9, 12 * 6))
