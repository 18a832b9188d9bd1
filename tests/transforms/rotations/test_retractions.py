"""Curves R(t) P: whichever way they are computed, they are the same, and their slopes are derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from nonneg.transforms.rotations.group import closest_orthogonal, random_orthogonal, skew_part
from nonneg.transforms.rotations.retractions import ExponentialRetraction, PolarRetraction


class Linear:
    """<A, P> as an objective; its point is P."""

    def __init__(self, A: np.ndarray) -> None:
        self.A = A

    def value(self, P: np.ndarray) -> Any:
        return np.sum(self.A * P, axis=(1, 2))

    def gradient(self, point: Any) -> Any:
        return self.A @ np.swapaxes(point[0], 1, 2)

    def slope(self, point: Any, velocity: Any) -> Any:
        return np.sum(self.A * velocity, axis=(1, 2))


def problem(size: float, m: int, p: int) -> tuple[np.ndarray, np.ndarray, Linear]:
    rng = np.random.default_rng(m + p)
    E = skew_part(rng.standard_normal((1, m, m)))
    P = random_orthogonal(m, rng)[None, :, :p]
    return E * (size / np.linalg.norm(E[0], 2)), P, Linear(rng.standard_normal((1, m, p)))


@pytest.mark.parametrize("p", [12, 30])
@pytest.mark.parametrize("size", [0.003, 0.3, 0.9, 6.0, 90.0])
@pytest.mark.parametrize("retraction", [ExponentialRetraction, PolarRetraction])
def test_points_and_slopes(retraction: Any, size: float, p: int) -> None:
    exponential = retraction is ExponentialRetraction
    if exponential and size > 30:
        size = 12.0
    E, P, objective = problem(size, 30, p)
    curve = retraction(E, P)
    for t in (1.0, 0.3, 2.0):
        step = np.array([t])
        found = curve.at(step)
        R = expm(t * E[0]) if exponential else closest_orthogonal(np.eye(30) + t * E[0])
        assert np.abs(found[0] - R @ P[0]).max() < 1e-11
        assert np.abs(np.swapaxes(found, 1, 2) @ found - np.eye(p)).max() < 1e-12
        if not exponential:  # its search compares values alone
            continue
        h = 1e-5 / size
        ahead, behind = (objective.value(curve.at(step + d)) for d in (h, -h))
        slope = curve.slope(objective, (found,), step)
        assert abs(slope[0] - (ahead[0] - behind[0]) / (2 * h)) < 1e-5 * max(1.0, size)


def turn(m: int, size: float) -> np.ndarray:
    """Return a skew matrix that turns one plane by far more than all others."""
    u, v = np.linalg.qr(np.random.default_rng(m).standard_normal((m, 2)))[0].T
    return problem(1e-2, m, 1)[0] + size * (np.outer(u, v) - np.outer(v, u))


@pytest.mark.parametrize(("m", "p"), [(2, 1), (3, 3), (40, 1), (57, 33), (57, 57)])
@pytest.mark.parametrize("size", [2.0, 40.0, 1e3, 1e6, 1e10])
def test_polar_points_of_one_and_of_several_problems(m: int, p: int, size: float) -> None:
    # One problem takes the tridiagonal form of the core, several eigenvectors, the largest singular vectors.
    E, P = turn(m, size), problem(1.0, m, p)[1]
    inputs = E.copy(), P.copy()
    alone = PolarRetraction(E, P).at(np.ones(1))[0]
    several = PolarRetraction(np.concatenate([E, -E]), np.concatenate([P, P])).at(np.ones(2))
    exact = closest_orthogonal(np.eye(m) + E[0]) @ P[0]
    for points in (alone, several[0]):
        assert np.abs(points.T @ points - np.eye(p)).max() < 1e-13
        # Eigenvalues of E'E are known up to the rounding of the largest.
        assert np.abs(points - exact).max() < 1e-14 * m * max(1.0, min(size, 1e4)) ** 2
    assert np.array_equal(E, inputs[0])
    assert np.array_equal(P, inputs[1])
