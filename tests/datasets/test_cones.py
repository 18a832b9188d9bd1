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


def test_noise_keeps_entries_nonnegative_and_has_its_size():
    clean = circular_cones(300, 100, 4, rng=5)
    noisy = circular_cones(300, 100, 4, noise=0.5, rng=5)
    np.testing.assert_array_equal(clean.labels, noisy.labels)
    assert noisy.X.min() == 0
    kept = noisy.X > 0
    assert 0.3 < (noisy.X - clean.X)[kept].std() < 0.5


def test_directions_that_cannot_be_drawn_are_reported():
    with pytest.raises(InvalidParameterError, match="Use a smaller angle"):
        equiangular_directions(4, 4, np.pi / 2 - 1e-3, rng=0)


def test_cones_may_differ_in_size_length_and_share():
    sizes, lengths, shares = np.array([0.05, 0.3, 0.1]), np.array([9.0, 1.0, 4.0]), np.array([1.0, 6.0, 3.0])
    data = circular_cones(
        20_000,
        40,
        3,
        size_angle=sizes,
        mean_squared_lengths=lengths,
        proportions=shares,
        project=False,
        rng=7,
    )
    squared = np.square(data.X).sum(axis=1)
    angles = np.arccos(np.einsum("ij,ij->i", data.X, data.H[data.labels]) / np.sqrt(squared))
    for cone in range(3):
        own = data.labels == cone
        assert own.mean() == pytest.approx(shares[cone] / 10, rel=0.06)
        assert squared[own].mean() == pytest.approx(lengths[cone], rel=0.06)
        assert sizes[cone] * 0.995 < angles[own].max() <= sizes[cone] * (1 + 1e-9)
        assert angles[own].mean() == pytest.approx(sizes[cone] / 2, rel=0.03)
    # Three times the largest plus the second, and a little more.
    np.testing.assert_allclose(data.H @ data.H.T + (1 - np.cos(1.01)) * (1 - np.eye(3)), 1, atol=1e-12)


def test_the_angle_between_axes_can_be_given():
    data = circular_cones(10, 30, 4, size_angle=0.2, between_angle=0.5, rng=8)
    np.testing.assert_allclose((data.H @ data.H.T)[np.triu_indices(4, 1)], np.cos(0.5))


def test_without_projection_points_keep_their_angles_and_may_be_negative():
    plain, projected = (circular_cones(500, 300, 5, size_angle=0.28, project=p, rng=9) for p in (False, True))
    assert plain.X.min() < 0 == projected.X.min()
    np.testing.assert_array_equal(plain.labels, projected.labels)
    np.testing.assert_allclose(np.linalg.norm(plain.X, axis=1), np.linalg.norm(projected.X, axis=1))
    cosines = [
        np.einsum("ij,ij->i", d.X, d.H[d.labels]) / np.linalg.norm(d.X, axis=1) for d in (plain, projected)
    ]
    # Setting negative entries to zero brings points nearer to their axes, never farther away.
    assert np.all(cosines[1] >= cosines[0] - 1e-12)
    assert np.arccos(cosines[0]).max() > 0.27


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size_angle": [0.1, 0.2]}, "size_angle must be one number or 3"),
        ({"size_angle": [0.1, 0.0, 0.2]}, "size_angle must be above 0"),
        ({"mean_squared_lengths": -1.0}, "mean_squared_lengths must be above 0"),
        ({"proportions": [1.0, 2.0]}, "proportions must be one number or 3"),
        ({"noise": -0.1}, "noise must be a finite number of at least 0"),
    ],
)
def test_bad_options_of_cones_are_refused(arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        circular_cones(10, 20, 3, **arguments)
