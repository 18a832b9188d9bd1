"""The points that decide a smallest cone, and passes over clusters, against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.cones import unit_rows

from nonneg.cones.geometry.farthest import ROUNDING, cluster_means, farthest_points
from nonneg.cones.geometry.hull import ClusterHull, _distinct
from nonneg.data import as_data_matrix


def hull_of(points, amid=None):
    hull = ClusterHull(points.sum(axis=0) if amid is None else np.asarray(amid, dtype=float))
    hull.add(np.arange(len(points)), points)
    return hull


def test_a_hull_begins_with_the_direction_amid():
    hull = ClusterHull(np.array([3.0, 4.0]))
    np.testing.assert_allclose(hull.axis, [0.6, 0.8])
    assert (hull.angle, hull.lower_angle) == (math.inf, 0.0)
    np.testing.assert_allclose(ClusterHull(np.array([0.03, 0.04])).axis, [0.6, 0.8])
    np.testing.assert_array_equal(ClusterHull(np.zeros(3)).axis, [1.0, 0.0, 0.0])


def test_the_widest_chord_is_an_angle_and_the_narrowest_cone_is_kept():
    hull = ClusterHull(np.array([1.0, 0.0]))
    assert hull.compare(1.0, 1e-9, np.array([1.0, 2.0]))
    assert hull.angle == pytest.approx(math.pi / 3)
    np.testing.assert_array_equal(hull.best_sums, [1.0, 2.0])
    hull.axis = np.array([0.0, 1.0])
    # As wide as before: the first axis stays.
    hull.compare(1.0, 1e-9, np.array([3.0, 4.0]))
    np.testing.assert_array_equal(hull.best_axis, [1.0, 0.0])
    hull.compare(0.5, 1e-9, np.array([5.0, 6.0]))
    np.testing.assert_array_equal(hull.best_axis, [0.0, 1.0])
    np.testing.assert_array_equal(hull.best_sums, [5.0, 6.0])
    assert hull.angle == pytest.approx(2 * math.asin(0.25))
    assert ClusterHull(np.ones(2)).compare(2.1, 0.1, np.zeros(2))  # rounding: no more than a straight angle


@pytest.mark.parametrize(("lower", "tol", "more"), [(1.0, 0.1, False), (0.9, 0.1, True), (0.9, 0.2, False)])
def test_a_cone_is_good_enough_where_its_angle_is_near_the_lower_bound(lower, tol, more):
    hull = ClusterHull(np.array([1.0, 0.0]))
    hull.lower_angle = lower
    assert hull.compare(2 * math.sin(0.5), tol, np.zeros(2)) is more
    hull.lower_angle, hull.angle = 0.0, math.inf
    assert hull.compare(0.5 * ROUNDING, tol, np.zeros(2)) is False


def test_a_cluster_without_points_has_no_cone():
    hull = ClusterHull(np.array([1.0, 0.0]))
    assert hull.compare(-1.0, 0.1, np.ones(2)) is False
    assert hull.angle == 0.0
    np.testing.assert_array_equal(hull.best_axis, [0.0, 0.0])
    np.testing.assert_array_equal(hull.best_sums, [0.0, 0.0])


def test_known_rows_and_twins_join_once():
    points = np.array([[1.0, 0.2], [0.3, 1.0], [2.0, 0.4], [1.0, 1.0]])
    hull = hull_of(points)
    np.testing.assert_array_equal(hull.rows, [0, 1, 3])  # the third has the direction of the first
    np.testing.assert_allclose(hull.points + hull.reference, unit_rows(points)[[0, 1, 3]])
    hull.add(np.array([1, 9]), np.array([[5.0, 5.1], [0.1, 1.0]]))
    np.testing.assert_array_equal(hull.rows, [0, 1, 3, 9])
    np.testing.assert_array_equal(hull.weights, 0.0)
    hull.add(np.array([9, 0]), points[:2])
    assert len(hull.rows) == 4
    np.testing.assert_array_equal(_distinct(np.array([[1.0, 2.0], [3.0, 1.0], [1.0, 2.0]])), [0, 1])
    np.testing.assert_array_equal(_distinct(np.zeros((3, 2))), [0])


@pytest.mark.parametrize("width", [4, 6])
def test_points_with_few_entries_are_kept_sparse(width):
    points = np.eye(3, width)  # one entry in four, or in six
    hull = hull_of(points)
    assert sp.issparse(hull.points) is (width == 6)
    if width == 6:
        np.testing.assert_array_equal(hull.reference, 0.0)
        np.testing.assert_array_equal(hull.points.toarray(), points)
    assert hull.solve()
    np.testing.assert_allclose(hull.axis, points.sum(axis=0) / math.sqrt(3))
    assert hull.lower_angle == pytest.approx(math.acos(1 / math.sqrt(3)))
    np.testing.assert_allclose(hull.weights, 1 / 3)


def test_the_smallest_ball_lets_go_of_points_inside():
    polar = np.array([0.2, 0.5, 0.9, 0.4])
    hull = hull_of(np.stack([np.cos(polar), np.sin(polar)], axis=1), amid=[1.0, 0.3])
    assert hull.solve()
    np.testing.assert_array_equal(hull.boundary, [0, 2])
    np.testing.assert_allclose(hull.weights, 0.5)
    assert hull.lower_angle == pytest.approx(0.35)
    np.testing.assert_allclose(hull.axis, [math.cos(0.55), math.sin(0.55)])
    assert not hull.solve()  # nothing new
    hull.add(np.array([7]), np.array([[math.cos(1.1), math.sin(1.1)]]))
    assert hull.solve()
    np.testing.assert_array_equal(hull.boundary, [0, 7])
    assert hull.lower_angle == pytest.approx(0.45)


def test_points_around_the_origin_have_no_axis():
    hull = hull_of(np.array([[1.0, 0.0], [-1.0, 0.0]]), amid=[0.0, 1.0])
    hull.solve()
    assert hull.lower_angle == pytest.approx(math.pi / 2)


def plain_farthest(X, labels, axes, weights, wanted, n_points):
    """Return rows, chords, counts and sums cluster by cluster."""
    rows, chords, counts, sums = [], [], [], np.zeros((2, len(axes)))
    for c, axis in enumerate(axes):
        own = [i for i in range(len(X)) if wanted[c] and labels[i] == c and weights[i] > 0 and X[i].any()]
        gaps = {i: np.linalg.norm(X[i] / np.linalg.norm(X[i]) - axis) for i in own}
        rows.append(sorted(own, key=lambda i, gaps=gaps: (-round(gaps[i], 12), i))[:n_points])
        chords.append(max(gaps.values(), default=-1.0))
        counts.append(len(own))
        sums[0, c] = sum(weights[i] * X[i] @ X[i] for i in own)
        sums[1, c] = sum(weights[i] * (X[i] @ X[i] - (X[i] @ axis) ** 2) for i in own)
    return rows, chords, counts, sums


@pytest.mark.parametrize("form", ["dense", "sparse", "dask"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_points", [1, 3, 50])
def test_the_farthest_points_are_those_of_a_plain_search(form, weighted, n_points, rng):
    X = rng.random((30, 4)) * (rng.random((30, 4)) < 0.8)
    X[5], X[11] = 0.0, X[10]
    labels = rng.integers(-1, 3, 30)
    weights = rng.integers(0, 3, 30).astype(float) if weighted else np.ones(30)
    axes = unit_rows(rng.random((4, 4)))
    X[20] = 2.0 * axes[labels[20]]  # on the axis, up to rounding
    wanted = np.array([True, False, True, True])  # nobody is in the last one
    given = X if form == "dense" else sp.csr_array(X)
    if form == "dask":
        given = pytest.importorskip("dask.array").from_array(X, chunks=(11, -1))
    data = as_data_matrix(given, weights=weights if weighted else None)
    found = farthest_points(data, data.to_sample_array(labels[:, None]), axes, wanted, n_points)
    rows, chords, counts, sums = plain_farthest(X, labels, axes, weights, wanted, n_points)
    assert [list(each) for each in found.rows] == rows
    np.testing.assert_allclose(found.chords, chords, atol=1e-7)
    np.testing.assert_array_equal(found.counts, counts)
    np.testing.assert_allclose(found.sums, sums, atol=1e-12)
    means = cluster_means(data, data.to_sample_array(labels[:, None]), 3)
    units = X / np.where(X.any(axis=1), np.linalg.norm(X, axis=1), 1.0)[:, None]
    expected = [(weights[:, None] * units)[labels == c].sum(axis=0) for c in range(3)]
    np.testing.assert_allclose(means, expected, atol=1e-12)
