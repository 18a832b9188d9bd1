from __future__ import annotations

import numpy as np
import pytest
from tests.references.cones import cones_of_clusters, greedy_clusters, unit_rows

from nonneg.cones.geometry.separation import angles_between, cone_separation, largest_angles_in_orthant
from nonneg.data import as_data_matrix
from nonneg.datasets.cones import equiangular_directions


def plane(*polar):
    """Unit vectors at the given angles to the first axis."""
    return np.stack([np.cos(polar), np.sin(polar)], axis=1)


@pytest.mark.parametrize("step", [0.7, 0.09, 1e-4, 1e-10])
def test_angles_between_axes_keep_small_ones(step):
    found = angles_between(plane(0.1, 0.1 + step, 0.1 + 2 * step))
    expected = step * np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    np.testing.assert_allclose(found, expected, rtol=max(1e-9, 1e-15 / step), atol=0)


def test_equiangular_directions_are_as_far_apart_as_asked():
    separation = cone_separation(equiangular_directions(6, 50, 0.81, rng=0), np.full(6, 0.2))
    assert separation.smallest_between == pytest.approx(0.81)
    assert separation.required == pytest.approx(0.8)
    assert separation.holds


@pytest.mark.parametrize(
    ("angles", "between", "holds"),
    [
        ((0.1, 0.1), 0.41, True),
        ((0.1, 0.1), 0.39, False),
        ((0.2, 0.1), 0.69, False),
        ((0.1, 0.2), 0.71, True),
    ],
)
def test_the_assumption_is_three_times_the_largest_plus_the_second(angles, between, holds):
    separation = cone_separation(plane(0.3, 0.3 + between), np.array(angles))
    assert separation.holds is holds
    largest, second = max(angles), min(angles)
    assert separation.required == pytest.approx(3 * largest + second)
    assert separation.widest_within == pytest.approx(2 * largest)
    assert separation.narrowest_gap == pytest.approx(between - sum(angles))
    assert separation.pairs == (0, 1)


def test_the_nearest_two_are_named():
    assert cone_separation(plane(0.0, 0.9, 1.2), np.full(3, 0.01)).pairs == (1, 2)


def test_one_cone_is_apart_from_nothing():
    separation = cone_separation(plane(0.3), np.array([0.2]))
    assert separation.holds
    assert separation.clusters_are_exact
    assert separation.smallest_between == np.inf


def test_clusters_may_be_exact_where_the_assumption_fails():
    # The wide cone is far away from the narrow ones, which (2) does not look at.
    axes, angles = plane(0.0, 0.55, 1.5), np.array([0.01, 0.01, 0.2])
    separation = cone_separation(axes, angles)
    assert not separation.holds
    assert separation.clusters_are_exact
    points = np.concatenate(
        [plane(*(a + np.linspace(-s, s, 5))) for a, s in zip((0.0, 0.55, 1.5), angles, strict=True)]
    )
    for first in range(15):
        labels = greedy_clusters(points, 3, first)
        assert all(len(set(labels[start : start + 5])) == 1 for start in (0, 5, 10))


def test_smallest_cones_may_fail_the_assumption_that_wider_ones_satisfy():
    # Two points of each cone, on the side of the other cone: the smallest cones move towards one another.
    between, wide, narrow = 0.405, 0.1, 0.08
    middle, towards, across = (
        np.array([1.0, 1.0, 1.0]),
        np.array([1.0, -1.0, 0.0]),
        np.array([1.0, 1.0, -2.0]),
    )
    middle, towards, across = unit_rows(np.stack([middle, towards, across]))
    axes, points = [], []
    for side in (-1, 1):
        axes.append(np.cos(between / 2) * middle + side * np.sin(between / 2) * towards)
        place = between / 2 - 0.999 * np.arccos(np.cos(wide) / np.cos(narrow))
        center = np.cos(place) * middle + side * np.sin(place) * towards
        points += [np.cos(narrow) * center + sign * np.sin(narrow) * across for sign in (-1, 1)]
    axes, points, labels = np.array(axes), np.array(points), np.array([0, 0, 1, 1])
    assert np.all(np.arccos(np.einsum("ij,ij->i", points, axes[labels])) <= wide)
    assert cone_separation(axes, np.full(2, wide)).holds
    found = cones_of_clusters(as_data_matrix(points), labels, 2)
    np.testing.assert_allclose(found.angles, narrow, rtol=1e-9)
    assert not cone_separation(found.axes, found.angles).holds


def test_cones_that_touch_are_not_exact():
    assert not cone_separation(plane(0.0, 0.5), np.array([0.2, 0.2])).clusters_are_exact


def test_the_widest_cone_in_the_orthant_touches_its_wall(rng):
    axes = unit_rows(rng.random((6, 4)) + 0.05)
    widest = largest_angles_in_orthant(axes)
    np.testing.assert_allclose(np.cos(widest), np.sqrt(1 - axes.min(axis=1) ** 2), rtol=1e-12)
    for axis, angle in zip(axes, widest, strict=True):
        around = rng.standard_normal((20_000, 4))
        around = unit_rows(around - np.outer(around @ axis, axis))
        # Towards the wall that is nearest, the lowest point of the circle.
        wall = -np.eye(4)[axis.argmin()]
        around[0] = wall - (wall @ axis) * axis
        around[0] /= np.linalg.norm(around[0])
        assert (np.cos(angle) * axis + np.sin(angle) * around).min() == pytest.approx(0, abs=1e-12)
        assert (np.cos(1.01 * angle) * axis + np.sin(1.01 * angle) * around[0]).min() < 0


def test_an_axis_on_a_wall_has_no_cone_in_the_orthant():
    np.testing.assert_array_equal(largest_angles_in_orthant(np.array([[1.0, 0.0]])), 0)
