"""The STFT: the conventions it follows, and signals that come back."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

from nonneg.applications.audio import STFT
from nonneg.exceptions import InvalidParameterError, ShapeError


def signals(n_samples: int, dtype=np.float64) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((2, n_samples)).astype(dtype)


@pytest.mark.parametrize(("frame_length", "hop"), [(64, None), (33, 8), (16, 8), (8, 1)])
@pytest.mark.parametrize("n_samples", [40, 129])
def test_the_stft_comes_back(frame_length, hop, n_samples):
    x, stft = signals(n_samples), STFT(frame_length, hop)
    coefficients = stft.analyze(x)
    assert coefficients.shape == (2, stft.n_frames(n_samples), frame_length // 2 + 1)
    np.testing.assert_allclose(stft.synthesize(coefficients, n_samples), x, atol=1e-13)


def test_the_stft_has_the_conventions_of_librosa():
    x, stft = signals(1000)[0], STFT(64)
    # center=True, zeros outside, periodic Hann window, hop of a quarter.
    padded, window = np.pad(x, 32), scipy.signal.get_window("hann", 64)
    expected = np.stack([np.fft.rfft(padded[at : at + 64] * window) for at in range(0, 1001, 16)])
    np.testing.assert_allclose(stft.analyze(x)[0], expected[: stft.n_frames(1000)], atol=1e-12)
    assert stft.n_frames(1000) == 1 + 1000 // 16
    single = stft.analyze(x.astype(np.float32))
    assert single.dtype == np.complex64
    assert stft.synthesize(single, 1000).dtype == np.float32


def test_what_the_stft_refuses():
    with pytest.raises(InvalidParameterError, match="hop=33 is more than half"):
        STFT(64, 33)
    with pytest.raises(ShapeError, match="for a signal of 1000 samples"):
        STFT(64).synthesize(np.zeros((5, 33)), 1000)
    with pytest.raises(ShapeError, match="Expected coefficients of shape"):
        STFT(64).synthesize(np.zeros((63, 32)), 1000)


@pytest.mark.parametrize(("frame_length", "hop"), [(2, 1), (3, 1), (4, 1), (8, 2), (10, 2)])
def test_the_hop_of_the_stft_is_a_quarter_of_a_frame(frame_length, hop):
    stft = STFT(frame_length)
    assert (stft.hop, stft.step, stft.n_bins) == (hop, hop, frame_length // 2 + 1)
    expected = (stft.n_frames(20), stft.n_bins)
    assert stft.synthesize(np.zeros(expected), 20).shape == (20,)


def test_half_a_frame_is_the_largest_hop():
    assert STFT(2, 1).step == 1
    assert STFT(9, 4, "sine").step == 4
    with pytest.raises(InvalidParameterError, match="hop=5 is more than half of frame_length=9"):
        STFT(9, 5)
    with pytest.raises(InvalidParameterError, match="hop must be a whole number"):
        STFT(9, 2.0)
