"""Groups of components: energies, partitions and trees against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.audio import grouping
from nonneg.applications.audio.grouping import LEAST_SHARE, energy_shares, group_components, partition


def test_energies_are_shares_of_the_power_of_the_model(rng):
    W, H = rng.random((6, 3)), rng.random((3, 5))
    model = W @ H
    expected = [np.sum(np.outer(W[:, k], H[k]) * model) / np.sum(model**2) for k in range(3)]
    np.testing.assert_allclose(energy_shares(W, H), expected)
    W[:, 1] = 0.0
    assert energy_shares(W, H)[1] == pytest.approx(1e-12)
    np.testing.assert_allclose(energy_shares(np.zeros((6, 3)), H), 1 / 3)


@pytest.mark.parametrize("by", ["activations", "templates", "both"])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_trees_are_cut_where_scipy_cuts_them(by, n_groups, rng):
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    W, H = rng.random((30, 5)), rng.random((5, 12))
    similar = {"activations": np.corrcoef(W.T), "templates": np.corrcoef(H)}
    similar["both"] = (similar["activations"] + similar["templates"]) / 2
    tree = linkage(squareform(1 - similar[by], checks=False), method="average")
    expected = fcluster(tree, n_groups, "maxclust")
    found = group_components(W, H, n_groups, by=by)
    assert ((found[:, None] == found) == (expected[:, None] == expected)).all()
    # Numbered in the order in which they appear.
    firsts = [int(np.flatnonzero(found == at)[0]) for at in range(n_groups)]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize("n_groups", [0, 4])
def test_numbers_of_groups_at_their_ends(n_groups, rng):
    W, H = rng.random((6, 3)), rng.random((3, 5))
    assert group_components(W, H, 1, by="both").tolist() == [0, 0, 0]
    assert group_components(W, H, 3, by="both").tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=f"from 1 to the number of components 3, got {n_groups}"):
        group_components(W, H, n_groups)


@pytest.mark.parametrize(("contrasts", "expected"), [((1, 2, 3), [0, 1, 1]), ((-3, -1, -2), [0, 1, 0])])
def test_neither_the_harmonic_nor_the_percussive_group_is_empty(contrasts, expected, monkeypatch):
    values = {10: np.exp(np.array(contrasts, dtype=float)), 4: np.ones(3)}
    monkeypatch.setattr(grouping, "roughness", lambda factor: values[len(factor)])
    found = group_components(np.ones((10, 3)), np.ones((3, 4)), 2, by="harmonic-percussive")
    assert found.tolist() == expected


def test_what_is_as_rough_in_time_as_over_frequency_is_harmonic(monkeypatch):
    values = {10: np.array([1.0, 2.0]), 4: np.ones(2)}
    monkeypatch.setattr(grouping, "roughness", lambda factor: np.r_[values[len(factor)], values[len(factor)]])
    found = group_components(np.ones((10, 4)), np.ones((4, 4)), 2, by="harmonic-percussive")
    assert found.tolist() == [0, 1, 0, 1]


def test_groups_of_components_are_balanced():
    # Nothing is gained by groups, but each has its share.
    affinity = 1.0 - np.eye(8)
    shares = np.array([0.5, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05])
    for n_groups in (2, 3):
        labels = partition(affinity, n_groups, shares)
        assert np.bincount(labels, shares, n_groups).min() >= LEAST_SHARE / (n_groups - 1)
    # As many groups as half of the components need not be: the best one is all but one alone.
    labels = partition(affinity, 4, shares)
    assert sorted(np.bincount(labels).tolist()) == [1, 1, 1, 5]


def test_the_diagonal_of_affinities_does_not_matter(rng):
    affinity = rng.standard_normal((7, 7))
    affinity += affinity.T
    other = affinity + np.diag(100 * rng.random(7))
    one, two = partition(affinity, 2), partition(other, 2)
    assert ((one[:, None] == one) == (two[:, None] == two)).all()


@pytest.mark.parametrize("frequencies", [None, np.arange(12.0)])
def test_bins_are_equally_spaced_from_zero_by_default(frequencies, rng, monkeypatch):
    seen = []
    monkeypatch.setattr(grouping, "affinities", lambda W, H, bins: (seen.append(bins), np.ones((5, 5)))[1])
    group_components(rng.random((8, 5)), rng.random((5, 12)), 2, frequencies=frequencies)
    np.testing.assert_array_equal(seen[0], np.arange(12))


def test_what_a_group_needs_for_its_share_stays_in_it():
    # Component 0 gains by a move to group 1, which would leave group 0 with too little.
    affinity = np.zeros((4, 4))
    affinity[0, 2] = affinity[2, 0] = 1.0
    shares = np.array([0.3, 0.1, 0.3, 0.3])
    for least, expected in ((0.0, [1, 0, 1, 1]), (0.2, [0, 0, 0, 1])):
        labels = np.array([0, 0, 1, 1])
        value = grouping._improve(labels, affinity, 2, shares, least)
        assert labels.tolist() == expected
        assert value == 2.0
    # The last one of a group stays.
    labels = np.array([0, 1, 1, 1])
    assert grouping._improve(labels, affinity, 2, shares, 0.0) in (0.0, 2.0)
    assert set(labels.tolist()) == {0, 1}


@pytest.mark.parametrize(("activations", "components"), [((3,), (3, 4)), ((3, 2), (2,)), ((3, 2, 1), (2, 4))])
def test_factors_are_matrices(activations, components):
    with pytest.raises(ValueError, match="Expected activations of shape"):
        group_components(np.ones(activations), np.ones(components), 1)
