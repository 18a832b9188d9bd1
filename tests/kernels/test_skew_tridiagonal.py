"""Tridiagonal forms of skew matrices: the same matrix, and solutions of shifted systems."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels.skew_tridiagonal import SkewTridiagonal, serves, skew_tridiagonal


def skew(m: int, seed: int = 0) -> np.ndarray:
    A = np.random.default_rng(seed).standard_normal((m, m))
    return A - A.T


def tridiagonal(form: SkewTridiagonal) -> np.ndarray:
    return np.diag(form.beside, 1) - np.diag(form.beside, -1)


def turned(form: SkewTridiagonal, P: np.ndarray, *, back: bool) -> np.ndarray:
    panels = form.panels(P)
    form.turn(panels, back=back)
    return form.matrix(panels, P.shape[1])


@pytest.mark.parametrize("m", [24, 25, 26, 35, 70])
@pytest.mark.parametrize("zeros", [0, 5, 24])
def test_the_form_is_the_matrix(m: int, zeros: int) -> None:
    E = skew(m)
    E[:zeros] = E[:, :zeros] = 0.0
    before = E.copy()
    form = skew_tridiagonal(E)
    assert np.array_equal(E, before)
    Q = turned(form, np.eye(m), back=True)
    assert np.abs(Q.T @ Q - np.eye(m)).max() < 1e-13
    T = tridiagonal(form)
    assert np.abs(Q @ T @ Q.T - E).max() < 1e-13 * max(1.0, np.linalg.norm(E, 2))
    P = np.random.default_rng(1).standard_normal((m, 11))
    assert np.allclose(turned(form, P, back=False), Q.T @ P, atol=1e-13)
    norm = np.linalg.norm(E, 2)
    assert norm <= form.norm_bound() * (1 + 1e-14) <= 2.0 * norm * (1 + 1e-13)


@pytest.mark.parametrize("m", [31, 32])
@pytest.mark.parametrize("own", [0.0, 1.0])
def test_sums_of_solutions(m: int, own: float) -> None:
    form = skew_tridiagonal(skew(m))
    T, Z = 0.7 * tridiagonal(form), np.random.default_rng(1).standard_normal((m, 13))
    shifts, scales = np.array([1.0, 3.0, 50.0]), np.array([0.5, 1.0, 2.0])
    systems = [s * np.eye(m) - T @ T for s in shifts]
    total = sum(c * np.linalg.solve(A, Z) for c, A in zip(scales, systems, strict=True))
    found = form.matrix(form.solutions(form.panels(Z), 0.7, shifts, scales, own=own), 13)
    assert np.allclose(found, own * total + T @ total, rtol=1e-11, atol=1e-13)


def test_what_is_taken() -> None:
    E = skew(24)[None]
    assert serves(E)
    assert not serves(E.astype(np.float32))
    assert not serves(np.concatenate([E, E]))
    assert not serves(E[:, :20, :20])
