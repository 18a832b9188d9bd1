"""Masks sum to one in any transform; components are grouped by when and how they sound."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ortho_group

from nonneg.applications.audio.grouping import group_components
from nonneg.applications.audio.masks import checked_groups, masked_frames, wiener_masks
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
    assert group_components(W, H, 2).tolist() == [0, 1, 0, 1]
    assert group_components(W, H, 2, by="templates").tolist() == [0, 1, 1, 0]
    assert group_components(W, H, 4).tolist() == [0, 1, 2, 3]
    assert group_components(W, H, 1).tolist() == [0, 0, 0, 0]
    assert len(set(group_components(W, H, 3, by="both").tolist())) == 3


def test_ties_still_give_the_number_of_groups():
    assert len(set(group_components(np.eye(6), np.ones((6, 2)), 3).tolist())) == 3


def test_what_is_refused():
    with pytest.raises(ShapeError, match="got \\(3, 2\\) and \\(3, 4\\)"):
        wiener_masks(np.ones((3, 2)), np.ones((3, 4)))
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


def test_features_tell_drums_from_strings_and_low_from_high():
    rng = np.random.default_rng(0)
    frames = np.arange(200)
    steady = 1 + 0.2 * np.sin(2 * np.pi * frames[:, None] / 40 + rng.uniform(0, 6, 3))
    struck = np.where(frames[:, None] % 20 == rng.integers(20, size=3), 1.0, 0.01)
    H = rng.random((6, 65)) + 0.1  # the same register
    assert group_components(np.hstack([steady, struck]), H, 2).tolist() == [0, 0, 0, 1, 1, 1]
    low, high = np.exp(-np.arange(65) / 3), np.exp(-np.arange(65)[::-1] / 8)
    H = np.stack([low, high, low, high, low, high])
    assert group_components(np.hstack([steady, steady]), H, 2).tolist() == [0, 1, 0, 1, 0, 1]
    # Loudness of the whole does not matter, and neither does the unit of frequency.
    other = group_components(1e6 * np.hstack([steady, steady]), H, 2, frequencies=7.0 * np.arange(65))
    assert other.tolist() == [0, 1, 0, 1, 0, 1]


def test_many_components_are_grouped_by_moves():
    rng = np.random.default_rng(1)
    centers = np.repeat([4, 16, 60], 6)
    H = np.exp(-np.square((np.arange(65) - centers[:, None]) / 2.0))
    labels = group_components(1 + 0.1 * rng.random((50, 18)), H, 3)
    assert labels.tolist() == np.repeat([0, 1, 2], 6).tolist()
    assert set(group_components(rng.random((50, 18)), rng.random((18, 65)), 7).tolist()) == set(range(7))
