"""Masks sum to one in any transform; components are grouped by when and how they sound."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.audio import group_components, wiener_masks
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


def test_ties_still_give_the_number_of_groups():
    assert len(set(group_components(np.eye(6), np.ones((6, 2)), 3).tolist())) == 3
    assert group_components(np.eye(4), np.ones((4, 2)), 4).tolist() == [0, 1, 2, 3]
    assert group_components(np.eye(4), np.ones((4, 2)), 1).tolist() == [0, 0, 0, 0]


def test_what_is_refused():
    with pytest.raises(ShapeError, match="got \\(3, 2\\) and \\(3, 4\\)"):
        wiener_masks(np.ones((3, 2)), np.ones((3, 4)))
    for shapes in (((3,), (3, 4)), ((3, 2), (2,)), ((3, 2, 1), (2, 4))):
        with pytest.raises(ShapeError, match="Expected activations of shape"):
            wiener_masks(*map(np.ones, shapes))
    with pytest.raises(ShapeError, match="got \\(3, 2\\) and \\(3, 4\\)"):
        group_components(np.ones((3, 2)), np.ones((3, 4)), 1)
    with pytest.raises(InvalidParameterError, match=r"without gaps; the groups name \[0, 2\]"):
        wiener_masks(np.ones((3, 2)), np.ones((2, 4)), [0, 2])
    with pytest.raises(ShapeError, match="source of each of 2 components"):
        wiener_masks(np.ones((3, 2)), np.ones((2, 4)), [0, 1, 1])
    with pytest.raises(UnknownNameError, match="Did you mean 'timbre'"):
        group_components(np.ones((3, 2)), np.ones((2, 4)), 1, by="timber")
    with pytest.raises(InvalidParameterError, match="finds two groups, got n_groups=1"):
        group_components(np.ones((3, 2)), np.ones((2, 4)), 1, by="harmonic-percussive")
    with pytest.raises(InvalidParameterError, match="from 1 to the number of components 2, got 3"):
        group_components(np.ones((3, 2)), np.ones((2, 4)), 3)


def notes_and_strokes():
    """Four notes of partials, one after the other, and two strokes of noise in turn."""
    frames, bins = np.arange(240), np.arange(257)
    notes = [np.where((frames >= at) & (frames < at + 50), 1.0, 0.0) for at in (0, 60, 120, 180)]
    strokes = [np.where(frames % 24 == at, 3.0, 0.0) for at in (0, 8)]
    partials = [np.where(bins % pitch == 0, np.exp(-bins / 20), 1e-4) for pitch in (11, 13, 15, 17)]
    noises = [np.exp(-np.square((bins - center) / 60.0)) for center in (150, 180)]
    return np.stack([*notes, *strokes], axis=1) + 1e-4, np.stack([*partials, *noises])


@pytest.mark.parametrize("by", ["auto", "timbre", "timbre-dynamics", "harmonic-percussive"])
def test_notes_are_told_from_strokes(by):
    W, H = notes_and_strokes()
    frequencies = np.linspace(0, 11025, 257)
    assert group_components(W, H, 2, by=by, frequencies=frequencies).tolist() == [0, 0, 0, 0, 1, 1]
    # Neither loudness nor unit nor order of the components matters.
    scales, order = np.array([3.0, 0.5, 1.0, 2.0, 1.0, 4.0]), [4, 0, 1, 5, 2, 3]
    mixed = group_components(W[:, order], H[order], 2, by=by, frequencies=frequencies)
    expected = [1, 0, 0, 1, 0, 0] if by == "harmonic-percussive" else [0, 1, 1, 0, 1, 1]
    assert mixed.tolist() == expected
    louder = group_components(W * scales * 1e6, H / scales[:, None], 2, by=by, frequencies=frequencies)
    assert louder.tolist() == [0, 0, 0, 0, 1, 1]


def test_the_grouping_with_the_more_equal_energies_is_taken():
    W, H = notes_and_strokes()
    for scale in (0.1, 1.0, 10.0):
        louder = W * np.array([scale, 1, 1, 1, 1, scale])
        proposals = {by: group_components(louder, H, 2, by=by) for by in ("timbre", "timbre-dynamics")}
        shares = {}
        for by, labels in proposals.items():
            energies = [np.square(louder[:, labels == at] @ H[labels == at]).sum() for at in (0, 1)]
            shares[by] = max(energies) / sum(energies)
        best = min(shares, key=lambda by: round(shares[by], 9))
        assert group_components(louder, H, 2).tolist() == proposals[best].tolist()


def test_silent_and_equal_components_are_grouped_too():
    W, H = np.zeros((5, 4)), np.zeros((4, 9))
    for by in ("auto", "timbre", "timbre-dynamics"):
        assert sorted(set(group_components(W, H, 3, by=by).tolist())) == [0, 1, 2]
        assert sorted(set(group_components(W + 1, H + 1, 2, by=by).tolist())) == [0, 1]
