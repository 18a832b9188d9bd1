"""Masks in every form that a user may as_container them in."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.containers import FORMS, as_container, plain

from nonneg import factorize
from nonneg.data import as_data_matrix
from nonneg.data.door import Request, wrap
from nonneg.data.observed import EntryWeights, observed_entries

SHAPE = (20, 9)


@pytest.fixture
def X():
    return np.random.default_rng(0).gamma(1.0, size=SHAPE)


@pytest.fixture(params=[0.3, 0.8], ids=["few observed", "few missing"])
def mask(request):
    return np.random.default_rng(1).random(SHAPE) < request.param


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float64])
@pytest.mark.parametrize("bring_mask", [np.array, sp.csr_array, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("bring_X", [np.array, sp.csr_array])
def test_a_mask_of_any_dtype_and_format_means_the_same(X, mask, dtype, bring_mask, bring_X):
    data = as_data_matrix(bring_X(X), mask=bring_mask(mask.astype(dtype)))
    assert data.observed_weight() == mask.sum()
    assert data.total() == pytest.approx(X[mask].sum())
    right = np.random.default_rng(2).random((9, 2))
    expected = np.array([right.T @ (right * row[:, None]) for row in mask])
    np.testing.assert_allclose(data.row_grams(right).dense().matrices, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_sparse_mask_is_taken_for_every_form_of_data(form, X, mask):
    data = as_data_matrix(as_container(X, form), mask=sp.csr_array(mask))
    assert data.observed_weight() == mask.sum()
    assert data.total() == pytest.approx(X[mask].sum())


def test_explicit_false_entries_of_a_sparse_mask_are_missing(X):
    stored = sp.csr_array(np.ones(SHAPE, dtype=bool))
    stored.data[3] = False
    data = as_data_matrix(X, mask=stored)
    assert data.observed_weight() == X.size - 1


@pytest.mark.parametrize("form", FORMS)
def test_nan_is_missing_where_asked(form, X, mask):
    holed = np.where(mask, X, np.nan)
    data = wrap(as_container(holed, form), Request(missing="mask"))
    assert data.observed_weight() == mask.sum()
    assert data.squared_norm() == pytest.approx((X[mask] ** 2).sum())


@pytest.mark.parametrize("form", ["dense", "csr", "strict", "dask"])
def test_nan_beside_a_mask_is_missing_too_where_asked(form, X, mask):
    holed = X.copy()
    holed[0, 0], holed[7, 3] = np.nan, np.nan
    data = wrap(as_container(holed, form), Request(mask=mask, missing="mask"))
    seen = mask & np.isfinite(holed)
    assert data.observed_weight() == seen.sum()
    assert data.total() == pytest.approx(X[seen].sum())


@pytest.mark.parametrize("form", ["dense", "csr", "strict", "dask"])
def test_complete_data_have_no_mask_though_nan_may_be_missing(form, X):
    result = factorize(as_container(X, form), 2, missing="mask", solver="anls", max_iter=3)
    np.testing.assert_allclose(plain(result.H), factorize(X, 2, solver="anls", max_iter=3).H, rtol=1e-9)


def test_nan_under_the_mask_and_negative_entries_under_the_mask_are_allowed(X, mask):
    expected = factorize(X, 2, mask=mask, max_iter=5)
    for bad in (np.nan, -5.0, np.inf):
        result = factorize(np.where(mask, X, bad), 2, mask=mask, max_iter=5)
        np.testing.assert_array_equal(result.W, expected.W)


def test_parts_of_a_pattern_list_the_same_entries(mask):
    observed = observed_entries(mask, float)
    np.testing.assert_array_equal(observed.dense_rows(3, 8), mask[3:8])
    np.testing.assert_array_equal(observed.rows(slice(3, 8)).dense_rows(0, 5), mask[3:8])


def test_a_single_observed_entry_is_factorized_without_nan(X):
    mask = np.zeros(SHAPE, dtype=bool)
    mask[2, 3] = True
    result = factorize(X, 2, mask=mask, max_iter=30, init="random", rng=0)
    assert result.loss == pytest.approx(0.0, abs=1e-6)
    assert np.isfinite(result.W).all()
    assert np.isfinite(result.H).all()


def test_lists_have_integers_of_32_bits_however_they_are_given(rng):
    # Kernels are compiled for the type of these: two types would be two versions of each.
    places = sp.coo_array(rng.random((9, 7)) < 0.2)
    rows, columns = (np.asarray(where, dtype=np.int64) for where in places.coords)
    pattern = sp.coo_array((np.zeros(rows.size), (rows, columns)), shape=(9, 7))
    wide = sp.csr_array(pattern)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for given in (EntryWeights(pattern, 1.0), EntryWeights(wide, 1.0)):
        observed = observed_entries(given, float)
        grams = (observed.row_grams(np.ones((7, 2))), observed.T.row_grams(np.ones((9, 2))))
        assert {array.dtype for gram in grams for array in (gram.indptr, gram.indices)} == {
            np.dtype(np.int32)
        }
        np.testing.assert_array_equal(observed.dense_rows(0, 9), places.toarray() == 0)
