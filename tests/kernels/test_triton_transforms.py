"""Kernels for many small transforms: the numbers of the array code."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels.transforms import triton as triton_transforms
from nonneg.transforms.factor_updates import update_factors


def test_it_is_for_tensors_on_a_gpu_alone(rng):
    assert not triton_transforms.serves(rng.random((3, 4, 5)), 2)


@pytest.mark.torch
@pytest.mark.parametrize(("rank", "n_frames", "m"), [(2, 3, 4), (10, 50, 10), (3, 151, 200)])
def test_sums_of_squares(rank, n_frames, m, rng, torch, device):
    X = torch.tensor(rng.standard_normal((5, rank * n_frames, m)), device=device)
    assert triton_transforms.adds(X)
    expected = (X.reshape(5, rank, n_frames, m) ** 2).sum(1)
    np.testing.assert_allclose(
        triton_transforms.sums_of_squares(X, n_frames).cpu(), expected.cpu(), rtol=1e-13
    )


@pytest.mark.torch
@pytest.mark.parametrize(("n_frames", "m", "k"), [(50, 10, 5), (2, 2, 1), (33, 7, 3), (64, 16, 8)])
@pytest.mark.parametrize("shared", [False, True])
def test_the_factors_of_the_array_code(n_frames, m, k, shared, rng, torch, device):
    V = torch.tensor(rng.random((1 if shared else 6, n_frames, m)), device=device)
    V = torch.broadcast_to(V, (6, n_frames, m))
    activations = torch.tensor(rng.random((6, n_frames, k)), device=device)
    components = torch.tensor(rng.random((6, k, m)), device=device)
    assert triton_transforms.serves(V, k)
    found = triton_transforms.equalized_factors(V, 1e-8, activations, components, 7)
    expected = update_factors(V, activations, components, 1e-8, 7)
    for a, b in zip(found, expected, strict=False):
        np.testing.assert_allclose(a.cpu(), b.cpu(), rtol=1e-11)
    model = expected[0] @ expected[1]
    np.testing.assert_allclose(found[2].cpu(), (1.0 / (model + 1e-8)).cpu(), rtol=1e-11)
