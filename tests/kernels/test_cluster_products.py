"""Products of rows with the vector of their cluster: the compiled kernel against the array code."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg._threads import current_threads, threads
from nonneg.kernels.cluster_products.array_api import one_hot
from nonneg.kernels.cluster_products.numba import cluster_products


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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_products_with_the_own_vector_equal_the_portable_twin(form, dtype, weighted, rng):
    X = sparse_rows(rng, dtype=dtype)
    labels = rng.integers(-1, 6, size=400)
    vectors = rng.random((6, 30)).astype(dtype)
    weights = rng.random(400).astype(dtype) if weighted else None
    active = np.array([True, True, False, True, True, True])
    products, sums = cluster_products(form(X), labels, vectors, weights, active)
    assert products.dtype == sums.dtype == dtype
    own = one_hot(labels[:, None], X @ vectors.T, 6)
    own[:, 2] = 0.0
    tolerance = {"rtol": 1e-4 if dtype == np.float32 else 1e-12, "atol": 1e-6}
    np.testing.assert_allclose(products, own.sum(axis=1), **tolerance)
    wanted = (own if weights is None else own * weights[:, None]).T @ X
    np.testing.assert_allclose(sums, wanted, **tolerance)


def test_sums_do_not_depend_on_the_threads(form, rng, monkeypatch):
    monkeypatch.setattr("nonneg._threads.threads_for", lambda *_: current_threads())
    X, labels, vectors = sparse_rows(rng), rng.integers(0, 3, size=400), rng.random((3, 30))
    found = []
    for n_threads in (1, 2, 5):
        with threads(n_threads):
            found.append(cluster_products(form(X), labels, vectors, None, np.ones(3, dtype=bool)))
    for products, sums in found[1:]:
        np.testing.assert_array_equal(products, found[0][0])
        np.testing.assert_array_equal(sums, found[0][1])


def test_no_active_cluster_is_no_work(form, rng):
    X = sparse_rows(rng, n_rows=10)
    products, sums = cluster_products(
        form(X), np.zeros(10, dtype=int), np.ones((1, 30)), None, np.zeros(1, dtype=bool)
    )
    assert not products.any()
    assert not sums.any()


def test_one_hot_takes_one_entry_for_whatever_cluster(xp):
    labels = xp.asarray([[1], [-1], [0]])
    found = one_hot(labels, xp.asarray([[5.0], [6.0], [7.0]]), 3)
    np.testing.assert_array_equal(np.asarray(found), [[0, 5, 0], [0, 0, 0], [7, 0, 0]])
