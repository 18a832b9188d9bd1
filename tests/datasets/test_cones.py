from __future__ import annotations

import numpy as np
import pytest

from nonneg.datasets import circular_cones
from nonneg.datasets.cones import equiangular_directions
from nonneg.exceptions import InvalidParameterError


@pytest.mark.parametrize(
    ("count", "length", "angle"),
    [(1, 3, 0.4), (10, 200, 0.81), (40, 1600, 1.21), (1, 3, np.nextafter(np.pi / 2, 2))],
)
def test_directions_are_nonnegative_and_equiangular(count, length, angle):
    directions = equiangular_directions(count, length, angle, rng=0)
    gram = directions @ directions.T
    expected = np.full((count, count), np.cos(angle))
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(gram, expected, atol=1e-12)
    assert directions.min() >= 0


def test_points_stay_in_their_cones():
    # Clipping at zero and restoring the length moves a point little here: the axes have no small entries.
    data = circular_cones(500, 300, 5, size_angle=0.2, rng=1)
    lengths = np.linalg.norm(data.X, axis=1)
    cosines = np.einsum("ij,ij->i", data.X, data.H[data.labels]) / lengths
    assert data.X.min() >= 0
    assert np.arccos(cosines).max() <= 0.2 + 1e-9
    others = data.X @ data.H.T / lengths[:, None]
    np.testing.assert_array_equal(others.argmax(axis=1), data.labels)


def test_squared_lengths_have_the_mean_of_their_cone():
    data = circular_cones(20_000, 20, 3, size_angle=0.1, rng=2)
    squared = np.square(data.X).sum(axis=1)
    means = [squared[data.labels == cone].mean() for cone in range(3)]
    np.testing.assert_allclose(means, [1, 2, 3], rtol=0.06)
    np.testing.assert_allclose(np.bincount(data.labels) / 20_000, 1 / 3, atol=0.02)


def test_angles_are_uniform_up_to_the_size_angle():
    data = circular_cones(4000, 400, 2, size_angle=0.2, rng=3)
    cosines = np.einsum("ij,ij->i", data.X, data.H[data.labels]) / np.linalg.norm(data.X, axis=1)
    angles = np.sort(np.arccos(np.minimum(cosines, 1)))
    uniform = 0.2 * (np.arange(4000) + 0.5) / 4000
    assert np.abs(angles - uniform).max() < 0.2 * 0.03


def test_error_of_one_direction_a_cone_is_the_published_one():
    # The paper's value for 1000 points is 0.107 to 0.110 with 1600 features and 40 cones at 0.2 radians.
    data = circular_cones(1000, 1600, 40, size_angle=0.2, rng=4)
    left = 0.0
    for cone in range(40):
        points = data.X[data.labels == cone]
        left += np.linalg.eigvalsh(points @ points.T)[:-1].sum()
    assert 0.104 < np.sqrt(left / np.square(data.X).sum()) < 0.112


def test_directions_that_cannot_be_drawn_are_reported():
    for n_directions, angle in ((4, np.pi / 2 - 1e-3), (5, 0.5), (4, 2.0)):
        with pytest.raises(InvalidParameterError, match="Use a smaller angle"):
            equiangular_directions(n_directions, 4, angle, rng=0)


@pytest.mark.parametrize("size_angle", [0.0, -0.1, np.nan, "wide"])
def test_a_size_angle_is_a_number_above_0(size_angle):
    with pytest.raises(InvalidParameterError, match=r"size_angle must be a (finite )?number"):
        circular_cones(10, 20, 3, size_angle=size_angle)
