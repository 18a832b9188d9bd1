"""Sums of solutions of tridiagonal systems: the compiled core and dense solutions."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._compiled import core

pytestmark = pytest.mark.skipif(core() is None, reason="the core was not built")


@pytest.mark.parametrize(("m", "p"), [(1, 1), (2, 5), (33, 0), (40, 31), (57, 200)])
def test_sums_are_those_of_dense_solutions(m, p, rng):
    root = np.triu(np.tril(rng.standard_normal((m, m)), 1))
    T, Y = root.T @ root, rng.standard_normal((m, p))
    shifts, scales = np.array([1.0, 0.3, 1e6]), np.array([2.0, -1.0, 1e5])
    sums = []
    for n_threads in (1, 3):
        out = np.full_like(Y, np.nan)
        core().sum_of_solutions(np.diag(T).copy(), np.diag(T, 1).copy(), shifts, scales, Y, out, n_threads)
        sums.append(out)
    expected = sum(c * np.linalg.solve(T + s * np.eye(m), Y) for s, c in zip(shifts, scales, strict=True))
    np.testing.assert_array_equal(*sums)
    np.testing.assert_allclose(sums[0], expected, rtol=1e-12, atol=1e-12)


def test_arrays_of_the_wrong_shape_are_refused():
    Y = np.ones((4, 2))
    for sizes in ((4, 4, 1, 1), (3, 2, 1, 1), (4, 3, 2, 1), (0, 0, 1, 1)):
        with pytest.raises(ValueError, match=r"must|shape"):
            core().sum_of_solutions(*map(np.ones, sizes), Y, np.empty_like(Y), 1)
    with pytest.raises(ValueError, match="same shape"):
        core().sum_of_solutions(*map(np.ones, (4, 3, 1, 1)), Y, np.ones((4, 3)), 1)
