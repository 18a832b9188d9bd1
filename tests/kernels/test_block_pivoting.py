"""Exact nonnegative least squares: the compiled and the portable version against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.least_squares import kkt_violation, nonnegative_rows, row_objective

from nonneg._threads import threads
from nonneg.data.observed import observed_entries
from nonneg.kernels.block_pivoting import block_pivoting
from nonneg.kernels.grams import SharedGram


@pytest.fixture(
    params=["compiled", "numpy", "array_api_strict", pytest.param("torch", marks=pytest.mark.torch)]
)
def pivoting(request, monkeypatch):
    """`block_pivoting` of one version, NumPy arrays in and out."""
    if request.param == "numpy":
        monkeypatch.setattr("nonneg.kernels.block_pivoting.core", lambda: None)
    if request.param == "compiled":
        return lambda start, gram, cross, **options: block_pivoting(start, SharedGram(gram), cross, **options)
    xp = pytest.importorskip(request.param)

    def portable(start, gram, cross, **options):
        rows, flags = block_pivoting(
            xp.asarray(start), SharedGram(xp.asarray(gram)), xp.asarray(cross), **options
        )
        return np.asarray(rows), np.asarray(flags)

    return portable


def design(k, n_rows=40, n_features=None, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.gamma(0.5, size=(n_features or 3 * k, k))
    X = rng.normal(size=(n_rows, A.shape[0])) + A.mean(axis=1)
    return A, X


def solved(pivoting, A, X, start=None):
    gram, cross = A.T @ A, X @ A
    start = np.maximum(cross, 0) if start is None else start
    rows, flags = pivoting(start, gram, cross)
    assert not flags.any()
    assert rows.min() >= 0
    return rows


@pytest.mark.parametrize("k", [1, 2, 5, 13])
def test_random_problems_have_the_minimisers_of_scipy(pivoting, k):
    A, X = design(k)
    np.testing.assert_allclose(solved(pivoting, A, X), nonnegative_rows(A, X), rtol=1e-9, atol=1e-10)


def test_the_answer_does_not_depend_on_the_guess(pivoting):
    A, X = design(7)
    rng = np.random.default_rng(5)
    expected = solved(pivoting, A, X)
    for guess in (np.zeros((40, 7)), np.ones((40, 7)), rng.integers(0, 2, size=(40, 7)).astype(float)):
        np.testing.assert_allclose(solved(pivoting, A, X, guess), expected, rtol=1e-9, atol=1e-11)


def test_degenerate_rows_with_slopes_of_exactly_zero_end(pivoting):
    # x is a combination of some columns with coefficients that are exactly zero, one or two.
    A, _ = design(6)
    truth = np.random.default_rng(2).integers(0, 3, size=(30, 6)).astype(float)
    np.testing.assert_allclose(solved(pivoting, A, truth @ A.T), truth, atol=1e-8)


def test_rows_of_zeros_and_negative_cross_products_give_exact_zeros(pivoting):
    A, X = design(5, n_rows=6)
    X[0] = 0.0
    X[1] = -1.0
    rows = solved(pivoting, A, X)
    np.testing.assert_array_equal(rows[:2], 0.0)
    assert rows[2:].any()


def test_a_component_that_is_zero_stays_zero(pivoting):
    A, X = design(4)
    A[:, 2] = 0.0
    rows = solved(pivoting, A, X)
    np.testing.assert_array_equal(rows[:, 2], 0.0)
    expected = nonnegative_rows(A[:, [0, 1, 3]], X)
    np.testing.assert_allclose(rows[:, [0, 1, 3]], expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("smallest", [1e-3, 1e-5, 1e-7])
def test_components_of_very_different_scale_are_solved_alike(pivoting, smallest):
    A, X = design(5)
    scale = np.geomspace(1.0, smallest, 5)
    rows = solved(pivoting, A * scale, X)
    np.testing.assert_allclose(rows * scale, nonnegative_rows(A, X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("size", [1e-150, 1e-12, 1e12, 1e100])
def test_tiny_and_huge_data_are_solved_alike(pivoting, size):
    A, X = design(4, n_rows=10)
    rows = solved(pivoting, A, X * size)
    np.testing.assert_allclose(rows / size, nonnegative_rows(A, X), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", ["twin", "sum", "more components than features"])
def test_singular_systems_are_solved_or_flagged_never_wrong(pivoting, kind):
    A, X = design(5, n_features=4 if kind.startswith("more") else 12)
    if kind == "twin":
        A[:, 4] = A[:, 0]
    elif kind == "sum":
        A[:, 4] = A[:, 0] + A[:, 1]
    gram, cross = A.T @ A, X @ A
    start = np.maximum(cross, 0)
    rows, flags = pivoting(start, gram, cross)
    np.testing.assert_array_equal(rows[flags], start[flags])
    assert rows.min() >= 0
    best = row_objective(nonnegative_rows(A, X), gram, cross)
    found = row_objective(rows, gram, cross)
    np.testing.assert_allclose(found[~flags], best[~flags], rtol=1e-7, atol=1e-9)


def test_float32_rows_stay_float32(pivoting):
    A, X = design(5)
    gram, cross = (A.T @ A).astype(np.float32), (X @ A).astype(np.float32)
    rows, flags = pivoting(np.maximum(cross, 0), gram, cross)
    assert rows.dtype == np.float32
    assert not flags.any()
    assert kkt_violation(rows.astype(float), gram.astype(float), cross.astype(float)) < 1e-6


def test_rows_that_need_more_exchanges_than_allowed_are_flagged_and_as_they_came(pivoting):
    A, X = design(8)
    gram, cross = A.T @ A, X @ A
    start = np.ones((40, 8))
    rows, flags = pivoting(start, gram, cross, max_pivots=1)
    assert flags.any()
    np.testing.assert_array_equal(rows[flags], start[flags])
    assert (start == 1).all()


def test_a_row_does_not_depend_on_its_neighbors(pivoting):
    A, X = design(6, n_rows=50)
    whole = solved(pivoting, A, X)
    order = np.random.default_rng(3).permutation(50)
    np.testing.assert_allclose(solved(pivoting, A, X[order]), whole[order], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(solved(pivoting, A, X[7:8]), whole[7:8], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "portable"])
@pytest.mark.parametrize("listed", [True, False])
def test_rows_with_matrices_of_their_own_have_the_minimisers_of_scipy(monkeypatch, compiled, listed):
    if not compiled:
        monkeypatch.setattr("nonneg.kernels.block_pivoting.core", lambda: None)
    A, X = design(4, n_rows=15, n_features=14)
    mask = np.random.default_rng(4).random(X.shape) < 0.7
    gram = observed_entries(mask, float).row_grams(A)
    cross = np.where(mask, X, 0) @ A
    rows, flags = block_pivoting(np.maximum(cross, 0), gram if listed else gram.dense(), cross)
    expected = [nonnegative_rows(A[seen], x[None, seen])[0] for x, seen in zip(X, mask, strict=True)]
    assert not flags.any()
    np.testing.assert_allclose(rows, expected, rtol=1e-8, atol=1e-9)


def test_one_and_two_threads_give_the_same_bytes():
    A, X = design(10, n_rows=3000)
    results = []
    for n_jobs in (1, 2):
        with threads(n_jobs):
            results.append(solved(lambda s, g, c: block_pivoting(s, SharedGram(g), c), A, X))
    assert results[0].tobytes() == results[1].tobytes()
