"""The loop: history, ends, clock, callback, interruption."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import pytest

from nonneg._interruption import pending
from nonneg.exceptions import InterruptedFitWarning, InvalidParameterError, LostRowsError
from nonneg.iteration import History, RelativeMeasure, StopReason, iterate
from nonneg.iteration.loop import Finished, Stalled


@dataclass(frozen=True)
class Halving:
    """A state whose loss is halved by each step."""

    value: float = 1.0


def halve(state):
    new = replace(state, value=state.value / 2)
    return new, {"loss": new.value}


def test_it_runs_to_the_limit_and_records_every_iteration():
    run = iterate(halve, Halving(), max_iter=4)
    assert run.stop_reason is StopReason.MAX_ITER
    assert run.n_iter == 4
    assert run.state == Halving(1 / 16)
    assert run.history.loss == [1 / 2, 1 / 4, 1 / 8, 1 / 16]
    assert run.history.n_iter == [1, 2, 3, 4]
    assert run.history.seconds == sorted(run.history.seconds)


def test_no_iterations_give_the_start_and_an_empty_history():
    run = iterate(halve, Halving(), max_iter=0, stop=RelativeMeasure("loss", 0.5))
    assert run.state == Halving()
    assert run.n_iter == len(run.history) == 0


def test_a_rule_ends_it():
    run = iterate(halve, Halving(), max_iter=50, stop=RelativeMeasure("loss", 0.1))
    assert run.stop_reason is StopReason.CONVERGED
    assert run.history.loss[-1] <= 0.1 * run.history.loss[0] < run.history.loss[-2]


def test_a_rule_that_is_met_at_the_last_iteration_counts_as_met():
    run = iterate(halve, Halving(), max_iter=5, stop=lambda history: len(history) == 5)
    assert run.stop_reason is StopReason.CONVERGED


@pytest.mark.parametrize(("answer", "n_iter"), [(True, 3), (np.True_, 3), (False, 6), (None, 6)])
def test_the_callback_stops_by_saying_true(answer, n_iter):
    seen = []

    def callback(progress):
        seen.append((progress.n_iter, progress.state.value, len(progress.history)))
        return answer if progress.n_iter == 3 else None

    run = iterate(halve, Halving(), max_iter=6, callback=callback)
    assert run.n_iter == n_iter == len(seen)
    assert seen[2] == (3, 1 / 8, 3)
    assert run.stop_reason is (StopReason.CALLBACK if n_iter == 3 else StopReason.MAX_ITER)


def test_an_error_of_the_callback_is_not_swallowed():
    def callback(progress):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        iterate(halve, Halving(), max_iter=6, callback=callback)


def test_callable_measures_are_evaluated_off_the_clock():
    def step(state):
        def slow():
            time.sleep(0.05)
            return state.value

        return state, {"loss": state.value, "costly": slow}

    run = iterate(step, Halving(), max_iter=3)
    assert run.history["costly"] == [1.0, 1.0, 1.0]
    assert run.history.seconds[-1] < 0.05


def test_the_clock_counts_the_steps():
    def step(state):
        time.sleep(0.02)
        return state, {}

    run = iterate(step, Halving(), max_iter=2, callback=lambda progress: time.sleep(0.05))
    assert 0.04 <= run.history.seconds[-1] < 0.09


def test_a_stalled_step_ends_it_with_the_last_state():
    def step(state):
        if state.value < 0.2:
            raise Stalled
        return halve(state)

    run = iterate(step, Halving(), max_iter=50)
    assert run.stop_reason is StopReason.STALLED
    assert run.state.value == 1 / 8
    assert run.n_iter == len(run.history) == 3


@pytest.mark.parametrize("where", ["step", "callback", "measure"])
def test_ctrl_c_returns_the_last_state_with_a_warning(where):
    def interrupt():
        raise KeyboardInterrupt

    def step(state):
        if where == "step" and state.value == 1 / 4:
            interrupt()
        new, measures = halve(state)
        if where == "measure" and new.value == 1 / 8:
            measures = {**measures, "costly": interrupt}
        return new, measures

    def callback(progress):
        if where == "callback" and progress.n_iter == 2:
            interrupt()

    with pytest.warns(InterruptedFitWarning, match=r"Interrupted after 2 iterations.*best factors so far"):
        run = iterate(step, Halving(), max_iter=50, callback=callback)
    assert run.stop_reason is StopReason.INTERRUPTED
    assert run.n_iter == len(run.history) == 2
    assert run.state == Halving(1 / 4)


def test_ctrl_c_that_a_callback_lost_ends_the_run_and_no_later_one():
    def step(state):
        if state.value == 1 / 4:
            pending.set()  # and the exception was ignored, as Python does in finalizers
        return halve(state)

    with pytest.warns(InterruptedFitWarning, match="Interrupted after 3 iterations"):
        run = iterate(step, Halving(), max_iter=50)
    assert run.state == Halving(1 / 8)
    assert iterate(halve, Halving(), max_iter=5).n_iter == 5


def test_ctrl_c_in_the_first_step_returns_the_initial_state():
    def step(state):
        raise KeyboardInterrupt

    with pytest.warns(InterruptedFitWarning, match="after 0 iterations"):
        run = iterate(step, Halving(), max_iter=5)
    assert run.state == Halving()


def test_a_step_may_stand_for_several_iterations():
    run = iterate(lambda state: (state, {"loss": 1.0, "iterations": 3}), Halving(), max_iter=7)
    assert run.history.n_iter == [3, 6, 9]
    assert run.n_iter == 9
    assert "iterations" not in run.history


def test_a_step_may_say_that_its_state_is_good_enough():
    def step(state):
        if state.value < 0.2:
            raise Finished("the residual is small")
        return halve(state)

    run = iterate(step, Halving(), max_iter=50)
    assert (run.stop_reason, run.sentence, run.n_iter) == (StopReason.CONVERGED, "the residual is small", 3)
    assert iterate(halve, Halving(), max_iter=2).sentence == StopReason.MAX_ITER.value


def test_a_rule_may_say_why_it_ended_a_run():
    class Rule:
        sentence = "three are enough"

        def __call__(self, history):
            return len(history) == 3

    run = iterate(halve, Halving(), max_iter=50, stop=Rule())
    assert (run.stop_reason, run.sentence) == (StopReason.CONVERGED, "three are enough")


def test_a_callback_must_be_a_function():
    with pytest.raises(
        InvalidParameterError, match="callback must be None or a function of one argument, got 3"
    ):
        iterate(halve, Halving(), max_iter=2, callback=3)


def test_lost_rows_are_told_with_what_was_reached():
    def step(state):
        if state.value < 0.3:
            raise LostRowsError("gone")
        return halve(state)

    with pytest.raises(LostRowsError) as error:
        iterate(step, Halving(), max_iter=9)
    assert (error.value.run.state, error.value.run.n_iter) == (Halving(0.25), 2)
    assert error.value.run.history.loss == [0.5, 0.25]


class Memory:
    """A checkpoint that notes what is saved, and a reporter that notes what is shown."""

    def __init__(self, found=None, *, due=False):
        self.found, self.is_due = found, due
        self.saved, self.shown = [], []

    def load(self, state):
        return self.found

    def due(self):
        return self.is_due

    def save(self, state, n_iter, seconds, history):
        self.saved.append(n_iter)

    def resume(self, n_iter):
        self.shown.append(("resume", n_iter))

    def update(self, progress, max_iter):
        self.shown.append((progress.n_iter, max_iter))

    def close(self, sentence):
        self.shown.append(sentence)


def met_at(n):
    return lambda history: len(history) >= n


@pytest.mark.parametrize(
    ("due", "stop", "max_iter", "saved"),
    [(False, None, 3, [3]), (True, None, 3, [1, 2, 3, 3]), (False, met_at(2), 9, [2]), (False, None, 0, [])],
)
def test_a_run_is_saved_when_due_and_at_its_end(due, stop, max_iter, saved):
    memory = Memory(due=due)
    iterate(halve, Halving(), max_iter=max_iter, stop=stop, checkpoint=memory, progress=memory)
    assert memory.saved == saved
    assert memory.shown[:-1] == [(n, max_iter) for n in range(1, max(saved, default=0) + 1)]


@pytest.mark.parametrize(
    ("stop", "max_iter", "n_iter", "saved", "reason"),
    [
        (None, 4, 4, [4], StopReason.MAX_ITER),
        (None, 2, 2, [], StopReason.MAX_ITER),
        (met_at(2), 9, 2, [], StopReason.CONVERGED),
        (met_at(3), 9, 3, [3], StopReason.CONVERGED),
    ],
)
def test_a_saved_run_goes_on_from_where_it_was(stop, max_iter, n_iter, saved, reason):
    half = iterate(halve, Halving(), max_iter=2)
    memory = Memory((half.state, 2, 10.0, half.history))
    run = iterate(halve, Halving(), max_iter=max_iter, stop=stop, checkpoint=memory, progress=memory)
    assert (run.n_iter, run.stop_reason, memory.saved) == (n_iter, reason, saved)
    assert run.state == Halving(0.5**n_iter)
    assert memory.shown[:-1] == [("resume", 2), *((n, max_iter) for n in range(3, n_iter + 1))]
    assert n_iter == 2 or run.history.seconds[-1] >= 10.0


def test_a_rule_is_not_asked_before_the_first_iteration():
    empty = Memory((Halving(), 0, 0.0, History()))
    run = iterate(halve, Halving(), max_iter=3, stop=lambda history: not len(history), checkpoint=empty)
    assert run.n_iter == 3


def test_a_saved_run_that_its_first_iteration_ended_is_not_continued():
    first = iterate(halve, Halving(), max_iter=1)
    memory = Memory((first.state, 1, 0.1, first.history))
    run = iterate(halve, Halving(), max_iter=5, stop=met_at(1), checkpoint=memory)
    assert (run.n_iter, run.stop_reason) == (1, StopReason.CONVERGED)
