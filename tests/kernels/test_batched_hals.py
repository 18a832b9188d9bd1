"""Coordinate descent on batches of rows: each factor as `hals_passes` does it, in Triton as in array code."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels.grams import SharedGram
from nonneg.kernels.hals import batched_hals, hals_passes
from nonneg.kernels.hals.array_api import batched_hals as portable_batched_hals
from nonneg.kernels.hals.triton import batched_hals as triton_batched_hals


def problem(rng, batch, n_rows, k, dtype=np.float64):
    """Return factors, Gram matrices (one with a component of zeros) and cross products."""
    other = rng.random((batch, 3 * k, k))
    other[0, :, k // 2] = 0
    gram = np.swapaxes(other, 1, 2) @ other
    factor = np.where(rng.random((batch, n_rows, k)) < 0.3, 0, rng.random((batch, n_rows, k)))
    cross = factor @ gram + rng.standard_normal((batch, n_rows, k))
    cross[0, :, k // 2] = 0
    return tuple(part.astype(dtype) for part in (factor, gram, cross))


@pytest.mark.parametrize(("max_passes", "shrink"), [(1, 0.0), (5, 0.1)])
def test_every_factor_is_updated_as_alone(rng, max_passes, shrink):
    factor, gram, cross = problem(rng, 3, 7, 4)
    new, violation = batched_hals(factor, gram, cross, max_passes=max_passes, shrink=shrink)
    for i in range(3):
        alone, own = hals_passes(
            factor[i], SharedGram(gram[i]), cross[i], max_passes=max_passes, shrink=shrink
        )
        np.testing.assert_allclose(new[i], alone, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(violation[i], own, rtol=1e-10)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("batch", "n_rows", "k", "dtype"),
    [(2, 21, 3, "float64"), (1, 1, 1, "float64"), (2, 17, 9, "float32"), (1, 3, 33, "float64")],
)
def test_triton_is_the_array_code(torch, device, rng, batch, n_rows, k, dtype):
    parts = [torch.asarray(part, device=device) for part in problem(rng, batch, n_rows, k, dtype)]
    before = [part.clone() for part in parts]
    expected, violation = portable_batched_hals(*parts, range(k), 3, 0.1)
    found, own = triton_batched_hals(*parts, 3, 0.1)
    assert all(torch.equal(a, b) for a, b in zip(parts, before, strict=True))
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-11}
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.cpu(), expected.cpu(), **tolerance)
    assert own.dtype == violation.dtype
    np.testing.assert_allclose(own.cpu(), violation.cpu(), **tolerance)
