"""Clusters of components, what they recur in, and resampled data, against plain definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import silhouette_samples

from nonneg.consensus.clustering import (
    _farthest,
    _matched,
    cluster,
    distances_of,
    local_density,
    silhouettes_of,
    unit_spectra,
)
from nonneg.consensus.combine import ConsensusOptions, _draws, _kept, _thinned, combine, table_of
from nonneg.consensus.fit import candidates_of
from nonneg.consensus.genes import check_columns, column_moments, per_million, score_spectra, variable_genes
from nonneg.consensus.resampling import resampled
from nonneg.consensus.restarts import Restart
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError, NonnegWarning
from nonneg.losses.penalties import Penalties


def restart(spectra, number, labels, loss=1.0):
    return Restart(
        len(spectra), number, 10 + number, np.asarray(spectra), np.asarray(labels), loss, 5, number != 1
    )


@pytest.fixture
def planted(rng):
    """Return five restarts of three components, the last of which lacks one."""
    H = np.eye(3, 6) + 0.05
    X = rng.random((20, 3)) @ H
    runs = []
    for number in range(5):
        spectra = H[rng.permutation(3)] * rng.uniform(0.5, 2.0, (3, 1)) + 0.01 * rng.random((3, 6))
        runs.append(restart(spectra, number, rng.integers(0, 3, 20), 1.0 + number))
    spectra = runs[4].spectra.copy()
    missing = int(np.argmax(unit_spectra(spectra) @ unit_spectra(H)[2]))
    spectra[missing] = rng.random(6)[::-1] * np.array([0, 0, 0, 1.0, 1.0, 1.0])
    runs[4] = replace(runs[4], spectra=spectra)
    return X, H, runs


@pytest.mark.parametrize("clustering", ["kmeans", "matched"])
def test_a_consensus_counts_the_restarts_that_have_a_component(clustering, planted):
    X, H, runs = planted
    options = ConsensusOptions(clustering=clustering, density_threshold=0.5, keep_draws=True)
    found = combine(as_data_matrix(X), runs, options, beta=2.0, penalties=Penalties())
    matching = np.argmax(unit_spectra(found.spectra) @ unit_spectra(H).T, axis=1)
    assert sorted(matching) == [0, 1, 2]
    expected = np.where(matching == 2, 4 / 5, 1.0)
    np.testing.assert_allclose(found.recurrence, expected)
    assert found.n_outliers == 1
    assert (found.best_loss, found.n_restarts) == (1.0, 5)
    np.testing.assert_allclose(found.spectra.sum(axis=1), 1.0)
    assert (np.diff(found.usage) <= 0).all()
    assert found.usage.sum() == pytest.approx(1.0)
    assert found.draws.shape == (4, 3, 6)
    np.testing.assert_allclose(found.draws.sum(axis=2), 1.0, rtol=1e-5)
    np.testing.assert_allclose(found.draws.mean(axis=0), found.spectra, atol=0.05)
    assert found.row()["least_stable"] == found.stability.min()


def test_distances_and_density(rng):
    spectra = rng.random((6, 4))
    spectra[2] = 0.0
    unit = unit_spectra(spectra)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), [1, 1, 0, 1, 1, 1])
    distances = distances_of(unit)
    live = [0, 1, 3, 4, 5]
    expected = np.linalg.norm(unit[live][:, None] - unit[live], axis=2)
    np.testing.assert_allclose(distances[np.ix_(live, live)], expected, atol=1e-7)
    assert np.isinf(distances[2, live]).all()
    assert distances[2, 2] == 0.0
    part = distances[np.ix_(live, live)]
    density = local_density(part, 1, 0.45)  # the two nearest of five
    np.testing.assert_allclose(density, np.sort(part, axis=1)[:, 1:3].mean(axis=1))
    np.testing.assert_allclose(local_density(part, 5, 0.1), np.sort(part, axis=1)[:, 1])


def test_silhouettes_are_those_of_scikit_learn(rng):
    points, labels = rng.random((12, 3)), np.repeat([0, 1, 2], [5, 4, 3])
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    np.testing.assert_allclose(
        silhouettes_of(distances, labels, 3), silhouette_samples(distances, labels, metric="precomputed")
    )
    labels[:] = 0
    np.testing.assert_allclose(silhouettes_of(distances, labels, 1), 1.0 - distances.sum(axis=1) / 11)
    alone = np.r_[0, np.ones(11, dtype=int)]
    assert silhouettes_of(distances, alone, 2)[0] == 0.0
    np.testing.assert_array_equal(silhouettes_of(distances, labels, 2), 0.0)  # an empty cluster


def test_every_restart_has_at_most_one_component_in_a_matched_cluster(rng):
    unit = unit_spectra(np.tile(np.eye(3) + 0.1, (4, 1)) + 0.05 * rng.random((12, 3)))
    labels = _matched(unit, np.arange(12), 3)
    for first in range(0, 12, 3):
        assert sorted(labels[first : first + 3]) == [0, 1, 2]
    assert len({tuple(labels[first : first + 3]) for first in range(0, 12, 3)}) == 1
    centers = _farthest(unit, 3)
    np.testing.assert_array_equal(centers[0], unit[0])
    assert np.argmin(unit @ unit[0]) == np.flatnonzero((unit == centers[1]).all(axis=1))[0]
    found = cluster(unit, distances_of(unit), 3, np.arange(11), "matched")
    assert found.labels[11] == -1
    assert found.nearest[11] == found.nearest[2]


def test_outliers_are_kept_where_too_few_are_left():
    density = np.array([0.1, 0.2, 0.3, 0.9])
    options = ConsensusOptions(density_threshold=0.5)
    np.testing.assert_array_equal(_kept(density, 1, options), [0, 1, 2])
    with pytest.warns(NonnegWarning, match=r"leaves 3 of 4 components for 2 clusters.*below 0.90"):
        np.testing.assert_array_equal(_kept(density, 2, options), [0, 1, 2, 3])
    np.testing.assert_array_equal(_kept(density, 2, replace(options, density_threshold=0.95)), np.arange(4))


def test_drawn_components_and_thinned_distances(rng):
    unit = rng.random((6, 4))
    draws = _draws(unit, np.array([1, 0, 0, -1, 0, 1]), 2)
    expected = np.stack([unit[[1, 0]], unit[[4, 5]]])
    np.testing.assert_allclose(draws, expected / expected.sum(axis=2, keepdims=True), rtol=1e-6)
    distances = rng.random((6, 6))
    shown, labels = _thinned(distances, np.array([1, 0, 1, -1, 0, 1]), np.array([3, 2, 1, 0, 1, 2.0]))
    order = [4, 1, 2, 5, 0]
    np.testing.assert_allclose(shown, distances[np.ix_(order, order)], rtol=1e-6)
    np.testing.assert_array_equal(labels, [0, 0, 1, 1, 1])


def test_the_list_of_restarts(planted):
    _, _, runs = planted
    table = table_of({3: runs, 2: [restart(np.ones((2, 6)), 0, np.zeros(20))]})
    assert len(table) == 6
    np.testing.assert_array_equal(table.n_components, [2, 3, 3, 3, 3, 3])
    np.testing.assert_array_equal(table.of(3), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(table.converged, [True, True, False, True, True, True])
    assert candidates_of([4, 2, 4], "x") == [2, 4]
    assert candidates_of(1, "x") == [1]
    for wrong in (0, [], [1.5], True, [0, 2]):
        with pytest.raises(InvalidParameterError, match="at least 1"):
            candidates_of(wrong, "x")


@pytest.mark.parametrize("sparse", [False, True])
def test_moments_and_scores_of_genes(sparse, rng):
    counts = rng.poisson(1.0, (15, 6)).astype(float)
    counts[4], counts[:, 2] = 0.0, 0.0
    given = sp.csr_array(counts) if sparse else counts
    sums = counts.sum(axis=1, keepdims=True)
    tpm = counts / np.where(sums > 0, sums, 1.0) * 1e6
    found = per_million(given)
    np.testing.assert_allclose(found.toarray() if sparse else found, tpm)
    mean, variance = column_moments(found)
    np.testing.assert_allclose(mean, tpm.mean(axis=0))
    np.testing.assert_allclose(variance, tpm.var(axis=0))
    W = rng.random((15, 2))
    z = (tpm - mean) / np.sqrt(np.maximum(variance, 1e-12))
    np.testing.assert_allclose(score_spectra(given, W), np.linalg.lstsq(W, z, rcond=None)[0], atol=1e-8)
    assert 2 not in variable_genes(given, 6)
    assert len(variable_genes(given, 3)) == 3
    with pytest.raises(InvalidDataError, match=r"1 of 6 features are zero in all samples \(2\)"):
        check_columns(as_data_matrix(given), None, "x")
    with pytest.raises(InvalidDataError, match=r"zero in all samples \(g2\)"):
        check_columns(as_data_matrix(given), [f"g{at}" for at in range(6)], "x")
    with pytest.raises(InvalidDataError, match="at least two samples"):
        check_columns(as_data_matrix(np.ones((1, 3))), None, "x")
    check_columns(as_data_matrix(np.ones((2, 3))), None, "x")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_resampled_data(sparse, weighted, rng):
    X = rng.poisson(3.0, (10, 4)).astype(float)
    weights = rng.random(10) if weighted else None
    scale = np.array([1.0, 2.0, 4.0, 0.5])
    wrap = lambda table: as_data_matrix(sp.csr_array(table) if sparse else table, weights=weights)  # noqa: E731
    counts, scaled = wrap(X), wrap(X / scale)
    assert resampled(counts, scaled, scale, None, rng) is scaled
    found = resampled(counts, scaled, scale, "bootstrap", np.random.default_rng(0))
    np.testing.assert_allclose(found.dense_rows(0, 10), X / scale)
    share = np.ones(10) if weights is None else weights
    drawn = np.random.default_rng(0).multinomial(10, share / share.sum())
    np.testing.assert_allclose(found.weights, drawn * share.sum() / 10)
    found = resampled(counts, scaled, scale, "poisson", np.random.default_rng(0)).dense_rows(0, 10)
    assert not np.allclose(found, X / scale)
    whole = found * scale
    np.testing.assert_allclose(whole, np.rint(whole), atol=1e-9)
    assert abs(whole.sum() - X.sum()) < 5 * np.sqrt(X.sum())
