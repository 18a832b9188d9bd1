"""The two music notes, against their formula written out sample by sample."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.signal.windows import tukey

from nonneg.datasets import music_notes
from nonneg.exceptions import InvalidParameterError


def bump(t, k):
    x = (t - 2500.5 - 5000 * k) / 2500.5
    return math.exp(1 - 1 / (1 - x * x)) if abs(x) < 1 else 0.0


def sample(t, phases):
    envelopes = bump(t, 0) + bump(t, 2), bump(t, 1) + bump(t, 2)
    return sum(
        0.5 ** (r + 1) * math.cos(r * (2 * math.pi * f * t / 5000 + theta)) * g
        for f, theta, g in zip((440, 466.16), phases, envelopes, strict=True)
        for r in (1, 2)
    )


@pytest.fixture(scope="module")
def data():
    return music_notes(3, rng=0)


def test_signals_follow_the_formula(data):
    times = [1, 2, 5000, 5001, 15000, *np.random.default_rng(1).integers(1, 15001, size=200).tolist()]
    for s in range(3):
        expected = [sample(t, data.phases[s]) for t in times]
        np.testing.assert_allclose(data.signals[s, np.array(times) - 1], expected, atol=1e-12)


def test_frames_are_windowed_pieces_of_the_padded_signal(data):
    window = tukey(200, 0.1, sym=False)
    assert window.sum() == pytest.approx(190)
    assert data.Y.shape == (3, 151, 200)
    padded = np.concatenate([np.zeros(100), data.signals[2], np.zeros(100)])
    for n in (0, 1, 77, 150):
        np.testing.assert_allclose(data.Y[2, n], padded[100 * n : 100 * n + 200] * window / 190, atol=1e-15)


def test_notes_sound_alone_and_together(data):
    np.testing.assert_allclose(data.notes.sum(axis=1), data.signals, atol=1e-15)
    energy = (data.notes.reshape(3, 2, 3, 5000) ** 2).sum(axis=(0, 3))
    assert (energy > 0).tolist() == [[True, False, True], [False, True, True]]
    assert data.phases.min() >= 0
    assert data.phases.max() < 2 * np.pi
    assert len(np.unique(data.phases)) == 6


def test_seeds_and_bad_numbers(data):
    np.testing.assert_array_equal(music_notes(3, rng=0).Y, data.Y)
    with pytest.raises(InvalidParameterError, match="n_realizations must be an integer of at least 1, got 0"):
        music_notes(0)
