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
