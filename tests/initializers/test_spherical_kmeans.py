"""Spherical k-means finds planted directions, and never worse than scikit-learn's k-means by much."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from nonneg.data import as_data_matrix
from nonneg.initializers import spherical_kmeans as module
from nonneg.initializers.spherical_kmeans import _assign, spherical_kmeans, spherical_kmeans_init


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


def test_one_pass_from_given_centers_moves_them_to_the_means_of_their_rows(planted):
    X, _ = planted
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    first = unit[[0, 50, 100]].T
    own = np.argmax(unit @ first, axis=1)
    expected = np.stack([unit[own == a].sum(axis=0) for a in range(3)], axis=1)
    expected /= np.linalg.norm(expected, axis=0)
    found = spherical_kmeans(as_data_matrix(X), 3, rng=0, max_passes=1, first=first)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_more_clusters_than_different_rows_still_gives_centers():
    X = np.repeat(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), 5, axis=0)
    centers = spherical_kmeans(as_data_matrix(X), 6, rng=0)
    np.testing.assert_allclose(np.linalg.norm(centers, axis=0), 1.0)
    assert mean_cosine(X, centers) == pytest.approx(1.0)


def test_a_pass_counts_weights_like_repetitions(rng):
    X, weights = rng.random((30, 6)), rng.integers(1, 4, size=30)
    centers = rng.random((6, 3))
    weighted = _assign(as_data_matrix(X, weights=weights.astype(float)), _norms(X), centers=centers)
    many = np.repeat(X, weights, axis=0)
    repeated = _assign(as_data_matrix(many), _norms(many), centers=centers)
    for first, second in zip(weighted[1], repeated[1], strict=True):
        np.testing.assert_allclose(first, second)


def _norms(X):
    return 1.0 / np.linalg.norm(X, axis=1, keepdims=True)


def test_it_stops_when_a_pass_gains_little(planted, monkeypatch):
    passes = []

    def counted(block, *args, **kwargs):
        passes.append(1)
        return _assign(block, *args, **kwargs)

    monkeypatch.setattr(module, "_assign", counted)
    data = as_data_matrix(planted[0])

    def n_passes(**options):
        passes.clear()
        spherical_kmeans(data, 4, rng=1, **options)
        return len(passes)

    # Two passes make centers of the first projections; then a gain below `tol` ends it.
    assert n_passes(tol=2.0) == 3
    assert n_passes(tol=-1.0, max_passes=9) == 9
    assert 3 <= n_passes() < 20
