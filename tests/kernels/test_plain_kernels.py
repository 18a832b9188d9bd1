"""The parts of compiled kernels, one by one and not compiled, against formulas of NumPy."""

from __future__ import annotations

import sys

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from tests.kernels.plain import plain

from nonneg.kernels.self_dictionary import numba_kernels as compiled

SCAN = "nonneg.kernels.self_dictionary.numba_kernels"


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="about compiled code")
def test_compiled_kernels_stay_compiled():
    module = plain(SCAN)
    assert module is not compiled
    assert sys.modules[SCAN] is compiled
    assert hasattr(compiled.fill_dense, "py_func")
    assert not hasattr(module.fill_dense, "py_func")


@pytest.fixture
def scan(rng):
    """Return points, residuals, and a penalty with listed entries."""
    n, m = 11, 5
    points, center = rng.standard_normal((n, m)), rng.standard_normal(m)
    residual, base = rng.standard_normal((n, m)), rng.random(n)
    listed = np.where(rng.random((n, n)) < 0.3, rng.random((n, n)), 0.0)  # of a column, at rows
    csr = sp.csr_array(listed)
    scores = (points - center) @ residual.T + base[:, None] + listed.T
    return points, center, residual, base, (csr.indptr, csr.indices, csr.data), scores


def test_points_are_centered_and_scaled(scan):
    points, center, _, base, _, _ = scan
    kernels, inverse = plain(SCAN), 0.5
    out = np.full((11, 6), 9.0)
    kernels.fill_dense(points, center, inverse, 2, 7, out)
    np.testing.assert_allclose(out[2:7, :5], (points[2:7] - center) * inverse)
    assert (out[2:7, 5] == 0).all()
    assert (out[[0, 1, 7]] == 9.0).all()
    sparse = sp.csr_array(np.where(np.abs(points) < 0.7, 0.0, points))
    tile = np.full((5, 6), 9.0)
    kernels.fill_sparse_tile(
        sparse.indptr, sparse.indices, sparse.data, center, inverse, base, 3.0, 2, 7, tile
    )
    np.testing.assert_allclose(tile[:, :5], (sparse.toarray()[2:7] - center) * inverse)
    np.testing.assert_allclose(tile[:, 5], 3.0 * base[2:7])


def test_residuals_are_scaled_so_that_no_score_exceeds_one(scan):
    _, _, residual, _, _, _ = scan
    residual = residual.copy()
    residual[3] = 0.0
    columns, out, sizes = np.array([4, 3]), np.empty((2, 6)), np.empty(2)
    plain(SCAN).fill_columns(residual, columns, 2.0, 0.5, out, sizes)
    expected = 2.0 * np.linalg.norm(residual[columns], axis=1) + 0.5
    np.testing.assert_allclose(sizes, expected)
    np.testing.assert_allclose(out[:, :5], 2.0 * residual[columns] / expected[:, None])
    np.testing.assert_allclose(out[:, 5], 0.5 / expected)
    plain(SCAN).fill_columns(residual, columns, 2.0, 0.0, out, sizes)
    assert sizes[1] == 0.0
    assert (out[1] == 0.0).all()


def test_listed_entries_are_added_in_their_rows(scan):
    *_, (indptr, rows, extra), _ = scan
    listed = sp.csr_array((extra, rows, indptr), shape=(11, 11)).toarray()
    columns, sizes = np.array([7, 0, 10]), np.array([2.0, 4.0, 0.0])
    scores = np.zeros((4, 3))
    plain(SCAN).add_listed(scores, 3, 4, columns, indptr, rows, extra, sizes)
    np.testing.assert_allclose(scores[:, :2], (listed[columns[:2], 3:7] / sizes[:2, None]).T)
    assert (scores[:, 2] == 0.0).all()
    kernels = plain(SCAN)
    found = [[kernels._extra_at(indptr, rows, extra, c, n) for n in range(11)] for c in range(11)]
    np.testing.assert_array_equal(found, listed)


@pytest.mark.parametrize("n", [3, 16, 17, 40])
def test_the_two_lowest_scores_and_where_the_lowest_is(n, rng):
    scores = rng.random((n, 6))
    if n > 16:
        scores[[3, 12], 0] = -1.0  # a tie: the first of both, and the other is the second lowest
    best, second, index = np.full(6, np.inf), np.full(6, np.inf), np.zeros(6, dtype=int)
    half = n // 2
    kernels = plain(SCAN)
    kernels.lowest_two(scores[:half], 5, best, second, index)
    kernels.lowest_two(scores[half:], 5 + half, best, second, index)
    np.testing.assert_array_equal(index, 5 + np.argmin(scores, axis=0))
    np.testing.assert_array_equal([best, second], np.sort(scores, axis=0)[:2])
    nothing = np.zeros(7, dtype=int), np.zeros(0, dtype=int), np.zeros(0)
    best, second, index = np.full(6, np.inf), np.full(6, np.inf), np.zeros(6, dtype=int)
    kernels.take_block(scores, 0, np.arange(6), *nothing, np.ones(6), best, second, index)
    np.testing.assert_array_equal(index, np.argmin(scores, axis=0))


