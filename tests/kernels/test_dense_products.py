"""Products on tensor cores: as accurate as those of float32."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.kernels import dense_products


@pytest.mark.parametrize(("n", "m", "k"), [(1, 1, 1), (130, 33, 3), (45, 140, 17)])
def test_products_are_those_of_float32(n, m, k, torch, device):
    rng = np.random.default_rng(0)
    X, W, Ht = (rng.random(shape).astype(np.float32) for shape in ((n, m), (n, k), (m, k)))
    x, w, ht = (torch.asarray(array).to(device) for array in (X, W, Ht))
    for found, exact in (
        (dense_products.times(x, ht), X.astype(float) @ Ht),
        (dense_products.transposed_times(x, w.T.contiguous().T), X.T.astype(float) @ W),
    ):
        assert found.T.is_contiguous()
        error = np.linalg.norm(found.cpu().numpy() - exact) / np.linalg.norm(exact)
        assert error < 3e-7
    assert torch.equal(dense_products.transposed_times(x, w), dense_products.transposed_times(x, w))


def test_large_tensors_take_them_and_others_do_not(torch, device):
    small = torch.zeros((3, 4), device=device)
    assert not dense_products.is_supported(small, small[:, :2])
    if device.type != "cuda":
        pytest.skip("there is no GPU")
    n = dense_products.LEAST_ENTRIES // 256
    X, Ht = torch.rand((n, 256), device=device), torch.rand((256, 40), device=device)
    assert not dense_products.is_supported(X, Ht[:, :5])
    assert dense_products.is_supported(X, Ht)
    assert not dense_products.is_supported(X.T, Ht)
    assert not dense_products.is_supported(X.double(), Ht)
    data = as_data_matrix(X)
    exact = X.double() @ Ht.double()
    assert torch.linalg.norm(data.times(Ht).double() - exact) < 3e-7 * torch.linalg.norm(exact)
