"""All updates of a factorization in one kernel: the numbers of the array code."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels import triton_factors
from nonneg.transforms.factor_updates import update_factors


def test_it_is_for_tensors_on_a_gpu_alone(rng):
    assert not triton_factors.serves(rng.random((3, 4, 5)), 2)


@pytest.mark.torch
@pytest.mark.parametrize(("n_frames", "m", "k"), [(50, 10, 5), (2, 2, 1), (33, 7, 3), (64, 16, 8)])
@pytest.mark.parametrize("shared", [False, True])
def test_the_factors_of_the_array_code(n_frames, m, k, shared, rng, torch):
    pytest.importorskip("triton", reason="Triton is not installed")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    V = torch.tensor(rng.random((1 if shared else 6, n_frames, m)), device="cuda")
    V = torch.broadcast_to(V, (6, n_frames, m))
    activations = torch.tensor(rng.random((6, n_frames, k)), device="cuda")
    components = torch.tensor(rng.random((6, k, m)), device="cuda")
    assert triton_factors.serves(V, k)
    found = triton_factors.equalized_factors(V, 1e-8, activations, components, 7)
    expected = update_factors(V, activations, components, 1e-8, 7)
    for a, b in zip(found, expected, strict=False):
        np.testing.assert_allclose(a.cpu(), b.cpu(), rtol=1e-11)
    model = expected[0] @ expected[1]
    np.testing.assert_allclose(found[2].cpu(), (1.0 / (model + 1e-8)).cpu(), rtol=1e-11)
