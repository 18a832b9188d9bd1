"""Skew parts, rotations by exponential and polar factor, closest and random orthogonal matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from nonneg.transforms.rotations import (
    closest_orthogonal,
    exponential,
    orthogonality_error,
    polar,
    random_orthogonal,
    skew_part,
)
from nonneg.transforms.rotations.group import newton_schulz_step, polar_velocity


def skew(m: int, size: float, seed: int = 0) -> np.ndarray:
    E = skew_part(np.random.default_rng(seed).standard_normal((3, m, m)))
    return E * (size / np.linalg.norm(E[0], 2))


def test_the_skew_part_and_the_rest_add_up() -> None:
    A = np.random.default_rng(0).standard_normal((2, 5, 5))
    S = skew_part(A)
    assert np.array_equal(S, -np.swapaxes(S, 1, 2))
    assert np.allclose(A - S, np.swapaxes(A - S, 1, 2))


@pytest.mark.parametrize("synchronize", [True, False])
@pytest.mark.parametrize("size", [1e-9, 0.1, 1.0, 7.0, 30.0])
def test_the_exponential_is_that_of_scipy(size: float, synchronize: bool) -> None:
    E = skew(12, size)
    R = exponential(E, synchronize=synchronize)
    assert max(np.abs(R[i] - expm(E[i])).max() for i in range(3)) < 1e-13 * max(1.0, size)
    assert orthogonality_error(R).max() < 1e-13 * max(1.0, size)


@pytest.mark.parametrize("synchronize", [True, False])
@pytest.mark.parametrize("size", [1e-9, 0.05, 0.5, 3.0, 150.0])
def test_the_polar_rotation_is_the_closest_to_i_plus_e(size: float, synchronize: bool) -> None:
    E = skew(11, size)
    R = polar(E, synchronize=synchronize)
    assert np.abs(R - closest_orthogonal(np.eye(11) + E)).max() < 1e-11
    assert orthogonality_error(R).max() < 1e-13


def test_the_velocity_of_the_polar_rotation_is_a_difference_quotient() -> None:
    E, t, h = skew(8, 0.8), 0.7, 1e-6
    difference = (polar((t + h) * E) - polar((t - h) * E)) / (2 * h)
    R = polar(t * E)
    assert np.abs(difference - polar_velocity(E, R) @ R).max() < 1e-9


def test_a_newton_schulz_step_squares_the_error() -> None:
    Q = random_orthogonal(20, 0)
    spoiled = Q + 1e-6 * np.random.default_rng(1).standard_normal((20, 20))
    assert orthogonality_error(spoiled) > 1e-7
    assert orthogonality_error(newton_schulz_step(spoiled)) < 1e-10
    assert orthogonality_error(newton_schulz_step(Q[:, :7]).T) < 1e-15


def test_random_matrices_are_orthogonal_and_repeat() -> None:
    assert np.array_equal(random_orthogonal(9, 3), random_orthogonal(9, 3))
    assert orthogonality_error(random_orthogonal(9, 3)) < 1e-14
    # Uniform: every entry has mean 0 and variance 1/m.
    many = np.stack([random_orthogonal(4, seed) for seed in range(400)])
    assert np.abs(many.mean(axis=0)).max() < 0.12
    assert np.abs((many**2).mean(axis=0) - 0.25).max() < 0.08


def test_single_precision_stays() -> None:
    E = skew(6, 0.5).astype(np.float32)
    assert exponential(E).dtype == polar(E).dtype == np.float32
    assert orthogonality_error(exponential(E)).max() < 1e-5
