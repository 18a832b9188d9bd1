"""Sums over the nonzeros of sparse data against dense arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.data.sparse import SparseMatrix, csr_arrays
from nonneg.kernels import beta_products
from nonneg.kernels.nonzeros import line_search, ratio_sums, row_hessians
from nonneg.kernels.sparse_products import plan

LOWER_BOUND = 1e-20
WEIGHTS = np.random.default_rng(3).random(11)


def problem(k=4, dtype=np.float64, shape=(7, 11)):
    """Sparse data with an empty row, an empty column and a stored zero, and positive factors."""
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=shape) * (rng.random(shape) < 0.5)
    X[2], X[:, 4] = 0.0, 0.0
    csr = sp.csr_array(X.astype(dtype))
    csr.data[0] = 0.0
    factors = rng.random((shape[0], k)) + 0.1, rng.random((shape[1], k)) + 0.1
    return csr, *(factor.astype(dtype) for factor in factors)


def dense_sums(csr, A, Bt, weights):
    X, V = csr.toarray().astype(np.float64), A.astype(np.float64) @ Bt.T
    weights = np.ones(X.shape[1]) if weights is None else weights
    ratio = X / V * weights
    logs = np.where(X > 0, X * (np.log(np.where(X > 0, X, 1) / V) - 1), 0) @ weights
    return ratio @ Bt, (ratio / V) @ Bt**2, (ratio / V).sum(axis=1), logs


def as_tensors(torch, device, csr):
    parts = (torch.asarray(part, device=device) for part in (csr.indptr, csr.indices, csr.data))
    from nonneg.data.sparse import CsrArrays

    return CsrArrays(*parts, csr.shape)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_sums_agree_with_dense_arithmetic(weights):
    csr, A, Bt = problem()
    found = ratio_sums(csr, A, Bt, LOWER_BOUND, weights=weights, second=True, logs=True)
    for got, expected in zip(found, dense_sums(csr, A, Bt, weights), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    only = ratio_sums(csr, A, Bt, LOWER_BOUND, product=False, logs=True)
    assert only.product is only.second is only.trace is None


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize(("k", "dtype"), [(1, np.float64), (4, np.float32), (20, np.float64)])
@pytest.mark.parametrize("part", [2048, 2])
def test_triton_sums_agree_with_dense_arithmetic(torch, device, monkeypatch, weights, k, dtype, part):
    if device.type != "cuda" and (weights is None) == (part == 2):
        pytest.skip("weights with many parts and no weights with few take the interpreter long enough")
    monkeypatch.setattr(plan, "PART", part)
    csr, A, Bt = problem(k, dtype)
    left, right = (torch.asarray(factor, device=device) for factor in (A, Bt))
    of_columns = None if weights is None else torch.asarray(weights.astype(dtype), device=device)
    tensors = as_tensors(torch, device, csr)
    found = ratio_sums(tensors, left, right, LOWER_BOUND, weights=of_columns, second=True, logs=True)
    for got, expected in zip(found, dense_sums(csr, A, Bt, weights), strict=True):
        np.testing.assert_allclose(got.cpu(), expected, rtol=2e-5 if dtype == np.float32 else 1e-12)
    only = ratio_sums(tensors, left, right, LOWER_BOUND, product=False, logs=True)
    assert only.product is only.second is only.trace is None
    np.testing.assert_allclose(only.logs.cpu(), dense_sums(csr, A, Bt, None)[3], rtol=2e-5)


def search_problem(dtype=np.float64):
    csr, A, Bt = problem(3, dtype)
    rng = np.random.default_rng(5)
    # Directions of all kinds: long ones, for which several steps are tried, and ascending ones.
    direction = (rng.random(A.shape) * 40.0 ** rng.integers(-2, 2, (len(A), 1)) - A).astype(dtype)
    X, V = csr.toarray().astype(np.float64), A.astype(np.float64) @ Bt.T
    gradient = (1 - X / V) @ Bt.astype(np.float64)
    linear = direction.astype(np.float64) @ Bt.sum(axis=0)
    slopes = np.sum(gradient * direction, axis=1)
    assert (slopes > 0).any()
    assert (slopes < 0).any()
    return csr, A, direction, Bt, linear, np.zeros(len(A)), slopes


def test_the_line_search_is_the_one_of_dense_data():
    csr, A, direction, Bt, linear, quadratic, slopes = search_problem()
    steps = line_search(csr, A, direction, Bt, LOWER_BOUND, linear, quadratic, slopes, beta_products.TRIES)
    x = csr.toarray()
    _, expected = beta_products.line_search(
        x, A @ Bt.T, direction @ Bt.T, None, 1.0, LOWER_BOUND, np.zeros(len(A)), quadratic, slopes
    )
    np.testing.assert_allclose(steps, expected, rtol=1e-9)
    assert len(np.unique(steps)) > 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [plan.BLOCK, 8])
def test_the_triton_line_search_is_the_one_of_numpy(torch, device, monkeypatch, dtype, block):
    monkeypatch.setattr(plan, "BLOCK", block)
    csr, A, direction, Bt, *rest = search_problem(dtype)
    expected = line_search(csr, A, direction, Bt, LOWER_BOUND, *rest, beta_products.TRIES)
    moved = [torch.asarray(array, device=device) for array in (A, direction, Bt)]
    rows = [torch.asarray(array, device=device) for array in rest]
    tensors = as_tensors(torch, device, csr)
    steps = line_search(tensors, *moved, LOWER_BOUND, *rows, beta_products.TRIES)
    # Long directions lose three digits to cancellation, which float32 shows.
    np.testing.assert_allclose(steps.cpu(), expected, rtol=1e-3 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("k", [3, 70])
def test_hessians_agree_with_dense_arithmetic(k):
    csr, _, Bt = problem(k)
    expected = np.einsum("ij,ja,jb->iab", csr.toarray(), Bt, Bt)
    np.testing.assert_allclose(row_hessians(csr.indptr, csr.indices, csr.data, Bt), expected, rtol=1e-12)


@pytest.mark.parametrize(("k", "dtype"), [(3, np.float32), (70, np.float64)])
def test_triton_hessians_agree_with_dense_arithmetic(torch, device, k, dtype):
    csr, _, Bt = problem(k, dtype)
    parts = [torch.asarray(part, device=device) for part in (csr.indptr, csr.indices, csr.data, Bt)]
    tol = 1e-5 if dtype == np.float32 else 1e-12
    expected = np.einsum("ij,ja,jb->iab", csr.toarray(), Bt, Bt)
    np.testing.assert_allclose(row_hessians(*parts).cpu(), expected, rtol=tol)
    expected = np.einsum("ij,ja,jb->iab", np.asarray(SparseMatrix(csr).csr.toarray() != 0, float), Bt, Bt)
    pattern = sp.csr_array(csr.toarray())
    parts[:2] = (torch.asarray(part, device=device) for part in (pattern.indptr, pattern.indices))
    np.testing.assert_allclose(row_hessians(*parts[:2], None, parts[3]).cpu(), expected, rtol=tol)


@pytest.mark.torch
def test_cpu_tensors_give_what_numpy_gives(torch):
    csr, A, Bt = problem()
    X = as_tensors(torch, "cpu", csr)
    found = ratio_sums(X, *map(torch.asarray, (A, Bt)), LOWER_BOUND, second=True, logs=True)
    for got, expected in zip(found, ratio_sums(csr, A, Bt, LOWER_BOUND, second=True, logs=True), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-14)
    assert csr_arrays(torch.asarray(csr.toarray()).to_sparse()).nnz == csr.count_nonzero()
