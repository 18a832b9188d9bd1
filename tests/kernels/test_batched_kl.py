"""The Kullback-Leibler divergence from many models: as `beta_products` has it, in Triton as in array code."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels import batched_kl, beta_products
from nonneg.kernels.batched_kl import array_api, triton


def problem(rng, batch, n_rows, n_columns, dtype=np.float64, own=False):
    """Return data with zeros, models, directions, derivatives of the divergences along them, and bounds."""
    x = rng.poisson(2.0, (batch, n_rows, n_columns) if own else (n_rows, n_columns)).astype(dtype)
    bounds = 1e-12 * (1 + np.arange(batch))
    v = (rng.random((batch, n_rows, n_columns)) * 3 + 0.01).astype(dtype)
    v[0, 0, 0] = 0.0
    # From the models part of the way to the data: downhill, too far for some rows.
    d = ((x - v) * (rng.random((batch, n_rows, 1)) * 3)).astype(dtype)
    d = np.maximum(d, -0.9 * v)
    slopes = np.sum(array_api.newton_terms(x, v, bounds)[0] * d, axis=2)
    slopes[-1, -1] = 1.0
    return x, v, d, slopes, bounds


@pytest.mark.parametrize("own", [False, True])
def test_every_model_as_alone(rng, own):
    x, v, d, slopes, bounds = problem(rng, 3, 6, 11, own=own)
    steps = batched_kl.line_search(x, v, d, slopes, bounds)
    terms = batched_kl.newton_terms(x, v, bounds)
    losses = batched_kl.column_losses(x, v, bounds)
    zeros = np.zeros(6)
    for i in range(3):
        data, bound = x[i] if own else x, float(bounds[i])
        expected = beta_products.newton_terms(data, v[i].copy(), None, 1.0, bound)
        for found, alone in zip(terms, expected, strict=True):
            np.testing.assert_allclose(found[i], alone, rtol=1e-12)
        np.testing.assert_allclose(losses[i], beta_products.column_losses(data, v[i], 1.0, bound), rtol=1e-12)
        _, t = beta_products.line_search(
            data, v[i].copy(), d[i].copy(), None, 1.0, bound, zeros, zeros, slopes[i]
        )
        np.testing.assert_allclose(steps[i], t, rtol=1e-10)
    assert steps[-1, -1] == 0
    assert (steps > 0).any()


@pytest.mark.torch
@pytest.mark.parametrize(
    ("batch", "n_rows", "n_columns", "dtype", "held", "own"),
    [
        (3, 5, 19, "float64", 4096, False),
        (3, 5, 19, "float64", 16, True),
        (1, 1, 1, "float64", 4096, False),
        (2, 33, 130, "float32", 4096, True),
        (2, 33, 130, "float32", 64, False),
    ],
)
def test_triton_is_the_array_code(
    torch, device, rng, monkeypatch, batch, n_rows, n_columns, dtype, held, own
):
    monkeypatch.setattr(triton, "HELD", held)  # rows longer than that are read again for every step
    x, v, d, slopes, bounds = (
        torch.asarray(part, device=device) for part in problem(rng, batch, n_rows, n_columns, dtype, own)
    )
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-12}
    pairs = zip(triton.newton_terms(x, v, bounds), array_api.newton_terms(x, v, bounds), strict=True)
    for found, expected in pairs:
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.cpu(), expected.cpu(), **tolerance)
    found, expected = (each.column_losses(x, v, bounds) for each in (triton, array_api))
    assert found.dtype == torch.float64
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.cpu(), expected.cpu(), rtol=1e-6, atol=1e-6)
    found, expected = (each.line_search(x, v, d, slopes, bounds, 6) for each in (triton, array_api))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.cpu(), expected.cpu(), **tolerance)
