"""Newton steps of batches of rows: each factor as `newton_targets` has it, in Triton as in array code."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels.batched_targets import array_api, triton
from nonneg.kernels.newton_targets import newton_targets


def problem(rng, batch, n_rows, k, dtype="float64"):
    """Return factors with zeros, gradients, diagonals (some of them tiny) and correlations."""
    factor = np.where(rng.random((batch, n_rows, k)) < 0.3, 0, rng.random((batch, n_rows, k)))
    gradient = rng.standard_normal((batch, n_rows, k))
    diagonal = rng.random((batch, n_rows, k)) + 0.1
    diagonal[0, 0, 0] = 0.0
    rows = rng.random((batch, 3 * k, k))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    correlations = np.swapaxes(rows, 1, 2) @ rows
    correlations[:, np.arange(k), np.arange(k)] = 1.0
    gradient[0, 0, 0] = 0.0
    return tuple(part.astype(dtype) for part in (factor, gradient, diagonal, correlations))


def test_every_factor_as_alone(rng):
    given = problem(rng, 3, 7, 4)
    direction, slopes = array_api.batched_targets(*given)
    for i in range(3):
        alone, _, _, _, own = newton_targets(*(part[i] for part in given), None, 0.0, 0.0)
        np.testing.assert_allclose(direction[i], alone, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(slopes[i], own, rtol=1e-9, atol=1e-11)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("batch", "n_rows", "k", "dtype"),
    [(2, 21, 3, "float64"), (1, 1, 1, "float64"), (2, 17, 9, "float32"), (1, 3, 33, "float64")],
)
def test_triton_is_the_array_code(torch, device, rng, batch, n_rows, k, dtype):
    given = [torch.asarray(part, device=device) for part in problem(rng, batch, n_rows, k, dtype)]
    tolerance = {"rtol": 1e-3, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-8, "atol": 1e-10}
    pairs = zip(triton.batched_targets(*given), array_api.batched_targets(*given), strict=True)
    for found, expected in pairs:
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.cpu(), expected.cpu(), **tolerance)
