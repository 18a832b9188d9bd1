"""Components are grouped by when and how they sound."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.audio.grouping import group_components


def notes_and_strokes():
    """Four notes of partials, one after the other, and two strokes of noise in turn."""
    frames, bins = np.arange(240), np.arange(257)
    notes = [np.where((frames >= at) & (frames < at + 50), 1.0, 0.0) for at in (0, 60, 120, 180)]
    strokes = [np.where(frames % 24 == at, 1.0, 0.0) for at in (0, 8)]
    partials = [np.where(bins % pitch == 0, np.exp(-bins / 20), 1e-4) for pitch in (11, 13, 15, 17)]
    noises = [np.exp(-np.square((bins - center) / 60.0)) for center in (150, 180)]
    return np.stack([*notes, *strokes], axis=1) + 1e-4, np.stack([*partials, *noises])


@pytest.mark.parametrize("by", ["timbre", "timbre-dynamics"])
def test_notes_are_told_from_strokes(by):
    W, H = notes_and_strokes()
    frequencies = np.linspace(0, 11025, 257)
    groups, within = group_components(W, H, 2, by=by, frequencies=frequencies)
    assert groups.tolist() == [0, 0, 0, 0, 1, 1]
    # One group would leave all of the differences, and groups of equal components none.
    assert 0 < within < 1
    # Neither loudness nor unit nor order of the components matters.
    scales, order = np.array([3.0, 0.5, 1.0, 2.0, 1.0, 4.0]), [4, 0, 1, 5, 2, 3]
    mixed, _ = group_components(W[:, order], H[order], 2, by=by, frequencies=frequencies)
    assert mixed.tolist() == [0, 1, 1, 0, 1, 1]
    louder = group_components(W * scales * 1e6, H / scales[:, None], 2, by=by, frequencies=frequencies)
    assert louder[0].tolist() == [0, 0, 0, 0, 1, 1]
    assert louder[1] == pytest.approx(within)


def test_silent_and_equal_components_are_grouped_too():
    W, H, bins = np.zeros((5, 4)), np.zeros((4, 9)), np.linspace(0, 11025, 9)
    for by in ("timbre", "timbre-dynamics"):
        assert sorted(set(group_components(W, H, 3, by=by, frequencies=bins)[0].tolist())) == [0, 1, 2]
        equal, within = group_components(W + 1, H + 1, 2, by=by, frequencies=bins)
        assert (sorted(set(equal.tolist())), within) == ([0, 1], 0.0)
        assert group_components(W, H, 4, by=by, frequencies=bins)[0].tolist() == [0, 1, 2, 3]


def test_notes_of_one_instrument_are_told_from_another_by_transposition():
    frequencies, frames = np.linspace(0, 5512.5, 2049), np.arange(300)

    def tone(pitch, partials):
        return sum(
            amplitude * np.exp(-np.square((frequencies - pitch * number) / 6))
            for number, amplitude in partials.items()
        )

    # Both play the same pitches at the same times: nothing but the partials tells them apart.
    dull, bright = {1: 1.0, 2: 0.3}, {1: 0.5, 3: 1.0, 5: 1.0}
    pitches = (220.0, 246.94, 293.66)
    H = np.stack([tone(pitch, partials) for partials in (dull, bright) for pitch in pitches])
    W = np.stack([1.0 * (frames // 20 % 3 == at) for at in (0, 1, 2, 0, 1, 2)], axis=1)
    groups, _ = group_components(W, H, 2, by="timbre-dynamics", frequencies=frequencies)
    assert groups.tolist() == [0, 0, 0, 1, 1, 1]
