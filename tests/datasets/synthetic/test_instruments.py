"""Synthetic instruments: they sound as their names say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import butter, sosfilt

from nonneg.applications.audio import STFT
from nonneg.applications.audio.grouping import roughness
from nonneg.datasets import instrument_sound
from nonneg.datasets.synthetic.instruments import _chord, _pitches
from nonneg.exceptions import InvalidParameterError, UnknownNameError

NAMES = ("piano", "plucked", "violin", "bass", "drums", "speech")


@pytest.mark.parametrize("name", NAMES)
def test_sounds_are_as_long_and_loud_as_said(name):
    sound = instrument_sound(name, 1.5, rate=8000, rng=0)
    assert sound.shape == (12000,)
    assert np.sqrt(np.mean(np.square(sound))) == pytest.approx(0.1)
    np.testing.assert_array_equal(instrument_sound(name, 1.5, rate=8000, rng=0), sound)
    assert not np.array_equal(instrument_sound(name, 1.5, rate=8000, rng=1), sound)
    assert instrument_sound(name, 0.2, rate=8000, rng=0, dtype=np.float32).dtype == np.float32


def test_the_bass_is_low_and_drums_and_plucks_are_rough():
    spectra = {
        name: np.abs(STFT(512).analyze(instrument_sound(name, 3.0, rate=8000, rng=0))[0]) for name in NAMES
    }
    power = {name: np.square(V).sum(axis=0) for name, V in spectra.items()}
    centroid = {name: (P @ np.arange(257)) * 8000 / 512 / P.sum() for name, P in power.items()}
    assert centroid["bass"] < 200
    assert min(centroid, key=centroid.get) == "bass"
    rough = {name: roughness(V.sum(axis=1)[:, None])[0] for name, V in spectra.items()}
    assert min(rough["drums"], rough["plucked"]) > max(rough["violin"], rough["piano"])


def test_what_is_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'piano'"):
        instrument_sound("pianoo")
    with pytest.raises(InvalidParameterError, match="rate=100"):
        instrument_sound("piano", rate=100)


def test_the_bass_drum_is_on_the_first_and_third_beat():
    rate, tempo = 8000, 120.0
    eighth = round(30 / tempo * rate)
    energy = np.zeros(8)
    for seed in range(4):
        sound = instrument_sound("drums", 8.0, rate=rate, tempo=tempo, rng=seed)
        low = sosfilt(butter(4, 90.0, fs=rate, output="sos"), sound)[
            : len(sound) // (8 * eighth) * 8 * eighth
        ]
        energy += (low**2).reshape(-1, 8, eighth).sum(axis=(0, 2))
    assert set(np.argsort(energy)[-2:]) == {0, 4}


def test_the_notes_of_a_chord_differ():
    rng = np.random.default_rng(0)
    pitches = _pitches(196.0, rng)
    assert len(pitches) == 6
    assert np.all(np.diff(pitches) > 0)
    chords = [_chord(pitches, [1, 3], rng) for _ in range(100)]
    assert {len(chord) for chord in chords} == {1, 3}
    assert all(len(set(chord)) == len(chord) for chord in chords)
    assert set(np.concatenate(chords)) == set(pitches)
