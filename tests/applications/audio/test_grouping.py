"""Components are grouped by when and how they sound."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.audio.grouping import group_components


def notes_and_strokes():
    """Four notes of partials, one after the other, and two strokes of noise in turn."""
    frames, bins = np.arange(240), np.arange(257)
    notes = [np.where((frames >= at) & (frames < at + 50), 1.0, 0.0) for at in (0, 60, 120, 180)]
    strokes = [np.where(frames % 24 == at, 3.0, 0.0) for at in (0, 8)]
    partials = [np.where(bins % pitch == 0, np.exp(-bins / 20), 1e-4) for pitch in (11, 13, 15, 17)]
    noises = [np.exp(-np.square((bins - center) / 60.0)) for center in (150, 180)]
    return np.stack([*notes, *strokes], axis=1) + 1e-4, np.stack([*partials, *noises])


@pytest.mark.parametrize("by", ["timbre", "timbre-dynamics", "harmonic-percussive"])
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


def test_silent_and_equal_components_are_grouped_too():
    W, H, bins = np.zeros((5, 4)), np.zeros((4, 9)), np.linspace(0, 11025, 9)
    for by in ("timbre", "timbre-dynamics"):
        assert sorted(set(group_components(W, H, 3, by=by, frequencies=bins).tolist())) == [0, 1, 2]
        assert sorted(set(group_components(W + 1, H + 1, 2, by=by, frequencies=bins).tolist())) == [0, 1]
        assert group_components(W, H, 4, by=by, frequencies=bins).tolist() == [0, 1, 2, 3]
