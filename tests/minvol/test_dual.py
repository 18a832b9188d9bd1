"""The simplex of largest polar volume: its parts against plain geometry."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.minvol import dual
from nonneg.minvol.initialization import Reduced, _completed, _regular
from nonneg.minvol.noise import LOWEST, WEIGHT, NoiseLevel, noise_level

TRIANGLE = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])


def test_barycentric_coordinates_of_vertices_and_center():
    coordinates = dual._barycentric(TRIANGLE)
    found = np.column_stack([TRIANGLE, np.ones(3)]) @ coordinates.T
    np.testing.assert_allclose(found, np.eye(3), atol=1e-14)
    center = np.append(TRIANGLE.mean(axis=0), 1.0)
    np.testing.assert_allclose(coordinates @ center, 1 / 3)


@pytest.mark.parametrize("lowest", [0.0, -0.5])
def test_facets_and_vertices_are_polar(lowest):
    center = TRIANGLE.mean(axis=0)
    facets = dual._polar(TRIANGLE, center, lowest)
    # Facet i lies opposite vertex i, moved outward from the center by the factor (1/3 - lowest) / (1/3).
    grown = (TRIANGLE - center) * (1 - 3 * lowest)
    products = grown @ facets
    np.testing.assert_allclose(products[~np.eye(3, dtype=bool)], 1.0)
    np.testing.assert_allclose(dual._vertices(facets), grown, atol=1e-13)


@pytest.mark.parametrize("shift", [0.0, 0.6])
def test_the_first_facets_hold_all_points(shift):
    rng = np.random.default_rng(0)
    points = rng.dirichlet(np.ones(3), 50) @ TRIANGLE * (1 + shift) - shift
    center = TRIANGLE.mean(axis=0)
    facets = dual._facets_around(points, TRIANGLE, center)
    products = (points - center) @ facets
    assert products.max() <= 1 + 1e-12
    if shift:
        np.testing.assert_allclose(products.max(), 1.0)
    else:  # no point is outside: the facets are those of the vertices
        np.testing.assert_allclose(facets, dual._polar(TRIANGLE, center))


def test_the_triangle_around_its_points_is_found():
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(3), 3000)
    weights = weights[weights.max(axis=1) < 0.85]
    start = TRIANGLE.mean(axis=0) + 0.7 * (TRIANGLE - TRIANGLE.mean(axis=0))
    found = dual.mv_dual(weights @ TRIANGLE, start, 1e-3)
    np.testing.assert_allclose(found, TRIANGLE, atol=0.05)


def test_a_facet_moves_alone_and_lowers_the_objective():
    rng = np.random.default_rng(2)
    points = rng.dirichlet(np.ones(3), 200) @ TRIANGLE
    center = TRIANGLE.mean(axis=0)
    facets = dual._polar(center + 3.0 * (TRIANGLE - center), center)
    sigma = 0.2
    moved = dual._moved(points - center, facets, 1, sigma)
    np.testing.assert_array_equal(moved[:, [0, 2]], facets[:, [0, 2]])

    def objective(found):
        outside = np.maximum((points - center) @ found[:, 1] - 1.0, 0.0)
        penalty = 1 / (2 * WEIGHT * 200 * sigma**2 * facets[:, 1] @ facets[:, 1])
        return -np.log(abs(np.linalg.det(np.vstack([found, np.ones(3)])))) + penalty * outside @ outside

    value = objective(moved)
    assert value < objective(facets) - 0.1
    for step in 0.02 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]):  # and no small move lowers it by more
        other = moved.copy()
        other[:, 1] *= 1 + step
        assert objective(other) > value - 1e-3


def test_a_regular_simplex_has_the_spread_of_the_points():
    rng = np.random.default_rng(3)
    points = rng.standard_normal((500, 2)) * [1.0, 5.0]
    found = _regular(points, TRIANGLE) / points.std(axis=0)
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-12)
    sides = [np.linalg.norm(found[i] - found[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(sides, sides[0])
    # Each vertex is turned toward the given one.
    given = (TRIANGLE - TRIANGLE.mean(axis=0)) / points.std(axis=0)
    assert (np.sum(found * given, axis=1) > 0).all()


def reduced(points, k):
    level = NoiseLevel(0.1, False, np.eye(points.shape[1]))
    return Reduced(points, level.basis, k, level, "sum-to-one")


def test_missing_anchors_are_the_farthest_samples_and_then_means():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 0.0], [0.0, 3.0]])
    np.testing.assert_array_equal(_completed(reduced(points, 2), [3, 1]), points[[3, 1]])
    np.testing.assert_array_equal(_completed(reduced(points, 3), [3]), points[[3, 2, 0]])
    found = _completed(reduced(points, 6), [3])
    np.testing.assert_array_equal(found, [*points[[3, 2, 0, 1]], *[points.mean(axis=0)] * 2])


def test_the_problem_of_reduced_samples_has_their_weight():
    found = reduced(np.ones((8, 2)), 2).problem()
    assert found.lam == pytest.approx(WEIGHT * 8 * 0.01)
    assert found.delta == pytest.approx(0.01)
    assert not found.nonnegative


@pytest.mark.parametrize("k", [1, 2, 3])
def test_noise_is_the_next_singular_value(k):
    X = np.random.default_rng(4).random((30, 12))
    singular = np.linalg.svd(X, compute_uv=False)
    found = noise_level(as_data_matrix(X), k)
    assert found.sigma == pytest.approx(singular[k] / (np.sqrt(30) + np.sqrt(12)), rel=1e-6)
    assert found.estimated
    assert found.basis.shape == (12, k)
    floor = LOWEST * singular[k - 1] / np.sqrt(30)
    assert noise_level(as_data_matrix(X), k, 0.0).sigma == pytest.approx(floor, rel=1e-6)
    assert noise_level(as_data_matrix(X), k, 2.0).sigma == 2.0


def test_as_many_components_as_features_leave_no_noise():
    X = np.random.default_rng(5).random((9, 3))
    singular = np.linalg.svd(X, compute_uv=False)
    found = noise_level(as_data_matrix(X), 3)
    assert not found.estimated
    assert found.sigma == pytest.approx(LOWEST * singular[2] / 3.0, rel=1e-6)
