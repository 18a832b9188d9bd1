from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.references.cones import smallest_cone_by_programming, unit_rows

from nonneg.exceptions import InvalidParameterError, ShapeError
from nonneg.leastsquares import least_distance


def assert_optimal(rows, lower, found):
    """Feasible, stationary, complementary and without a gap: nothing else is the minimiser."""
    scale = max(1.0, found.squared_norm)
    assert found.violation <= 1e-10 * scale
    assert found.multipliers.min(initial=0.0) >= 0
    np.testing.assert_allclose(found.u, rows[found.active].T @ found.multipliers, atol=1e-9 * scale)
    np.testing.assert_allclose(rows[found.active] @ found.u, np.broadcast_to(lower, len(rows))[found.active])
    assert found.squared_norm == pytest.approx(found.dual_value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("n_points", "dimension"), [(1, 4), (10, 3), (40, 60), (3000, 30)])
def test_conditions_of_optimality(n_points, dimension, rng):
    points = unit_rows(rng.random((n_points, dimension)))
    assert_optimal(points, 1.0, least_distance(points))


def test_two_solvers_one_answer(rng):
    points = unit_rows(rng.random((25, 6)))
    axis, angle = smallest_cone_by_programming(points)
    found = least_distance(points)
    np.testing.assert_allclose(found.u / np.sqrt(found.squared_norm), axis, atol=1e-6)
    assert 1 / np.sqrt(found.squared_norm) == pytest.approx(np.cos(angle), abs=1e-9)


def test_right_sides_of_any_sign_and_size(rng):
    rows, inside = rng.standard_normal((40, 6)), 1e4 * rng.standard_normal(6)
    lower = rows @ inside - rng.random(40)
    found = least_distance(rows, lower)
    assert_optimal(rows, lower, found)
    expected = minimize(
        lambda u: u @ u / 1e8,
        inside,
        jac=lambda u: 2 * u / 1e8,
        constraints={"type": "ineq", "fun": lambda u: (rows @ u - lower) / 1e4, "jac": lambda u: rows / 1e4},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    np.testing.assert_allclose(found.u, expected.x, rtol=1e-5)


def test_nothing_is_asked_where_zero_satisfies_all(rng):
    found = least_distance(rng.standard_normal((5, 3)), -1.0)
    assert found.squared_norm == 0
    assert len(found.active) == 0


def test_repeated_and_scaled_inequalities():
    rows = np.repeat(np.array([[1.0, 0.0], [0.0, 2.0]]), 50, axis=0)
    found = least_distance(rows)
    np.testing.assert_allclose(found.u, [1.0, 0.5], atol=1e-12)


def test_contradictions_are_refused():
    with pytest.raises(InvalidParameterError, match="No vector satisfies the inequalities"):
        least_distance(np.array([[1.0, 0.0], [-1.0, 0.0]]))
    with pytest.raises(InvalidParameterError, match="No vector satisfies the inequalities"):
        least_distance(np.zeros((2, 3)))


def test_wrong_shapes_are_refused():
    with pytest.raises(ShapeError, match="one inequality a row"):
        least_distance(np.ones(3))
    with pytest.raises(ShapeError, match="2 right sides"):
        least_distance(np.ones((2, 3)), np.ones(3))
