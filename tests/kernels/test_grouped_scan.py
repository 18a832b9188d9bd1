"""The scan that leaves out groups of points gives the answers of the scan that looks at all of them."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels.self_dictionary import dictionary_of, grouped_scan, minimizing_vertices
from nonneg.kernels.self_dictionary import numba as host_scan
from nonneg.kernels.self_dictionary.grouped_scan import PointGroups, _roots, best_coordinates
from nonneg.kernels.self_dictionary.types import PenaltyGradient


def slope_of(n, rng, *, penalized):
    base = rng.random(n) * 1e-3 if penalized else np.zeros(n)
    indptr = np.arange(0, 3 * n + 1, 3)
    rows = np.concatenate([np.sort(rng.choice(n, 3, replace=False)) for _ in range(n)])
    extra = rng.random(3 * n) * (1e-2 if penalized else 0.0)
    return PenaltyGradient(base, indptr, rows.astype(np.int32), extra)  # the integers of MERIT


@pytest.mark.covering(1)
@pytest.mark.parametrize("penalized", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_same_answers_as_the_whole_scan(monkeypatch, penalized, dtype):
    monkeypatch.setattr(host_scan, "FEWEST_POINTS", 100)
    rng = np.random.default_rng(5)
    n = 900
    X = rng.dirichlet(np.full(6, 0.3), size=n).astype(dtype)
    # Equal and all but equal points: the lowest index wins, and float32 cannot tell.
    X[500:540] = X[20:60]
    X[700:720] = X[40:60] + 1e-9
    R = X.astype(np.float64) @ rng.standard_normal((6, 6)) * 0.1
    slope = slope_of(n, rng, penalized=penalized)
    dictionary = dictionary_of(X)
    groups = host_scan.point_groups(dictionary)
    assert groups is not None
    shares = []
    count = grouped_scan.PointGroups.follow
    monkeypatch.setattr(
        grouped_scan.PointGroups, "follow", lambda self, found: (shares.append(1), count(self, found))
    )
    first = minimizing_vertices(dictionary, R, slope)
    again = minimizing_vertices(dictionary, R, slope)  # with the leaders of the first
    some = np.array([5, 899, 17])
    monkeypatch.setattr(host_scan, "FEWEST_POINTS", 10**9)
    expected = minimizing_vertices(dictionary_of(X), R, slope)
    assert len(shares) >= 3
    assert np.array_equal(first, expected)
    assert np.array_equal(again, expected)
    assert np.array_equal(minimizing_vertices(dictionary, R, slope, some), expected[some])


@pytest.mark.parametrize("stretched", [False, True])
def test_balls_hold_their_points(rng, stretched):
    rounded = rng.standard_normal((401, 5)).astype(np.float32)
    groups = PointGroups(rounded)
    stretch = rng.standard_normal((4, 4)) if stretched else np.eye(4)
    radii = groups.radii(rounded, stretch)
    assert np.array_equal(np.sort(groups.order), np.arange(401))
    for at, (start, stop) in enumerate(zip(groups.starts[:-1], groups.starts[1:], strict=True)):
        members = rounded[groups.order[start:stop], :-1].astype(np.float64)
        furthest = np.linalg.norm((members - groups.centers[at]) @ stretch, axis=1).max()
        assert furthest <= radii[at] <= furthest * (1 + 1e-5)
        # Filled up with their own points.
        held = groups.members[groups.places[at] : groups.places[at + 1]]
        assert np.array_equal(np.unique(held), groups.order[start:stop])
        assert np.array_equal(groups.points[groups.places[at] : groups.places[at + 1], :5], rounded[held])


def test_coordinates_keep_products_and_shorten_bounds(rng):
    mixing = rng.standard_normal((6, 6))
    points = rng.standard_normal((300, 6)) * [1, 1, 1, 0.1, 0.1, 0.1] @ mixing
    columns = rng.standard_normal((300, 6)) * [0.01, 0.01, 0.01, 1, 1, 1] @ np.linalg.inv(mixing).T
    stretch, shrink = best_coordinates(points.T @ points, columns.T @ columns)
    assert np.allclose((points @ stretch) @ (columns @ shrink).T, points @ columns.T, rtol=0, atol=1e-12)

    def size(left, right):
        return np.linalg.norm(left) * np.linalg.norm(right)

    assert size(points @ stretch, columns @ shrink) < 0.5 * size(points, columns)


@pytest.mark.parametrize("n", [1, 3])
def test_coordinates_are_those_of_a_geometric_mean(n, rng):
    # Of the inverse of P and of C: the matrix G with G P G = C. Its scale is free.
    A, B = np.eye(n) + 0.2 * rng.random((n, n)), np.eye(n) + 0.2 * rng.random((n, n))
    points, columns = 7.0 * A @ A.T, 0.1 * B @ B.T
    stretch, shrink = best_coordinates(points, columns)
    np.testing.assert_allclose(stretch @ shrink.T, np.eye(n), atol=1e-12)
    product = stretch @ stretch.T @ points @ stretch @ stretch.T
    np.testing.assert_allclose(product / np.trace(product), columns / np.trace(columns), atol=1e-10)


def test_every_point_may_be_a_group(monkeypatch, rng):
    # Centers are drawn without replacement.
    monkeypatch.setattr(grouped_scan, "POINTS_A_GROUP", 1)
    labels = grouped_scan._nearness(rng.random((60, 3)).astype(np.float32))
    np.testing.assert_array_equal(np.sort(labels), np.arange(60))
    assert (grouped_scan._nearness(np.ones((5, 2), dtype=np.float32)) == 0).all()


def test_the_most_frequent_vertices_lead(monkeypatch, rng):
    monkeypatch.setattr(grouped_scan, "MOST_LEADERS", 2)
    groups = PointGroups(rng.random((30, 3)).astype(np.float32))
    groups.follow(np.array([7, 3, 3, 9, 9, 9]))
    np.testing.assert_array_equal(groups.leaders, [9, 3])
    groups.follow(np.array([5, 3, 5]))  # those that led count once
    np.testing.assert_array_equal(groups.leaders, [3, 5])


def test_coordinates_of_nothing_are_those_there_are(rng):
    for points, columns in [(np.eye(3), np.zeros((3, 3))), (np.zeros((3, 3)), np.zeros((3, 3)))]:
        stretch, shrink = best_coordinates(points, columns)
        assert np.allclose(stretch @ shrink.T, np.eye(3))


def test_many_features_and_few_points_are_scanned_whole(rng):
    assert host_scan.point_groups(dictionary_of(rng.random((grouped_scan.FEWEST_POINTS - 1, 4)))) is None
    assert (
        host_scan.point_groups(
            dictionary_of(rng.random((grouped_scan.FEWEST_POINTS, grouped_scan.MOST_FEATURES + 1)))
        )
        is None
    )
    assert host_scan.point_groups(dictionary_of(np.ones((grouped_scan.FEWEST_POINTS, 4)))) is None


def test_points_that_no_bound_tells_apart_are_scanned_whole(monkeypatch, rng):
    monkeypatch.setattr(host_scan, "FEWEST_POINTS", 100)
    monkeypatch.setattr(grouped_scan, "WORTH_IT", 0.0)
    X, R = rng.random((300, 4)), rng.standard_normal((300, 4))
    nothing = PenaltyGradient(
        np.zeros(300), np.zeros(301, dtype=int), np.zeros(0, dtype=np.int32), np.zeros(0)
    )
    assert np.array_equal(minimizing_vertices(dictionary_of(X), R, nothing), (X @ R.T).argmin(axis=0))


def test_roots_of_a_matrix_up_to_its_size(rng):
    factor = rng.standard_normal((5, 4))
    matrix = 100.0 * factor.T @ factor
    root, inverse = _roots(matrix)
    largest = np.linalg.eigvalsh(matrix)[-1]
    np.testing.assert_allclose(root @ root, matrix / largest, atol=1e-12)
    np.testing.assert_allclose(root @ inverse, np.eye(4), atol=1e-9)


def exact_vertices(X, R, slope):
    """The lowest index among the lowest scores, in float64."""
    center = dictionary_of(X).center
    scores = (X - center) @ R.T + slope.base[:, None]
    for column in range(len(X)):
        listed = slice(slope.indptr[column], slope.indptr[column + 1])
        scores[slope.rows[listed], column] += slope.extra[listed]
    return scores


@pytest.mark.parametrize("penalized", [False, True])
@pytest.mark.parametrize("leader", [0, 450])
def test_groups_alone_find_the_vertices(monkeypatch, penalized, leader):
    monkeypatch.setattr(host_scan, "FEWEST_POINTS", 100)
    monkeypatch.setattr(grouped_scan, "WORTH_IT", np.inf)  # never the plain scan
    rng = np.random.default_rng(6)
    n = 900
    X = rng.dirichlet(np.full(6, 0.3), size=n)
    X[500:540] = X[20:60]
    R = X @ rng.standard_normal((6, 6)) * 0.1
    slope = slope_of(n, rng, penalized=penalized)
    dictionary = dictionary_of(X)
    groups = host_scan.point_groups(dictionary)
    groups.leaders = np.array([leader])  # far from the vertex of most columns
    found = minimizing_vertices(dictionary, R, slope)
    scores = exact_vertices(X, R, slope)
    lowest = scores.min(axis=0)
    np.testing.assert_allclose(scores[found, np.arange(n)], lowest, rtol=0, atol=1e-15)
    # Of equal points the first one.
    assert not np.isin(found, np.arange(500, 540)).any() or penalized


def test_points_that_float32_cannot_tell_are_told_by_their_exact_scores(monkeypatch):
    monkeypatch.setattr(host_scan, "FEWEST_POINTS", 100)
    monkeypatch.setattr(grouped_scan, "WORTH_IT", np.inf)
    rng = np.random.default_rng(7)
    n = 400
    X = rng.dirichlet(np.ones(4), size=n)
    vertex = np.array([1.0, 0.0, 0.0, 0.0])
    # Lower scores the higher the index: the last of them wins, not the first that is close.
    near = [10, 50, 200, 333, 390]
    for at, row in enumerate(near):
        X[row] = vertex + 1e-10 * at * np.array([1.0, 0.0, 0.0, -1.0])
    R = np.tile([-1.0, 0.0, 0.0, 1.0], (n, 1)) * (1.0 + rng.random((n, 1)))
    slope = slope_of(n, rng, penalized=False)
    for leader in (0, 10, 390):
        dictionary = dictionary_of(X)
        host_scan.point_groups(dictionary).leaders = np.array([leader])
        assert (minimizing_vertices(dictionary, R, slope) == 390).all()
    monkeypatch.setattr(host_scan, "FEWEST_POINTS", 10**9)
    assert (minimizing_vertices(dictionary_of(X), R, slope) == 390).all()
