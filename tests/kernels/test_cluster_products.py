"""Products of rows with the vector of their cluster: the compiled core against the array code."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._compiled import core
from nonneg._threads import threads
from nonneg.kernels.cluster_products import cluster_products, one_hot


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_rows", [1, 2, 399])
def test_products_equal_the_array_code(block_of, dtype, weighted, n_rows, rng, sparse_rows, monkeypatch):
    X, labels = sparse_rows(rng, n_rows, dtype=dtype), rng.integers(-1, 6, size=(n_rows, 1))
    vectors, weights = rng.random((6, 30)), rng.random(n_rows).astype(dtype) if weighted else None
    block = block_of(X, weights)
    products, sums = cluster_products(block, labels, vectors, np.ones(6, dtype=bool))
    assert products.dtype == sums.dtype == dtype
    monkeypatch.setattr("nonneg.kernels.cluster_products.core_rows", lambda block: None)
    known = cluster_products(block, labels, vectors.astype(dtype), np.ones(6, dtype=bool))
    own = one_hot(labels, X @ vectors.T, 6)
    wanted = (own if weights is None else own * weights[:, None]).T @ X
    tolerance = {"rtol": 1e-4 if dtype == np.float32 else 1e-12, "atol": 1e-6}
    for one, other, plain in zip((products, sums), known, (own.sum(axis=1)[:, None], wanted), strict=True):
        np.testing.assert_allclose(one, plain, **tolerance)
        np.testing.assert_allclose(other, plain, **tolerance)


def test_clusters_that_are_not_needed_change_no_other(block_of, rng, sparse_rows):
    block, labels, vectors = (
        block_of(sparse_rows(rng)),
        rng.integers(-1, 4, size=(400, 1)),
        rng.random((4, 30)),
    )
    every, all_sums = cluster_products(block, labels, vectors, np.ones(4, dtype=bool))
    active = np.array([True, False, True, True])
    some, sums = cluster_products(block, labels, vectors, active)
    np.testing.assert_array_equal(sums[active], all_sums[active])
    np.testing.assert_array_equal(some[labels != 1], every[labels != 1])
    cluster_products(block, labels, vectors, np.zeros(4, dtype=bool))  # no work is no error


@pytest.mark.skipif(core() is None, reason="the core was not built")
def test_sums_do_not_depend_on_the_threads(block_of, rng, sparse_rows):
    X, labels = sparse_rows(rng, n_rows=20_001), rng.integers(0, 3, size=(20_001, 1))
    found = []
    for n_threads in (1, 2, 5):
        with threads(n_threads):
            found.append(cluster_products(block_of(X), labels, np.full((3, 30), 0.5), np.ones(3, dtype=bool)))
    for products, sums in found[1:]:
        np.testing.assert_array_equal(products, found[0][0])
        np.testing.assert_array_equal(sums, found[0][1])


def test_one_hot_takes_one_entry_for_whatever_cluster(xp):
    labels = xp.asarray([[1], [-1], [0]])
    found = one_hot(labels, xp.asarray([[5.0], [6.0], [7.0]]), 3)
    np.testing.assert_array_equal(np.asarray(found), [[0, 5, 0], [0, 0, 0], [7, 0, 0]])
