"""Largest cosines to centroids: the compiled kernels against the array code and against brute force."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg._threads import current_threads, threads
from nonneg.kernels.nearest_centroid import array_api
from nonneg.kernels.nearest_centroid.numba import can_prune, pruned_centroids, update_cosines


@pytest.fixture(params=["dense", "csr"])
def form(request):
    """Turn a dense array into what the kernels read."""
    if request.param == "dense":
        return np.ascontiguousarray

    def to_csr(X):
        csr = sp.csr_array(X)
        return csr.indptr, csr.indices, csr.data

    return to_csr


def sparse_rows(rng, n_rows=400, n_columns=30, dtype=np.float64):
    """Rows of unequal length, half of the entries zero, no row of zeros."""
    X = rng.gamma(1.0, size=(n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < 0.5)
    X[np.arange(n_rows), np.arange(n_rows) % n_columns] += 0.1
    return (X * rng.gamma(1.0, size=(n_rows, 1))).astype(dtype)


def search(rows, X, n_picks, *, rates=None, shift=0.0):
    """Run the whole farthest-first search with the compiled kernel; return the picks and the comparisons."""
    inverse = 1.0 / np.linalg.norm(X, axis=1, keepdims=True)
    nearest, seen = np.full((len(X), 1), -1.0), np.zeros((len(X), 1), dtype=np.int64)
    picks = [3]
    for step in range(1, n_picks):
        rate = None if rates is None else rates[step]
        nearest, seen = update_cosines(
            rows, inverse, X[picks] * inverse[picks], nearest, seen, rates=rate, shift=shift
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
        nearest = array_api.update_cosines((X @ unit)[:, None], inverse.astype(X.dtype), nearest)
        rate = 1.0 if rates is None else rates[step][:, 0]
        picks.append(int(np.argmax(rate * (shift - nearest[:, 0]))))
    return picks


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("drawn", [False, True])
def test_comparisons_put_off_do_not_change_the_picks(form, n_threads, drawn, rng, monkeypatch):
    monkeypatch.setattr("nonneg._threads.threads_for", lambda *_: current_threads())
    X = sparse_rows(rng)
    rates = 1.0 / rng.exponential(size=(25, 400, 1)) if drawn else None
    shift = 1.0 if drawn else 0.0
    with threads(n_threads):
        picks, seen = search(form(X), X, 25, rates=rates, shift=shift)
    assert picks == full_search(X, 25, rates=rates, shift=shift)
    # And many comparisons were put off for good: 24 would be all of them.
    assert seen.mean() < 16


def test_float32_rows_are_compared(form, rng):
    X = sparse_rows(rng, dtype=np.float32)
    assert search(form(X), X, 12)[0] == full_search(X, 12)


def test_of_equal_rows_the_first_wins(form, rng):
    X = np.tile(sparse_rows(rng, n_rows=30), (4, 1))[rng.permutation(120)]
    picks, _ = search(form(X), X, 12)
    for pick in picks[1:]:
        assert pick == np.flatnonzero((X[pick] == X).all(axis=1))[0]


def test_rows_that_are_out_are_never_picked(form, rng):
    X = sparse_rows(rng, n_rows=20)
    inverse = 1.0 / np.linalg.norm(X, axis=1, keepdims=True)
    nearest, seen = np.full((20, 1), -1.0), np.zeros((20, 1), dtype=np.int64)
    nearest[::2], seen[::2] = 3.0, 2**62
    before = nearest.copy(), seen.copy()
    found, counts = update_cosines(form(X), inverse, X[:1] * inverse[0], nearest, seen, shift=0.0)
    np.testing.assert_array_equal(nearest, before[0])
    np.testing.assert_array_equal(seen, before[1])
    assert (found[::2] == 3.0).all()
    assert (counts[::2] == 2**62).all()
    assert int(np.argmin(found)) % 2 == 1


def test_tensors_in_host_memory_are_served_by_the_compiled_kernel(rng, torch):
    X = sparse_rows(rng, n_rows=50)
    inverse = 1.0 / np.linalg.norm(X, axis=1, keepdims=True)
    nearest, seen = np.full((50, 1), -1.0), np.zeros((50, 1), dtype=np.int64)
    arrays = (inverse, X[:2] * inverse[:2], nearest, seen)
    wanted = update_cosines(X, *arrays, shift=0.0)
    found = update_cosines(X, *(torch.asarray(array) for array in arrays), shift=0.0)
    for tensor, array in zip(found, wanted, strict=True):
        assert isinstance(tensor, torch.Tensor)
        np.testing.assert_array_equal(tensor.numpy(), array)


def rows_about(centroids, rng, n_rows, spread):
    """Rows of unequal lengths about the centroids, and which one each was made from."""
    own = rng.integers(len(centroids), size=n_rows)
    X = centroids[own] + spread * rng.random((n_rows, centroids.shape[1])) / centroids.shape[1] ** 0.5
    return (X * rng.gamma(2.0, size=(n_rows, 1))).astype(centroids.dtype), own


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_settled_rows_have_their_nearest_centroid(dtype, n_threads, rng, monkeypatch):
    monkeypatch.setattr("nonneg._threads.threads_for", lambda *_: current_threads())
    centroids = rng.gamma(0.3, size=(12, 480)).astype(dtype)
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    X, _ = rows_about(centroids, rng, 1500, 0.3)
    # Between two centroids, where an angle settles nothing, and without a direction.
    X[700:800] = centroids[0] + centroids[1]
    X[800] = 0.0
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    with threads(n_threads):
        labels, cosines = pruned_centroids(X, inverse, centroids)
    products = X @ centroids.T * inverse
    settled = labels >= 0
    assert settled.mean() > 0.9
    assert not settled[700:801].any()
    np.testing.assert_array_equal(labels[settled], products.argmax(axis=1)[settled])
    np.testing.assert_allclose(cosines[settled], products.max(axis=1)[settled], rtol=20 * np.finfo(dtype).eps)


def test_rows_without_clusters_are_left_to_the_product_with_all_centroids(rng):
    X = rng.random((1200, 480))
    inverse = 1.0 / np.linalg.norm(X, axis=1, keepdims=True)
    assert pruned_centroids(X, inverse, X[:12] * inverse[:12]) is None


def test_pruning_needs_many_columns_rows_and_centroids():
    X, norms, centroids = np.ones((2000, 500)), np.ones((2000, 1)), np.ones((10, 500))
    assert can_prune(X, norms, centroids)
    assert not can_prune(X[:, :300], norms, centroids[:, :300])
    assert not can_prune(X[:900], norms[:900], centroids)
    assert not can_prune(X, norms, centroids[:5])
