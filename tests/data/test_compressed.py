"""Compressed data and scaled views of every container: all that they offer is that of the plain matrix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.data import as_data_matrix
from nonneg.data.compressed import CompressedMatrix, compressed, leading_range
from nonneg.data.spectral import apply_gram, gram_matrix, resolve_small_singular_values
from nonneg.data.views import BlockView, ScaledMatrix, can_be_transposed, transposed

WEIGHTS = np.linspace(0.1, 2.0, 23)
CONTAINERS = {
    "numpy": np.array,
    "csr": sp.csr_array,
    "torch": lambda X: pytest.importorskip("torch").asarray(X.copy()),
    "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(7, -1)),
}


@pytest.fixture
def X(rng):
    X = np.where(rng.random((23, 9)) < 0.6, rng.random((23, 9)) * 5, 0.0)
    X[4] = 0.0
    return X


def local(array):
    return np.asarray(array.compute() if hasattr(array, "compute") else array)


def doubled(block, W, *, shift):
    return (2.0 * block.times(shift) + W,), (block.shape[0],)


def check(data, X, weights, rng):
    """Compare all that data offer with a plain matrix."""
    counted = np.ones(len(X)) if weights is None else weights
    right, left = rng.random((X.shape[1], 3)), rng.random((len(X), 3))
    there, beside = data.to_device(right), data.to_sample_array(left)
    assert data.shape == X.shape
    close = {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose(local(data.times(there)), X @ right, **close)
    np.testing.assert_allclose(local(data.transposed_times(beside)), X.T @ (counted[:, None] * left), **close)
    np.testing.assert_allclose(local(data.weighted_gram(beside)), left.T @ (counted[:, None] * left), **close)
    assert data.squared_norm() == pytest.approx(counted @ np.square(X).sum(axis=1), rel=1e-11)
    assert data.total() == pytest.approx(counted @ X.sum(axis=1), rel=1e-11)
    assert data.extremes() == pytest.approx((X.min(), X.max()), abs=1e-11)
    np.testing.assert_allclose(local(data.take_rows([3, 20, 3])), X[[3, 20, 3]], **close)
    (rows,), (count,) = data.map_reduce_rows(doubled, beside, shift=there)
    np.testing.assert_allclose(local(rows), 2 * X @ right + left, **close)
    assert count == len(X)
    blocks = [local(block.dense_rows(0, block.shape[0])) for block in data.local_blocks()]
    np.testing.assert_allclose(np.concatenate(blocks), X, **close)
    assert data.mean() == pytest.approx(counted @ X.sum(axis=1) / (counted.sum() * X.shape[1]), rel=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("container", ["numpy", "torch", "dask"])
def test_compressed_data_are_their_projection(container, weighted, X, rng):
    weights = WEIGHTS if weighted else None
    data = as_data_matrix(CONTAINERS[container](X), weights=weights)
    found = compressed(data, 4, dtype=data.dtype, scale=0.5)
    assert isinstance(found, BlockView if container == "dask" else CompressedMatrix)
    V = leading_range(data, 4)
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=1e-12)
    # The draw of Halko, Martinsson & Tropp, with one power iteration.
    counted = np.ones(23) if weights is None else weights
    drawn = np.random.default_rng([9, 4]).standard_normal((9, 4))
    image = (X * counted[:, None]).T @ X @ drawn
    np.testing.assert_allclose(V @ (V.T @ image), image, rtol=1e-9)
    check(found, 0.5 * X @ V @ V.T, weights, rng)
    assert found.count_nonzero() >= 4 * (23 + 9)


def test_a_part_of_compressed_data(X):
    found = compressed(as_data_matrix(X, weights=WEIGHTS), 3, dtype=np.float64)
    part = found.select(slice(2, 7))
    np.testing.assert_allclose(part.dense_rows(0, 5), found.dense_rows(2, 7))
    np.testing.assert_array_equal(part.weights, WEIGHTS[2:7])


def test_sparse_data_and_those_with_missing_entries_are_not_compressed(X):
    for data in (as_data_matrix(X, mask=X > 0), as_data_matrix(sp.csr_array(X))):
        assert compressed(data, 3, dtype=np.float64) is None


@pytest.mark.parametrize("scaled", ["rows", "columns", "both"])
@pytest.mark.parametrize("container", ["numpy", "csr", "torch"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scaled_views_are_scaled_matrices(container, scaled, weighted, X, rng):
    weights = WEIGHTS if weighted else None
    data = as_data_matrix(CONTAINERS[container](X), weights=weights)
    row_scale, column_scale = rng.random((23, 1)) + 0.5, rng.random(9) + 0.5
    rows = None if scaled == "columns" else row_scale
    columns = None if scaled == "rows" else column_scale
    view = ScaledMatrix(
        data,
        row_scale=None if rows is None else data.to_device(rows),
        column_scale=None if columns is None else data.to_device(columns),
    )
    plain = X * (1.0 if rows is None else rows) * (1.0 if columns is None else columns)
    check(view, plain, weights, rng)
    assert view.count_nonzero() == np.count_nonzero(X)
    np.testing.assert_allclose(local(view.squared_row_norms()), np.square(plain).sum(axis=1), rtol=1e-12)
    norms = np.linalg.norm(plain, axis=1)
    inverse = np.divide(1.0, norms, out=np.zeros(23), where=norms > 0)
    np.testing.assert_allclose(local(view.inverse_row_norms())[:, 0], inverse, rtol=1e-12)
    check(view.materialized(), plain, weights, rng)
    part = view.select(slice(5, 12))
    np.testing.assert_allclose(local(part.dense_rows(0, 7)), plain[5:12], rtol=1e-12)
    assert can_be_transposed(view) is not weighted
    if not weighted:
        np.testing.assert_allclose(local(transposed(view).dense_rows(0, 9)), plain.T, rtol=1e-12)


@pytest.mark.parametrize("entries", [[], [-2.0], [3.0], [np.nan]])
def test_extremes_of_sparse_views_count_zeros_that_are_not_stored(entries):
    csr = sp.csr_array((np.array(entries), ([0] * len(entries), [1] * len(entries))), shape=(2, 3))
    found = ScaledMatrix(as_data_matrix(csr), row_scale=np.array([[2.0], [5.0]])).extremes()
    if entries and np.isnan(entries[0]):
        assert np.isnan(found).all()
    else:
        assert found == (min([0.0, *(2 * x for x in entries)]), max([0.0, *(2 * x for x in entries)]))
    full = ScaledMatrix(as_data_matrix(sp.csr_array([[3.0, 4.0]])), row_scale=np.array([[2.0]]))
    assert full.extremes() == (6.0, 8.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_scaled_chunks_are_scaled_matrices(weighted, X, rng):
    weights = WEIGHTS if weighted else None
    data = as_data_matrix(CONTAINERS["dask"](X), weights=weights)
    scale = rng.random((23, 1)) + 0.5
    view = BlockView(data, ScaledMatrix, data.to_sample_array(scale))
    check(view, X * scale, weights, rng)
    assert view.count_nonzero() == np.count_nonzero(X)
    assert view.observed_weight() == pytest.approx(9 * (23 if weights is None else WEIGHTS.sum()))
    W = data.to_sample_array(rng.random((23, 2)))
    own = view.sample_matrix(W)
    assert own.shape == (23, 2)
    assert own.squared_norm() == pytest.approx(
        np.sum((1 if weights is None else WEIGHTS[:, None]) * local(W) ** 2)
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("container", ["numpy", "csr", "torch"])
def test_the_gram_operator_is_its_matrix(container, weighted, X, rng):
    weights = WEIGHTS if weighted else None
    data = as_data_matrix(CONTAINERS[container](X), weights=weights)
    root = X if weights is None else X * np.sqrt(WEIGHTS)[:, None]
    np.testing.assert_allclose(gram_matrix(data), root.T @ root, rtol=1e-12)
    V = rng.standard_normal((9, 4))
    np.testing.assert_allclose(apply_gram(data, V), root.T @ root @ V, rtol=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
def test_small_singular_values_are_resolved_in_order(weighted, rng):
    U, V = (np.linalg.qr(rng.standard_normal((n, 5)))[0] for n in (30, 8))
    sizes = np.array([3.0, 1.0, 1e-9, 5e-10, 1e-10])
    weights = rng.random(30) + 0.5 if weighted else None
    A = U * sizes @ V.T
    X = A if weights is None else A / np.sqrt(weights)[:, None]
    # As the Gram matrix gives them: those of small values turned among themselves, and in any order.
    turned = V[:, [1, 0, 2, 3, 4]].copy()
    turned[:, 2:] = turned[:, 2:] @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    found, values = resolve_small_singular_values(as_data_matrix(X, weights=weights), turned)
    np.testing.assert_allclose(values, sizes, rtol=1e-5)
    np.testing.assert_allclose(np.abs(np.sum(found * V, axis=0)), 1.0, rtol=1e-5)
