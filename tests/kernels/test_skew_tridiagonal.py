"""Tridiagonal forms of skew matrices: the same matrix, and solutions of shifted systems."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels.skew_tridiagonal import serves, skew_tridiagonal


def skew(m: int, seed: int = 0) -> np.ndarray:
    A = np.random.default_rng(seed).standard_normal((m, m))
    return A - A.T


@pytest.mark.parametrize("m", [24, 35, 70])
@pytest.mark.parametrize("zeros", [0, 5, 24])
def test_the_form_is_the_matrix(m: int, zeros: int) -> None:
    E = skew(m)
    E[:zeros] = E[:, :zeros] = 0.0
    before = E.copy()
    form = skew_tridiagonal(E)
    assert np.array_equal(E, before)
    Q = form.turned(np.eye(m), back=True)
    assert np.abs(Q.T @ Q - np.eye(m)).max() < 1e-13
    T = form.product(np.eye(m), 1.0)
    assert np.array_equal(T, np.diag(form.beside, 1) - np.diag(form.beside, -1))
    assert np.abs(Q @ T @ Q.T - E).max() < 1e-13 * max(1.0, np.linalg.norm(E, 2))
    P = np.random.default_rng(1).standard_normal((m, 11))
    assert np.allclose(form.turned(P, back=False), Q.T @ P, atol=1e-13)
    norm = np.linalg.norm(E, 2)
    assert norm <= form.norm_bound() * (1 + 1e-14) <= 2.0 * norm * (1 + 1e-13)


def test_sums_of_solutions() -> None:
    form = skew_tridiagonal(skew(31))
    T, Z = form.product(np.eye(31), 0.7), np.random.default_rng(1).standard_normal((31, 13))
    shifts, scales = np.array([1.0, 3.0, 50.0]), np.array([0.5, 1.0, 2.0])
    systems = [s * np.eye(31) - T @ T for s in shifts]
    expected = sum(c * np.linalg.solve(A, Z) for c, A in zip(scales, systems, strict=True))
    assert np.allclose(form.solutions(Z, 0.7, shifts, scales), expected, rtol=1e-11)


def test_what_is_taken() -> None:
    E = skew(24)[None]
    assert serves(E)
    assert not serves(E.astype(np.float32))
    assert not serves(np.concatenate([E, E]))
    assert not serves(E[:, :20, :20])
