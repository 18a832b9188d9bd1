"""Leading directions of all clusters at once against the SVD of each."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.cones.directions import leading_directions
from nonneg.data import as_data_matrix

CONTAINERS = {
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "torch": lambda X: pytest.importorskip("torch").asarray(X),
    "array_api_strict": lambda X: pytest.importorskip("array_api_strict").asarray(X),
    "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(19, -1)),
}
K = 5


def plain(array):
    """Bring an array home as NumPy."""
    return np.asarray(array.compute() if hasattr(array, "compute") else array)


@pytest.fixture
def clustered(rng):
    """Rows with labels that have nothing to do with them: singular values are close. One row has none."""
    X = rng.gamma(1.0, size=(90, 25)) * (rng.random((90, 25)) < 0.4)
    labels = np.arange(90) % K
    labels[12] = -1
    return X, labels[:, None]


def by_svd(X, labels, weights=None):
    """The leading pair of every cluster."""
    scale = np.ones(len(X)) if weights is None else np.sqrt(weights)
    directions, squares = [], []
    for cluster in range(K):
        own = labels[:, 0] == cluster
        _, s, V = np.linalg.svd(X[own] * scale[own, None], full_matrices=False)
        directions.append(np.abs(V[0]))
        squares.append(s[0] ** 2)
    return np.array(directions), np.array(squares)


@pytest.mark.parametrize("container", [None, *CONTAINERS])
@pytest.mark.parametrize("weighted", [False, True])
def test_directions_are_the_leading_singular_vectors(container, weighted, clustered, rng):
    X, labels = clustered
    weights = rng.random(90) if weighted else None
    directions, squares = by_svd(X, labels, weights)
    data = as_data_matrix(X if container is None else CONTAINERS[container](X), weights=weights)
    left = data.map_reduce_rows(_labels, data.to_sample_array(labels.astype(float)))[0][0]
    found = leading_directions(data, left, data.to_device(np.abs(rng.standard_normal((K, 25)))))
    np.testing.assert_allclose(found.squared_values, squares, rtol=1e-11)
    np.testing.assert_allclose(found.directions, directions, atol=1e-8)
    assert (found.directions >= 0).all()
    assert found.residuals.max() <= 1e-10
    products = plain(found.products)[:, 0]
    assert products[12] == 0
    np.testing.assert_allclose(
        np.delete(products, 12), np.delete((X * directions[labels[:, 0]]).sum(axis=1), 12), atol=1e-7
    )


def _labels(block, labels):
    return (block.xp.astype(labels, block.xp.int64),), ()


def test_close_singular_values_take_few_passes(rng):
    # Two directions that share nothing: the power method would need log(1e-10) / log(0.998) passes.
    X = np.zeros((200, 60))
    X[:100, :30] = 1.0 + 1e-3 * rng.random((100, 30))
    X[100:, 30:] = 0.999 + 1e-3 * rng.random((100, 30))
    found = leading_directions(as_data_matrix(X), np.zeros((200, 1), dtype=int), np.ones((1, 60)))
    assert found.squared_values[0] == pytest.approx(np.linalg.norm(X, 2) ** 2, rel=1e-12)
    assert found.n_passes < 40


def test_a_start_that_shares_nothing_with_the_answer_reaches_it(rng):
    X = np.zeros((20, 10))
    X[:2, :5] = rng.random((2, 5))
    X[2:, 5:] = 1.0 + rng.random((18, 5))
    start = np.zeros((1, 10))
    start[0, :5] = X[0, :5]
    found = leading_directions(as_data_matrix(X), np.zeros((20, 1), dtype=int), start, tol=1e-4)
    assert found.squared_values[0] == pytest.approx(np.linalg.norm(X, 2) ** 2, rel=1e-7)


def test_equal_singular_values_give_one_of_the_answers():
    found = leading_directions(as_data_matrix(np.eye(4)), np.zeros((4, 1), dtype=int), np.ones((1, 4)))
    assert found.squared_values[0] == pytest.approx(1.0)
    assert np.linalg.norm(found.directions) == pytest.approx(1.0)


def test_clusters_of_one_row_and_of_none(rng):
    X = rng.random((3, 6))
    found = leading_directions(as_data_matrix(X), np.array([[0], [2], [2]]), np.ones((3, 6)))
    np.testing.assert_allclose(found.directions[0], X[0] / np.linalg.norm(X[0]), atol=1e-10)
    assert found.squared_values[1] == 0
    assert np.isfinite(found.directions).all()


def test_float32_is_good_to_its_precision(clustered):
    X, labels = clustered
    found = leading_directions(as_data_matrix(X.astype(np.float32)), labels, np.ones((K, 25)))
    np.testing.assert_allclose(found.squared_values, by_svd(X, labels)[1], rtol=1e-5)
    assert found.products.dtype == np.float32


@pytest.mark.parametrize("scale", [2.0**-490, 2.0**-300, 2.0**300, 2.0**490])
def test_no_unit_of_the_data_is_too_small_or_too_large(clustered, scale):
    """The images of the vectors are of the size of squares, whose squares would vanish or overflow."""
    X, labels = clustered
    start = np.ones((K, X.shape[1]))
    expected = leading_directions(as_data_matrix(X), labels, start)
    found = leading_directions(as_data_matrix(X * scale), labels, start)
    np.testing.assert_allclose(found.directions, expected.directions, rtol=1e-12)
    np.testing.assert_allclose(found.squared_values / scale**2, expected.squared_values, rtol=1e-12)
    assert found.residuals.max() < 1e-9


@pytest.mark.parametrize(("max_iter", "n_passes"), [(1, 1), (2, 1), (3, 3), (5, 5)])
def test_no_more_passes_than_allowed_and_values_of_their_own(clustered, max_iter, n_passes):
    X, labels = clustered
    found = leading_directions(as_data_matrix(X), labels, np.ones((K, 25)), max_iter=max_iter, tol=0.0)
    assert found.n_passes == n_passes  # a step takes a pass, and the check of what is returned another one
    own = (X * found.directions[labels[:, 0]]).sum(axis=1) ** 2
    sums = [own[labels[:, 0] == cluster].sum() for cluster in range(K)]
    np.testing.assert_allclose(found.squared_values, sums, rtol=1e-12)
