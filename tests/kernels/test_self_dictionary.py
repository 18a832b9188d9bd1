"""The scan for the best data point of every column, and the residuals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.containers import TORCH, as_container

from nonneg._threads import threads
from nonneg.kernels import column_residuals as residuals
from nonneg.kernels.column_residuals import array_api as portable_residuals
from nonneg.kernels.self_dictionary import array_api as portable
from nonneg.kernels.self_dictionary import dictionary_of, minimizing_vertices
from nonneg.kernels.self_dictionary.types import Dictionary, PenaltyGradient, near_tie
from nonneg.kernels.sparse_columns import columns_of, no_entries

FORMS = ["dense", "fortran", "csr", "strict", TORCH]


def slope_of(rng, n, *, scale=1.0, listed=3):
    counts = rng.integers(0, listed + 1, n)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    rows = np.concatenate([rng.choice(n, count, replace=False) for count in counts]).astype(np.int32)
    return PenaltyGradient(scale * rng.random(n) / n, indptr, rows, scale * rng.random(len(rows)))


def nothing(n):
    return PenaltyGradient(np.zeros(n), np.zeros(n + 1, dtype=np.int64), np.zeros(0, np.int32), np.zeros(0))


def scores_of(X, R, slope):
    scores = X @ R.T + slope.base[:, None]
    column = np.repeat(np.arange(len(R)), np.diff(slope.indptr))
    scores[slope.rows, column] += slope.extra
    return scores


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [1, 2, 7, 300, 700])
def test_the_lowest_score_of_every_column(n, form, rng):
    X = np.where(rng.random((n, 9)) < 0.5, 0.0, rng.standard_normal((n, 9)))
    R = rng.standard_normal((n, 9))
    slope = slope_of(rng, n, listed=min(3, n))
    expected = scores_of(X, R, slope).argmin(axis=0)
    R = as_container(R, form) if form in ("strict", "torch") else R
    dictionary = dictionary_of(as_container(X, form))
    assert np.array_equal(minimizing_vertices(dictionary, R, slope), expected)
    some = np.arange(0, n, 3)
    assert np.array_equal(minimizing_vertices(dictionary, R, slope, some), expected[some])


@pytest.mark.parametrize("form", ["dense", "csr", "strict"])
def test_columns_may_be_asked_for_in_any_order(form, rng):
    X, R, slope = rng.random((40, 5)), 0.01 * rng.standard_normal((40, 5)), slope_of(rng, 40)
    expected, order = scores_of(X, R, slope).argmin(axis=0), rng.permutation(40)
    R = as_container(R, form) if form == "strict" else R
    found = minimizing_vertices(dictionary_of(as_container(X, form)), R, slope, order)
    assert np.array_equal(found, expected[order])


@pytest.mark.parametrize("entries", [1, 100, 10**6])
@pytest.mark.parametrize("scale", [1.0, 0.0])
def test_the_portable_scan_by_parts(entries, scale, rng, monkeypatch):
    monkeypatch.setattr(portable, "ENTRIES", entries)
    X, R, slope = 1 + rng.random((30, 5)), rng.standard_normal((30, 5)), slope_of(rng, 30, scale=scale)
    R[3], some = 0.0, np.array([7, 29, 0, 3])
    dictionary = Dictionary(X, *portable.center_and_radius(X))
    expected = scores_of(X - dictionary.center, R, slope).argmin(axis=0)
    assert np.array_equal(portable.minimizing_vertices(dictionary, R, slope), expected)
    scan = portable.Scan(dictionary, R, slope)
    assert np.array_equal(scan.in_float64(some), expected[some])
    # Scores are scaled to at most 1.
    base = slope.base.max()
    columns, sizes = scan.scaled_columns(some)
    bound = dictionary.radius * np.linalg.norm(R[some], axis=1) + base
    assert np.allclose(sizes, np.where(bound > 0, bound, 1.0))
    assert np.allclose(columns[:, :5], dictionary.radius * R[some] / sizes[:, None])
    assert np.allclose(columns[:, 5], base / sizes)
    assert np.allclose(scan.scaled_points[:, :5], (X - X.mean(axis=0)) / dictionary.radius)
    assert np.allclose(scan.scaled_points[:, 5], slope.base / (base or 1.0))


@pytest.mark.parametrize("gap", [1e-3, 1e-8])
def test_the_portable_scan_says_what_is_too_close_to_call(gap, rng):
    X = rng.random((20, 4))
    X[7] = X[2] + gap
    R = np.ones((20, 4)) * np.where(np.arange(20) % 2, 1.0, -1.0)[:, None]
    X[[2, 7]] -= 5.0  # the two lowest of every other column
    dictionary = Dictionary(X, *portable.center_and_radius(X))
    _, close = portable.Scan(dictionary, R, nothing(20)).in_float32(np.array([1, 3]))
    assert close.tolist() == [gap < 1e-6] * 2


@pytest.mark.parametrize("form", ["dense", "csr", "strict"])
@pytest.mark.parametrize("gap", [1e-4, 1e-7, 1e-10, 1e-13])
def test_scores_that_float32_cannot_tell_apart(gap, form, rng):
    # Twins of all points, shifted by less than a rounding of float32; now the first, now the second is lower.
    n, m = 150, 12
    X = rng.random((n, m))
    signs = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = np.concatenate([X, X + gap * signs[:, None]])
    R = rng.random((2 * n, m))
    slope = slope_of(rng, 2 * n, scale=1e-3)
    expected = scores_of(X - X.mean(axis=0), R, slope).argmin(axis=0)
    R = as_container(R, form) if form == "strict" else R
    assert np.array_equal(minimizing_vertices(dictionary_of(as_container(X, form)), R, slope), expected)


@pytest.mark.parametrize("form", ["dense", "csr", "strict", TORCH])
def test_of_equal_scores_the_lowest_index_wins(form, rng):
    X = np.tile(rng.random((40, 6)), (5, 1))
    R = rng.standard_normal((200, 6))
    R[::7] = 0.0
    X_form, R_form = as_container(X, form), as_container(R, form) if form in ("strict", "torch") else R
    found = minimizing_vertices(dictionary_of(X_form), R_form, nothing(200))
    assert found.max() < 40
    assert np.all(found[::7] == 0)


@pytest.mark.parametrize("form", ["dense", "strict"])
def test_a_zero_residual_leaves_the_choice_to_the_penalty(form, rng):
    X, R = rng.random((50, 4)), np.zeros((50, 4))
    slope = slope_of(rng, 50)
    R_form = as_container(R, form) if form == "strict" else R
    found = minimizing_vertices(dictionary_of(as_container(X, form)), R_form, slope)
    assert np.array_equal(found, scores_of(X, R, slope).argmin(axis=0))


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e6])
def test_the_centre_of_the_points_does_not_matter(shift, rng):
    X, R = rng.random((300, 8)), rng.standard_normal((300, 8))
    found = minimizing_vertices(dictionary_of(X + shift), R, nothing(300))
    assert np.array_equal(found, (X @ R.T).argmin(axis=0))


@pytest.mark.parametrize("size", [1e-25, 1.0, 1e25])
def test_sizes_beyond_float32(size, rng):
    X, R = rng.random((90, 5)), rng.standard_normal((90, 5))
    slope = slope_of(rng, 90, scale=size * size)
    expected = scores_of(X * size, R * size, slope).argmin(axis=0)
    assert np.array_equal(minimizing_vertices(dictionary_of(X * size), R * size, slope), expected)


def test_a_base_near_the_smallest_number(rng):
    X, R = rng.random((90, 5)), rng.standard_normal((90, 5))
    slope = PenaltyGradient(np.full(90, 5e-324), nothing(90).indptr, nothing(90).rows, nothing(90).extra)
    with np.errstate(all="raise", under="ignore"):
        assert np.array_equal(minimizing_vertices(dictionary_of(X), R, slope), (X @ R.T).argmin(axis=0))


def test_points_that_are_all_the_same(rng):
    X = np.ones((30, 3))
    slope = slope_of(rng, 30)
    R = rng.standard_normal((30, 3))
    assert np.array_equal(
        minimizing_vertices(dictionary_of(X), R, slope), scores_of(0 * X, R, slope).argmin(axis=0)
    )


def test_the_bound_covers_the_errors_seen(rng):
    n, m = 400, 50
    X, R = rng.standard_normal((n, m)), rng.standard_normal((n, m))
    X /= np.linalg.norm(X, axis=1).max()
    R /= np.linalg.norm(R, axis=1, keepdims=True)
    error = np.abs((X.astype(np.float32) @ R.astype(np.float32).T) - X @ R.T).max()
    assert 0 < error < 0.5 * near_tie(m)


@pytest.mark.parametrize("products", [1, 3 * 256 * 900 * 10])
def test_the_scan_is_the_same_in_many_calls(products, rng, monkeypatch):
    # Now and then two points are too close to call.
    X, R = np.tile(rng.random((450, 9)), (2, 1)), rng.standard_normal((900, 9))
    X[450:] += 1e-9 * rng.standard_normal((450, 9))
    slope = slope_of(rng, 900)
    expected = scores_of(X - X.mean(axis=0), R, slope).argmin(axis=0)
    monkeypatch.setattr("nonneg.kernels.self_dictionary.numba.ONE_CALL", products)
    for n_jobs in (1, 2):
        with threads(n_jobs):
            assert np.array_equal(minimizing_vertices(dictionary_of(X), R, slope), expected)
            some = np.arange(0, 900, 2)[::-1]
            assert np.array_equal(minimizing_vertices(dictionary_of(X), R, slope, some), expected[some])


def test_radius_is_not_below_the_true_one(rng):
    X = rng.random((200, 6)) + 5.0
    true = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    for form in ("dense", "csr", "strict"):
        assert true <= dictionary_of(as_container(X, form)).radius <= true * (1 + 1e-6)


def test_tf32_is_not_trusted(rng):
    torch = pytest.importorskip("torch")
    before = torch.get_float32_matmul_precision()
    X, R = torch.tensor(rng.random((40, 5))), torch.tensor(rng.standard_normal((40, 5)))
    scan = portable.Scan(Dictionary(X, *portable.center_and_radius(X)), R, nothing(40))
    try:
        torch.set_float32_matmul_precision("high")
        assert scan.product_dtype() == (torch.float64, 2.0**-53)
        found = portable.minimizing_vertices(scan.dictionary, R, nothing(40))
        torch.set_float32_matmul_precision("highest")
        assert scan.product_dtype() == (torch.float32, 2.0**-24)
    finally:
        torch.set_float32_matmul_precision(before)
    assert np.array_equal(found, (X @ R.T).argmin(dim=0).numpy())


@pytest.mark.parametrize("form", ["dense", "csr", "strict", TORCH])
def test_residuals_follow_the_coefficients(form, rng):
    n, m = 60, 7
    X = np.where(rng.random((n, m)) < 0.4, 0.0, rng.random((n, m)))
    dictionary = dictionary_of(as_container(X, form))
    C = rng.dirichlet(np.full(n, 0.05), n).T
    C[C < 1e-3] = 0
    C /= C.sum(axis=0)
    columns = columns_of(C)
    R = residuals.residuals_of(dictionary, columns)
    assert np.allclose(to_numpy(R), (X.T @ C - X.T).T, rtol=0, atol=1e-13)
    cold = residuals.residuals_of(dictionary, no_entries(n))
    assert np.array_equal(to_numpy(cold), -X)
    entering, leaving = rng.integers(0, n, n), np.where(rng.random(n) < 0.3, -1, C.argmax(axis=0))
    cut = np.where(leaving >= 0, 0.1, 0.0)
    gain = 0.3 * rng.random(n)
    keep = 1.0 - gain + cut
    moved = keep * C
    moved[entering, np.arange(n)] += gain
    moved[C.argmax(axis=0), np.arange(n)] -= cut
    after = residuals.advance_residuals(
        dictionary, R, entering, keep=keep, gain=gain, leaving=leaving, cut=cut
    )
    assert np.allclose(to_numpy(after), (X.T @ moved - X.T).T, rtol=0, atol=1e-13)
    moved = 0.75 * C
    moved[entering, np.arange(n)] += 0.25
    after = residuals.advance_residuals(dictionary, R, entering, keep=0.75, gain=0.25)
    assert np.allclose(to_numpy(after), (X.T @ moved - X.T).T, rtol=0, atol=1e-13)
    fit, square = residuals.column_products(dictionary, R, entering)
    host = to_numpy(R)
    assert np.allclose(fit, np.sum(host * (host + X - X[entering]), axis=1), rtol=0, atol=1e-13)
    assert np.allclose(square, np.sum(host**2, axis=1), rtol=0, atol=1e-13)
    products = residuals.entry_products(dictionary, R, columns)
    used = np.arange(columns.rows.shape[1]) < columns.counts[:, None]
    column = np.repeat(np.arange(n), columns.counts)
    assert np.allclose(products[used], np.sum(X[columns.rows[used]] * host[column], axis=1), atol=1e-13)


@pytest.mark.parametrize("form", ["dense", "csr", "strict"])
@pytest.mark.parametrize("entries", [1, 11, 1 << 20])
def test_residuals_by_parts(form, entries, rng, monkeypatch):
    monkeypatch.setattr(residuals, "ENTRIES", entries)
    n, m = 12, 5
    X = np.where(rng.random((n, m)) < 0.4, 0.0, rng.random((n, m)))
    C = np.where(rng.random((n, n)) < 0.2, rng.random((n, n)), 0.0)
    C[:, 3] = 0.0
    dictionary, columns = dictionary_of(as_container(X, form)), columns_of(C, total=2.0)
    R = residuals.residuals_of(dictionary, columns)
    host = C.T @ X - X
    assert np.allclose(to_numpy(R), host, rtol=0, atol=1e-13)
    entering, share = rng.integers(0, n, n), rng.random(n)
    for keep, gain in ((1.0 - share, share), (1, 0.5), (0.25, 1), (0.25, 0.75)):
        after = residuals.advance_residuals(dictionary, R, entering, keep=keep, gain=gain)
        keep, gain = (np.broadcast_to(value, n)[:, None] for value in (keep, gain))
        assert np.allclose(to_numpy(after), keep * host + gain * (X[entering] - X), rtol=0, atol=1e-13)
    fit, square = residuals.column_products(dictionary, R, entering)
    assert np.allclose(fit, np.sum(host * (host + X - X[entering]), axis=1), rtol=0, atol=1e-13)
    assert np.allclose(square, np.sum(host**2, axis=1), rtol=0, atol=1e-13)
    found = residuals.entry_products(dictionary, R, columns)
    for c in range(n):
        listed = columns.rows[c, : columns.counts[c]]
        assert np.allclose(found[c, : len(listed)], X[listed] @ host[c], rtol=0, atol=1e-13)


@pytest.mark.parametrize("form", ["dense", TORCH])
def test_compiled_and_portable_twins_agree(form, rng):
    # Host tensors go to the compiled kernels; the portable ones are those of tensors on a GPU.
    X, R = rng.random((500, 10)), rng.standard_normal((500, 10))
    X_form, R_form = as_container(X, form), as_container(R, form)
    slope, entering = slope_of(rng, 500), rng.integers(0, 500, 500)
    host, other = dictionary_of(X), Dictionary(X_form, *portable.center_and_radius(X_form))
    assert np.array_equal(
        minimizing_vertices(host, R, slope), portable.minimizing_vertices(other, R_form, slope)
    )
    twins = [
        residuals.column_products(host, R, entering),
        portable_residuals.column_products(X_form, R_form, entering),
    ]
    assert np.allclose(twins[0], twins[1], rtol=1e-13, atol=1e-13)
    shares = (np.full(500, 0.7), np.full(500, 0.4), np.full(500, 0.1))
    leaving = rng.integers(0, 500, 500)
    after = residuals.advance_residuals(
        host, R, entering, keep=shares[0], gain=shares[1], leaving=leaving, cut=shares[2]
    )
    also = portable_residuals.advance_residuals(X_form, R_form, entering, leaving, *shares)
    assert np.allclose(after, to_numpy(also), rtol=1e-13, atol=1e-13)
    columns = columns_of(np.where(rng.random((500, 500)) < 0.01, 0.2, 0.0))
    anew = portable_residuals.residuals_of(X_form, columns)
    assert np.allclose(residuals.residuals_of(host, columns), to_numpy(anew), rtol=1e-13, atol=1e-13)


def test_sparse_points_are_not_copied(rng):
    X = sp.csr_array(np.where(rng.random((50, 8)) < 0.3, 1.0, 0.0))
    assert np.shares_memory(dictionary_of(X).points.data, X.data)


def to_numpy(array):
    return portable_residuals.to_numpy(array)
