"""The loop: history, ends, clock, callback, interruption."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest

from nonneg._interruption import interrupt
from nonneg.exceptions import InterruptedFitWarning
from nonneg.iteration import Never, RelativeMeasure, StopReason, iterate
from nonneg.iteration.loop import Stalled


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
            with contextlib.suppress(KeyboardInterrupt):  # as Python does in finalizers
                interrupt()
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


def test_never_is_never():
    assert Never()(None) is False
