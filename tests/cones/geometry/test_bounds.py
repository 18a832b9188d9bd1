from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from tests.references.cones import cones_of_clusters, points_in_cones, rank_one_error

from nonneg.cones.geometry.bounds import (
    cluster_bound,
    corrected_size_angles,
    error_about_axes,
    expected_error,
    largest_angle_bound,
    mean_squared_sine,
)
from nonneg.cones.geometry.separation import largest_angles_in_orthant
from nonneg.data import as_data_matrix
from nonneg.datasets import circular_cones
from nonneg.datasets.cones import equiangular_directions


@pytest.mark.parametrize("angle", [1e-3, 0.04999, 0.05, 0.05001, 0.2, 1.0, np.pi / 2])
def test_mean_of_the_squared_sine_is_its_integral(angle):
    integral = quad(lambda b: np.sin(b) ** 2 / angle, 0, angle, epsabs=0, epsrel=1e-13)[0]
    assert mean_squared_sine(angle) == pytest.approx(integral, rel=1e-12)


def test_small_angles_lose_no_digits():
    angles = np.array([0.0, 1e-12, 1e-8, 1e-5])
    np.testing.assert_allclose(mean_squared_sine(angles), angles**2 / 3, rtol=1e-10)


@pytest.mark.parametrize(
    ("angle", "sine", "value"), [(0.2, 0.19867, 0.11501), (0.3, 0.29552, 0.17165)], ids=["0.2", "0.3"]
)
def test_the_published_bounds(angle, sine, value):
    # Equal size angles: neither depends on the 40 squared norms.
    angles, squared_norms = np.full(40, angle), np.arange(1, 41)
    assert largest_angle_bound(angles) == pytest.approx(sine, abs=5e-6)
    assert cluster_bound(angles, squared_norms) == pytest.approx(sine, abs=5e-6)
    assert expected_error(angles, squared_norms) == pytest.approx(value, abs=5e-6)


def test_squared_norms_are_the_weights():
    angles = np.array([0.1, 0.4])
    weighted = np.sqrt((3 * np.sin(0.1) ** 2 + np.sin(0.4) ** 2) / 4)
    assert cluster_bound(angles, [3.0, 1.0]) == pytest.approx(weighted)
    assert cluster_bound(angles, [300.0, 100.0]) == pytest.approx(weighted)
    assert cluster_bound(angles, [0.0, 7.0]) == pytest.approx(np.sin(0.4))
    assert cluster_bound(angles, [0.0, 0.0]) == 0
    value = np.sqrt((3 * mean_squared_sine(0.1) + mean_squared_sine(0.4)) / 4)
    assert expected_error(angles, [3.0, 1.0]) == pytest.approx(value)


def test_a_cone_wider_than_a_right_angle_bounds_by_one():
    assert cluster_bound([3.0], [1.0]) == 1
    assert largest_angle_bound([3.0]) == 1
    assert largest_angle_bound([]) == 0


@pytest.mark.parametrize("angle", [0.7, 0.1, 1e-4])
def test_the_bound_is_attained(angle):
    # Two equally long points at the ends of a cone: the second singular value is sqrt(2) sin(angle).
    X = np.array([[np.cos(angle), np.sin(angle)], [np.cos(angle), -np.sin(angle)]]) @ np.array(
        [[3, 4], [-4, 3]]
    )
    found = cones_of_clusters(as_data_matrix(X), np.zeros(2, dtype=int), 1)
    bound = cluster_bound(found.angles, found.squared_norms)
    assert rank_one_error(X, np.zeros(2)) == pytest.approx(bound, rel=1e-9)
    assert error_about_axes(found.squared_norms, found.outside) == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_any_clustering_is_bounded(seed):
    # Clusters at random of points at random: the bound speaks of any.
    rng = np.random.default_rng(seed)
    X, labels = rng.gamma(0.7, size=(120, 9)), rng.integers(6, size=120)
    found = cones_of_clusters(as_data_matrix(X), labels, 6)
    error = rank_one_error(X, labels)
    about = error_about_axes(found.squared_norms, found.outside)
    bound = cluster_bound(found.angles, found.squared_norms)
    assert error < about < bound <= largest_angle_bound(found.angles)


def test_correction_for_the_size_of_the_sample_is_unbiased():
    rng = np.random.default_rng(0)
    largest = rng.uniform(0, 0.3, size=(20_000, 12)).max(axis=1)
    assert largest.mean() < 0.28
    assert corrected_size_angles(largest, np.full(20_000, 12)).mean() == pytest.approx(0.3, rel=0.005)
    assert corrected_size_angles([1.5], [1])[0] == np.pi / 2


def mean_error(n_draws, **cones):
    errors = []
    for seed in range(n_draws):
        data = circular_cones(rng=seed, **cones)
        errors.append(rank_one_error(data.X, data.labels))
    return np.mean(errors)


def test_mean_error_of_draws_is_theorem_6s_value():
    sizes, lengths, shares = np.array([0.1, 0.2, 0.25]), np.array([4.0, 1.0, 2.0]), np.array([0.2, 0.5, 0.3])
    value = expected_error(sizes, lengths * shares)
    errors = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        axes, labels = equiangular_directions(3, 60, 1.0, rng=rng), rng.choice(3, 1500, p=shares)
        errors.append(rank_one_error(points_in_cones(axes, labels, sizes, rng, lengths), labels))
    assert np.mean(errors) == pytest.approx(value, rel=0.01)


@pytest.mark.slow
def test_the_papers_draws_come_near_from_below():
    # At 0.2 radians the projection on the orthant hardly moves a point, at 0.3 it does: the paper's Figure 2.
    for size_angle, least, most in ((0.2, 0.98, 1.0), (0.3, 0.85, 0.97)):
        mean = mean_error(6, n_samples=1000, n_features=400, n_cones=4, size_angle=size_angle)
        value = expected_error(np.full(4, size_angle), np.arange(1, 5))
        assert least < mean / value < most


def test_the_error_tends_to_theorem_8s_limit_where_cones_lie_in_the_orthant():
    data = circular_cones(40_000, 5, 2, size_angle=0.04, rng=3)
    assert (largest_angles_in_orthant(data.H) >= 0.04).all()
    limit = expected_error([0.04, 0.04], [1.0, 2.0])
    errors = [rank_one_error(data.X[:n], data.labels[:n]) for n in (40, 40_000)]
    assert abs(errors[1] / limit - 1) < 0.01 < abs(errors[0] / limit - 1)


def test_the_estimate_from_found_cones_predicts_the_error():
    # The largest angles about the mean directions, not about the smallest cones' axes, which lie elsewhere.
    data = circular_cones(4000, 800, 8, size_angle=0.2, rng=5)
    found = cones_of_clusters(as_data_matrix(data.X), data.labels, 8)
    error = rank_one_error(data.X, data.labels)
    assert np.all(found.angles < 0.195)
    estimates = corrected_size_angles(found.initial_angles, found.counts)
    np.testing.assert_allclose(estimates, 0.2, rtol=0.02)
    assert expected_error(estimates, found.squared_norms) == pytest.approx(error, rel=0.015)
    assert expected_error(found.angles, found.squared_norms) < 0.96 * error
