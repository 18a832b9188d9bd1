"""Matrices as short lists a column."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references import sparse_columns as portable

from nonneg.kernels import sparse_columns as lists
from nonneg.kernels.sparse_columns import numba as compiled


def random_matrix(rng, n, share=0.2):
    C = np.where(rng.random((n, n)) < share, rng.random((n, n)), 0.0)
    C[rng.integers(0, n, n), np.arange(n)] = 0.5
    return C


def test_there_and_back(rng):
    C = random_matrix(rng, 30)
    columns = lists.columns_of(C, total=6.0)
    assert np.allclose(columns.as_csc().toarray(), C, rtol=1e-15)
    assert columns.nnz == np.count_nonzero(C)
    assert columns.as_csc(np.float32).dtype == np.float32


def test_a_matrix_in_another_unit(rng):
    C = random_matrix(rng, 12)
    columns = lists.columns_of(C, total=6.0)
    scaled = lists.scaled_columns(columns, 3.0)
    assert np.allclose(scaled.weights, 0.5 * columns.weights)
    assert np.allclose(scaled.as_csc().toarray(), C)
    assert (scaled.rows is columns.rows, scaled.total) == (True, 3.0)


def test_zeros_and_duplicates_are_no_entries():
    given = sp.csc_array((np.array([0.0, 0.2, 0.3]), np.array([0, 1, 1]), np.array([0, 3, 3])), shape=(2, 2))
    columns = lists.columns_of(given)
    assert columns.nnz == 1
    assert np.allclose(columns.as_csc().toarray(), [[0.0, 0.0], [0.5, 0.0]])
    assert given.nnz == 3  # as it was
    empty = lists.columns_of(np.zeros((3, 3)))
    assert (empty.nnz, empty.n_columns, empty.total, empty.rows.shape) == (0, 3, 1.0, (3, lists.GROWTH))


def test_matrices_without_entries():
    exact, rough = lists.no_entries(3), lists.no_entries(3, exact=False, capacity=2)
    assert (exact.total, exact.weights.dtype, exact.rows.shape) == (0.0, np.int32, (3, lists.GROWTH))
    assert (rough.total, rough.weights.dtype, rough.rows.shape) == (1.0, np.float64, (3, 2))
    assert exact.nnz == rough.nnz == 0


@pytest.mark.parametrize("filled", [1, 2])
def test_full_lists_grow(filled):
    # Room is made only where a list has no place left.
    columns = lists.columns_of(np.eye(3))
    columns = lists.SparseColumns(columns.rows[:, :2], columns.weights[:, :2], columns.counts, 1.0)
    for row in (1, 2)[:filled]:
        columns, reached = lists.step_columns(columns, np.full(3, row), 0.5, total=2.0)
    assert columns.rows.shape[1] == (2 if filled == 1 else 2 + lists.GROWTH)
    expected = np.eye(3) / 2
    expected[[1, 2][:filled]] += 0.25
    assert np.allclose(columns.as_csc().toarray(), expected)
    assert np.allclose(reached, 2 * expected[filled])


def test_weights_kept_by_a_number_are_kept_in_every_column(rng):
    C = random_matrix(rng, 6)
    columns, reached = lists.step_columns(lists.columns_of(C), np.arange(6), 0.25, total=1.0, keep=0.75)
    assert np.allclose(columns.as_csc().toarray(), 0.75 * C + 0.25 * np.eye(6))
    assert np.allclose(reached, 0.75 * np.diag(C) + 0.25)
    same, _ = lists.step_columns(lists.columns_of(C), np.arange(6), 0.25, total=1.0, leaving=np.full(6, -1))
    assert np.allclose(same.as_csc().toarray(), C + 0.25 * np.eye(6))


def test_whole_weights_grow_with_every_step(rng):
    n, T = 40, 60
    columns, C = lists.no_entries(n), np.zeros((n, n))
    for t in range(T):
        vertices = rng.integers(0, n if t % 2 else 3, n)
        columns, reached = lists.step_columns(columns, vertices, t + 1, total=(t + 1) * (t + 2) / 2)
        step = 2 / (t + 2)
        C *= 1 - step
        C[vertices, np.arange(n)] += step
        assert np.allclose(reached / columns.total, C[vertices, np.arange(n)], rtol=0, atol=1e-14)
    assert columns.weights.dtype == np.int32
    assert np.abs(columns.as_csc().toarray() - C).max() <= 1e-14
    assert np.array_equal(columns.weights.sum(axis=1), np.full(n, T * (T + 1) // 2))
    # Room was made as it was needed, not for all iterations at once.
    assert columns.counts.max() <= columns.rows.shape[1] <= columns.counts.max() + lists.GROWTH


def test_moves_keep_gain_and_lose(rng):
    n = 25
    C = random_matrix(rng, n)
    C /= C.sum(axis=0)
    entering, leaving = rng.integers(0, n, n), C.argmax(axis=0)
    leaving[::4] = -1
    gain, cut = 0.3 * rng.random(n), np.where(leaving >= 0, C.max(axis=0) * rng.random(n), 0.0)
    gain[::5] = 0.0
    cut[1::6] = C.max(axis=0)[1::6] * (leaving[1::6] >= 0)
    keep = np.ones(n)
    moved, _ = lists.step_columns(
        lists.columns_of(C), entering, gain, total=1.0, keep=keep, leaving=leaving, cut=cut
    )
    expected = C.copy()
    expected[entering, np.arange(n)] += gain
    here = np.flatnonzero(leaving >= 0)
    expected[leaving[here], here] -= cut[here]
    assert np.abs(moved.as_csc().toarray() - expected).max() <= 1e-15
    # What was lost whole is gone.
    assert moved.nnz == np.count_nonzero(expected > 1e-15)


@pytest.mark.parametrize("exact", [True, False])
def test_compiled_and_portable_twins_agree(exact, rng, monkeypatch):
    n, capacity = 50, 12
    counts = rng.integers(0, 9, n).astype(np.int32)
    rows = np.array([rng.permutation(n)[:capacity] for _ in range(n)]).astype(np.int32)
    kind = np.int32 if exact else np.float64
    weights = rng.integers(1, 20, (n, capacity)).astype(kind)
    entering = np.where(rng.random(n) < 0.5, rows[:, 0], rng.integers(0, n, n)).astype(np.int64)
    leaving = np.where(rng.random(n) < 0.5, rows[:, 1], -1).astype(np.int64)
    keep = np.ones(n, kind) if exact else rng.random(n)
    gain, cut = (rng.integers(0, 5, n).astype(kind) for _ in range(2))
    found = []
    for twin in (compiled, portable):
        out = (np.zeros((n, 16), np.int32), np.zeros((n, 16), kind), np.zeros(n, np.int32), np.zeros(n, kind))
        for start, stop in ((0, 20), (20, n)):
            twin.step_columns(rows, weights, counts, entering, leaving, keep, gain, cut, 0, *out, start, stop)
        found.append(out)
    for one, other in zip(*found, strict=True):
        assert np.allclose(one, other, rtol=1e-15)
    facts = []
    for twin in (compiled, portable):
        row_max, row_count = np.zeros(n, kind), np.zeros(n, np.int32)
        twin.row_facts(rows, weights, counts, row_max, row_count)
        facts.append((row_max, row_count))
    assert np.array_equal(facts[0][0], facts[1][0])
    assert np.array_equal(facts[0][1], facts[1][1])
    columns = lists.SparseColumns(rows, weights, counts, 1.0)
    other = portable.near_maxima(rows, weights, counts, facts[0][0], lists.UNDERFLOW * 2.0, 0.5)
    for few in (lists.FEW, 0):
        monkeypatch.setattr(lists, "FEW", few)
        near = lists.near_maxima(columns, facts[0][0], 2.0)
        for one, two in zip((near.indptr, near.rows, near.weights, near.values), other, strict=True):
            assert np.allclose(one, two, rtol=1e-15)


def test_more_entries_than_there_is_room_for(rng):
    # All entries are near the largest of their row, more than a few a column.
    C = np.where(rng.random((200, 200)) < 0.8, 1.0, 0.0)
    columns = lists.columns_of(C)
    near = lists.near_maxima(columns, lists.row_facts(columns)[0], 10.0)
    assert len(near.rows) == np.count_nonzero(C) > 4 * 200 + 1024
    assert np.array_equal(np.diff(near.indptr), np.count_nonzero(C, axis=0))


def test_slopes_of_both_twins_agree(rng):
    C = random_matrix(rng, 40)
    C[5] = 0.0
    columns = lists.columns_of(C, total=3.0)
    row_max, row_count = lists.row_facts(columns)
    near = lists.near_maxima(columns, row_max, 0.03)
    found = []
    for twin in (compiled, portable):
        sums, base = lists.sums_by_row(near, 40), np.empty(40)
        shares, inner = np.empty(len(near.rows)), np.empty(40)
        value = twin.row_slopes(row_max, row_count, sums, 0.03, 3.0, 0.01, base)
        twin.entry_slopes(near.indptr, near.rows, near.weights, near.values, sums, 3.0, shares, inner)
        found.append((value, base, shares, inner))
    for one, other in zip(*found, strict=True):
        assert np.allclose(one, other, rtol=1e-13, atol=1e-300)


def test_row_facts_after_gains_equal_those_counted_anew(rng):
    n = 30
    columns = lists.no_entries(n)
    row_max, row_count = lists.row_facts(columns)
    for t in range(20):
        before = columns
        vertices = rng.integers(0, 9, n)
        columns, reached = lists.step_columns(columns, vertices, t + 1, total=(t + 1) * (t + 2) / 2)
        fresh = columns.counts > before.counts
        row_max, row_count = lists.raised_row_facts(row_max, row_count, vertices, reached, fresh)
    expected = lists.row_facts(columns)
    assert np.array_equal(row_max, expected[0])
    assert np.array_equal(row_count, expected[1])


def test_only_entries_that_count_are_listed(rng):
    C = random_matrix(rng, 40)
    columns = lists.columns_of(C)
    row_max, _ = lists.row_facts(columns)
    near = lists.near_maxima(columns, row_max, 1e-4)
    assert len(near.rows) < columns.nnz / 2
    assert np.array_equal(np.bincount(near.rows[near.values == 1.0], minlength=40) > 0, C.max(axis=1) > 0)
    sums = lists.sums_by_row(near, 40)
    below = np.where(C > 0, (C - C.max(axis=1, keepdims=True)) / 1e-4, -np.inf)
    assert np.allclose(sums, np.exp(below).sum(axis=1), rtol=1e-13)
    tiny = lists.near_maxima(columns, row_max, 5e-324)
    assert np.all(tiny.values == 1.0)
    places = C.argmax(axis=0)
    found = lists.value_at(near.indptr, near.rows, near.values, places, np.full(40, -1.0))
    expected = np.exp((C.max(axis=0) - C.max(axis=1)[places]) / 1e-4)
    assert np.allclose(found, np.where(expected > 0, expected, -1.0), rtol=1e-12)
