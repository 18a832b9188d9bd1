"""Largest cosines to centroids: the compiled core against the array code and against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._compiled import core
from nonneg._threads import threads
from nonneg.data.dense import DenseMatrix
from nonneg.kernels.nearest_centroid import update_cosines


def search(block, X, n_picks, *, rates=None, shift=0.0):
    """Run the whole farthest-first search ; return the picks and the comparisons."""
    inverse = 1.0 / np.linalg.norm(X, axis=1, keepdims=True)
    nearest, seen = np.full((len(X), 1), -1.0), np.zeros((len(X), 1), dtype=np.int64)
    picks = [3]
    for step in range(1, n_picks):
        rate = None if rates is None else rates[step]
        nearest, seen = update_cosines(
            block, inverse, X[picks] * inverse[picks], nearest, seen, rates=rate, shift=shift
        )
        gains = shift - nearest[:, 0] if rate is None else rate[:, 0] * (shift - nearest[:, 0])
        picks.append(int(np.argmax(gains)))
    return picks, seen


def full_search(X, n_picks, *, rates=None, shift=0.0):
    """The same with all products."""
    inverse = 1.0 / np.linalg.norm(X, axis=1, keepdims=True)
    nearest = np.full((len(X), 1), -1.0)
    picks = [3]
    for step in range(1, n_picks):
        unit = X[picks[-1]] * inverse[picks[-1]]
        nearest = np.maximum(nearest, (X @ unit)[:, None] * inverse)
        rate = 1.0 if rates is None else rates[step][:, 0]
        picks.append(int(np.argmax(rate * (shift - nearest[:, 0]))))
    return picks


@pytest.mark.parametrize("n_rows", [400, 5000])
@pytest.mark.parametrize("drawn", [False, True])
def test_comparisons_put_off_do_not_change_the_picks(block_of, n_rows, drawn, rng, sparse_rows):
    X = sparse_rows(rng, n_rows)
    rates = 1.0 / rng.exponential(size=(25, n_rows, 1)) if drawn else None
    shift = 1.0 if drawn else 0.0
    found = []
    for n_threads in (1, 3):
        with threads(n_threads):
            found.append(search(block_of(X), X, 25, rates=rates, shift=shift))
    assert found[0][0] == full_search(X, 25, rates=rates, shift=shift)
    assert found[1][0] == found[0][0]
    np.testing.assert_array_equal(found[1][1], found[0][1])
    # And many comparisons were put off for good: 24 would be all of them.
    assert core() is None or found[0][1].mean() < 16


def test_float32_rows_are_compared(block_of, rng, sparse_rows):
    X = sparse_rows(rng, dtype=np.float32)
    assert search(block_of(X), X, 12)[0] == full_search(X, 12)


def test_of_equal_rows_the_first_wins(block_of, rng, sparse_rows):
    X = np.tile(sparse_rows(rng, n_rows=30), (4, 1))[rng.permutation(120)]
    picks, _ = search(block_of(X), X, 12)
    for pick in picks[1:]:
        assert pick == np.flatnonzero((X[pick] == X).all(axis=1))[0]


def test_rows_that_are_out_are_never_picked(block_of, rng, sparse_rows):
    X = sparse_rows(rng, n_rows=20)
    inverse = 1.0 / np.linalg.norm(X, axis=1, keepdims=True)
    nearest, seen = np.full((20, 1), -1.0), np.zeros((20, 1), dtype=np.int64)
    nearest[::2], seen[::2] = 3.0, 2**62
    before = nearest.copy(), seen.copy()
    found, counts = update_cosines(block_of(X), inverse, X[:1] * inverse[0], nearest, seen, shift=0.0)
    np.testing.assert_array_equal(nearest, before[0])
    np.testing.assert_array_equal(seen, before[1])
    assert (found[::2] == 3.0).all()
    assert (counts[::2] == 2**62).all()
    assert int(np.argmin(found)) % 2 == 1


def test_tensors_in_host_memory_give_the_same(rng, torch, sparse_rows):
    X = sparse_rows(rng, n_rows=50)
    inverse = 1.0 / np.linalg.norm(X, axis=1, keepdims=True)
    nearest, seen = np.full((50, 1), -1.0), np.zeros((50, 1), dtype=np.int64)
    arrays = (inverse, X[:2] * inverse[:2], nearest, seen)
    wanted = update_cosines(DenseMatrix(X, np), *arrays, shift=0.0)
    block = DenseMatrix(torch.asarray(X), torch)
    found = update_cosines(block, *(torch.asarray(array) for array in arrays), shift=0.0)
    for tensor, array in zip(found, wanted, strict=True):
        assert isinstance(tensor, torch.Tensor)
        np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-12)