@pytest.mark.parametrize("place", range(16))
def test_each_of_sixteen_rows_may_be_the_lowest(place):
    scores = np.ones((16, 2))
    scores[place, 1] = 0.0
    lowest = np.empty(2)
    kernels = plain(SCAN)
    kernels._lowest_of_eight(scores, 0, lowest, True)
    kernels._lowest_of_eight(scores, 8, lowest, False)
    np.testing.assert_array_equal(lowest, [1.0, 0.0])


def test_scores_that_may_be_lowest_are_evaluated_exactly(scan):
    points, center, residual, base, listed, scores = scan
    columns = np.array([2, 9, 5])
    exact, index = np.full(3, np.inf), np.zeros(3, dtype=int)
    kernels = plain(SCAN)
    rough = scores[4:, columns]
    threshold = np.array([np.inf, np.median(rough[:, 1]), -np.inf])
    kernels.decide_dense(rough, 4, threshold, points, center, residual, columns, base, *listed, exact, index)
    np.testing.assert_array_equal(index, [4 + rough[:, 0].argmin(), 4 + rough[:, 1].argmin(), 0])
    np.testing.assert_allclose(exact[:2], rough[:, :2].min(axis=0))
    assert exact[2] == np.inf
    sparse = sp.csr_array(np.where(np.abs(points) < 0.7, 0.0, points))
    plain_scores = sparse.toarray() @ residual[columns].T + base[:, None]
    plain_scores += sp.csr_array((listed[2], listed[1], listed[0]), shape=(11, 11)).toarray()[columns].T
    exact, index = np.full(3, np.inf), np.zeros(3, dtype=int)
    kernels.decide_sparse(
        plain_scores, 0, threshold + np.array([0.0, 9.0, 0.0]), sparse.indptr, sparse.indices, sparse.data,
        residual, columns, base, *listed, exact, index,
    )  # fmt: skip
    np.testing.assert_array_equal(index[:2], plain_scores[:, :2].argmin(axis=0))
    np.testing.assert_allclose(exact[:2], plain_scores[:, :2].min(axis=0))


@pytest.mark.parametrize("tol", [0.0, 0.05, 10.0])
@pytest.mark.parametrize("width", [2, 11])
def test_the_whole_scan_finds_the_lowest_scores(tol, width, scan):
    points, center, residual, base, listed, scores = scan
    radius, scale = np.linalg.norm(points - center, axis=1).max(), base.max()
    rounded = np.zeros((11, 6), dtype=np.float32)
    rounded[:, :5] = (points - center) / radius
    rounded[:, 5] = base / scale
    found = np.full(11, -1)
    plain(SCAN).scan_dense(
        rounded, points, center, residual, np.arange(11), radius, scale, base, *listed, tol, 4, width, found,
        1, 9,
    )  # fmt: skip
    np.testing.assert_array_equal(found[1:9], scores[:, 1:9].argmin(axis=0))
    assert (found[[0, 9, 10]] == -1).all()


@pytest.mark.parametrize("tol", [1e-6, 10.0])
def test_any_point_may_be_the_vertex_of_any_column(tol, rng):
    points, vertices = np.eye(11), rng.permutation(11)
    residual, rounded = -points[vertices], np.zeros((11, 12), dtype=np.float32)
    rounded[:, :11] = points
    listed = np.zeros(12, dtype=int), np.zeros(0, dtype=int), np.zeros(0)
    found = np.full(11, -1)
    plain(SCAN).scan_dense(
        rounded, points, np.zeros(11), residual, np.arange(11), 1.0, 0.0, np.zeros(11), *listed, tol, 4, 3,
        found, 0, 11,
    )  # fmt: skip
    np.testing.assert_array_equal(found, vertices)


def test_columns_of_size_zero_leave_the_choice_to_the_order():
    kernels, leaders, points = plain(SCAN), np.array([6, 1, 10]), np.ones((11, 2))
    nothing = np.zeros(12, dtype=int), np.zeros(0, dtype=int), np.zeros(0)
    facts = np.zeros(8), points, np.ones(2), np.zeros((11, 2)), np.arange(8), np.zeros(11), *nothing
    exact, index, threshold = np.full(8, 9.0), np.full(8, 99), np.full(8, 9.0)
    kernels.decide_leaders(np.zeros((8, 3)), leaders, 0.5, *facts, exact, index, threshold)
    assert (exact.tolist(), index.tolist(), threshold.tolist()) == ([0.0] * 8, [1] * 8, [0.5] * 8)
    room = np.zeros((1, 8)), np.zeros(1), np.zeros(8), np.array([0, 4])
    kernels.decide_groups(
        np.ones((1, 8), dtype=np.uint8), *room, np.zeros((4, 3), dtype=np.float32), np.array([7, 3, 0, 9]),
        np.zeros((8, 3), dtype=np.float32), 0.5, *facts, exact, index, threshold,
    )  # fmt: skip
    assert (exact.tolist(), index.tolist(), threshold.tolist()) == ([0.0] * 8, [0] * 8, [0.5] * 8)


