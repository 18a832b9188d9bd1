"""Updates of the factors: the compiled core and array code."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._threads import threads
from nonneg.kernels.majorization_equalization import portable_update_factors, update_factors


@pytest.mark.parametrize(("k", "n", "m"), [(1, 1, 1), (2, 91, 50), (3, 7, 5), (6, 91, 51), (12, 33, 18)])
def test_the_door_gives_the_array_code(k, n, m, rng):
    V = rng.standard_normal((5, n, m)) ** 2
    A, B = rng.random((5, n, k)) + 1.0, rng.random((5, k, m))
    B /= B.sum(axis=2, keepdims=True)
    before = A.copy(), B.copy()
    with threads(1):
        found = update_factors(V, 1e-3, A, B, 4)
    with threads(3):
        three = update_factors(V, 1e-3, A, B, 4)
    assert np.array_equal(A, before[0])
    assert np.array_equal(B, before[1])
    known = portable_update_factors(V, 1e-3, A, B, 4)
    for one, other, expected in zip(found, three, known, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, expected, rtol=1e-10)
    shared = update_factors(V[:1], 1e-3, A, B, 4)
    for one, expected in zip(shared, portable_update_factors(V[:1], 1e-3, A, B, 4), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-10)
    np.testing.assert_allclose(known[2], 1.0 / (known[0] @ known[1] + 1e-3), rtol=1e-14)


def test_array_code_is_the_formula(rng):
    V, H, W, eps = rng.random((2, 6, 5)), 0.1 + rng.random((2, 6, 3)), 0.1 + rng.random((2, 3, 5)), 0.05
    H[:, :, 2] = 0.0  # a component that vanished
    found = portable_update_factors(V, eps, H, W, 1)
    model, turned = H @ W + eps, W.swapaxes(1, 2)
    H = H * (((V + eps) / model**2) @ turned) / (1 / model @ turned)
    model, turned = H @ W + eps, H.swapaxes(1, 2)
    below = turned @ (1 / model)
    W = np.divide(W * (turned @ ((V + eps) / model**2)), below, out=0 * W, where=below > 0)
    size = W.sum(axis=2, keepdims=True)
    size[size == 0] = 1.0
    W, H = W / size, H * size.swapaxes(1, 2)
    for part, expected in zip(found, (H, W, 1 / (H @ W + eps)), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-10, atol=1e-12)
