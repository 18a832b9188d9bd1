"""Compressed rows in tensors: powers, sums over observed entries, selections, against dense arrays."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.containers import sparse_array

from nonneg._arrays import to_numpy
from nonneg.data import as_data_matrix
from nonneg.data.csr_arrays import CsrArrays, check_sparse_array, csr_arrays, from_entries, scipy_matrix
from nonneg.data.observed import MissingEntries
from nonneg.data.sparse_array import ListedArrays, sparse_array_matrix
from nonneg.exceptions import DataTypeError, InvalidDataError

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:Sparse")]


@pytest.fixture
def X(rng):
    pytest.importorskip("torch")
    X = np.where(rng.random((8, 6)) < 0.5, 0.0, rng.standard_normal((8, 6)))
    X[2], X[:, 4] = 0.0, 0.0
    return X


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, 8)])
def test_powers_of_rows_and_columns(weights, X):
    data = as_data_matrix(sparse_array(X, "torch", "csr"), weights=weights)
    for power in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(to_numpy(data.row_powers(power)), np.sum(np.abs(X) ** power, axis=1))
        scale = 1.0 if weights is None else weights[:, None]
        np.testing.assert_allclose(
            to_numpy(data.column_powers(power)), np.sum(scale * np.where(X == 0, 0, X) ** power, axis=0)
        )
    each = np.ones(8) if weights is None else weights
    assert data.weighted_nonzeros() == pytest.approx(np.sum(each * np.count_nonzero(X, axis=1)))
    assert data.count_nonzero() == np.count_nonzero(X)
    assert data.extremes() == (X.min(), X.max())
    turned = as_data_matrix(sparse_array(X, "torch", "csr")).turned()
    np.testing.assert_array_equal(to_numpy(turned.dense_rows(0, 6)), X.T)


def test_extremes_of_what_is_stored_everywhere_or_nowhere(X):
    full = np.abs(X) + 1.0
    assert as_data_matrix(sparse_array(full, "torch", "csr")).extremes() == (full.min(), full.max())
    assert as_data_matrix(sparse_array(-full, "torch", "csr")).extremes() == (-full.max(), -full.min())
    few = np.zeros((3, 4))
    assert as_data_matrix(sparse_array(few, "torch", "csr")).extremes() == (0.0, 0.0)
    few[1, 2] = 5.0
    assert as_data_matrix(sparse_array(few, "torch", "csr")).extremes() == (0.0, 5.0)
    assert as_data_matrix(sparse_array(-few, "torch", "csr")).extremes() == (-5.0, 0.0)


@pytest.mark.parametrize(
    "rows", [slice(2, 6), slice(0, 8, 3), slice(5, 2), [7, 0, 7], [-1, -8], np.arange(8) % 3 == 0]
)
def test_some_rows(rows, X):
    csr = csr_arrays(sparse_array(X, "torch", "csr"))[0]
    found = csr.take_rows(rows)
    np.testing.assert_array_equal(to_numpy(found.to_dense()), X[rows])
    assert found.shape == X[rows].shape
    assert int(found.indptr[0]) == 0
    np.testing.assert_array_equal(to_numpy(csr.transposed().to_dense()), X.T)
    np.testing.assert_array_equal(csr.to_scipy().toarray(), X)


def test_entries_of_one_place_are_added_in_any_order(torch):
    rows, columns = torch.tensor([2, 0, 2, 0, 1]), torch.tensor([1, 3, 1, 0, 2])
    found = from_entries(rows, columns, torch.tensor([1.0, 2, 3, 4, 5], dtype=torch.float64), (3, 4))
    np.testing.assert_array_equal(to_numpy(found.to_dense()), [[4, 0, 0, 2], [0, 0, 5, 0], [0, 4, 0, 0]])
    assert found.nnz == 4
    one = from_entries(rows[:1], columns[:1], torch.tensor([7.0]), (3, 4))
    assert to_numpy(one.to_dense())[2, 1] == 7.0


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("nan", [False, True])
def test_patterns_of_observed_entries(share, nan, X, rng):
    mask = rng.random(X.shape) < share
    seen, given = mask.copy(), X.copy()
    if nan:
        at = np.argwhere(X != 0)[:3]
        given[tuple(at.T)] = np.nan
        seen &= ~np.isnan(given)
    data = sparse_array_matrix(
        sparse_array(given, "torch", "csr"), mask=MissingEntries(mask) if nan else mask
    )
    observed = data.observed
    assert isinstance(observed, ListedArrays)
    assert observed.lists_observed == (2 * seen.sum() <= X.size)
    np.testing.assert_array_equal(to_numpy(observed.dense_rows(0, 8)), seen)
    np.testing.assert_array_equal(to_numpy(observed.rows([3, 1]).dense_rows(0, 2)), seen[[3, 1]])
    np.testing.assert_array_equal(to_numpy(data.dense_rows(0, 8)), np.where(seen, X, 0.0))
    Ht, W = rng.random((6, 2)), rng.random((8, 2))
    np.testing.assert_allclose(to_numpy(observed.row_sums(data.to_device(Ht))), seen @ Ht, atol=1e-12)
    np.testing.assert_allclose(to_numpy(observed.column_sums(data.to_device(W))), seen.T @ W, atol=1e-12)
    weights = np.linspace(1.0, 2.0, 8)
    assert observed.weight(None) == seen.sum()
    assert observed.weight(data.to_device(weights)) == pytest.approx(np.sum(weights[:, None] * seen))


def test_nan_alone_lists_what_is_missing(X):
    given = X.copy()
    at = tuple(np.argwhere(X != 0)[0])
    given[at] = np.nan
    data = sparse_array_matrix(sparse_array(given, "torch", "csr"), mask=MissingEntries(None))
    assert not data.observed.lists_observed
    assert data.observed.weight(None) == X.size - 1
    assert sparse_array_matrix(sparse_array(X, "torch", "csr"), mask=MissingEntries(None)).observed is None


def compressed(torch, indptr, indices, values, shape):
    parts = (torch.tensor(part) for part in (indptr, indices, np.asarray(values, dtype=np.float64)))
    return torch.sparse_csr_tensor(*parts, size=shape, check_invariants=False)


@pytest.mark.parametrize(
    ("indptr", "indices", "values", "sorted_indices", "sorted_values"),
    [
        ([0, 2, 3], [1, 0, 2], [1, 2, 3], [0, 1, 2], [2, 1, 3]),  # only within a row
        ([0, 2, 4], [0, 1, 0, 1], [1, 2, 3, 4], [0, 1, 0, 1], [1, 2, 3, 4]),
        ([0, 2, 3], [1, 1, 2], [1, 2, 3], [1, 2], [3, 3]),  # one place twice
        ([0, 1, 2], [2, 0], [1, 2], [2, 0], [1, 2]),
        ([0, 0, 1], [2], [5], [2], [5]),
        ([0, 0, 0], [], [], [], []),
    ],
)
def test_columns_are_sorted_within_rows_and_repeated_ones_added(
    indptr, indices, values, sorted_indices, sorted_values, torch
):
    given = compressed(torch, indptr, np.array(indices, dtype=np.int64), values, (2, 3))
    found, turned = csr_arrays(given)
    assert turned is None
    assert found.indices.tolist() == sorted_indices
    assert found.data.tolist() == sorted_values
    assert found.indptr.dtype == found.indices.dtype == torch.int32
    assert found.indptr.tolist()[-1] == found.nnz == len(sorted_indices)


@pytest.mark.parametrize(
    ("indptr", "indices"),
    [
        ([0, 1], [0, 1]),  # a row too few
        ([0, 1, 1], [0, 1]),  # ends before the last entry
        ([1, 1, 2], [0, 1]),
        ([0, 3, 2], [0, 1]),
        ([0, 1, 2], [0, 3]),
        ([0, 1, 2], [-1, 0]),
    ],
)
def test_index_arrays_of_no_matrix_are_refused(indptr, indices, torch):
    with pytest.raises(InvalidDataError, match=r"do not describe a matrix of shape \(2, 3\)"):
        csr_arrays(compressed(torch, indptr, indices, [1.0, 2.0], (2, 3)))


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_every_layout_is_the_same_matrix(layout, X):
    found, turned = csr_arrays(sparse_array(X, "torch", layout))
    np.testing.assert_array_equal(to_numpy(found.to_dense()), X)
    assert (turned is None) == (layout != "csc")
    if turned is not None:
        np.testing.assert_array_equal(to_numpy(turned.to_dense()), X.T)
    np.testing.assert_array_equal(scipy_matrix(sparse_array(X, "torch", layout)).toarray(), X)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_matrices_with_the_attributes_of_cupy_s(form, rng):
    """SciPy's have the same ones."""
    X = np.where(rng.random((5, 3)) < 0.5, rng.random((5, 3)), 0.0)
    found, turned = csr_arrays(sp.csr_matrix(X).asformat(form))
    np.testing.assert_array_equal(found.to_scipy().toarray(), X)
    assert found.shape == (5, 3)
    assert (turned is None) == (form != "csc")
    if turned is not None:
        np.testing.assert_array_equal(turned.to_scipy().toarray(), X.T)


