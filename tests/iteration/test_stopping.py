"""Small rules over the history."""

from __future__ import annotations

import pytest

from nonneg.iteration import History, RelativeDecrease, RelativeMeasure, SlowDecrease


def history_of(**columns):
    history = History()
    for i, values in enumerate(zip(*columns.values(), strict=True)):
        history.record(i + 1, 0.1 * i, dict(zip(columns, values, strict=True)))
    return history


@pytest.mark.parametrize(
    ("values", "tol", "ends"),
    [
        ([8.0, 1.0], 0.125, True),
        ([8.0, 1.01], 0.125, False),
        ([8.0], 0.5, False),
        ([0.0], 1e-4, True),
        ([8.0, 0.0], 0.0, False),
        ([8.0, float("nan")], 0.5, False),
    ],
)
def test_a_measure_relative_to_its_first_value(values, tol, ends):
    assert RelativeMeasure("violation", tol)(history_of(violation=values)) is ends


def test_a_relative_measure_waits_for_the_first_iteration():
    history = History({"violation": []})
    assert RelativeMeasure("violation", 0.5)(history) is False


@pytest.mark.parametrize(
    ("losses", "tol", "ends"),
    [
        ([200.0, 9.0, 8.0, 8.0], 0.5, False),
        ([8.0, 4.0, 3.0, 2.0], 0.5, True),
        ([8.0, 4.0, 3.0, 2.0], 0.49, False),
        ([8.0, 2.0], 0.9, False),
        ([8.0, 8.0, 8.0, 8.0], 0.0, False),
        ([8.0, 8.0, 8.0, 8.0], 1e-9, True),
        ([1.0, 1.0, 1.0, -1e-20], 1.0, True),
    ],
)
def test_a_decrease_of_the_error_within_a_window(losses, tol, ends):
    assert bool(RelativeDecrease(tol, window=3, per=3)(history_of(loss=losses))) is ends


def test_the_window_is_looked_at_when_it_is_full():
    rule = RelativeDecrease(1e-3, window=3, per=3)
    ends = [bool(rule(history_of(loss=[1.0] * n))) for n in range(1, 9)]
    assert ends == [False, False, False, True, False, False, True, False]


def test_a_slow_decrease_is_the_mean_over_iterations_however_they_are_recorded():
    rule = SlowDecrease(0.01, window=5)
    errors = [1.0, 0.5, 0.3, 0.25, 0.24, 0.23, 0.228, 0.226, 0.224, 0.222, 0.22]
    losses = [0.5 * error**2 for error in errors]
    ends = [rule(history_of(loss=losses[:n])) for n in range(1, 12)]
    assert ends == [False] * 10 + [True]
    few = History({"n_iter": [1, 6, 11], "seconds": [0.0] * 3, "loss": [losses[0], losses[5], losses[10]]})
    assert rule(few)
    assert not SlowDecrease(0.001, window=5)(few)
    assert not SlowDecrease(0.0, window=5)(few)


def test_errors_are_compared_every_ten_iterations():
    ends = [bool(RelativeDecrease()(history_of(loss=[1.0] * n))) for n in range(1, 23)]
    assert [n for n, ended in enumerate(ends, 1) if ended] == [11, 21]
