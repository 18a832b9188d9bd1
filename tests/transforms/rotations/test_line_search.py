"""Line searches of a batch: those of SciPy, one problem at a time, and honest about failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import line_search

from nonneg.transforms.rotations.line_search import backtracking, strong_wolfe

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "parabola": (lambda t: (t - 0.3) ** 2, lambda t: 2 * (t - 0.3)),
    "far": (lambda t: (t - 11.0) ** 2, lambda t: 2 * (t - 11.0)),
    "steep": (lambda t: -50 * t + np.exp(8 * t), lambda t: -50 + 8 * np.exp(8 * t)),
    "wave": (lambda t: np.cos(3 * t) - 0.4 * t, lambda t: -3 * np.sin(3 * t) - 0.4),
    "quartic": (lambda t: t**4 - 3 * t**3 + t**2 - 0.7 * t, lambda t: 4 * t**3 - 9 * t**2 + 2 * t - 0.7),
    "very far": (lambda t: (t - 300.0) ** 2, lambda t: 2 * (t - 300.0)),
    "ripples": (
        lambda t: 0.01 * t * t - t + 0.1 * np.sin(7 * t),
        lambda t: 0.02 * t - 1 + 0.7 * np.cos(7 * t),
    ),
    "flat": (lambda t: -0.01 * t / (1 + t * t), lambda t: -0.01 * (1 - t * t) / (1 + t * t) ** 2),
}


class Lines:
    """One function a problem; the point is the step itself."""

    def __init__(self, names: list[str]) -> None:
        self.functions = [FUNCTIONS[name] for name in names]
        self.n_slopes = 0

    def at(self, step: Any) -> Any:
        return (np.array(step),)

    def value(self, point: Any) -> Any:
        return np.array([f(t) for (f, _), t in zip(self.functions, point[0], strict=True)])

    def slope(self, point: Any, step: Any) -> Any:
        self.n_slopes += 1
        return np.array([d(t) for (_, d), t in zip(self.functions, point[0], strict=True)])


def search(method: Any, names: list[str], **options: Any) -> Any:
    lines = Lines(names)
    zero = np.zeros(len(names))
    start = lines.at(zero)
    return method(lines, start, lines.value(start), lines.slope(start, zero), **options)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_strong_wolfe_makes_the_trials_of_scipy(name: str) -> None:
    f, d = FUNCTIONS[name]
    expected = line_search(
        lambda x: f(x[0]), lambda x: np.array([d(x[0])]), np.zeros(1), np.ones(1), np.array([d(0.0)]), f(0.0)
    )[0]
    found = search(strong_wolfe, [name])
    assert found.succeeded[0]
    assert found.step[0] == pytest.approx(expected, rel=1e-10)
    assert found.value[0] == f(found.step[0])
    assert found.point[0][0] == found.step[0]


@pytest.mark.parametrize("method", [strong_wolfe, backtracking])
def test_a_batch_is_as_many_single_searches(method: Any) -> None:
    names = sorted(FUNCTIONS)
    together = search(method, names)
    for i, name in enumerate(names):
        alone = search(method, [name])
        assert together.step[i] == alone.step[0]
        assert together.value[i] == alone.value[0]
        assert together.point[0][i] == alone.point[0][0]
        assert together.succeeded[i] == alone.succeeded[0]


def test_backtracking_stops_at_the_first_decrease() -> None:
    found = search(backtracking, ["parabola", "steep", "far"])
    assert found.step.tolist() == [0.5, 0.25, 1.0]
    assert found.n_trials == 3
    assert found.succeeded.all()


class Rising(Lines):
    """Values that only rise, with a slope that promises otherwise; or that are not numbers."""

    def __init__(self, value: float) -> None:
        self.given = value

    def value(self, point: Any) -> Any:
        return np.where(point[0] == 0, 0.0, self.given)

    def slope(self, point: Any, step: Any) -> Any:
        return np.full(1, -1.0)


@pytest.mark.parametrize("value", [1.0, np.nan, np.inf])
@pytest.mark.parametrize("method", [strong_wolfe, backtracking])
def test_a_search_that_fails_says_so_and_stays(method: Any, value: float) -> None:
    line, zero = Rising(value), np.zeros(1)
    found = method(line, (zero,), zero, np.full(1, -1.0))
    assert not found.succeeded[0]
    assert found.step[0] == 0
    assert found.value[0] == 0
    assert found.point[0][0] == 0
    uphill = method(line, (zero,), zero, np.zeros(1))
    assert uphill.succeeded[0]
    assert uphill.n_trials == 0


def test_too_few_trials_keep_the_best_decrease() -> None:
    found = search(strong_wolfe, ["far"], max_trials=1)
    assert not found.succeeded[0]
    assert found.step[0] == 1.0
    assert found.value[0] == 100.0


class Drowned(Lines):
    """A slope at the rounding of values that are lower only at steps too small to be worth a look."""

    def value(self, point: Any) -> Any:
        return np.where((point[0] > 0) & (point[0] < 1e-3), 500.0 - 1e-13, 500.0)

    def slope(self, point: Any, step: Any) -> Any:
        return np.full(1, -1e-13)


def test_strong_wolfe_ends_where_only_rounding_is_left() -> None:
    zero, value = np.zeros(1), np.full(1, 500.0)
    found = strong_wolfe(Drowned([]), (zero,), value, np.full(1, -1e-13))
    assert found.n_trials == 1
    assert found.succeeded[0]
    assert found.step[0] == 0
    assert found.value[0] == 500.0
    # A slope that promises more than rounding is followed.
    found = strong_wolfe(Drowned([]), (zero,), value, np.full(1, -1e-9))
    assert found.n_trials > 1
    assert 0 < found.step[0] < 1e-3
