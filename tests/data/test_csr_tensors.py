"""Compressed rows in tensors: powers, sums over observed entries, selections, against dense arrays."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.containers import sparse_array

from nonneg._arrays import to_numpy
from nonneg.data import as_data_matrix
from nonneg.data.csr_arrays import csr_arrays, from_entries
from nonneg.data.sparse_array import ListedArrays, sparse_array_matrix

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
    data = sparse_array_matrix(sparse_array(given, "torch", "csr"), mask=mask, nan_is_missing=nan)
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
    data = sparse_array_matrix(sparse_array(given, "torch", "csr"), nan_is_missing=True)
    assert not data.observed.lists_observed
    assert data.observed.weight(None) == X.size - 1
    assert sparse_array_matrix(sparse_array(X, "torch", "csr"), nan_is_missing=True).observed is None
