"""The constant-Q transform: exact, and a band per half semitone."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.audio import ConstantQ
from nonneg.exceptions import InvalidParameterError, ShapeError


@pytest.mark.parametrize(
    ("rate", "n_samples", "options"), [(8000, 3001, {}), (4000, 999, {"hop": 40}), (11025, 40, {})]
)
def test_signals_come_back(rate, n_samples, options):
    transform = ConstantQ(rate, **options)
    signals = np.random.default_rng(0).standard_normal((2, n_samples))
    coefficients = transform.analyze(signals)
    shape = (2 * transform.n_subframes, transform.n_frames(n_samples), transform.n_bins)
    assert coefficients.shape == shape
    np.testing.assert_allclose(transform.synthesize(coefficients, n_samples), signals, atol=1e-12)
    single = transform.analyze(signals.astype(np.float32))
    assert single.dtype == np.complex64
    assert transform.synthesize(single, n_samples).dtype == np.float32


@pytest.mark.parametrize("frequency", [110.0, 440.0, 1760.0])
def test_a_tone_is_in_the_band_of_its_pitch(frequency):
    transform = ConstantQ(8000)
    tone = np.hanning(8000) * np.sin(2 * np.pi * frequency * np.arange(8000) / 8000)
    power = np.square(np.abs(transform.analyze(tone))).mean(axis=(0, 1))
    # C1 is 45 semitones below A4, so that every A is a center.
    np.testing.assert_allclose(transform.frequencies[np.argmax(power)], frequency, rtol=1e-9)
    far = np.abs(np.log2(np.maximum(transform.frequencies, 1.0) / frequency)) > 0.25
    assert power[far].sum() < 1e-3 * power.sum()


def test_what_is_refused():
    with pytest.raises(InvalidParameterError, match="fmin must lie between 0 and a quarter of the rate 8000"):
        ConstantQ(8000, fmin=2500.0)
    with pytest.raises(InvalidParameterError, match="hop must be a whole number of at least 1, got 0"):
        ConstantQ(8000, hop=0)
    transform = ConstantQ(8000)
    with pytest.raises(ShapeError, match="Expected coefficients of shape"):
        transform.synthesize(np.zeros((3, 4, 5), dtype=complex), 1000)


@pytest.mark.parametrize(("n_samples", "n_frames"), [(1, 4), (200, 4), (201, 5), (300, 5), (1000, 12)])
def test_two_empty_frames_follow_the_signal(n_samples, n_frames):
    transform = ConstantQ(8000, hop=100)
    assert transform.n_frames(n_samples) == n_frames
    assert transform.analyze(np.ones(n_samples)).shape[1] == n_frames


@pytest.mark.parametrize(("rate", "hop"), [(22050, 512), (44100, 1024), (8000, 186), (10, 1)])
def test_the_hop_lasts_as_long_as_that_of_librosa(rate, hop):
    transform = ConstantQ(rate, fmin=min(32.7, rate / 8))
    assert transform.step == transform.frame_length == transform.hop == hop
    assert ConstantQ(22050).frequencies[1] == pytest.approx(32.703, abs=1e-3)  # C1


@pytest.mark.parametrize("bins_per_octave", [1, 12, 24])
def test_bands_are_equal_parts_of_octaves(bins_per_octave):
    transform = ConstantQ(8000, bins_per_octave, fmin=125.0, hop=100)
    inner = transform.frequencies[1:-1]
    np.testing.assert_allclose(inner[0], 125.0)
    np.testing.assert_allclose(inner[1:] / inner[:-1], 2 ** (1 / bins_per_octave))
    # Five octaves up to half the rate, which is a band of its own, as is zero.
    assert transform.n_bins == len(transform.frequencies) == 5 * bins_per_octave + 2
    assert (transform.frequencies[0], transform.frequencies[-1]) == (0.0, 4000.0)
    lows, highs = transform._supports()
    # Bandwidths grow as equivalent rectangular ones, 24.7 Hz + 0.108 f (Glasberg & Moore 1990).
    ratio = 2 ** (2 / bins_per_octave)
    wider = 24.7 * (ratio - 1) / (ratio + 1) / 0.108
    np.testing.assert_allclose(lows[2:], np.maximum(transform.frequencies[1:-1] - wider, 0.0))
    np.testing.assert_allclose(highs[:-2], np.minimum(transform.frequencies[1:-1] + wider, 4000.0))
    # The widest band lasts so many samples of its own in a hop, and one more for rounding.
    assert transform.n_subframes == int(np.ceil((highs - lows).max() * 100 / 8000)) + 1


@pytest.mark.parametrize("shape", [(3, 4), (0, 0, 0), (1, 1, 1)])
def test_coefficients_of_other_shapes_are_refused(shape):
    transform = ConstantQ(8000, hop=100)
    n, frames, bins = transform.n_subframes, transform.n_frames(500), transform.n_bins
    assert transform.synthesize(np.zeros((2 * n, frames, bins), dtype=complex), 500).shape == (2, 500)
    for wrong in (shape, (n + 1, frames, bins), (n, frames + 1, bins), (n, frames, bins - 1)):
        with pytest.raises(
            ShapeError, match=rf"\(n_recordings \* {n}, {frames}, {bins}\) for a signal of 500"
        ):
            transform.synthesize(np.zeros(wrong, dtype=complex), 500)


@pytest.mark.parametrize("fmin", [0.0, 2000.0])
def test_the_lowest_band_lies_inside(fmin):
    ConstantQ(8000, fmin=1999.0)
    with pytest.raises(InvalidParameterError, match="fmin must lie between 0 and a quarter of the rate 8000"):
        ConstantQ(8000, fmin=fmin)
    with pytest.raises(InvalidParameterError, match="bins_per_octave must be a whole number of at least 1"):
        ConstantQ(8000, 0)
