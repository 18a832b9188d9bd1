"""The scan that leaves everything on the device: its decisions, with products made by PyTorch on the host."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.test_self_dictionary import nothing, slope_of

from nonneg.kernels.self_dictionary import dictionary_of, minimizing_vertices
from nonneg.kernels.self_dictionary import torch as tensor_scan
from nonneg.kernels.self_dictionary.array_api import center_and_radius
from nonneg.kernels.self_dictionary.types import Dictionary, TensorPenaltyGradient

pytestmark = pytest.mark.torch


@pytest.fixture
def tensors(torch):
    """Points as tensors that are not seen as NumPy arrays, and residuals."""

    def brought(X, R):
        points = torch.tensor(X)
        return Dictionary(points, *center_and_radius(points)), torch.tensor(R)

    return brought


@pytest.mark.parametrize(("n", "m"), [(1, 3), (5, 3), (127, 10), (600, 50), (300, 140)])
def test_the_same_points_as_on_the_host(n, m, rng, tensors):
    X, R = rng.random((n, m)), rng.standard_normal((n, m))
    R[::7] = 0.0
    slope = slope_of(rng, n, listed=min(3, n))
    expected = minimizing_vertices(dictionary_of(X), R, slope)
    assert np.array_equal(tensor_scan.minimizing_vertices(*tensors(X, R), slope), expected)
    some = np.arange(0, n, 3)
    assert np.array_equal(tensor_scan.minimizing_vertices(*tensors(X, R), slope, some), expected[some])


def test_a_slope_of_tensors_gives_tensors(rng, tensors, torch):
    X, R = rng.random((90, 4)), rng.standard_normal((90, 4))
    slope = slope_of(rng, 90)
    found = minimizing_vertices(*tensors(X, R), TensorPenaltyGradient.of(slope, "cpu"))
    assert found.dtype == torch.int64
    assert np.array_equal(found, minimizing_vertices(dictionary_of(X), R, slope))


def test_a_listed_entry_is_not_chosen_where_the_slope_is_steep(rng, tensors):
    # The four lowest of every column are listed: the kernel keeps them, and the fifth is right.
    X, R = rng.random((400, 6)), rng.standard_normal((400, 6))
    order = np.argsort(X @ R.T, axis=0)
    slope = nothing(400)
    steep = type(slope)(
        slope.base, np.arange(0, 1601, 4), order[:4].T.ravel().astype(np.int32), np.full(1600, 100.0)
    )
    dictionary, residual = tensors(X, R)
    assert np.array_equal(tensor_scan.minimizing_vertices(dictionary, residual, steep), order[4])


@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-8, 1e-12])
def test_scores_that_short_products_cannot_tell_apart(gap, rng, tensors):
    R = rng.standard_normal((50, 8))
    X = np.concatenate([rng.random((30, 8)), np.repeat(-5 * np.eye(8), 6, axis=0)])
    X[30:] *= 1.0 + gap * rng.random((48, 1))
    X = np.concatenate([X, X[-2:]])
    residual = np.concatenate([R, R[:30]])
    expected = (X @ residual.T).argmin(axis=0)
    assert np.array_equal(tensor_scan.minimizing_vertices(*tensors(X, residual), nothing(80)), expected)


def test_of_equal_points_the_first_wins(rng, tensors):
    X, R = np.tile(rng.random((40, 6)), (5, 1)), rng.standard_normal((200, 6))
    assert tensor_scan.minimizing_vertices(*tensors(X, R), nothing(200)).max() < 40


def test_what_the_bounds_call_decided_is_right(rng, tensors, torch):
    X, R = rng.standard_normal((2000, 50)), rng.standard_normal((2000, 50))
    scan = tensor_scan.TensorScan(*tensors(X, R), TensorPenaltyGradient.of(nothing(2000), "cpu"))
    expected = torch.tensor((X @ R.T).argmin(axis=0))
    shares = []
    for kind in (torch.float16, torch.float32):
        index, doubtful = scan.decided(None, kind)
        assert torch.equal(index[~doubtful], expected[~doubtful])
        shares.append(float(doubtful.double().mean()))
    assert shares[1] <= shares[0] <= 0.01
    some = torch.arange(0, 2000, 7)
    assert torch.equal(scan.in_float64(some), expected[some])


def test_the_share_of_the_penalty_is_brought_up_to_date(rng, tensors):
    # The rounded points are used again by the next scan, with another slope.
    X, R = rng.random((150, 5)), 0.01 * rng.standard_normal((150, 5))
    dictionary, residual = tensors(X, R)
    for scale in (1.0, 0.01, 0.0):
        slope = slope_of(rng, 150, scale=scale)
        expected = minimizing_vertices(dictionary_of(X), R, slope)
        assert np.array_equal(tensor_scan.minimizing_vertices(dictionary, residual, slope), expected)
