"""Curves R(t) P: whichever way they are computed, they are the same, and their slopes are derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from nonneg.transforms.rotations import closest_orthogonal, random_orthogonal, skew_part
from nonneg.transforms.rotations.group import taylor_terms
from nonneg.transforms.rotations.retractions import (
    LARGEST_RATIO,
    RETRACTIONS,
    _binomial_terms,
    _Tridiagonal,
    inverse_root_nodes,
)


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


@pytest.mark.parametrize("norm", [1e-3, 0.1, 0.6, 0.9])
@pytest.mark.parametrize("enough", [1e-8, 1e-15])
def test_series_have_as_many_terms_as_matter(norm: float, enough: float) -> None:
    binomial = [math.comb(2 * j, j) / 4**j * norm ** (2 * j) for j in range(300)]
    n_terms = _binomial_terms(norm, enough)
    if n_terms < 60:
        assert sum(binomial[: n_terms + 1]) == pytest.approx((1 - norm**2) ** -0.5, abs=10 * enough)
        assert binomial[n_terms] <= enough
    assert binomial[n_terms - 1] > enough
    exponential = [norm**j / math.factorial(j) for j in range(60)]
    n_terms = taylor_terms(norm, enough)
    assert sum(exponential[: n_terms + 1]) == pytest.approx(math.exp(norm), abs=2 * enough)
    assert n_terms == 1 or exponential[n_terms] > enough


def test_series_that_do_not_converge_are_not_summed() -> None:
    assert _binomial_terms(1.0, 1e-15) == 60
    assert taylor_terms(1e3, 1e-15) == 1000


@pytest.mark.parametrize("p", [12, 30])
@pytest.mark.parametrize("size", [0.003, 0.3, 0.9, 6.0, 90.0])
@pytest.mark.parametrize("synchronize", [True, False])
@pytest.mark.parametrize("retraction", ["exponential", "polar"])
def test_points_and_slopes(retraction: str, size: float, p: int, synchronize: bool) -> None:
    if retraction == "exponential" and size > 30:
        size = 12.0
    E, P, objective = problem(size, 30, p)
    curve = RETRACTIONS[retraction](E, P, synchronize=synchronize)
    for t in (1.0, 0.3, 2.0):
        step = np.array([t])
        found = curve.at(step)
        R = expm(t * E[0]) if retraction == "exponential" else closest_orthogonal(np.eye(30) + t * E[0])
        assert np.abs(found[0] - R @ P[0]).max() < 1e-11
        assert np.abs(np.swapaxes(found, 1, 2) @ found - np.eye(p)).max() < 1e-12
        h = 1e-5 / size
        ahead, behind = (objective.value(curve.at(step + d)) for d in (h, -h))
        slope = curve.slope(objective, (found,), step)
        assert abs(slope[0] - (ahead[0] - behind[0]) / (2 * h)) < 1e-5 * max(1.0, size)


def test_a_small_rotation_costs_no_eigenvectors(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError("eigenvectors of a small rotation")

    monkeypatch.setattr("nonneg.transforms.rotations.retractions._Eigenvectors", refuse)
    for retraction in RETRACTIONS:
        E, P, _ = problem(0.002, 30, 6)
        RETRACTIONS[retraction](E, P).at(np.ones(1))


@pytest.mark.parametrize(
    ("largest", "most"), [(1.0, 3), (1.7, 8), (30.0, 14), (4e4, 28), (LARGEST_RATIO, 45)]
)
def test_inverse_roots_are_sums_of_inverses(largest: float, most: int) -> None:
    shifts, scales = inverse_root_nodes(largest, 1e-16)
    assert len(shifts) == len(scales) <= most
    assert min(shifts.min(), scales.min()) > 0
    x = np.geomspace(1.0, largest, 301)
    found = (scales / (x[:, None] + shifts)).sum(axis=1)
    assert np.abs(found * np.sqrt(x) - 1.0).max() < 2e-13


def skew(m: int) -> np.ndarray:
    A = np.random.default_rng(0).standard_normal((m, m))
    return A - A.T


@pytest.mark.parametrize("m", [24, 25, 26, 35, 70])
@pytest.mark.parametrize("zeros", [0, 5, 24])
def test_the_tridiagonal_form_is_the_matrix(m: int, zeros: int) -> None:
    E = skew(m)
    E[:zeros] = E[:, :zeros] = 0.0
    before = E.copy()
    form = _Tridiagonal(E, np.eye(m))
    assert np.array_equal(E, before)
    Q = form.reflected(np.eye(m), "N")
    assert np.abs(Q.T @ Q - np.eye(m)).max() < 1e-13
    T = np.diag(form.diagonal) + np.diag(form.beside, 1) + np.diag(form.beside, -1)
    norm = np.linalg.norm(E, 2)
    assert np.abs(Q @ T @ Q.T - E.T @ E).max() < 1e-13 * max(1.0, norm**2)
    P = np.random.default_rng(1).standard_normal((m, 11))
    assert np.allclose(form.reflected(P, "T"), Q.T @ P, atol=1e-13)
    assert norm**2 <= form.squared_norm * (1 + 1e-14) <= 4.0 * norm**2 * (1 + 1e-13)


@pytest.mark.parametrize("m", [31, 32])
def test_sums_of_solutions(m: int) -> None:
    E, Z = skew(m), np.random.default_rng(1).standard_normal((m, 13))
    form = _Tridiagonal(E, Z)
    shifts, scales = np.array([1.0, 3.0, 50.0]), np.array([0.5, 1.0, 2.0])
    systems = [s * np.eye(m) + 0.49 * (E.T @ E) for s in shifts]
    expected = sum(c * np.linalg.solve(A, Z) for c, A in zip(scales, systems, strict=True))
    found = form.solutions(form.coordinates, 0.7, shifts, scales)
    assert np.allclose(found, expected, rtol=1e-11, atol=1e-13)


def test_what_has_a_tridiagonal_form() -> None:
    E = skew(24)[None]
    assert _Tridiagonal.is_supported(E)
    assert not _Tridiagonal.is_supported(E.astype(np.float32))
    assert not _Tridiagonal.is_supported(np.concatenate([E, E]))
    assert not _Tridiagonal.is_supported(E[:, :20, :20])