def test_other_values_at_the_same_places(X):
    csr = csr_arrays(sparse_array(X, "torch", "csr"))[0]
    np.testing.assert_array_equal(to_numpy(csr.with_data(2 * csr.data).to_dense()), 2 * X)
    kept = csr.plan
    assert csr.with_data(csr.data).plan is kept
    assert csr.as_torch().data is csr.data
    np.testing.assert_array_equal(to_numpy(csr.rows_of_entries()), np.nonzero(X)[0])


def test_small_whole_numbers_do_not_wrap_around(torch):
    places = torch.tensor([[0, 0, 1], [1, 1, 0]])
    counts = torch.sparse_coo_tensor(places, torch.tensor([100, 100, 3], dtype=torch.int8), (2, 2))
    np.testing.assert_array_equal(scipy_matrix(counts).toarray(), [[0, 200], [3, 0]])
    check_sparse_array(counts, mask=True)
    with pytest.raises(DataTypeError, match=r"float32 or float64, got torch\.int8.*X\.to\(torch\.float32\)"):
        check_sparse_array(counts)
    with pytest.raises(DataTypeError, match=r"abs\(X\)\.to\(torch\.float32\)"):
        scipy_matrix(counts.to(torch.complex64))


def test_entries_that_are_vectors_are_refused(torch):
    nested = torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(2, 3), (2, 3))
    with pytest.raises(DataTypeError, match="got one with 1 dense dimensions"):
        check_sparse_array(nested)
    blocks = torch.eye(4).to_sparse_bsr((2, 2))
    with pytest.raises(DataTypeError, match=r"got torch\.sparse_bsr.*W\.to_sparse_csr\(\)"):
        check_sparse_array(blocks, "W")


def test_one_row_one_column_and_nothing(torch):
    none = torch.empty(0, dtype=torch.float64)
    empty = CsrArrays(torch.zeros(3, dtype=torch.int32), none.to(torch.int32), none, (2, 4))
    assert empty.nnz == 0
    np.testing.assert_array_equal(to_numpy(empty.transposed().to_dense()), np.zeros((4, 2)))
    np.testing.assert_array_equal(to_numpy(empty.take_rows([1]).to_dense()), np.zeros((1, 4)))
    for shape in ((1, 5), (5, 1), (1, 1)):
        X = np.arange(1.0, 1.0 + shape[0] * shape[1]).reshape(shape)
        csr = csr_arrays(torch.asarray(X).to_sparse_csr())[0]
        np.testing.assert_array_equal(to_numpy(csr.to_dense()), X)
        np.testing.assert_array_equal(to_numpy(csr.transposed().to_dense()), X.T)
