"""Products of sparse matrices against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg._threads import threads
from nonneg.kernels.sparse_products import plan, row_sums, sampled_product, sparse_times


def sparse(n_rows=30, n_columns=21, density=0.2, dtype=np.float64, index=np.int32, seed=0):
    rng = np.random.default_rng(seed)
    csr = sp.random_array((n_rows, n_columns), density=density, format="csr", dtype=dtype, random_state=rng)
    csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
    return csr


# Less than a narrow line, a wide one, one of each, two wide ones.
@pytest.mark.covering(2)
@pytest.mark.parametrize("k", [1, 7, 8, 9, 16, 20, 27, 40, 50])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_the_product_is_that_of_scipy(k, dtype, index):
    csr = sparse(dtype=dtype, index=index)
    right = np.random.default_rng(1).random((21, k)).astype(dtype)
    product = sparse_times(csr.indptr, csr.indices, csr.data, right)
    assert product.dtype == dtype
    np.testing.assert_allclose(product, csr @ right, rtol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sampled_entries_are_those_of_the_whole_product(index):
    csr = sparse(index=index)
    rng = np.random.default_rng(2)
    left, right = rng.random((30, 6)), rng.random((21, 6))
    values = sampled_product(csr.indptr, csr.indices, left, right)
    rows, columns = csr.tocoo().coords
    np.testing.assert_allclose(values, (left @ right.T)[rows, columns], rtol=1e-13)


def test_arrays_in_fortran_order_and_slices_are_read_right():
    csr = sparse()
    rng = np.random.default_rng(3)
    wide = rng.random((21, 9))
    for right in (np.asfortranarray(wide), wide[:, ::2]):
        product = sparse_times(csr.indptr, csr.indices, csr.data, right)
        np.testing.assert_allclose(product, csr @ right, rtol=1e-13)
    left = np.asfortranarray(rng.random((30, 9)))
    values = sampled_product(csr.indptr, csr.indices, left, np.asfortranarray(wide))
    rows, columns = csr.tocoo().coords
    np.testing.assert_allclose(values, (left @ wide.T)[rows, columns], rtol=1e-13)


def test_empty_rows_give_zeros_and_an_empty_matrix_gives_nothing():
    csr = sp.csr_array((5, 3))
    right = np.ones((3, 2))
    product = sparse_times(csr.indptr, csr.indices, csr.data, right)
    np.testing.assert_array_equal(product, np.zeros((5, 2)))
    assert sampled_product(csr.indptr, csr.indices, np.ones((5, 2)), right).shape == (0,)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_sums_of_rows_are_those_of_scipy(dtype):
    csr = sparse(density=0.1)
    csr.data = (100 * csr.data).astype(dtype)
    assert (np.diff(csr.indptr) == 0).any()
    found = row_sums(csr.indptr, csr.data)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.asarray(csr.sum(axis=1)).ravel(), rtol=1e-5)
    np.testing.assert_array_equal(row_sums(np.zeros(4, dtype=int), np.zeros(0)), np.zeros(3))


def test_a_plan_covers_every_entry_once(torch, device, monkeypatch):
    indptr = np.array([0, 0, 5, 12, 12, 13, 40])
    monkeypatch.setattr(plan, "PART", 4)
    monkeypatch.setattr(plan, "BLOCK", 10)
    found = plan.row_plan(torch.asarray(indptr, device=device))
    assert [(first, last) for first, last, *_ in found.blocks] == [(0, 3), (3, 6)]
    rows, begins, starts = (array.cpu().numpy() for array in (found.rows, found.begins, found.starts))
    ends = np.minimum(begins + 4, indptr[rows + 1])
    covered = np.concatenate([np.arange(*ends) for ends in zip(begins, ends, strict=True)])
    np.testing.assert_array_equal(covered, np.arange(40))
    np.testing.assert_array_equal(np.repeat(np.arange(6), np.diff(starts)), rows)
    monkeypatch.setattr(plan, "PART", 64)
    assert plan.row_plan(torch.asarray(indptr, device=device)).rows is None


def on_device(torch, device, *arrays):
    return [torch.asarray(array, device=device) for array in arrays]


@pytest.mark.parametrize("k", [1, 5, 20, 255])
@pytest.mark.parametrize(("dtype", "index"), [(np.float32, np.int32), (np.float64, np.int64)])
@pytest.mark.parametrize("part", [2048, 4])
def test_triton_agrees_with_the_processor(torch, device, monkeypatch, k, dtype, index, part):
    if device.type == "cpu" and (part == 4) == (k in (1, 255) or dtype == np.float32):
        pytest.skip("takes long in the interpreter")
    monkeypatch.setattr(plan, "PART", part)
    csr = sparse(9, 13, density=0.5, dtype=dtype, index=index)
    csr.data[csr.indptr[3] : csr.indptr[4]] = 0
    rng = np.random.default_rng(7)
    left, right = rng.random((9, k)).astype(dtype), rng.random((13, k)).astype(dtype)
    parts = on_device(torch, device, csr.indptr, csr.indices, csr.data)
    A, B = on_device(torch, device, left, right)
    tol = 1e-5 if dtype == np.float32 else 1e-13
    product = sparse_times(*parts, B)
    assert product.dtype == B.dtype
    assert product.device == B.device
    np.testing.assert_allclose(product.cpu(), csr @ right, rtol=tol)
    sampled = sampled_product(*parts[:2], A, B)
    expected = sampled_product(csr.indptr, csr.indices, left, right)
    np.testing.assert_allclose(sampled.cpu(), expected, rtol=tol)
    sums = row_sums(parts[0], parts[2])
    np.testing.assert_allclose(sums.cpu(), np.asarray(csr.sum(axis=1)).ravel(), rtol=tol)


@pytest.mark.parametrize("shape", [(1, 7), (7, 1), (1, 1), (5, 3)])
def test_triton_takes_single_rows_and_columns_and_empty_matrices(torch, device, shape):
    for csr in (sp.csr_array(shape), sp.csr_array(np.ones(shape))):
        parts = on_device(torch, device, csr.indptr, csr.indices, csr.data)
        right = torch.ones((shape[1], 3), dtype=torch.float64, device=device)
        np.testing.assert_array_equal(sparse_times(*parts, right).cpu(), csr @ np.ones((shape[1], 3)))
        assert sampled_product(*parts[:2], right[:1].expand(shape[0], 3), right).shape == (csr.nnz,)
        assert row_sums(parts[0], parts[2]).shape == (shape[0],)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_do_not_depend_on_threads_nor_columns_on_the_others(dtype):
    csr = sparse(1100, 300, 0.2, dtype=dtype)
    right = np.random.default_rng(1).random((300, 37)).astype(dtype)
    whole = sparse_times(csr.indptr, csr.indices, csr.data, right)
    bound = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(whole, csr @ right, rtol=bound)
    with threads(3):
        np.testing.assert_array_equal(sparse_times(csr.indptr, csr.indices, csr.data, right), whole)
        for columns in (slice(5, 37), slice(16, 32)):
            part = sparse_times(csr.indptr, csr.indices, csr.data, right[:, columns])
            # Compilers may contract the sums of the last columns of a tile otherwise.
            np.testing.assert_allclose(part, whole[:, columns], rtol=bound)
