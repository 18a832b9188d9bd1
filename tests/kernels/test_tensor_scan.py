"""The scan that leaves everything on the device: its decisions, with products made by PyTorch on the host."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.test_self_dictionary import nothing, slope_of

from nonneg.kernels.self_dictionary import dictionary_of, minimizing_vertices
from nonneg.kernels.self_dictionary import torch as tensor_scan
from nonneg.kernels.self_dictionary.array_api import center_and_radius
from nonneg.kernels.self_dictionary.types import (
    Dictionary,
    LowestScores,
    TensorPenaltyGradient,
    near_tie,
)

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


def test_rounding_errors_of_a_matrix_are_measured(rng, torch):
    matrix = torch.tensor(rng.standard_normal((5, 3)))
    out, lost, squares = tensor_scan._rounded(matrix, 8, torch.float16)
    assert (out.dtype, tuple(out.shape)) == (torch.float16, (5, 8))
    assert torch.equal(out[:, :3], matrix.half())
    assert (out[:, 3:] == 0).all()
    np.testing.assert_allclose(lost, ((matrix - matrix.half().double()) ** 2).sum(dim=1))
    np.testing.assert_allclose(squares, (matrix**2).sum(dim=1))


def scan_of(rng, tensors, n=12, m=4, scale=1.0):
    X, R = 1 + rng.random((n, m)), rng.standard_normal((n, m))
    R[3] = 0.0
    slope = slope_of(rng, n, scale=scale)
    return X, R, slope, tensor_scan.TensorScan(*tensors(X, R), TensorPenaltyGradient.of(slope, "cpu"))


@pytest.mark.parametrize("scale", [1.0, 0.0, 1e-300])
def test_points_and_columns_are_scaled_to_scores_up_to_one(scale, rng, tensors, torch):
    X, R, slope, scan = scan_of(rng, tensors, scale=scale)
    largest = slope.base.max() if scale == 1.0 else 0.0  # not what has no inverse
    assert float(scan.base_scale) == largest
    expected = slope.base / largest if largest else np.zeros(12)
    np.testing.assert_allclose(scan.base, expected)
    points, error, longest = scan.rounded.in_type(torch.float16, scan.base)
    center = X.mean(axis=0)
    whole = np.column_stack([(X - center) / scan.radius, expected])
    np.testing.assert_allclose(points[:, :5].double(), whole, atol=1e-3)
    assert (points[:, 5:] == 0).all()
    apart = np.linalg.norm(whole - points[:, :5].double().numpy(), axis=1)
    assert float(error) == pytest.approx(apart.max(), rel=1e-9)
    assert float(longest) == pytest.approx(np.linalg.norm(whole, axis=1).max())
    columns, errors, lengths, sizes = scan.scaled_columns(torch.tensor(R), torch.float16)
    bound = scan.radius * np.linalg.norm(R, axis=1) + largest
    bound[bound == 0] = 1.0
    np.testing.assert_allclose(sizes, bound)
    rows = np.column_stack([R * scan.radius, np.full(12, largest)]) / bound[:, None]
    np.testing.assert_allclose(columns[:, :5].double(), rows, atol=1e-3)
    np.testing.assert_allclose(errors, np.linalg.norm(rows - columns[:, :5].double().numpy(), axis=1))
    np.testing.assert_allclose(lengths, np.linalg.norm(rows, axis=1))


@pytest.mark.parametrize(("kind", "unit"), [("float16", 2.0**-23), ("float32", 2.0**-22)])
@pytest.mark.parametrize("margin", [0.98, 1.02])
def test_columns_are_decided_where_no_error_could_change_the_order(
    kind, unit, margin, rng, tensors, torch, monkeypatch
):
    # Two scores miss the true ones by at most the errors of the factors and of their product.
    X, R, slope, scan = scan_of(rng, tensors)
    dtype = getattr(torch, kind)
    _, point_error, longest = scan.rounded.in_type(dtype, scan.base)
    _, errors, lengths, sizes = scan.scaled_columns(torch.tensor(R), dtype)
    error = point_error * (lengths + errors) + longest * errors
    tol = 2.02 * (error + unit * (scan.rounded.depth + 32) * longest * lengths)
    scores = (X - X.mean(axis=0)) @ R.T + slope.base[:, None]
    place = torch.tensor(scores.argmin(axis=0))
    extra = scan.gradient.beyond_base(place)

    def lowest_scores(points, columns):
        lowest = torch.zeros((4, 12)).double() + float("inf")
        lowest[0] = 0.25
        return LowestScores(lowest, place[None].repeat(4, 1), 0.25 + extra / sizes + margin * tol)

    monkeypatch.setattr(tensor_scan, "lowest_scores", lowest_scores)
    index, undecided = scan.decided(None, dtype)
    assert torch.equal(index, place)
    assert undecided.tolist() == [margin < 1] * 12


@pytest.mark.parametrize("entries", [1, 7, 10**6])
@pytest.mark.parametrize("n_points", [3, 5, 9])
def test_the_lowest_products_of_every_column(entries, n_points, rng, torch, monkeypatch):
    monkeypatch.setattr(tensor_scan, "ENTRIES", entries)
    points, columns = rng.standard_normal((n_points, 4)), rng.standard_normal((6, 4))
    found = tensor_scan.lowest_scores(torch.tensor(points), torch.tensor(columns))
    ordered, order = np.sort(points @ columns.T, axis=0), np.argsort(points @ columns.T, axis=0)
    filled = np.vstack([ordered, np.full((5, 6), np.inf)])
    np.testing.assert_allclose(found.scores, filled[:4], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.others, filled[4], rtol=1e-5, atol=1e-6)
    kept = min(4, n_points)
    np.testing.assert_array_equal(found.points[:kept], order[:kept])


@pytest.mark.parametrize("entries", [1, 25, 10**6])
def test_float64_scores_of_some_columns(entries, rng, tensors, torch, monkeypatch):
    monkeypatch.setattr(tensor_scan, "ENTRIES", entries)
    X, R, slope, scan = scan_of(rng, tensors)
    some = torch.tensor([7, 0, 11])
    expected = minimizing_vertices(dictionary_of(X), R, slope)
    assert np.array_equal(scan.in_float64(some), expected[some])


def test_slopes_of_tensors_at_single_entries(rng, torch):
    slope = slope_of(rng, 9)
    dense = np.zeros((9, 9))
    dense[slope.rows, np.repeat(np.arange(9), np.diff(slope.indptr))] = slope.extra
    gradient, points = TensorPenaltyGradient.of(slope, "cpu"), torch.tensor(rng.integers(0, 9, 9))
    extra = dense[points, np.arange(9)]
    np.testing.assert_allclose(gradient.beyond_base(points), extra)
    np.testing.assert_allclose(gradient.at(points), slope.base[points] + extra)
    some = torch.tensor([4, 0, 8])
    part = gradient.of_columns(some)
    assert part.n_columns == 3
    np.testing.assert_allclose(part.beyond_base(points[:3]), dense[points[:3], some])


def test_numbers_that_scans_share(rng):
    assert near_tie(10) == pytest.approx(2.02 * (10 + 1 + 8) / 2**24)
    assert near_tie(10, 1.0) == pytest.approx(2.02 * 19)
    slope = slope_of(rng, 9)
    assert slope.base_scale == slope.base.max()
    assert type(slope)(np.full(3, 1e-291), *[None] * 3).base_scale == 0.0
    assert type(slope)(np.zeros(0), *[None] * 3).base_scale == 0.0
    assert Dictionary(None, None, 4.0).inverse == 0.25
    assert Dictionary(None, None, 0.0).inverse == 0.0
