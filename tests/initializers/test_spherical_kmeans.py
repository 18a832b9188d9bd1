"""Spherical k-means finds planted directions, and never worse than scikit-learn's k-means by much."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from nonneg.data import as_data_matrix
from nonneg.initializers.spherical_kmeans import spherical_kmeans, spherical_kmeans_init


def mean_cosine(X, centers):
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    return np.mean(np.max(unit @ centers, axis=1))


@pytest.fixture
def planted(rng):
    directions = np.kron(np.eye(4), np.ones((1, 5)))
    labels = rng.integers(0, 4, size=200)
    sizes = rng.gamma(1.0, size=(200, 1)) + 0.1
    return sizes * (directions[labels] + 0.1 * rng.random((200, 20))), labels


def test_planted_directions_are_found(planted):
    X, labels = planted
    W, Ht = spherical_kmeans_init(as_data_matrix(X), 4, rng=1)
    found = np.argmax(W, axis=1)
    table = np.zeros((4, 4))
    np.add.at(table, (labels, found), 1)
    assert np.sum(table.max(axis=1)) == 200
    assert np.linalg.norm(X - W @ Ht.T) < 0.1 * np.linalg.norm(X)


def test_centers_are_unit_vectors_and_good_ones(digits):
    ours = [mean_cosine(digits, spherical_kmeans(as_data_matrix(digits), 10, rng=seed)) for seed in range(4)]
    unit = digits / np.linalg.norm(digits, axis=1, keepdims=True)
    theirs = KMeans(10, n_init=1, random_state=0).fit(unit).cluster_centers_.T
    assert np.median(ours) > mean_cosine(digits, theirs / np.linalg.norm(theirs, axis=0)) - 0.005
    centers = spherical_kmeans(as_data_matrix(digits), 10, rng=0)
    np.testing.assert_allclose(np.linalg.norm(centers, axis=0), 1.0)


def test_more_clusters_than_different_rows_still_gives_centers():
    X = np.repeat(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), 5, axis=0)
    centers = spherical_kmeans(as_data_matrix(X), 6, rng=0)
    np.testing.assert_allclose(np.linalg.norm(centers, axis=0), 1.0)
    assert mean_cosine(X, centers) == pytest.approx(1.0)


def _norms(X):
    return 1.0 / np.linalg.norm(X, axis=1, keepdims=True)
