"""Sparse entries as users as_container them: any format, duplicates, unsorted, explicit zeros."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import factorize
from nonneg.data import as_data_matrix
from nonneg.data.door import Request, wrap


def parts(csr):
    return [array.copy() for array in (csr.data, csr.indices, csr.indptr)]


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("style", ["array", "matrix"])
def test_every_format_is_taken_and_not_changed(name, style, counts):
    # Few diagonals, because SciPy warns of many.
    counts = sp.csr_array(np.diag(np.arange(1.0, 51.0)) + np.eye(50, k=3)) if name == "dia" else counts
    X = getattr(sp, f"{name}_{style}")(counts)
    data = as_data_matrix(X)
    right = np.random.default_rng(1).random((50, 2))
    np.testing.assert_allclose(data.times(right), counts.toarray() @ right, rtol=1e-12)
    assert X.format == name
    assert (counts != X).nnz == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_duplicates_are_added_and_the_input_stays_as_it_was(dtype):
    data = np.array([1, 2, 3, 4, 5], dtype=dtype)
    X = sp.csr_array((data, np.array([2, 0, 2, 1, 1]), np.array([0, 3, 5])), shape=(2, 3))
    before = parts(X)
    container = as_data_matrix(X)
    np.testing.assert_array_equal(container.dense_rows(0, 2), [[2, 0, 4], [0, 9, 0]])
    assert container.squared_norm() == 4 + 16 + 81
    for array, copy in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_repeated_small_integers_do_not_wrap_around():
    X = sp.coo_array((np.array([200, 100], dtype=np.uint8), ([0, 0], [1, 1])), shape=(2, 2))
    assert as_data_matrix(X).total() == 300.0


def test_a_fit_leaves_unsorted_indices_and_duplicates_alone(counts):
    rng = np.random.default_rng(2)
    coo = counts.tocoo()
    order = rng.permutation(coo.nnz)
    rows, columns, values = coo.coords[0][order], coo.coords[1][order], coo.data[order]
    turns = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=80))])
    X = sp.csr_array((values[turns], columns[turns], indptr), shape=counts.shape)
    before = parts(X)
    result = factorize(X, 3, max_iter=5)
    expected = factorize(counts, 3, max_iter=5)
    np.testing.assert_allclose(result.W, expected.W, rtol=1e-10, atol=1e-12)
    for array, copy in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_explicit_zeros_change_nothing(counts):
    coo = counts.tocoo()
    rows, columns = (np.concatenate([a, a + 0]) for a in coo.coords)
    columns = np.concatenate([coo.coords[1], (coo.coords[1] + 1) % 50])
    values = np.concatenate([coo.data, np.zeros(coo.nnz)])
    X = sp.coo_array((values, (rows, columns)), shape=counts.shape).tocsr()
    assert X.nnz > counts.nnz
    assert as_data_matrix(X).count_nonzero() == counts.nnz
    np.testing.assert_allclose(factorize(X, 3, max_iter=5).H, factorize(counts, 3, max_iter=5).H, rtol=1e-9)


def test_float32_stays_and_the_data_are_never_made_dense(monkeypatch, counts):
    def refuse(*args, **kwargs):
        raise AssertionError("the data were made dense")

    X = counts.astype(np.float32)
    monkeypatch.setattr(sp.csr_array, "toarray", refuse)
    monkeypatch.setattr(sp.csc_array, "toarray", refuse)
    result = factorize(X, 3, max_iter=3, init="random", rng=0)
    assert result.W.dtype == result.H.dtype == np.float32


def test_long_indices_are_taken(counts):
    X = counts.copy()
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    np.testing.assert_array_equal(factorize(X, 2, max_iter=3).H, factorize(counts, 2, max_iter=3).H)


def test_stored_nan_is_missing_and_absent_entries_are_zeros(counts):
    dense = counts.toarray()
    X = counts.copy()
    X.data[::7] = np.nan
    lost = np.isnan(X.toarray())
    data = wrap(X, Request(missing="mask"))
    assert data.observed_weight() == dense.size - lost.sum()
    assert data.total() == pytest.approx(dense[~lost].sum())
    expected = factorize(np.where(lost, np.nan, dense), 3, missing="mask", max_iter=10)
    np.testing.assert_allclose(
        factorize(X, 3, missing="mask", max_iter=10).H, expected.H, rtol=1e-8, atol=1e-9
    )


def test_nan_stored_twice_is_missing_once():
    indices = np.array([0, 1, 1, 2, 0])
    values = np.array([1.0, np.nan, np.nan, 2.0, 3.0])
    X = sp.csr_array((values, indices, np.array([0, 4, 5])), shape=(2, 3))
    data = wrap(X, Request(missing="mask"))
    assert data.observed_weight() == 5
    gram = data.row_grams(np.eye(3)).dense().matrices
    np.testing.assert_allclose(gram[0], np.diag([1.0, 0.0, 1.0]))
