from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls
from tests.references.cones import (
    cones_of_clusters,
    smallest_cone_by_enumeration,
    smallest_cone_by_least_distance,
    smallest_cone_by_programming,
    unit_rows,
)
from tests.references.containers import MAIN_FORMS, as_container

from nonneg.cones.geometry import size_angle
from nonneg.data import as_data_matrix
from nonneg.datasets import circular_cones


def smallest_cone(points):
    """The smallest cone around all points."""
    found = cones_of_clusters(as_data_matrix(points), np.zeros(points.shape[0], dtype=int), 1)
    return SimpleNamespace(
        axis=found.axes[0],
        angle=found.angles[0],
        lower_angle=found.lower_angles[0],
        boundary=found.boundary[0],
    )


def angles_to(points, axis):
    """Angles by the length of the difference, which keeps small ones."""
    return 2 * np.arcsin(np.minimum(np.linalg.norm(unit_rows(points) - axis, axis=1) / 2, 1))


def assert_smallest(points, cone, tol=1e-9):
    """The cone contains the points, and its axis is a combination of points on its boundary."""
    angles = angles_to(points, cone.axis)
    assert angles.max() <= cone.angle * (1 + 1e-12) + 1e-15
    np.testing.assert_allclose(angles[cone.boundary], cone.angle, rtol=tol, atol=1e-12)
    assert cone.angle == pytest.approx(cone.lower_angle, rel=1e-8, abs=1e-14)
    weights, left = nnls(unit_rows(points)[cone.boundary].T, cone.axis)
    assert left < 1e-7
    assert weights.min() >= 0


@pytest.mark.parametrize("spread", [1.5, 0.3, 1e-3, 1e-6, 1e-9])
def test_in_the_plane_the_angle_is_half_of_the_range(spread, rng):
    polar = 0.02 + spread * rng.random(200)
    cone = smallest_cone(np.stack([np.cos(polar), np.sin(polar)], axis=1))
    assert cone.angle == pytest.approx((polar.max() - polar.min()) / 2, rel=max(1e-12, 1e-15 / spread))
    assert np.arctan2(cone.axis[1], cone.axis[0]) == pytest.approx((polar.max() + polar.min()) / 2, abs=1e-12)
    assert set(cone.boundary) == {polar.argmin(), polar.argmax()}


@pytest.mark.parametrize("angle", [1.0, 1e-2, 1e-5, 1e-8])
def test_points_on_a_circle_give_back_its_angle(angle):
    # Within the circle lie further points, which must not count.
    turns = np.linspace(0, 2 * np.pi, 7)[:-1]
    tilt = np.concatenate([np.full(6, angle), np.full(6, angle / 2)])
    turns = np.concatenate([turns, turns])
    points = np.stack([np.cos(tilt), np.sin(tilt) * np.cos(turns), np.sin(tilt) * np.sin(turns)], axis=1)
    cone = smallest_cone(points * np.arange(1, 13)[:, None])
    assert cone.angle == pytest.approx(angle, rel=max(1e-12, 1e-14 / angle))
    assert cone.lower_angle == pytest.approx(angle, rel=max(1e-9, 1e-14 / angle))
    np.testing.assert_allclose(cone.axis, [1, 0, 0], atol=1e-14)


@pytest.mark.parametrize("seed", range(8))
def test_all_pairs_and_triples_find_none_smaller(seed):
    points = np.random.default_rng(seed).gamma(0.5, size=(14, 3)) + 1e-3
    assert smallest_cone(points).angle == pytest.approx(smallest_cone_by_enumeration(points), abs=1e-9)


def test_three_ways_one_answer(rng):
    points = rng.random((30, 8)) ** 2
    axis, angle = smallest_cone_by_programming(points)
    cone, (shortest, narrow, boundary) = smallest_cone(points), smallest_cone_by_least_distance(points)
    assert cone.angle == pytest.approx(angle, abs=1e-8)
    np.testing.assert_allclose(cone.axis, axis, atol=1e-6)
    assert cone.angle == pytest.approx(narrow, abs=1e-9)
    np.testing.assert_allclose(cone.axis, shortest, atol=1e-10)
    np.testing.assert_array_equal(cone.boundary, boundary)


@pytest.mark.parametrize(("n_points", "n_features"), [(20_000, 40), (300, 800), (4000, 3)])
def test_many_points_and_many_features(n_points, n_features, rng):
    points = 0.5 + rng.random((n_points, n_features))
    assert_smallest(points, smallest_cone(points))


def test_one_direction_has_no_angle():
    for points in (np.array([[1.0, 2.0, 2.0]]), np.outer(np.arange(1.0, 300), [3.0, 1.0, 0.0, 7.0])):
        for container in (points, sp.csr_array(points), points.astype(np.float32)):
            cone = smallest_cone(container)
            assert cone.angle < 4e-15
            np.testing.assert_allclose(cone.axis, unit_rows(points)[0], atol=1e-15)


def test_a_right_angle_between_points():
    cone = smallest_cone(np.array([[2.0, 0.0], [0.0, 5.0]]))
    assert cone.angle == pytest.approx(np.pi / 4, abs=1e-15)
    # The unit vectors of a space, the widest that nonnegative points can be.
    cone = smallest_cone(np.eye(50))
    assert cone.angle == pytest.approx(np.arccos(1 / np.sqrt(50)), abs=1e-12)


