"""Kernels of rows, sparse columns and linear programs, not compiled, against formulas of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from tests.kernels.plain import plain

COORDINATE = "nonneg.kernels.beta_products.kl_coordinate"
COLUMNS = "nonneg.kernels.sparse_columns.numba"
L1 = "nonneg.kernels.l1_simplex.numba"
CAPS = "nonneg.kernels.row_caps.numba"
NEAREST = "nonneg.kernels.nearest_centroid.numba"
DECODE = "nonneg.kernels.threshold_decode.numba"


def row_loss(x, h, w, cost, l2):
    """Return the loss of a row of `kl_coordinate`; h has one column per component."""
    return cost @ w - np.sum(x * np.log(h @ w)) + 0.5 * l2 * np.sum(w * w)


@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("tol", [0.0, 1e-9])
def test_rows_under_the_kullback_leibler_divergence_descend_to_their_minimum(l2, tol, rng):
    X = rng.poisson(1.5, (7, 9)).astype(float)
    X[4] = 0.0
    csr, other = sp.csr_array(X), 0.05 + rng.random((9, 4))
    factor, sums = 0.1 + rng.random((7, 4)), other.sum(axis=0)
    factor[1] = 0.0  # its model is zero: the row is reset
    factor[2, 1] = 0.0
    parts = csr.indptr, csr.indices, csr.data
    rounds = 60 if tol else 3
    new, logs, residuals = plain(COORDINATE).kl_passes(
        parts, factor, other, sums, None, 0.2, l2, rounds, 3, 0.1, tol, 2.0
    )
    assert (new >= 0).all()
    for i in range(7):
        at = X[i] > 0
        x, h, cost = X[i, at], other[at], sums + 0.2
        model = np.maximum(h @ new[i], 1e-290)
        assert logs[i] == pytest.approx(np.sum(x * np.log(model / 2.0)))
        if i not in (1, 4):
            assert row_loss(x, h, new[i], cost, l2) < row_loss(x, h, factor[i], cost, l2)
        gradient = cost + l2 * new[i] - (x / model) @ h
        if tol:
            assert residuals[i] <= 1e-8
            assert (gradient >= -1e-6).all()
            assert np.abs(gradient * new[i]).max() <= 1e-6
    np.testing.assert_allclose(new[4], 0.0, atol=1e-6 if tol else 1.0)
    own = np.tile(sums, (7, 1)) * np.linspace(1.0, 2.0, 7)[:, None]
    scaled, _, _ = plain(COORDINATE).kl_passes(
        parts, factor, other, own, None, 0.2, l2, rounds, 3, 0.1, tol, 2.0
    )
    np.testing.assert_allclose(scaled[0], new[0])
    assert not np.allclose(scaled[6], new[6])


def test_only_components_in_the_order_move(rng):
    X, other = rng.poisson(2.0, (5, 6)).astype(float), 0.1 + rng.random((6, 3))
    csr, factor = sp.csr_array(X), 0.2 + rng.random((5, 3))
    new, _, _ = plain(COORDINATE).kl_passes(
        (csr.indptr, csr.indices, csr.data),
        factor,
        other,
        other.sum(axis=0),
        [2, 0],
        0.0,
        0.0,
        3,
        2,
        0.1,
        0.0,
        1.0,
    )
    np.testing.assert_array_equal(new[:, 1], factor[:, 1])
    assert not np.allclose(new[:, [0, 2]], factor[:, [0, 2]])


def test_parts_of_a_coordinate_step(rng):
    kernels = plain(COORDINATE)
    x, wh, h = 1 + rng.random(6), 1 + rng.random(6), rng.random(6)
    expected = np.sum(x[:5] * h[:5] / np.maximum(wh[:5] - 0.7 * h[:5], 0.9))
    assert kernels.pull_at_zero(x, wh, h, 0.7, 5, 0.9) == pytest.approx(expected)
    other, columns, w, out = rng.random((8, 3)), np.array([5, 0, 7]), rng.random(3), np.zeros(3)
    lowest = kernels.row_model(other, columns, w, out, 3)
    np.testing.assert_allclose(out, other[columns] @ w)
    assert lowest == out.min()
    A = rng.random((9, 4))
    gram, target, passive = A.T @ A, rng.random(4), np.array([2, 0, 3, 0])
    solution = np.zeros(4)
    assert kernels.solve_passive(gram, target, passive, 3, np.zeros((4, 4)), np.zeros(4), solution)
    chosen = passive[:3]
    expected = np.linalg.solve(gram[np.ix_(chosen, chosen)], target[chosen])
    np.testing.assert_allclose(solution, [*expected, 0.0])
    singular = np.ones((4, 4))
    assert not kernels.solve_passive(singular, target, passive, 2, np.zeros((4, 4)), np.zeros(4), solution)


@pytest.fixture
def lists(rng):
    """Return columns as short lists of rows and weights, and the dense matrix."""
    n, room = 7, 4
    rows, weights = np.zeros((n, room), dtype=int), np.zeros((n, room))
    counts, dense = rng.integers(0, 4, n), np.zeros((n, n))
    for c in range(n):
        rows[c, : counts[c]] = rng.choice(n, counts[c], replace=False)
        weights[c, : counts[c]] = 0.1 + rng.random(counts[c])
        dense[rows[c, : counts[c]], c] = weights[c, : counts[c]]
    return rows, weights, counts, dense


def dense_of(rows, weights, counts):
    """Return the matrix of some lists; places behind a list are zero."""
    n = len(rows)
    found = np.zeros((n, n))
    for c in range(n):
        found[rows[c, : counts[c]], c] = weights[c, : counts[c]]
        assert len(set(rows[c, : counts[c]])) == counts[c]
        assert (weights[c, counts[c] :] == 0).all()
        assert (rows[c, counts[c] :] == 0).all()
    return found


def test_steps_of_columns(lists, rng):
    rows, weights, counts, dense = lists
    kernels, n = plain(COLUMNS), 7
    entering, leaving = rng.integers(0, n, n), rng.integers(0, n, n)
    leaving[counts > 0] = rows[counts > 0, 0]
    keep, gain, cut = rng.random(n), rng.random(n), 0.02 * rng.random(n)
    gain[2] = 0.0
    new, reached = (np.full((n, 6), 9), np.full((n, 6), 9.0), np.zeros(n, dtype=int)), np.zeros(n)
    kernels.step_columns(rows, weights, counts, entering, leaving, keep, gain, cut, 0.05, *new, reached, 0, n)
    expected = dense * keep
    listed = dense > 0
    for c in range(n):
        if listed[leaving[c], c]:
            expected[leaving[c], c] -= cut[c]
        if listed[entering[c], c]:
            expected[entering[c], c] += gain[c]
    expected[expected <= 0.05] = 0.0
    for c in range(n):
        if not listed[entering[c], c]:
            expected[entering[c], c] = gain[c]
    np.testing.assert_allclose(dense_of(*new), expected)
    moved = gain > 0
    own = dense[entering, np.arange(n)] * keep + gain
    np.testing.assert_allclose(reached[moved], own[moved])


def test_a_gain_of_all_columns(lists, rng):
    rows, weights, counts, dense = lists
    kernels, n = plain(COLUMNS), 7
    entering = rng.integers(0, n, n)
    new, reached = (np.full((n, 6), 9), np.full((n, 6), 9.0), np.zeros(n, dtype=int)), np.zeros(n)
    kernels.add_to_columns(rows, weights, counts, entering, 0.5, *new, reached, 0, n)
    expected = dense.copy()
    expected[entering, np.arange(n)] += 0.5
    np.testing.assert_allclose(dense_of(*new), expected)
    np.testing.assert_allclose(reached, expected[entering, np.arange(n)])
    row_max, row_count = np.zeros(n), np.zeros(n, dtype=int)
    kernels.row_facts(rows, weights, counts, row_max, row_count)
    np.testing.assert_allclose(row_max, dense.max(axis=1))
    np.testing.assert_array_equal(row_count, np.count_nonzero(dense, axis=1))
    fresh = dense[entering, np.arange(n)] == 0
    kernels.raise_row_facts(entering, reached, fresh, row_max, row_count)
    np.testing.assert_allclose(row_max, expected.max(axis=1))
    np.testing.assert_array_equal(row_count, np.count_nonzero(expected, axis=1))


def test_entries_near_the_largest_of_their_row(lists):
    rows, weights, counts, dense = lists
    kernels, n, reach, scale = plain(COLUMNS), 7, 0.3, 5.0
    row_max = dense.max(axis=1)
    near = (dense > 0) & (row_max[:, None] - dense <= reach)
    found = np.zeros(n, dtype=int)
    kernels.count_near(rows, weights, counts, row_max, reach, found, 0, n)
    np.testing.assert_array_equal(found, near.sum(axis=0))
    indptr = np.r_[0, np.cumsum(found)]
    total = int(indptr[-1])
    listed = np.zeros(total, dtype=int), np.zeros(total), np.zeros(total)
    kernels.fill_near(rows, weights, counts, row_max, reach, scale, indptr, *listed, 0, n)
    again = np.zeros(total + 9, dtype=int), np.zeros(total + 9), np.zeros(total + 9)
    pointers = np.zeros(n + 1, dtype=int)
    assert kernels.list_near(rows, weights, counts, row_max, reach, scale, pointers, *again)
    np.testing.assert_array_equal(pointers, indptr)
    column = np.repeat(np.arange(n), found)
    for one, other in zip(listed, again, strict=True):
        np.testing.assert_array_equal(one, other[:total])
    np.testing.assert_allclose(listed[1], dense[listed[0], column])
    np.testing.assert_allclose(listed[2], np.exp(scale * (listed[1] - row_max[listed[0]])))
    short = np.zeros(1, dtype=int), np.zeros(1), np.zeros(1)
    assert not kernels.list_near(rows, weights, counts, row_max, reach, scale, pointers, *short)
    sums = np.zeros(n)
    kernels.add_by_row(listed[0], listed[2], sums)
    np.testing.assert_allclose(sums, np.bincount(listed[0], listed[2], n))
    places, otherwise, out = np.arange(n)[::-1].copy(), np.arange(n) + 10.0, np.zeros(n)
    kernels.value_at(indptr, listed[0], listed[2], places, otherwise, out, 0, n)
    whole = np.repeat(otherwise[:, None], n, axis=1)
    whole[listed[0], column] = listed[2]
    np.testing.assert_allclose(out, whole[places, np.arange(n)])


def test_slopes_of_the_smoothed_penalty(lists):
    rows, weights, counts, dense = lists
    kernels, n, mu = plain(COLUMNS), 7, 0.3
    row_max, row_count = np.zeros(n), np.zeros(n, dtype=int)
    kernels.row_facts(rows, weights, counts, row_max, row_count)
    indptr, listed = np.zeros(n + 1, dtype=int), (np.zeros(40, dtype=int), np.zeros(40), np.zeros(40))
    assert kernels.list_near(rows, weights, counts, row_max, 99.0, 1.0 / mu, indptr, *listed)
    total = int(indptr[-1])
    sums, base = np.zeros(n), np.zeros(n)
    kernels.add_by_row(listed[0][:total], listed[2][:total], sums)
    value = kernels.row_slopes(row_max, row_count, sums, mu, 1.0, mu, base)
    used = row_count > 0
    smooth = row_max + mu * np.log(np.mean(np.exp((dense - row_max[:, None]) / mu), axis=1))
    assert value == pytest.approx(smooth[used].sum())
    softmax = np.exp((dense - row_max[:, None]) / mu)
    np.testing.assert_allclose(sums, softmax.sum(axis=1))
    softmax /= softmax.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(base[used], np.exp(-row_max / mu)[used] / sums[used])
    shares, inner = np.zeros(total), np.zeros(n)
    kernels.entry_slopes(indptr, listed[0], listed[1], listed[2], sums, 1.0, shares, inner)
    column = np.repeat(np.arange(n), np.diff(indptr))
    np.testing.assert_allclose(shares, softmax[listed[0][:total], column])
    np.testing.assert_allclose(inner, np.sum(softmax * dense, axis=0))


def test_tops_and_sums_along_a_direction(rng):
    kernels, rows = plain(COLUMNS), np.array([0, 2, 0, 1, 2])
    entries, directions, size, inverse = rng.random(5), rng.standard_normal(5), 0.4, 3.0
    tops, sums, slopes = np.zeros(3), np.full(3, 9.0), np.zeros(3)
    kernels.row_tops(rows, entries, directions, size, tops, sums)
    values = entries + size * directions
    expected = np.array([max(values[rows == row].max(), 0.0) for row in range(3)])
    np.testing.assert_allclose(tops, expected)
    assert (sums == 0).all()
    kernels.row_sums(rows, entries, directions, size, inverse, tops, sums, slopes)
    terms = np.exp((values - expected[rows]) * inverse)
    np.testing.assert_allclose(sums, np.bincount(rows, terms))
    np.testing.assert_allclose(slopes, np.bincount(rows, terms * directions))


def test_rows_of_minimum_l1_norm(rng):
    m, n = 9, 3
    A = rng.standard_normal((m, n))
    targets, bases = np.eye(n), np.tile(np.arange(n), (n, 1))
    out, dual, n_pivots = np.zeros((n, m)), np.zeros((n, n)), np.zeros(n, dtype=int)
    plain(L1).l1_rows(A, targets, bases, out, dual, n_pivots, 1e-9, 500, 0, n)
    np.testing.assert_allclose(out @ A, np.eye(n), atol=1e-9)
    for i in range(n):
        best = scipy.optimize.linprog(
            np.ones(2 * m), A_eq=np.hstack([A.T, -A.T]), b_eq=targets[i], bounds=(0, None)
        )
        assert np.abs(out[i]).sum() == pytest.approx(best.fun)
        assert dual[i] @ targets[i] == pytest.approx(best.fun)
        assert np.abs(A @ dual[i]).max() <= 1 + 1e-8
    assert (n_pivots >= 0).all()
    matrix, inverse = rng.random((4, 4)), np.zeros((4, 4))
    plain(L1)._invert(matrix.copy(), inverse)
    np.testing.assert_allclose(inverse @ matrix, np.eye(4), atol=1e-9)
    coefficients = rng.random(4) + 0.1
    changed = matrix.copy()
    changed[2] = coefficients @ matrix
    plain(L1)._exchange(inverse, coefficients, 2)
    np.testing.assert_allclose(inverse @ changed, np.eye(4), atol=1e-9)


@pytest.mark.parametrize("tau", [0.1, 1.0, 50.0])
def test_caps_of_rows_leave_as_much_beyond_as_they_may(tau, rng):
    kernels = plain(CAPS)
    offset, product = rng.standard_normal((6, 8)), rng.standard_normal((6, 8))
    split, dual, caps = rng.random((6, 8)), rng.standard_normal((6, 8)), rng.random(6)
    caps[0] = 99.0  # above all entries
    relax = 1.6
    value = relax * (offset + product) + (1 - relax) * split + dual
    given = [each.copy() for each in (product, split, dual)]
    numbers = kernels.constants(np.float64, relax, tau, 1e-12)
    sums = kernels.cap_rows(offset, product, split, dual, caps, numbers, 0, 6)
    for i in range(6):
        beyond = np.maximum(value[i] - caps[i], 0.0).sum()
        if np.maximum(value[i], 0.0).sum() <= tau:
            assert caps[i] == 0.0
        else:
            assert beyond == pytest.approx(tau, rel=1e-6)
    new = np.clip(value, 0.0, caps[:, None])
    np.testing.assert_allclose(split, new)
    np.testing.assert_allclose(dual, value - new)
    np.testing.assert_allclose(product, 2 * new - value)
    first = offset + given[0] - new
    expected = [np.sum(part**2) for part in (first, new - given[1], new, value - new)]
    np.testing.assert_allclose(sums, expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_row_of_the_largest_gain_is_exact(weighted, rng):
    kernels = plain(NEAREST)
    rows = rng.random((20, 5))
    inverse, centroids = 1.0 / np.linalg.norm(rows, axis=1, keepdims=True), rng.random((4, 5))
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    rates = rng.random((20, 1)) if weighted else None
    nearest, compared = np.full((20, 1), -1.0), np.zeros((20, 1), dtype=np.int64)
    kernels.row_dot = lambda rows, i, vector: rows[i] @ vector
    found, done = kernels.update_cosines(rows, inverse, centroids, nearest, compared, rates=rates, shift=1.0)
    cosines = (rows @ centroids.T * inverse).max(axis=1)
    gains = (1.0 - cosines) * (1.0 if rates is None else rates[:, 0])
    upper = (1.0 - found[:, 0]) * (1.0 if rates is None else rates[:, 0])
    best = int(np.argmax(gains))
    assert found[best, 0] == pytest.approx(cosines[best])
    assert done[best, 0] == 4
    assert (found[:, 0] <= cosines + 1e-12).all()
    assert int(np.argmax(np.where(done[:, 0] == 4, upper, -1.0))) == best
    assert (nearest == -1.0).all()


def test_cosines_that_exclude_other_centroids(rng):
    kernels = plain(NEAREST)
    centroids = rng.random((5, 24))
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    enough = kernels._excluding_cosines(centroids)
    between = np.arccos(np.clip(centroids @ centroids.T, -1.0, 1.0)) + 9.0 * np.eye(5)
    np.testing.assert_allclose(np.arccos(enough), 0.5 * between.min(axis=1), atol=1e-6)
    assert (kernels._excluding_cosines(centroids[[0, 0]]) == 2.0).all()
    columns = kernels._discriminative_columns(np.tile(centroids, 10)[:, :240])
    assert len(columns) == 24
    assert (np.diff(columns) > 0).all()
    spread = np.zeros((3, 80))
    spread[:, 40:48] = rng.random((3, 8))
    np.testing.assert_array_equal(kernels._discriminative_columns(spread), np.arange(40, 48))


@pytest.mark.parametrize("rule", ["unshifted", "shifted", "linear"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_decoded_weights(rule, weighted, rng):
    X, inverse = rng.standard_normal((40, 5)), rng.standard_normal((3, 5))
    threshold, reference = np.array([0.2, 0.5, 0.0]), rng.random(3)
    weights = rng.random(40) if weighted else None
    found = plain(DECODE).decoded_sums(X, inverse, threshold, reference, rule, weights)
    values = X @ inverse.T
    over = values > threshold
    decoded = {
        "unshifted": np.where(over, values, 0.0), "shifted": np.where(over, values - threshold, 0.0),
        "linear": values,
    }[rule]  # fmt: skip
    extended = np.column_stack([decoded - reference, np.ones(40)])
    share = np.ones(40) if weights is None else weights
    np.testing.assert_allclose(found[0], extended.T @ (share[:, None] * extended))
    np.testing.assert_allclose(found[1], extended.T @ (share[:, None] * X))
    np.testing.assert_allclose(found[2], share @ (values < 0))
    np.testing.assert_allclose(found[3], share @ np.where(values < 0, values**2, 0.0))
    np.testing.assert_allclose(found[4], share @ (over | (rule == "linear")))
