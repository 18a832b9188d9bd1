"""Updates of the factors: compiled, in Triton, and in array code."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels.majorization_equalization import array_api, update_factors
from nonneg.kernels.majorization_equalization import numba as compiled


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_compiled_is_the_array_code(k, rng):
    V = rng.standard_normal((2, 91, 50)) ** 2
    A, B = rng.random((2, 91, k)) + 1.0, rng.random((2, k, 50))
    B /= B.sum(axis=2, keepdims=True)
    before = A.copy(), B.copy()
    assert compiled.is_supported(V, k, 1e-3)
    found = update_factors(V, 1e-3, A, B, 4)
    assert np.array_equal(A, before[0])
    assert np.array_equal(B, before[1])
    known = array_api.update_factors(V, 1e-3, A, B, 4)
    assert np.allclose(found[0], known[0], rtol=1e-11)
    assert np.allclose(found[1], known[1], rtol=1e-11)
    assert np.allclose(found[2], 1.0 / (known[0] @ known[1] + 1e-3), rtol=1e-10)
    assert np.allclose(known[2], 1.0 / (known[0] @ known[1] + 1e-3), rtol=1e-14)


@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_array_code_is_the_formula(l1, rng):
    V, H, W, eps = rng.random((2, 6, 5)), 0.1 + rng.random((2, 6, 3)), 0.1 + rng.random((2, 3, 5)), 0.05
    H[:, :, 2] = 0.0  # a component that vanished
    found = array_api.update_factors(V, eps, H, W, 1, l1)
    model, turned = H @ W + eps, W.swapaxes(1, 2)
    H = H * (((V + eps) / model**2) @ turned) / (1 / model @ turned + l1)
    model, turned = H @ W + eps, H.swapaxes(1, 2)
    below = turned @ (1 / model) + l1 * H.sum(axis=1)[:, :, None]
    W = np.divide(W * (turned @ ((V + eps) / model**2)), below, out=0 * W, where=below > 0)
    size = W.sum(axis=2, keepdims=True)
    size[size == 0] = 1.0
    W, H = W / size, H * size.swapaxes(1, 2)
    for part, expected in zip(found, (H, W, 1 / (H @ W + eps)), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-10, atol=1e-12)
