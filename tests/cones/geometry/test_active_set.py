from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from nonneg.cones.geometry.active_set import nonnegative_quadratic


def value(gram, cross, x):
    return 0.5 * x @ gram @ x - cross @ x


def slopes_on_simplex(gram, cross, x):
    slopes = cross - gram @ x
    return slopes - x @ slopes


@pytest.mark.parametrize(("rows", "columns"), [(3, 6), (12, 12), (60, 25), (40, 90)])
def test_nonnegative_minimiser_is_scipys(rows, columns, rng):
    A, b = rng.standard_normal((rows, columns)), rng.standard_normal(rows)
    gram, cross = A.T @ A, A.T @ b
    found, (expected, _) = nonnegative_quadratic(gram, cross), nnls(A, b)
    assert found.min() >= 0
    assert value(gram, cross, found) <= value(gram, cross, expected) + 1e-11
    if rows >= columns:  # a single minimizer
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(("n_points", "dimension"), [(4, 2), (30, 3), (50, 80), (200, 30)])
def test_minimiser_on_the_simplex_satisfies_its_conditions(n_points, dimension, rng):
    points = rng.standard_normal((n_points, dimension))
    gram, cross = points @ points.T, rng.standard_normal(n_points)
    found = nonnegative_quadratic(gram, cross, on_simplex=True)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1, abs=1e-12)
    slopes = slopes_on_simplex(gram, cross, found)
    assert slopes.max() < 1e-10
    assert np.abs(slopes[found > 0]).max() < 1e-10


def test_a_start_is_used_and_changes_nothing(rng):
    points = rng.standard_normal((60, 20))
    gram, cross = points @ points.T, 0.5 * np.square(points).sum(axis=1)
    cold = nonnegative_quadratic(gram, cross, on_simplex=True)
    for start in (cold, np.ones(60), np.eye(60)[3]):
        warm = nonnegative_quadratic(gram, cross, on_simplex=True, start=start)
        np.testing.assert_allclose(warm, cold, atol=1e-9)


def test_twins_share_a_weight_and_lines_are_no_obstacle():
    # A smallest ball about points on a line, the ends given three times.
    line = np.array([0.0, 0.0, 0.0, 1.0, 0.25, 1.0, 0.5, 1.0])[:, None]
    gram = line @ line.T
    weights = nonnegative_quadratic(gram, 0.5 * np.diagonal(gram), on_simplex=True)
    assert weights[:3].sum() == pytest.approx(0.5, abs=1e-9)
    assert weights[[3, 5, 7]].sum() == pytest.approx(0.5, abs=1e-9)


def test_no_variables_and_one_variable():
    assert nonnegative_quadratic(np.zeros((0, 0)), np.zeros(0)).shape == (0,)
    assert nonnegative_quadratic(np.array([[2.0]]), np.array([3.0])) == pytest.approx([1.5])
    assert nonnegative_quadratic(np.array([[2.0]]), np.array([-3.0])) == pytest.approx([0.0])
    assert nonnegative_quadratic(np.array([[0.0]]), np.array([0.0]), on_simplex=True) == pytest.approx([1.0])


def test_inputs_are_not_changed(rng):
    A = rng.standard_normal((9, 6))
    gram, cross, start = A.T @ A, A.T @ np.ones(9), np.ones(6)
    kept = gram.copy(), cross.copy(), start.copy()
    nonnegative_quadratic(gram, cross, on_simplex=True, start=start)
    for now, before in zip((gram, cross, start), kept, strict=True):
        np.testing.assert_array_equal(now, before)
