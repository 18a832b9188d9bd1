"""Outliers, clusters, silhouettes and medians of components."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import silhouette_samples

from nonneg.consensus.certificate import consensus_certificate
from nonneg.consensus.clustering import (
    CLUSTERINGS,
    cluster,
    distances_of,
    local_density,
    silhouettes_of,
    unit_spectra,
)
from nonneg.consensus.result import RankConsensus, RestartTable

K, RESTARTS = 3, 12


@pytest.fixture
def spectra():
    """Three components in a random order per restart, and one component that no other restart has."""
    rng = np.random.default_rng(0)
    true = rng.gamma(0.3, size=(K, 30))
    parts = [true[rng.permutation(K)] * rng.gamma(5.0, size=(K, 1)) for _ in range(RESTARTS)]
    stacked = np.vstack(parts) + 0.01 * rng.random((K * RESTARTS, 30))
    stacked[4] = rng.random(30)
    return unit_spectra(stacked), true


def test_distances_and_density_are_those_of_their_definition(spectra):
    unit, _ = spectra
    distances = distances_of(unit)
    np.testing.assert_allclose(distances, np.linalg.norm(unit[:, None] - unit, axis=2), atol=1e-7)
    n_neighbors = int(0.3 * RESTARTS)
    expected = np.sort(distances, axis=1)[:, 1 : n_neighbors + 1].mean(axis=1)
    np.testing.assert_allclose(local_density(distances, K, 0.3), expected, rtol=1e-12)


@pytest.mark.parametrize("method", CLUSTERINGS)
def test_clusters_are_the_planted_ones_and_the_outlier_is_left_out(spectra, method):
    unit, true = spectra
    distances = distances_of(unit)
    kept = np.flatnonzero(local_density(distances, K, 0.3) < 0.5)
    assert 4 not in kept
    assert len(kept) == K * RESTARTS - 1
    found = cluster(unit, distances, K, kept, method)
    assert found.labels[4] == -1
    cosines = unit_spectra(found.spectra) @ unit_spectra(true).T
    assert sorted(np.argmax(cosines, axis=1)) == [0, 1, 2]
    assert np.max(cosines, axis=1).min() > 0.999
    np.testing.assert_allclose(found.spectra.sum(axis=1), 1.0)
    # The outlier has its silhouette in the nearest cluster.
    assert found.silhouettes[4] == np.nanmin(found.silhouettes)


def test_a_matched_cluster_has_one_component_per_restart():
    # Two components that are nearly the same: k-means may put both of a restart into one cluster.
    rng = np.random.default_rng(1)
    true = rng.random((2, 20))
    true[1] = true[0] + 0.1 * rng.random(20)
    unit = unit_spectra(np.vstack([true + 0.05 * rng.random((2, 20)) for _ in range(20)]))
    found = cluster(unit, distances_of(unit), 2, np.arange(40), "matched")
    assert all(len({found.labels[2 * at], found.labels[2 * at + 1]}) == 2 for at in range(20))


def test_silhouettes_are_those_of_scikit_learn(spectra):
    distances = distances_of(spectra[0])
    labels = np.random.default_rng(2).integers(0, K, len(distances))
    expected = silhouette_samples(distances, labels, metric="precomputed")
    np.testing.assert_allclose(silhouettes_of(distances, labels, K), expected, atol=1e-12)


def test_components_of_zeros_are_in_no_cluster(spectra):
    unit = spectra[0].copy()
    unit[7] = 0.0
    distances = distances_of(unit)
    assert local_density(distances, K, 0.3)[7] == np.inf
    found = cluster(unit, distances, K, np.arange(len(unit)), "kmeans")
    assert found.labels[7] == -1
    assert np.isnan(found.silhouettes[7])
    assert np.isfinite(np.delete(found.silhouettes, 7)).all()


@pytest.mark.parametrize(("recurrence", "stable"), [(1.0, True), (0.6, True), (0.5, False)])
def test_a_component_of_half_of_the_restarts_is_not_stable_however_tight_its_cluster(recurrence, stable):
    # Two local minima with half of the restarts each: silhouettes are near one, and nothing is agreed on.
    found = RankConsensus(
        2, np.ones((2, 3)), np.array([0.9, 1.0]), np.array([1.0, recurrence]), np.ones(2), 0.95, 1.0, 1.0,
        np.zeros(4, int), np.zeros(4), np.zeros((4, 4)), np.zeros(4, int), 10, 0, 0.5,
    )  # fmt: skip
    table = RestartTable(*(np.full(10, value) for value in (2, 0, 0, 0.5, 9, True)))
    certificate = consensus_certificate(found, table)
    assert certificate["stability-0"].holds
    assert certificate["stability-1"].holds == stable
    assert ("but only 50% of 10 restarts" in certificate["stability-1"].sentence) != stable
