"""Sparse rows in tensors against SciPy: selection, transposes, sums in parts, masks, places of entries."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.data import as_data_matrix, csr_arrays, sparse_array
from nonneg.data.csr_arrays import CsrArrays, from_entries
from nonneg.data.fingerprint import fingerprint
from nonneg.data.frequent_directions import leading_direction
from nonneg.data.locate import locate
from nonneg.data.row_norms import row_norms
from nonneg.data.sparse_array import ListedArrays, SparseArrayMatrix, _among, _keys

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:Sparse ")]
WEIGHTS = np.linspace(0.5, 2.0, 9)


@pytest.fixture
def X(rng):
    X = np.where(rng.random((9, 6)) < 0.4, rng.standard_normal((9, 6)), 0.0)
    X[3] = 0.0
    X[5, 2] = 2.5
    return X


def arrays_of(torch, X):
    csr = sp.csr_array(X)
    return CsrArrays(*(torch.asarray(part) for part in (csr.indptr, csr.indices, csr.data)), csr.shape)


@pytest.mark.parametrize(
    "rows",
    [
        slice(2, 7),
        slice(7, 2),
        slice(None),
        slice(0, 9, 3),
        slice(8, None, -2),
        [4, 1, 4],
        [-1, 0],
        np.arange(9) % 2 == 0,
        [],
    ],
)
def test_rows_are_taken_as_numpy_takes_them(torch, X, rows):
    csr = arrays_of(torch, X)
    index = np.array(rows, dtype=np.int64) if isinstance(rows, list) else rows
    found = csr.take_rows(index)
    assert found.shape == X[index].shape
    np.testing.assert_array_equal(found.to_dense(), X[index])
    np.testing.assert_array_equal(found.to_scipy().toarray(), X[index])


def test_transposes_and_places(torch, X):
    csr = arrays_of(torch, X)
    turned = csr.transposed()
    np.testing.assert_array_equal(turned.to_dense(), X.T)
    assert turned.shape == (6, 9)
    rows, columns = np.nonzero(X)
    np.testing.assert_array_equal(csr.rows_of_entries(), rows)
    np.testing.assert_array_equal(_keys(csr), rows * 6 + columns)
    assert csr.nnz == len(rows)
    doubled = csr.with_data(2 * csr.data)
    np.testing.assert_array_equal(doubled.to_dense(), 2 * X)
    assert doubled.plan is csr.plan


def test_entries_in_any_order_are_added(torch):
    rows, columns = torch.tensor([2, 0, 2, 0, 1]), torch.tensor([1, 3, 1, 0, 2])
    values = torch.tensor([1.0, 2.0, 10.0, 3.0, 4.0])
    found = from_entries(rows, columns, values, (4, 5))
    expected = np.zeros((4, 5))
    np.add.at(expected, (rows.numpy(), columns.numpy()), values.numpy())
    np.testing.assert_array_equal(found.to_dense(), expected)
    assert found.nnz == 4
    assert found.indices.dtype == torch.int32
    alone = from_entries(rows[:1], columns[:1], values[:1], (4, 5))
    assert alone.to_dense()[2, 1] == 1.0
    nothing = from_entries(rows[:0], columns[:0], values[:0], (4, 5))
    assert not nothing.to_dense().any()


@pytest.mark.parametrize(("side", "wide"), [(2**31 - 2, False), (2**31 - 1, True)])
def test_long_indices_are_used_where_they_are_needed(torch, side, wide):
    xp = csr_arrays.array_namespace(torch.ones(1))
    for shape, nnz in (((side, 3), 1), ((3, side), 1), ((3, 3), side)):
        assert csr_arrays._index_dtype(xp, shape, nnz) == (torch.int64 if wide else torch.int32)


@pytest.mark.parametrize("entries", [3, 1 << 22])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_sums_of_stored_entries_in_parts(torch, X, weights, entries, monkeypatch):
    monkeypatch.setattr(sparse_array, "ENTRIES", entries)
    data = SparseArrayMatrix(arrays_of(torch, X), weights=None if weights is None else torch.asarray(weights))
    counted = np.ones(9) if weights is None else weights
    assert data.squared_norm() == pytest.approx(counted @ (X**2).sum(axis=1))
    assert data.total() == pytest.approx(counted @ X.sum(axis=1))
    assert data.weighted_nonzeros() == pytest.approx(counted @ np.count_nonzero(X, axis=1))
    assert data.count_nonzero() == np.count_nonzero(X)
    for power in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(data.row_powers(power), (np.abs(X) ** power).sum(axis=1))
        np.testing.assert_allclose(data.column_powers(power), counted @ X**power)
    np.testing.assert_allclose(data.squared_row_norms(), (X**2).sum(axis=1))
    assert data.extremes() == pytest.approx((X.min(), X.max()))
    scaled = data.scaled(torch.asarray(WEIGHTS)[:, None], torch.arange(6.0).double())
    np.testing.assert_allclose(scaled.dense_rows(0, 9), X * WEIGHTS[:, None] * np.arange(6.0))
    np.testing.assert_allclose(data.turned().dense_rows(0, 6), X.T)
    host = data.on_host()
    np.testing.assert_array_equal(host.dense_rows(0, 9), X)
    part = data.select(np.array([5, 2]))
    np.testing.assert_array_equal(part.dense_rows(0, 2), X[[5, 2]])
    if weights is not None:
        np.testing.assert_array_equal(host.weights, weights)
        np.testing.assert_array_equal(part.weights, weights[[5, 2]])


def test_extremes_count_zeros_that_are_not_stored(torch):
    for entries, expected in (
        ([[1.0, 2.0]], (1.0, 2.0)),
        ([[0.0, 2.0]], (0.0, 2.0)),
        ([[0.0, -2.0]], (-2.0, 0.0)),
    ):
        assert SparseArrayMatrix(arrays_of(torch, np.array(entries))).extremes() == expected
    assert SparseArrayMatrix(arrays_of(torch, np.zeros((2, 2)))).extremes() == (0.0, 0.0)


@pytest.mark.parametrize("lists_observed", [False, True])
def test_a_list_of_observed_or_missing_entries(torch, rng, lists_observed):
    mask = rng.random((9, 6)) < 0.5
    listed = arrays_of(torch, (mask if lists_observed else ~mask).astype(float))
    observed = ListedArrays(listed, lists_observed=lists_observed)
    Ht, W = rng.random((6, 2)), rng.random((9, 2))
    np.testing.assert_allclose(observed.row_sums(torch.asarray(Ht)), mask @ Ht, atol=1e-12)
    np.testing.assert_allclose(observed.column_sums(torch.asarray(W)), mask.T @ W, atol=1e-12)
    assert observed.weight(None) == mask.sum()
    assert observed.weight(torch.asarray(WEIGHTS)) == pytest.approx(WEIGHTS @ mask.sum(axis=1))
    np.testing.assert_array_equal(observed.dense_rows(2, 7), mask[2:7])
    np.testing.assert_array_equal(observed.rows(slice(1, 4)).dense_rows(0, 3), mask[1:4])
    gram = observed.row_grams(torch.asarray(Ht))
    assert gram.sign == (1.0 if lists_observed else -1.0)
    np.testing.assert_allclose(gram.base, np.zeros((2, 2)) if lists_observed else Ht.T @ Ht)
    turned = observed.column_grams(torch.asarray(W))
    np.testing.assert_allclose(turned.base, np.zeros((2, 2)) if lists_observed else W.T @ W)
    np.testing.assert_array_equal(
        turned.indptr, np.append(0, np.cumsum((mask == lists_observed).sum(axis=0)))
    )


def test_keys_among_others(torch):
    keys, found = torch.tensor([0, 3, 5, 9, 12]), torch.tensor([3, 9, 10])
    assert _among(keys, found).tolist() == [False, True, False, True, False]
    assert _among(keys, found[:0]).tolist() == [False] * 5


@pytest.mark.parametrize("share", [0.3, 0.8])
@pytest.mark.parametrize("nan", [False, True])
def test_masks_leave_out_entries_and_list_the_shorter_side(torch, X, rng, share, nan):
    mask = rng.random(X.shape) < share
    entries = X.copy()
    if nan:
        entries[5, 2] = np.nan
        mask[5, 2] = True
    data = sparse_array.sparse_array_matrix(
        torch.asarray(entries).to_sparse_csr(), mask=mask, nan_is_missing=nan
    )
    seen = mask & ~np.isnan(entries)
    assert data.observed.lists_observed is bool(2 * seen.sum() <= seen.size)
    np.testing.assert_array_equal(data.observed.dense_rows(0, 9), seen)
    np.testing.assert_array_equal(data.dense_rows(0, 9), np.where(seen, np.nan_to_num(entries), 0.0))
    assert data.observed_weight() == seen.sum()


@pytest.mark.parametrize("form", ["dense", "sparse", "tensor"])
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_norms_of_rows(torch, X, form, norm):
    given = {"dense": X, "sparse": sp.csr_array(X), "tensor": torch.asarray(X).to_sparse_csr()}[form]
    found = row_norms(as_data_matrix(given), norm)
    order = {"l1": 1, "l2": 2, "max": np.inf}[norm]
    np.testing.assert_allclose(found[:, 0], np.linalg.norm(X, order, axis=1))


@pytest.mark.parametrize("form", ["dense", "sparse", "tensor"])
def test_the_first_entry_that_meets_a_condition_is_found(torch, form):
    X = np.abs(np.random.default_rng(0).random((5, 4))) + 0.1
    X[2, 1], X[2, 3], X[4, 0] = -1.0, -2.0, 0.0
    given = {"dense": X, "sparse": sp.csr_array(X), "tensor": torch.asarray(X).to_sparse_csr()}[form]
    data = as_data_matrix(given)
    assert locate(data, lambda xp, rows: rows < 0) == (2, 1, -1.0)
    assert locate(data, lambda xp, rows: rows <= -2) == (2, 3, -2.0)
    assert locate(data, lambda xp, rows: rows == 0) == (4, 0, 0.0)
    with pytest.raises(LookupError):
        locate(data, lambda xp, rows: rows > 100)


def test_a_fingerprint_knows_all_that_belongs_to_the_data(X):
    W = np.ones((9, 2))
    sets = [
        (as_data_matrix(X), ()),
        (as_data_matrix(X + 1e-12), ()),
        (as_data_matrix(X, weights=WEIGHTS), ()),
        (as_data_matrix(X, mask=X > 0), ()),
        (as_data_matrix(sp.csr_array(X)), ()),
        (as_data_matrix(sp.csr_array(2 * X)), ()),
        (as_data_matrix(X), (W,)),
        (as_data_matrix(X), (2 * W,)),
    ]
    found = [fingerprint(data, *more) for data, more in sets]
    assert len(set(found)) == len(sets)
    assert found == [fingerprint(data, *more) for data, more in sets]


def test_the_leading_direction_of_a_sketch(rng):
    sketch = rng.random((4, 7))
    direction, value = leading_direction(sketch)
    _, s, V = np.linalg.svd(sketch)
    np.testing.assert_allclose(direction, np.abs(V[0]), rtol=1e-9)
    assert value == pytest.approx(s[0] ** 2)
    nothing, value = leading_direction(np.zeros((4, 7)))
    assert (value, nothing.any(), nothing.shape) == (0.0, False, (7,))
