"""The momentum schedule, and factors extrapolated in two ways."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels.rows import extrapolated
from nonneg.solvers import alternating, newton
from nonneg.solvers.extrapolation import (
    LOWEST_FRACTION,
    Momentum,
    Schedule,
    extrapolate_bounded,
)

SCHEDULES = [alternating.SCHEDULE, newton.SCHEDULE]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_momentum_grows_to_its_ceiling_while_steps_are_accepted(schedule):
    state = schedule.accepted(0.0, 0.4)
    assert state.momentum == schedule.initial
    seen = [state]
    for _ in range(200):
        state = schedule.accepted(state.momentum, state.ceiling)
        assert state.momentum == min(state.ceiling, schedule.growth * seen[-1].momentum)
        assert state.ceiling == min(1.0, schedule.ceiling_growth * seen[-1].ceiling)
        seen.append(state)
    assert state == Momentum(1.0, 1.0, 0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_rejected_step_divides_the_momentum_and_bounds_it(schedule):
    assert schedule.rejected(0.6, 1) == Momentum(0.6 / schedule.decay, 0.6, 2)
    assert schedule.rejected(0.0) == Momentum(0.0, 1.0, 1)


def test_the_momentum_is_given_up_after_the_maximum_number_of_restarts():
    schedule = Schedule(0.5, growth=1.05, ceiling_growth=1.01, decay=1.5, max_restarts=4)
    assert [schedule.rejected(0.5, n).momentum > 0 for n in range(5)] == [True, True, True, False, False]
    assert newton.SCHEDULE.rejected(0.5, 100).momentum == 0.25


def test_extrapolated_factors(rng):
    new, old = rng.random((5, 3)), rng.random((5, 3))
    np.testing.assert_array_equal(extrapolated(new, old, 0.7), np.maximum((new - old) * 0.7 + new, 0))
    np.testing.assert_array_equal(
        extrapolate_bounded(new, old, 0.7), np.maximum(new + 0.7 * (new - old), LOWEST_FRACTION * new)
    )


def test_nothing_is_extrapolated_without_momentum_or_an_older_factor(rng):
    new = rng.random((5, 3))
    assert extrapolate_bounded(new, None, 0.7) is new
    assert extrapolate_bounded(new, 2 * new, 0.0) is new
