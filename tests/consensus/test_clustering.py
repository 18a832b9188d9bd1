"""Outliers, clusters, silhouettes and medians of components."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import average, cophenet
from scipy.spatial.distance import squareform
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
from nonneg.consensus.combine import consensus_matrix, cophenetic_correlation
from nonneg.consensus.result import RankConsensus, RestartTable
from nonneg.exceptions import InvalidDataError

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
    np.testing.assert_allclose(local_density(distances, K), expected, rtol=1e-12)


@pytest.mark.parametrize("method", CLUSTERINGS)
def test_clusters_are_the_planted_ones_and_the_outlier_is_left_out(spectra, method):
    unit, true = spectra
    distances = distances_of(unit)
    kept = np.flatnonzero(local_density(distances, K) < 0.5)
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
    assert local_density(distances, K)[7] == np.inf
    found = cluster(unit, distances, K, np.arange(len(unit)), "kmeans")
    assert found.labels[7] == -1
    assert np.isnan(found.silhouettes[7])
    assert np.isfinite(np.delete(found.silhouettes, 7)).all()


@pytest.mark.parametrize("method", CLUSTERINGS)
@pytest.mark.parametrize("restart", [[0, 0, 1], [0, None, None], [0, 1, None]])
def test_no_cluster_is_empty_where_components_are_equal(method, restart):
    unit = np.array([np.zeros(5) if at is None else np.eye(5)[at] for at in restart * 4])
    found = cluster(unit, distances_of(unit), 3, np.arange(len(unit)), method)
    assert set(found.labels[unit.any(axis=1)]) == {0, 1, 2}
    np.testing.assert_allclose(found.spectra.sum(axis=1), 1.0)
    assert np.isfinite(found.silhouettes[unit.any(axis=1)]).all()


@pytest.mark.parametrize("method", CLUSTERINGS)
def test_fewer_components_than_clusters_are_an_error(method):
    unit = np.zeros((6, 4))
    unit[:2] = np.eye(4)[:2]
    with pytest.raises(InvalidDataError, match="Only 2 of the 6 components of all restarts are not zero"):
        cluster(unit, distances_of(unit), 3, np.arange(6), method)


def certified(stability=(0.9, 0.8), recurrence=(1.0, 0.6), error=1.02, best=0.5, resampled=False, n_done=10):
    found = RankConsensus(
        len(stability), np.ones((2, 3)), np.array(stability), np.array(recurrence), np.ones(2), 0.95,
        0.01, error, 1.0, np.zeros(4, int), np.zeros(4), np.zeros((4, 4)), np.zeros(4, int), 10, 0, best,
    )  # fmt: skip
    done = np.arange(10) < n_done
    table = RestartTable(*(np.full(10, value) for value in (len(stability), 0, 0, 0.5 * 1.03**2, 9)), done)
    return consensus_certificate(found, table, resampled=resampled)


def test_a_component_is_stable_from_the_threshold_on():
    statement = certified((0.8, 0.79), (0.6, 1.0))["stability"]
    assert statement.sentence == (
        "Stable components: 1 of 2 (silhouette at least 0.8, and found by more than half of 10 restarts). "
        "Not stable: component 1 (silhouette 0.79, in 100% of the restarts)."
    )
    assert (statement.number, statement.threshold, statement.holds) == (1, 2, False)
    assert certified((0.796, 0.9), (0.6, 1.0))["stability"].holds  # which is shown as 0.80
    both = certified((0.8, 0.9), (0.6, 1.0))["stability"]
    assert both.holds
    assert both.sentence.endswith("more than half of 10 restarts).")
    assert certified((0.5, 0.5), (1.0, 1.0))["stability"].sentence == both.sentence.replace(
        "2 of 2", "0 of 2"
    )
    assert certified((0.9, 0.9), (0.5, 1.0))["stability"].quantities["unstable"] == "0"


@pytest.mark.parametrize(
    ("error", "words", "holds"),
    [(1.02, "2.0% above that of the best of 10 restarts; that of the worst is 3.0% above.", True),
     (1.04, "4.0% above that of the best of 10 restarts; that of the worst is 3.0% above, so", False),
     (0.97, "3.0% below", True), (1.0, "about that of", True), (1.0304, "3.0% above", True)],
)  # fmt: skip
def test_the_error_of_a_consensus_is_compared_with_those_of_the_restarts(error, words, holds):
    # A loss of 0.5 is an error of 1; the worst restart is 3% above.
    found = certified(error=error)["consensus-error"]
    assert f"The error of the consensus is {words}" in found.sentence
    assert found.holds == holds
    assert found.number == pytest.approx(error - 1.0)
    assert found.quantities == {"error": error, "best_restart": 1.0, "worst_restart": pytest.approx(1.03)}


@pytest.mark.parametrize("facts", [{"resampled": True}, {"best": 0.0}, {"best": -1e-20}, {"error": np.inf}])
def test_errors_that_cannot_be_compared(facts):
    found = certified(**facts)["consensus-error"]
    assert found.number is None
    assert found.verdict.value == "not verifiable"
    assert ("resampled data" in found.sentence) == ("resampled" in facts)


@pytest.mark.parametrize("n_done", [9, 10])
def test_all_restarts_have_to_converge(n_done):
    found = certified(n_done=n_done)["restarts-converged"]
    assert found.sentence.startswith(f"{n_done} of 10 restarts reached the tolerance")
    assert (found.number, found.holds) == (n_done / 10, n_done == 10)
    assert found.quantities == {"n_restarts": 10}


def test_a_cluster_of_one_may_be_the_nearest_other():
    points = np.array([[0.0], [1.0], [2.0], [10.0], [11.0]])
    distances, labels = np.abs(points - points.T), np.array([0, 0, 1, 2, 2])
    expected = silhouette_samples(distances, labels, metric="precomputed")
    np.testing.assert_allclose(silhouettes_of(distances, labels, 3), expected)


def test_an_error_too_large_for_a_ratio_is_not_compared():
    assert certified(error=1e200, best=1e-320)["consensus-error"].number is None


def test_the_cophenetic_correlation_of_restarts():
    labels = np.array([[0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 1, 1], [0, 0, 1, 1]])
    expected = np.array([[1, 0.75, 0.25, 0], [0.75, 1, 0.5, 0.25], [0.25, 0.5, 1, 0.75], [0, 0.25, 0.75, 1]])
    consensus = consensus_matrix(labels)
    np.testing.assert_allclose(consensus, expected)
    distances = squareform(1 - expected)
    correlation, _ = cophenet(average(distances), distances)
    assert cophenetic_correlation(consensus) == pytest.approx(correlation)
    assert cophenetic_correlation(consensus_matrix(np.array([[0, 0, 1, 1], [2, 2, 5, 5]]))) == 1.0
    assert cophenetic_correlation(np.full((4, 4), 0.5) + 0.5 * np.eye(4)) == 0.0
