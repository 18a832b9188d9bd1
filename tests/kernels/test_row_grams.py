"""Gram matrices of rows with missing entries: listed, written out, and used."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.least_squares import coordinate_passes

from nonneg._threads import threads
from nonneg.data.observed import ArrayObserved, observed_entries
from nonneg.kernels.grams import DenseGrams, SharedGram, quadratic_form
from nonneg.kernels.hals import hals_passes


def masked(share, n_rows=23, n_columns=17, k=4, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    mask = rng.random((n_rows, n_columns)) < share
    other = rng.gamma(1.0, size=(n_columns, k)).astype(dtype)
    factor = np.where(rng.random((n_rows, k)) < 0.3, 0, rng.random((n_rows, k))).astype(dtype)
    cross = (rng.normal(size=(n_rows, k)) * n_columns * share).astype(dtype)
    return mask, other, factor, cross


def materialized(mask, other):
    return np.array([other.T @ (other * row[:, None]) for row in mask])


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_listed_matrices_equal_those_written_out(share):
    mask, other, _, _ = masked(share)
    observed = observed_entries(mask, float)
    assert (observed.usual == 0) == (2 * mask.sum() <= mask.size)
    np.testing.assert_allclose(
        observed.row_grams(other).dense().matrices, materialized(mask, other), rtol=1e-12, atol=1e-12
    )
    tall = np.random.default_rng(1).random((mask.shape[0], 3))
    np.testing.assert_allclose(
        observed.T.row_grams(tall).dense().matrices, materialized(mask.T, tall), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("share", [0.2, 0.8])
@pytest.mark.parametrize(("passes", "shrink", "order"), [(1, 0.0, None), (25, 0.1, None), (3, 0.0, [2, 0])])
def test_listed_and_written_out_matrices_give_the_rows_of_the_loop(share, passes, shrink, order):
    mask, other, factor, cross = masked(share)
    grams = materialized(mask, other)
    turns = range(4) if order is None else order
    expected, violation = coordinate_passes(factor, grams, cross, turns, passes, shrink)
    for gram in (observed_entries(mask, float).row_grams(other), DenseGrams(grams)):
        rows, found = hals_passes(factor, gram, cross, max_passes=passes, shrink=shrink, order=order)
        np.testing.assert_allclose(rows, expected, rtol=1e-9, atol=1e-10)
        assert float(found) == pytest.approx(violation, rel=1e-11)


@pytest.mark.parametrize(("order", "dtype"), [("C", "f8"), ("F", "f8"), (None, "f8"), ("C", "f4")])
@pytest.mark.parametrize(("n_rows", "n_columns", "k"), [(170, 17, 4), (3, 230, 25)])
def test_rows_with_a_weight_for_every_entry_are_those_of_the_loop(n_rows, n_columns, k, order, dtype):
    _, other, factor, cross = masked(1.0, n_rows, n_columns, k, dtype)
    weights = np.random.default_rng(1).gamma(0.5, size=(n_rows, n_columns)).astype(dtype)
    # In float32 a row could stop a pass earlier.
    shrink, unit = (0.1, 1e-10) if dtype == "f8" else (0.0, 1e-3)
    other[::2, 1] = 0.0
    weights[2, 1::2] = 0.0  # no curvature along component 1
    given = np.repeat(weights, 2, axis=1)[:, ::2] if order is None else np.array(weights, order=order)
    for ridge, turns in ((0.0, range(k)), (0.5, [2, 0, 1])):
        grams = np.array([other.T @ (other * row[:, None]) for row in weights]) + ridge * np.eye(k)
        expected, violation = coordinate_passes(factor, grams, cross, turns, 9, shrink)
        gram = ArrayObserved(given, np).row_grams(other).plus_ridge(ridge)
        rows, found = hals_passes(factor, gram, cross, max_passes=9, shrink=shrink, order=turns)
        assert rows.dtype == dtype
        np.testing.assert_allclose(rows, expected, rtol=unit, atol=unit)
        assert float(found) == pytest.approx(violation, rel=0.1 * unit)


def test_a_mask_of_any_namespace_gives_the_same_rows(xp):
    mask, other, factor, cross = masked(0.7)
    grams = ArrayObserved(xp.asarray(mask.astype(float)), xp).row_grams(xp.asarray(other))
    found = np.asarray(grams.dense().matrices)
    np.testing.assert_allclose(found, materialized(mask, other), rtol=1e-12, atol=1e-13)
    rows, _ = hals_passes(xp.asarray(factor), grams, xp.asarray(cross), max_passes=4)
    expected, _ = hals_passes(factor, observed_entries(mask, float).row_grams(other), cross, max_passes=4)
    np.testing.assert_allclose(np.asarray(rows), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_with_nothing_observed_stays_where_it_is(dtype):
    # The matrix of such a row is a difference of equal sums: rounding must not be taken for curvature.
    mask, other, factor, cross = masked(0.95, n_columns=60, dtype=dtype)
    mask[5] = False
    cross[5] = 0
    factor[5] = [1.0, 0.0, 2.0, 3.0]
    rows, _ = hals_passes(factor, observed_entries(mask, float).row_grams(other), cross, max_passes=20)
    np.testing.assert_array_equal(rows[5], factor[5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_with_one_entry_observed_is_fitted_at_that_entry(dtype):
    mask, other, factor, cross = masked(0.95, n_columns=60, dtype=dtype)
    mask[5] = False
    mask[5, 7] = True
    cross[5] = 3.0 * other[7]
    rows, _ = hals_passes(factor, observed_entries(mask, float).row_grams(other), cross, max_passes=200)
    assert rows[5] @ other[7] == pytest.approx(3.0, rel=1e-3 if dtype == np.float32 else 1e-9)
    assert rows[5].max() < 1e3


def test_the_quadratic_form_of_a_shared_matrix_is_summed_in_float64(xp):
    _, other, factor, _ = masked(1.0, dtype=np.float32)
    gram = other.T @ other
    value = quadratic_form(xp.asarray(factor), SharedGram(xp.asarray(gram)))
    expected = float(np.einsum("ia,ab,ib->", *(a.astype(float) for a in (factor, gram, factor))))
    assert isinstance(value, float)
    assert value == pytest.approx(expected, rel=1e-6)


def test_one_and_two_threads_give_the_same_bytes():
    mask, other, factor, cross = masked(0.3, n_rows=400, n_columns=80, k=6)
    for gram in (
        observed_entries(mask, float).row_grams(other),
        ArrayObserved(1.0 + mask, np).row_grams(other),
    ):
        results = []
        for n_jobs in (1, 2):
            with threads(n_jobs):
                results.append(hals_passes(factor, gram, cross, max_passes=3)[0].tobytes())
        assert results[0] == results[1]
