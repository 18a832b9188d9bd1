"""The scan on a GPU: the same points as the scan on the host."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.test_self_dictionary import nothing, slope_of

from nonneg import select_anchors
from nonneg.datasets import separable_dirichlet
from nonneg.kernels import triton_scan
from nonneg.kernels.portable import self_dictionary as portable
from nonneg.kernels.self_dictionary import best_atoms, dictionary_of


@pytest.mark.parametrize(
    ("n_features", "depth"), [(1, 16), (16, 16), (17, 32), (51, 64), (128, 128), (129, 256)]
)
def test_depth_of_the_kernel(n_features, depth):
    assert triton_scan.padded_depth(n_features) == depth


@pytest.fixture
def device(torch):
    """A GPU with Triton; the test is skipped elsewhere."""
    pytest.importorskip("triton", reason="Triton is not installed")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    return torch.device("cuda")


@pytest.mark.torch
@pytest.mark.parametrize(("n", "m"), [(1, 3), (5, 3), (127, 10), (1000, 50), (3000, 130), (500, 300)])
def test_the_same_points_as_on_the_host(n, m, rng, torch, device):
    X, R = rng.random((n, m)), rng.standard_normal((n, m))
    R[::7] = 0.0
    slope = slope_of(rng, n, listed=min(3, n))
    on_device = dictionary_of(torch.tensor(X, device=device))
    residual = torch.tensor(R, device=device)
    expected = best_atoms(dictionary_of(X), R, slope)
    assert np.array_equal(triton_scan.best_atoms(on_device, residual, slope), expected)
    assert np.array_equal(portable.best_atoms(on_device, residual, slope), expected)
    some = np.arange(0, n, 3)
    assert np.array_equal(best_atoms(on_device, residual, slope, some), expected[some])


@pytest.mark.torch
def test_of_equal_points_the_first_wins(rng, torch, device):
    X = np.tile(rng.random((40, 6)), (5, 1))
    R = rng.standard_normal((200, 6))
    on_device = dictionary_of(torch.tensor(X, device=device))
    assert triton_scan.best_atoms(on_device, torch.tensor(R, device=device), nothing(200)).max() < 40


@pytest.mark.torch
def test_what_the_bounds_call_decided_is_right(rng, torch, device):
    X, R = rng.standard_normal((2000, 50)), rng.standard_normal((2000, 50))
    scan = portable.Scan(
        dictionary_of(torch.tensor(X, device=device)), torch.tensor(R, device=device), nothing(2000)
    )
    right, sizes = scan.scaled_columns(np.arange(2000))
    expected = (X @ R.T).argmin(axis=0)
    for kind, most in ((torch.float16, 0.2), (torch.float32, 0.01)):
        index, close = triton_scan._decided(scan, right, sizes, np.arange(2000), kind)
        assert np.array_equal(index[~close], expected[~close])
        assert close.mean() <= most


@pytest.mark.torch
@pytest.mark.parametrize("steps", ["open-loop", "pairwise"])
def test_a_run_on_the_gpu_is_the_run_on_the_host(steps, torch, device):
    X = separable_dirichlet(400, 20, 10, snr=20, rng=0).X
    options = {"lam": 0.3, "max_iter": 15, "steps": steps, "corrections": 0 if steps == "pairwise" else None}
    host = select_anchors(X, 10, **options)
    found = select_anchors(torch.tensor(X, device=device), 10, **options)
    assert abs(host.coefficients - found.coefficients).max() <= (1e-12 if steps == "open-loop" else 1e-6)
    assert found.gap == pytest.approx(host.gap, rel=1e-6)
