"""Sums of solutions of shifted tridiagonal systems: the compiled core, SciPy and dense solves."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._threads import threads
from nonneg.kernels import shifted_tridiagonal


@pytest.mark.parametrize(("m", "n"), [(2, 65), (37, 130), (90, 7), (3, 0)])
def test_sums_are_those_of_dense_solves(m, n, rng, monkeypatch):
    root = np.tril(np.triu(rng.standard_normal((m, m)), -1))
    T = root @ root.T
    T = np.tril(np.triu(T, -1), 1) + 2.0 * np.eye(m) * np.abs(T).max()
    shifts, scales, Y = 0.1 + rng.random(5), rng.random(5), rng.standard_normal((m, n))
    problem = np.diagonal(T), np.diagonal(T, 1), shifts, scales, Y
    expected = sum(c * np.linalg.solve(T + s * np.eye(m), Y) for s, c in zip(shifts, scales, strict=True))
    found = []
    for n_threads in (1, 3):
        with threads(n_threads):
            found.append(shifted_tridiagonal.sum_of_solutions(*problem))
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], expected, rtol=1e-10, atol=1e-12)
    monkeypatch.setattr(shifted_tridiagonal, "core", lambda: None)
    np.testing.assert_allclose(
        shifted_tridiagonal.sum_of_solutions(*problem), expected, rtol=1e-10, atol=1e-12
    )