def test_repeated_points_change_nothing(rng):
    points = rng.random((20, 5))
    once, often = smallest_cone(points), smallest_cone(np.repeat(points, 100, axis=0) * 3)
    assert often.angle == pytest.approx(once.angle, abs=1e-12)
    np.testing.assert_allclose(often.axis, once.axis, atol=1e-9)
    # One of the twins stands for all.
    np.testing.assert_array_equal(often.boundary // 100, once.boundary)


def test_rows_of_zeros_and_no_rows_at_all_are_skipped():
    cone = smallest_cone(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]))
    assert cone.angle == pytest.approx(np.pi / 8)
    np.testing.assert_array_equal(cone.boundary, [1, 3])
    empty = smallest_cone(np.zeros((3, 4)))
    assert empty.angle == empty.lower_angle == 0
    np.testing.assert_array_equal(empty.axis, np.zeros(4))


def test_points_in_all_directions_have_no_cone_below_a_right_angle():
    cone = smallest_cone(np.array([[1.0, 0.0], [-1.0, 0.1], [-1.0, -0.1]]))
    assert cone.angle >= np.pi / 2
    assert cone.lower_angle == pytest.approx(np.pi / 2)
    assert smallest_cone(np.array([[1.0, 0.0], [-1.0, 0.0]])).angle >= np.pi / 2


@pytest.fixture(scope="module")
def planted():
    return circular_cones(300, 60, 4, size_angle=0.25, rng=7)


@pytest.mark.parametrize("form", MAIN_FORMS)
def test_every_container_gives_the_same_cones(form, planted):
    expected = cones_of_clusters(as_data_matrix(planted.X), planted.labels, 4)
    found = cones_of_clusters(as_data_matrix(as_container(planted.X, form)), planted.labels, 4)
    np.testing.assert_allclose(found.angles, expected.angles, rtol=1e-9)
    np.testing.assert_allclose(found.axes, expected.axes, atol=1e-9)
    np.testing.assert_allclose(found.initial_angles, expected.initial_angles, rtol=1e-9)
    np.testing.assert_allclose(found.squared_norms, expected.squared_norms, rtol=1e-12)
    np.testing.assert_allclose(found.outside, expected.outside, rtol=1e-9)
    np.testing.assert_array_equal(found.counts, expected.counts)
    for rows, own in zip(found.boundary, expected.boundary, strict=True):
        np.testing.assert_array_equal(rows, own)


def test_clusters_together_are_clusters_one_by_one(planted):
    found = cones_of_clusters(as_data_matrix(planted.X), planted.labels, 6)
    lengths = np.square(planted.X).sum(axis=1)
    for cone in range(4):
        own = planted.X[planted.labels == cone]
        alone = smallest_cone(own)
        assert found.angles[cone] == pytest.approx(alone.angle, rel=1e-9)
        assert found.squared_norms[cone] == pytest.approx(lengths[planted.labels == cone].sum())
        residual = own - np.outer(own @ found.axes[cone], found.axes[cone])
        assert found.outside[cone] == pytest.approx(np.square(residual).sum())
        mean = unit_rows(unit_rows(own).mean(axis=0)[None])[0]
        assert found.initial_angles[cone] == pytest.approx(angles_to(own, mean).max())
    # Nobody is in the last two.
    np.testing.assert_array_equal(found.counts[4:], 0)
    np.testing.assert_array_equal(found.angles[4:], 0)
    np.testing.assert_array_equal(found.axes[4:], 0)


def test_negative_labels_and_rows_without_weight_do_not_count(planted):
    labels, weights = planted.labels.copy(), np.ones(300)
    labels[:50], weights[50:90] = -1, 0.0
    weights[90:] = 2.0
    found = cones_of_clusters(as_data_matrix(planted.X, weights=weights), labels, 4)
    kept = cones_of_clusters(as_data_matrix(planted.X[90:]), planted.labels[90:], 4)
    np.testing.assert_allclose(found.angles, kept.angles, rtol=1e-9)
    np.testing.assert_array_equal(found.counts, kept.counts)
    np.testing.assert_allclose(found.squared_norms, 2 * kept.squared_norms)
    np.testing.assert_allclose(found.outside, 2 * kept.outside)


def test_single_precision_costs_single_precision(planted):
    exact = cones_of_clusters(as_data_matrix(planted.X), planted.labels, 4)
    single = cones_of_clusters(as_data_matrix(planted.X.astype(np.float32)), planted.labels, 4)
    np.testing.assert_allclose(single.angles, exact.angles, rtol=1e-6)


def test_an_early_end_still_contains_the_clusters(planted, monkeypatch):
    monkeypatch.setattr(size_angle, "MAX_ROUNDS", 1)
    found = cones_of_clusters(as_data_matrix(planted.X), planted.labels, 4)
    for cone in range(4):
        own = planted.X[planted.labels == cone]
        assert angles_to(own, found.axes[cone]).max() <= found.angles[cone] * (1 + 1e-12)
    assert np.all(found.lower_angles <= found.angles)


def test_sparse_points_stay_sparse_and_right(rng):
    points = sp.random_array((400, 3000), density=0.01, random_state=rng, format="csr")
    points = points[np.flatnonzero(np.diff(points.indptr))]
    assert_smallest(points.toarray(), smallest_cone(points))
