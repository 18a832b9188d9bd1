"""Which row, label or pivot a kernel chooses, not compiled: on cases whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.plain import plain

from nonneg.kernels.threshold_decode import array_api

NEAREST = "nonneg.kernels.nearest_centroid.numba"
L1 = "nonneg.kernels.l1_simplex.numba"
DECODE = "nonneg.kernels.threshold_decode.numba"


@pytest.fixture
def nearest(monkeypatch):
    kernels = plain(NEAREST)
    monkeypatch.setattr(kernels, "row_dot", lambda rows, i, vector: rows[i] @ vector)
    return kernels


@pytest.mark.parametrize(
    ("bound", "n_compared", "cosine"),
    [(-1e300, 4, 0.8), (0.25, 3, 0.6), (0.19, 4, 0.8), (1e300, 2, 0.2)],
)
def test_a_row_is_compared_until_its_gain_is_below_a_bound(bound, n_compared, cosine, nearest):
    # Cosines 0.9 (compared before), 0.2, 0.6 and 0.8; the gain is half of the distance from 1.
    rows, centroids = np.array([[0.0], [2.0]]), np.array([[0.9], [0.2], [0.6], [0.8]])
    known, compared = np.array([[9.0], [-0.5]]), np.array([7, 1])
    found = nearest._look(rows, 1, np.array([[9.0], [0.5]]), centroids, known, compared, 0.5, 1.0, bound)
    assert compared.tolist() == [7, n_compared]
    assert known[:, 0].tolist() == pytest.approx([9.0, cosine])
    assert found == pytest.approx(0.5 * (1.0 - cosine))


@pytest.mark.parametrize("weighted", [False, True])
def test_only_rows_that_may_be_best_are_compared(weighted, nearest):
    # Row 0 is known; many rows promise much and hold nothing; the best one comes late; the last is hopeless.
    centroids = np.array([[0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]])
    decoys = nearest.PROBES + 2
    rows = np.vstack([[1.0, 0.0], np.tile([1.0, 0.0], (decoys, 1)), [0.6, -0.8], [0.0, 1.0]])
    known = np.array([1.0, *[-1.0] * decoys, -0.5, 0.9])[:, None]
    compared = np.array([3, *[0] * decoys, 0, 0])[:, None]
    n, rates = len(rows), None
    if weighted:
        rates = np.linspace(1.0, 0.99, n)[:, None]
    found, done = nearest.update_cosines(
        rows, np.ones((n, 1)), centroids, known, compared, rates=rates, shift=1.0
    )
    best = n - 2
    assert done[best, 0] == 3
    assert found[best, 0] == pytest.approx(0.6)
    assert (done[-1, 0], found[-1, 0]) == (0, 0.9)  # its promise is less than the gain of the best
    assert (done[0, 0], found[0, 0]) == (3, 1.0)
    gains = (1.0 - found[:, 0]) * (1.0 if rates is None else rates[:, 0])
    assert np.argmax(gains) == best


def test_of_rows_with_equal_gains_the_first_is_compared(nearest):
    rows, centroids = np.tile([[0.0, 1.0]], (20, 1)), np.array([[1.0, 0.0]])
    known, compared = np.full((20, 1), -1.0), np.zeros((20, 1), dtype=int)
    found, done = nearest.update_cosines(rows, np.ones((20, 1)), centroids, known, compared, shift=1.0)
    assert done[0, 0] == 1
    assert np.argmax(1.0 - found) == np.argmax(np.where(done == 1, 1.0 - found, -1.0))


def test_rows_are_compared_with_the_centroids_of_their_best_scores(nearest):
    centroids = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    rows = np.array([[9.0, 9.0], [0.0, 2.0], [3.0, 0.0], [1.2, 1.6]])
    inverse = 1.0 / np.linalg.norm(rows, axis=1, keepdims=True)
    scores = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [3.0, 1.0, 2.0]])
    labels, cosines = np.full(4, 9), np.zeros(4)
    enough = np.array([0.5, 0.9, 0.7])
    nearest.prune_block(rows, inverse, centroids, scores[1:], enough, 2, labels, cosines, 1, 4)
    # Row 1 is near enough to its first guess; row 2 to none of two; row 3 to the first, so that the second,
    # which is nearer, is not looked at.
    assert labels.tolist() == [9, 2, -1, 0]
    np.testing.assert_allclose(cosines, [0.0, 0.8, 0.0, 0.6])


def test_rows_that_bounds_leave_open_are_decided_by_products(nearest, monkeypatch):
    rows = np.array([[0.0, 2.0], [0.0, 3.0], [4.0, 0.0], [0.0, 0.0]])
    inverse, centroids = np.array([[0.5], [1 / 3], [0.25], [0.0]]), np.eye(2)
    known = np.array([-1, 0, -1, -1]), np.array([9.0, 0.7, 9.0, 9.0])
    monkeypatch.setattr(nearest, "pruned_centroids", lambda *given: known)
    labels, cosines = nearest.nearest_centroids(rows, inverse, centroids)
    assert labels[:, 0].tolist() == [1, 0, 0, -1]
    np.testing.assert_allclose(cosines[:, 0], [1.0, 0.7, 1.0, 0.0])
    monkeypatch.setattr(nearest, "pruned_centroids", lambda *given: None)
    assert nearest.nearest_centroids(rows, inverse, centroids) is None


def test_bounds_are_used_for_many_rows_columns_and_centroids(nearest):
    shape = n, m, k = 4 * nearest.SAMPLE_ROWS, nearest.MIN_COLUMNS, nearest.MIN_CENTROIDS

    def supported(n, m, k):
        rows = np.broadcast_to(0.0, (n, m))
        return nearest.can_prune(rows, rows[:, :1], np.broadcast_to(0.0, (k, m)))

    assert supported(*shape)
    assert not any(supported(*less) for less in ((n - 1, m, k), (n, m - 1, k), (n, m, k - 1)))
    assert not nearest.can_prune([[0.0]], np.zeros((n, 1)), np.zeros((k, m)))


@pytest.mark.torch
@pytest.mark.parametrize("weighted", [False, True])
def test_tensors_in_host_memory_are_compared_as_arrays(weighted, nearest, rng, torch):
    rows, centroids = rng.random((12, 3)), rng.random((4, 3))
    inverse, rates = 1.0 / np.linalg.norm(rows, axis=1, keepdims=True), rng.random((12, 1))
    arrays = inverse, centroids, np.full((12, 1), -1.0), np.zeros((12, 1), dtype=np.int64)
    given = {"rates": rates} if weighted else {}
    expected = nearest.update_cosines(rows, *arrays, **given, shift=1.0)
    given = {name: torch.tensor(array) for name, array in given.items()}
    found = nearest.update_cosines(rows, *(torch.tensor(array) for array in arrays), **given, shift=1.0)
    for one, other in zip(found, expected, strict=True):
        assert isinstance(one, torch.Tensor)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("seed", range(5))
def test_an_entry_leaves_where_the_norm_is_lowest(side, seed):
    # |t| + sum |v - t c| along the side: convex and piecewise linear.
    rng = np.random.default_rng(seed)
    values, coefficients = rng.standard_normal(6), rng.standard_normal(6)
    coefficients[np.argmax(np.abs(values))] = side * np.sign(values[np.argmax(np.abs(values))]) * 9.0
    signs = np.sign(values)
    slope = 1.0 - side * signs @ coefficients
    assert slope < 0
    ends = np.array([v / (side * c) for v, c in zip(values, coefficients, strict=True)])
    norms = [t + np.abs(values - side * t * coefficients).sum() if t > 0 else np.inf for t in ends]
    before = signs.copy()
    length, place = plain(L1)._leaving(values, coefficients, side, signs, slope)
    assert place == np.argmin(norms)
    assert length == pytest.approx(ends[place])
    np.testing.assert_array_equal(signs, np.where((ends > 0) & (ends <= length), -before, before))


def test_of_entries_that_leave_together_the_largest_goes_first():
    # Both reach zero at 1, and either would do.
    for coefficients, expected in (([2.0, 3.0], 1), ([3.0, 2.0], 0), ([2.0, 2.0], 0)):
        c = np.array(coefficients)
        assert plain(L1)._leaving(c.copy(), c, 1.0, np.ones(2), -0.5) == (1.0, expected)
    nothing = plain(L1)._leaving(np.ones(2), -np.ones(2), 1.0, np.ones(2), -0.5)
    assert nothing == (np.inf, -1)
    assert plain(L1)._leaving(np.ones(2), np.ones(2), 1.0, np.ones(2), 0.0) == (0.0, -1)


def test_products_with_matrices_that_are_not_square(rng):
    A, left, right = rng.random((3, 2)), rng.random(3), rng.random(2)
    out = np.full(3, 9.0)
    plain(L1)._matrix_times(A, right, out)
    np.testing.assert_allclose(out, A @ right)
    out = np.full(2, 9.0)
    plain(L1)._vector_times(left, A, out)
    np.testing.assert_allclose(out, left @ A)


@pytest.mark.parametrize("rule", ["unshifted", "shifted"])
@pytest.mark.parametrize("compiled", [True, False])
def test_values_at_the_threshold_are_not_over_it(rule, compiled):
    kernels = plain(DECODE) if compiled else array_api
    X = np.array([[0.5, 0.0, -0.0], [0.75, 0.25, -1.0]])
    threshold, reference = np.array([0.5, 0.0, -1.0]), np.array([0.125, 0.0, 2.0])
    found = kernels.decoded_sums(X, np.eye(3), threshold, reference, rule, None)
    np.testing.assert_array_equal(found[2], [0.0, 0.0, 1.0])  # zero is not negative
    np.testing.assert_array_equal(found[4], [1.0, 1.0, 1.0])
    over = np.array([[0.0, 0.0, 0.0], [0.75, 0.25, 0.0]])
    if rule == "shifted":
        over = np.where([[0, 0, 1], [1, 1, 0]], X - threshold, 0.0)
    extended = np.column_stack([over - reference, np.ones(2)])
    np.testing.assert_allclose(found[0], extended.T @ extended)


def test_sums_of_many_parts_are_added(monkeypatch, rng):
    kernels = plain(DECODE)
    monkeypatch.setattr(kernels, "BLOCK_ENTRIES", 1)
    monkeypatch.setattr(
        kernels, "parallel_for", lambda work, n, **given: [work(s, min(s + 20, n)) for s in range(0, n, 20)]
    )
    X, inverse = rng.standard_normal((70, 2)), rng.standard_normal((3, 2))
    weights = rng.random(70)
    found = kernels.decoded_sums(X, inverse, np.zeros(3), np.zeros(3), "linear", weights)
    extended = np.column_stack([X @ inverse.T, np.ones(70)])
    np.testing.assert_allclose(found[0], extended.T @ (weights[:, None] * extended))
    np.testing.assert_allclose(found[1], extended.T @ (weights[:, None] * X))
    np.testing.assert_allclose(found[4], np.full(3, weights.sum()))
