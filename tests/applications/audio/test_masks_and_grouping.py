"""Masks sum to one in any transform; components are grouped by when and how they sound."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import ortho_group

from nonneg.applications.audio.grouping import group_components, partition
from nonneg.applications.audio.masks import checked_groups, masked_frames, wiener_masks
from nonneg.applications.audio.sources import _n_trained
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError


def test_masks_are_shares_of_the_variance(rng):
    W, H = rng.random((6, 3)), rng.random((3, 5))
    masks = wiener_masks(W, H, [0, 1, 0])
    np.testing.assert_allclose(masks[1], np.outer(W[:, 1], H[1]) / (W @ H))
    np.testing.assert_allclose(masks.sum(axis=0), 1.0, atol=1e-15)
    raised = wiener_masks(W, H, floor=0.3)
    np.testing.assert_allclose(raised[2], (np.outer(W[:, 2], H[2]) + 0.1) / (W @ H + 0.3))


def test_nothing_known_is_shared_equally():
    masks = wiener_masks(np.zeros((2, 4)), np.ones((4, 3)), [0, 0, 1, 1])
    np.testing.assert_array_equal(masks, 0.5)


def test_sources_sum_to_the_mixture_in_any_transform(rng):
    frames = rng.standard_normal((2, 6, 5))
    atoms = ortho_group.rvs(5, random_state=0)
    parts = masked_frames(frames, atoms, wiener_masks(rng.random((6, 3)), rng.random((3, 5))))
    assert parts.shape == (3, 2, 6, 5)
    np.testing.assert_allclose(parts.sum(axis=0), frames, atol=1e-13)
    # A source whose mask is one everywhere is the mixture, one whose mask is zero is silent.
    whole, none = masked_frames(frames, atoms, np.stack([np.ones((6, 5)), np.zeros((6, 5))]))
    np.testing.assert_allclose(whole, frames, atol=1e-13)
    assert not none.any()


def test_components_that_sound_together_are_one_source(rng):
    gates = rng.random((2, 200)) ** 4
    W = np.stack([gates[at] * scale for at, scale in ((0, 1.0), (1, 5.0), (0, 0.2), (1, 1.0))], axis=1)
    W = W + 0.01 * rng.random(W.shape)
    H = np.array([[1, 0, 0, 0], [0, 0.9, 0.1, 0], [0, 1, 0, 0], [0.9, 0, 0, 0.1]])
    assert group_components(W, H, 2, by="activations").tolist() == [0, 1, 0, 1]
    assert group_components(W, H, 2, by="templates").tolist() == [0, 1, 1, 0]
    assert group_components(W, H, 4).tolist() == [0, 1, 2, 3]
    assert group_components(W, H, 1).tolist() == [0, 0, 0, 0]
    assert len(set(group_components(W, H, 3, by="both").tolist())) == 3


def test_ties_still_give_the_number_of_groups():
    assert len(set(group_components(np.eye(6), np.ones((6, 2)), 3).tolist())) == 3


def test_what_is_refused():
    with pytest.raises(ShapeError, match="got \\(3, 2\\) and \\(3, 4\\)"):
        wiener_masks(np.ones((3, 2)), np.ones((3, 4)))
    for shapes in (((3,), (3, 4)), ((3, 2), (2,)), ((3, 2, 1), (2, 4))):
        with pytest.raises(ShapeError, match="Expected activations of shape"):
            wiener_masks(*map(np.ones, shapes))
    with pytest.raises(ShapeError, match="got \\(3, 2\\) and \\(3, 4\\)"):
        group_components(np.ones((3, 2)), np.ones((3, 4)), 1)
    with pytest.raises(InvalidParameterError, match=r"without gaps; the groups name \[0, 2\]"):
        checked_groups([0, 2], 2)
    with pytest.raises(ShapeError, match="source of each of 3 components"):
        checked_groups([0, 1], 3)
    with pytest.raises(UnknownNameError, match="Did you mean 'templates'"):
        group_components(np.ones((3, 2)), np.ones((2, 4)), 1, by="template")
    with pytest.raises(InvalidParameterError, match="from 1 to the number of components 2, got 3"):
        group_components(np.ones((3, 2)), np.ones((2, 4)), 3)


def notes_and_strokes():
    """Four decaying notes of partials, one after the other, and two strokes of noise in turn."""
    frames, bins = np.arange(240), np.arange(257)
    decays = [np.where(frames >= at, np.exp(-(frames - at) / 12), 0.0) for at in (0, 60, 120, 180)]
    strokes = [
        np.where(frames % 24 == at, 1.0, 0.0) + np.where(frames % 24 == at + 1, 0.2, 0.0) for at in (0, 8, 16)
    ]
    partials = [np.where(bins % pitch == 0, 1.0 / (1 + bins / 40), 1e-3) for pitch in (11, 13, 15, 17)]
    noises = [np.exp(-np.square((bins - center) / 80.0)) for center in (60, 120, 180)]
    return np.stack([*decays, *strokes[:2]], axis=1) + 1e-4, np.stack([*partials, *noises[:2]])


def test_features_do_not_depend_on_loudness_unit_or_order():
    W, H = notes_and_strokes()
    labels = group_components(W, H, 2)
    assert set(labels.tolist()) == {0, 1}
    other = group_components(1e6 * W, H, 2, frequencies=7.0 * np.arange(257))
    assert other.tolist() == labels.tolist()
    backwards = group_components(W[:, ::-1], H[::-1], 2)[::-1]
    assert ((backwards[:, None] == backwards) == (labels[:, None] == labels)).all()


def test_strokes_are_told_from_notes():
    W, H = notes_and_strokes()
    assert group_components(W, H, 2, by="harmonic-percussive").tolist() == [0, 0, 0, 0, 1, 1]
    with pytest.raises(
        InvalidParameterError, match="by='harmonic-percussive' finds two groups, got n_groups=3"
    ):
        group_components(W, H, 3, by="harmonic-percussive")
    # Percussive parts only: one of them is the least so.
    assert group_components(W[:, 4:], H[4:], 2, by="harmonic-percussive").tolist().count(0) == 1


def test_partitions_are_the_best_ones():
    rng = np.random.default_rng(1)
    affinity = rng.standard_normal((9, 9))
    affinity += affinity.T
    np.fill_diagonal(affinity, 0.0)
    found = partition(affinity, 2)
    values = {
        labels: sum(
            affinity[np.ix_(group, group)].sum() for group in (np.array(labels) == 0, np.array(labels) == 1)
        )
        for labels in product((0, 1), repeat=9)
        if 0 < sum(labels) < 9
    }
    within = sum(affinity[np.ix_(found == at, found == at)].sum() for at in (0, 1))
    np.testing.assert_allclose(within, max(values.values()), rtol=1e-12)
    wide = rng.standard_normal((18, 18))
    assert set(partition(wide + wide.T, 7).tolist()) == set(range(7))
    # All alike: still as many groups as asked for.
    assert set(partition(np.ones((5, 5)), 3).tolist()) == {0, 1, 2}


def test_as_many_sources_as_training_recordings_are_enough():
    assert [_n_trained(n, "timbre", ["drums", "bass"]) for n in (None, 2, 3)] == [2, 2, 3]
    with pytest.raises(InvalidParameterError, match="recordings of 2 sources"):
        _n_trained(1, "timbre", ["drums", "bass"])
