"""The scan on a GPU: the same points as the scan on the host."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.test_self_dictionary import nothing, slope_of

from nonneg import select_anchors
from nonneg.datasets import separable_dirichlet
from nonneg.kernels.self_dictionary import array_api as portable
from nonneg.kernels.self_dictionary import dictionary_of, minimizing_vertices, runs_fused
from nonneg.kernels.self_dictionary import torch as tensor_scan
from nonneg.kernels.self_dictionary import triton as triton_scan
from nonneg.kernels.self_dictionary.types import TensorPenaltyGradient


@pytest.mark.parametrize(
    ("n_features", "depth"), [(1, 16), (16, 16), (17, 32), (51, 64), (128, 128), (129, 256)]
)
def test_depth_of_the_kernel(n_features, depth):
    assert triton_scan.padded_depth(n_features) == depth


@pytest.mark.torch
@pytest.mark.parametrize(("n", "m"), [(1, 3), (5, 3), (127, 10), (1000, 50), (3000, 130), (500, 300)])
def test_the_same_points_as_on_the_host(n, m, rng, torch, device):
    if device.type == "cpu":  # the interpreter is slow
        n = min(n, 150)
    X, R = rng.random((n, m)), rng.standard_normal((n, m))
    R[::7] = 0.0
    slope = slope_of(rng, n, listed=min(3, n))
    on_device = dictionary_of(torch.tensor(X, device=device))
    residual = torch.tensor(R, device=device)
    expected = minimizing_vertices(dictionary_of(X), R, slope)
    assert runs_fused(residual)
    assert np.array_equal(tensor_scan.minimizing_vertices(on_device, residual, slope), expected)
    assert np.array_equal(portable.minimizing_vertices(on_device, residual, slope), expected)
    some = np.arange(0, n, 3)
    assert np.array_equal(minimizing_vertices(on_device, residual, slope, some), expected[some])


@pytest.mark.torch
def test_of_equal_points_the_first_wins(rng, torch, device):
    X = np.tile(rng.random((40, 6)), (5, 1))
    R = rng.standard_normal((200, 6))
    on_device = dictionary_of(torch.tensor(X, device=device))
    assert minimizing_vertices(on_device, torch.tensor(R, device=device), nothing(200)).max() < 40


@pytest.mark.torch
def test_what_the_bounds_call_decided_is_right(rng, torch, device):
    n = 2000 if device.type == "cuda" else 150
    X, R = rng.standard_normal((n, 50)), rng.standard_normal((n, 50))
    on_device = dictionary_of(torch.tensor(X, device=device))
    scan = tensor_scan.TensorScan(
        on_device, torch.tensor(R, device=device), TensorPenaltyGradient.of(nothing(n), device)
    )
    expected = torch.tensor((X @ R.T).argmin(axis=0), device=device)
    for kind, most in ((torch.float16, 0.05), (torch.float32, 0.01)):
        index, doubtful = scan.decided(None, kind)
        assert torch.equal(index[~doubtful], expected[~doubtful])
        assert float(doubtful.double().mean()) <= most


@pytest.mark.torch
@pytest.mark.parametrize("n_columns", [1, 70, 4000])
@pytest.mark.parametrize("kind", ["float16", "float32"])
@pytest.mark.parametrize("depth", [64, 128, 384])
def test_kernel_and_portable_twin_agree(depth, kind, n_columns, rng, torch, device):
    # Few columns are scanned in parts, whose lowest are put together; long points are read by parts.
    n_points, error = (5000 if device.type == "cuda" else 600), 1e-5
    if device.type == "cpu" and n_columns > 70:
        pytest.skip("takes long in the interpreter")
    points, columns = (
        torch.tensor(rng.standard_normal((n, depth)) / depth**0.5, device=device).to(getattr(torch, kind))
        for n in (n_points, n_columns)
    )
    found = triton_scan.lowest_scores(points, columns)
    expected = tensor_scan.lowest_scores(points, columns)
    scores = columns.double() @ points.double().T
    named = scores.gather(1, found.points.long().T).T
    assert float((named - found.scores).abs().max()) <= error
    assert float((found.scores[0] - expected.scores[0]).abs().max()) <= error
    others = scores.scatter(1, found.points.long().T, float("inf")).min(dim=1).values
    assert bool((found.others <= others + error).all())
    # Of the lowest scores two seldom fall to the same lane.
    same = (found.others - expected.others).abs() <= error
    assert n_columns < 10 or float(same.double().mean()) >= 0.7


@pytest.mark.torch
def test_two_runs_on_the_gpu_are_the_same(torch, device, tmp_path):
    n = 3000 if device.type == "cuda" else 50
    X = torch.tensor(separable_dirichlet(n, 20, 10, snr=12, rng=0).X, device=device)
    times = 2 if device.type == "cuda" else 1  # the interpreter has one order of sums
    runs = [select_anchors(X, 10, method_params={"lam": 0.3}, max_iter=20) for _ in range(times)]
    assert abs(runs[0].coefficients - runs[-1].coefficients).max() == 0
    assert runs[0].history["gap"] == runs[-1].history["gap"]
    for n_iter in (8, 20):
        parts = select_anchors(X, 10, method_params={"lam": 0.3}, max_iter=n_iter, checkpoint=tmp_path)
    assert parts.history["gap"] == runs[0].history["gap"]


@pytest.mark.torch
@pytest.mark.parametrize("steps", ["open-loop", "pairwise"])
def test_a_run_on_the_gpu_is_the_run_on_the_host(steps, torch, device):
    X = separable_dirichlet(400 if device.type == "cuda" else 80, 20, 10, snr=20, rng=0).X
    params = {"lam": 0.3, "steps": steps, "corrective_steps": 0 if steps == "pairwise" else None}
    options = {"max_iter": 15, "method_params": params}
    host = select_anchors(X, 10, **options)
    found = select_anchors(torch.tensor(X, device=device), 10, **options)
    assert abs(host.coefficients - found.coefficients).max() <= (1e-12 if steps == "open-loop" else 1e-6)
    assert found.gap == pytest.approx(host.gap, rel=1e-6)