def test_radii_of_groups(rng):
    rounded, order = rng.random((9, 3)).astype(np.float32), rng.permutation(9)
    starts, centers, stretch = np.array([0, 4, 4, 9]), rng.random((3, 3)), rng.random((3, 3))
    radii = np.full(3, -1.0)
    plain(SCAN).group_radii(rounded, order, starts, centers, stretch, radii, 0, 3)
    for g in range(3):
        inside = (rounded[order[starts[g] : starts[g + 1]]].astype(float) - centers[g]) @ stretch
        largest = np.linalg.norm(inside, axis=1).max(initial=0.0)
        assert largest <= radii[g] <= largest * (1.0 + 1e-5)


def test_groups_that_may_hold_a_better_point(rng):
    along, radii, norms = rng.random((3, 8)), rng.random(3), rng.random(8)
    threshold, marks = rng.random(8) - 0.3, np.zeros((3, 8), dtype=np.uint8)
    n_alive = plain(SCAN).mark_alive(along, radii, norms, threshold, 0.05, marks)
    expected = along - radii[:, None] * norms <= threshold + 0.05
    np.testing.assert_array_equal(marks, expected)
    assert n_alive == expected.sum() > 0
    for tol, alive in ((0.05, 0), (0.2, 1)):  # rounding counts in favor of a group
        near = np.ones((1, 1)), np.array([0.5]), np.array([0.2]), np.array([0.8])
        assert plain(SCAN).mark_alive(*near, tol, np.zeros((1, 1), dtype=np.uint8)) == alive
    exact = np.zeros((1, 1)), np.zeros(1), np.zeros(1), np.zeros(1)
    assert plain(SCAN).mark_alive(*exact, 0.0, np.zeros((1, 1), dtype=np.uint8)) == 1  # equal is alive


def test_four_scores_at_once(rng):
    points, row = rng.random((9, 5)).astype(np.float32), rng.random(5).astype(np.float32)
    np.testing.assert_allclose(plain(SCAN)._four_scores(points, 3, row), points[3:7] @ row, rtol=1e-6)


@pytest.mark.parametrize("tol", [0.0, 0.5])
def test_leaders_and_groups_find_the_lowest_scores(tol, scan):
    points, center, residual, base, listed, scores = scan
    kernels, columns = plain(SCAN), np.arange(8)
    sizes = np.abs(scores).max(axis=0)[:8]
    leaders = np.array([6, 1, 10])
    exact, index, threshold = np.empty(8), np.empty(8, dtype=int), np.empty(8)
    rough = (scores[leaders][:, :8] / sizes).T
    kernels.decide_leaders(
        rough, leaders, tol, sizes, points, center, residual, columns, base, *listed, exact, index, threshold
    )
    np.testing.assert_array_equal(index, leaders[scores[leaders][:, :8].argmin(axis=0)])
    np.testing.assert_allclose(exact, scores[leaders][:, :8].min(axis=0))
    np.testing.assert_allclose(threshold, exact / sizes + tol)
    # Three groups of four places; a place without a point of its own repeats one.
    members, starts = np.r_[np.arange(11), 0], np.array([0, 4, 8, 12])
    plain_points = np.column_stack([points - center, base]).astype(np.float32)[members]
    scaled = (np.column_stack([residual[:8], np.ones(8)]) / sizes[:, None]).astype(np.float32)
    along, radii, norms = np.full((3, 8), -9.0), np.zeros(3), np.zeros(8)
    marks = np.ones((3, 8), dtype=np.uint8)
    led = index.copy()
    kernels.decide_groups(
        marks, along, radii, norms, starts, plain_points, members, scaled, max(tol, 1e-5), sizes, points,
        center, residual, columns, base, *listed, exact, index, threshold,
    )  # fmt: skip
    np.testing.assert_array_equal(index, scores[:, :8].argmin(axis=0))
    np.testing.assert_allclose(exact, scores[:, :8].min(axis=0))
    better = index != led
    np.testing.assert_allclose(threshold[better], exact[better] / sizes[better] + max(tol, 1e-5))


def test_unmarked_columns_keep_what_is_known(scan):
    points, center, residual, base, listed, scores = scan
    columns = np.r_[np.arange(11), np.arange(5)]
    members = np.r_[np.arange(11), 0]
    rounded = np.column_stack([points - center, base]).astype(np.float32)[members]
    scaled = np.column_stack([residual[columns], np.ones(16)]).astype(np.float32)
    marks = np.zeros((1, 16), dtype=np.uint8)
    marks[0, 9] = marks[0, 15] = 1
    exact, index, threshold = np.full(16, np.inf), np.full(16, 99), np.full(16, np.inf)
    plain(SCAN).decide_groups(
        marks, np.zeros((1, 16)), np.zeros(1), np.zeros(16), np.array([0, 12]), rounded, members, scaled,
        1e-5, np.ones(16), points, center, residual, columns, base, *listed, exact, index, threshold,
    )  # fmt: skip
    marked = marks[0] == 1
    np.testing.assert_array_equal(index[marked], scores[:, columns[marked]].argmin(axis=0))
    assert (index[~marked] == 99).all()
