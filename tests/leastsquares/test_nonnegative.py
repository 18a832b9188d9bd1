"""Exact rows, with some components held, with singular systems, in every namespace."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.least_squares import coordinate_passes, kkt_violation, nonnegative_rows, row_objective

from nonneg.data.observed import ArrayObserved, observed_entries
from nonneg.kernels.block_pivoting import block_pivoting
from nonneg.kernels.grams import DenseGrams, SharedGram
from nonneg.kernels.hals import hals_passes
from nonneg.leastsquares import exact_rows, nonnegative, nonnegative_least_squares


def design(k=5, n_rows=25, n_features=12, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.gamma(0.5, size=(n_features, k))
    return A, np.abs(rng.normal(size=(n_rows, n_features)))


def products(xp, A, X):
    return SharedGram(xp.asarray(A.T @ A)), xp.asarray(X @ A)


def test_the_minimisers_are_those_of_scipy_from_any_start(xp):
    A, X = design()
    gram, cross = products(xp, A, X)
    expected = nonnegative_rows(A, X)
    for start in (None, xp.zeros((25, 5), dtype=xp.float64), xp.ones((25, 5), dtype=xp.float64)):
        found = nonnegative_least_squares(gram, cross, start=start)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", ["twins", "sum", "zero", "wide", "nearly twins"])
def test_singular_systems_have_a_minimiser_all_the_same(xp, kind):
    A, X = design(n_features=4 if kind == "wide" else 12)
    if kind == "twins":
        A[:, 4] = A[:, 0]
    elif kind == "sum":
        A[:, 4] = A[:, 0] + 0.5 * A[:, 1]
    elif kind == "zero":
        A[:, 4] = 0.0
    elif kind == "nearly twins":
        A[:, 4] = A[:, 0] * (1 + 1e-9 * np.arange(12))
    gram, cross = products(xp, A, X)
    found = np.asarray(nonnegative_least_squares(gram, cross))
    best = row_objective(nonnegative_rows(A, X), A.T @ A, X @ A)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(row_objective(found, A.T @ A, X @ A), best, rtol=1e-8, atol=1e-10)
    assert kkt_violation(found, A.T @ A, X @ A) < 1e-8


def test_only_the_flagged_rows_are_replaced(monkeypatch):
    A, X = design()
    gram, cross = products(np, A, X)
    expected = nonnegative_least_squares(gram, cross)
    exact = block_pivoting

    def forgetful(*args, **options):
        rows, flags = exact(*args, **options)
        flags = flags.copy()
        flags[[2, 7, 24]] = True
        rows[[2, 7, 24]] = 1.0
        return rows, flags

    monkeypatch.setattr(nonnegative, "block_pivoting", forgetful)
    np.testing.assert_allclose(nonnegative_least_squares(gram, cross), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("listed", [True, False])
def test_rows_with_missing_entries_are_solved_one_by_one(listed):
    A, X = design()
    mask = np.random.default_rng(1).random(X.shape) < 0.7
    mask[0] = False
    mask[1, 2:] = False
    observed = observed_entries(mask, float) if listed else ArrayObserved(mask.astype(float), np)
    cross = np.where(mask, X, 0) @ A
    found = nonnegative_least_squares(observed.row_grams(A), cross)
    grams = np.array([A.T @ (A * row[:, None]) for row in mask])
    expected = np.array(
        [
            nonnegative_rows(A[m], x[None, m])[0] if m.any() else np.zeros(5)
            for m, x in zip(mask, X, strict=True)
        ]
    )
    best = row_objective(expected, grams, cross)
    np.testing.assert_allclose(row_objective(found, grams, cross), best, rtol=1e-7, atol=1e-10)
    np.testing.assert_array_equal(found[0], 0.0)


@pytest.mark.parametrize("own", [False, True])
def test_exact_rows_measure_where_they_were(xp, own):
    A, X = design()
    factor = np.random.default_rng(2).random((25, 5))
    gram, cross = products(xp, A, X)
    if own:
        gram = DenseGrams(xp.asarray(np.repeat((A.T @ A)[None], 25, axis=0)))
    found, violation = exact_rows(xp.asarray(factor), gram, cross)
    np.testing.assert_allclose(np.asarray(found), nonnegative_rows(A, X), rtol=1e-8, atol=1e-10)
    _, expected = coordinate_passes(factor, [A.T @ A] * 25, X @ A, range(5), 1, 0.0)
    assert float(violation) == pytest.approx(expected, rel=1e-10)


def test_coordinate_passes_are_those_of_the_kernel():
    A, X = design()
    factor = np.random.default_rng(2).random((25, 5))
    gram, cross = products(np, A, X)
    found, violation = hals_passes(factor, gram, cross, max_passes=3, shrink=0.1, order=(1, 0, 4))
    expected, slopes = coordinate_passes(factor, [A.T @ A] * 25, X @ A, (1, 0, 4), 3, 0.1)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert violation == pytest.approx(slopes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_stay_in_their_dtype(dtype):
    A, X = (array.astype(dtype) for array in design())
    found = nonnegative_least_squares(SharedGram(A.T @ A), X @ A)
    assert found.dtype == dtype


def test_an_initial_guess_is_left_alone_unless_its_memory_may_be_taken():
    rng = np.random.default_rng(0)
    A = rng.random((30, 4))
    gram, cross = SharedGram(A.T @ A), rng.random((9, 30)) @ A
    start = rng.random((9, 4))
    before = start.copy()
    found = nonnegative_least_squares(gram, cross, start=start)
    np.testing.assert_array_equal(start, before)
    np.testing.assert_allclose(nonnegative_least_squares(gram, cross), found, atol=1e-10)
