"""STFT and lapped frames: the conventions they follow, and signals that come back."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

from nonneg.applications.audio import STFT, LappedFraming
from nonneg.exceptions import InvalidParameterError, ShapeError
from nonneg.transforms.initialization import dct_iv_matrix
from nonneg.transforms.rotations.group import random_orthogonal


def signals(n_samples: int, dtype=np.float64) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((2, n_samples)).astype(dtype)


@pytest.mark.parametrize("frame_length", [2, 8, 64])
@pytest.mark.parametrize("n_samples", [1, 63, 200])
def test_lapped_frames_are_orthogonal_and_come_back(frame_length, n_samples):
    x, framing = signals(n_samples), LappedFraming(frame_length)
    frames = framing.split(x)
    assert frames.shape == (2, framing.n_frames(n_samples), frame_length)
    np.testing.assert_allclose(np.square(frames).sum(), np.square(x).sum())
    np.testing.assert_allclose(framing.join(frames, n_samples), x, atol=1e-14)
    # With any orthogonal matrix in the place of the DCT.
    Q = random_orthogonal(frame_length, 1)
    np.testing.assert_allclose(framing.join(frames @ Q.T @ Q, n_samples), x, atol=1e-13)


def test_lapped_frames_in_the_dct_iv_are_local_cosines():
    M, x = 8, signals(100)[0]
    framing = LappedFraming(M)
    found = framing.split(x)[0] @ dct_iv_matrix(M).T
    n, k = np.arange(2 * M), np.arange(M)[:, None]
    atoms = np.sqrt(2 / M) * framing.weights * np.cos(np.pi / M * (n - M / 2 + 0.5) * (k + 0.5))
    padded = np.pad(x, (M, 3 * M))
    expected = [atoms @ padded[at * M : at * M + 2 * M] for at in range(len(found))]
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_lapped_windows_must_reconstruct():
    # Kaiser-Bessel derived windows do, and so does a flat one.
    steps = np.cumsum(np.kaiser(9, 4.0 * np.pi))
    half = np.sqrt(steps[:8] / steps[8])
    for window in (np.concatenate([half, half[::-1]]), np.full(16, np.sqrt(0.5))):
        framing = LappedFraming(8, window)
        np.testing.assert_allclose(framing.join(framing.split(signals(50)), 50), signals(50), atol=1e-13)
    with pytest.raises(InvalidParameterError, match="Princen and Bradley"):
        LappedFraming(8, "hann")
    with pytest.raises(InvalidParameterError, match="must be even, got 7"):
        LappedFraming(7)
    with pytest.raises(ShapeError, match="Expected frames of shape"):
        LappedFraming(8).join(np.zeros((3, 8)), 100)


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
    with pytest.raises(ShapeError, match="Expected coefficients of shape"):
        STFT(64).synthesize(np.zeros((5, 33)), 1000)


@pytest.mark.parametrize(("n_samples", "n_frames"), [(1, 2), (8, 2), (9, 3), (16, 3)])
def test_lapped_frames_reach_half_a_frame_beyond_the_signal(n_samples, n_frames):
    framing = LappedFraming(8)
    assert (framing.n_frames(n_samples), framing.step) == (n_frames, 8)
    assert framing.join(np.zeros((n_frames, 8)), n_samples).shape == (n_samples,)
    for shape in ((n_frames + 1, 8), (n_frames, 9), (8,)):
        with pytest.raises(
            ShapeError, match=rf"shape \(..., {n_frames}, 8\) for a signal of {n_samples} samples"
        ):
            framing.join(np.zeros(shape), n_samples)


@pytest.mark.parametrize("symmetric", [True, False])
def test_one_weight_that_is_off_does_not_reconstruct(symmetric):
    window = LappedFraming(8).weights
    LappedFraming(8, window + 1e-9)
    window[[3, 12] if symmetric else [3]] += 1e-3
    with pytest.raises(InvalidParameterError, match=r"this one is off by 0\.00"):
        LappedFraming(8, window)
    # Symmetric halves whose squares do not sum to one, and the reverse.
    with pytest.raises(InvalidParameterError, match=r"off by 1\. Use 'sine'"):
        LappedFraming(8, np.ones(16))
    angles = np.linspace(0.1, 1.4, 8)
    with pytest.raises(InvalidParameterError, match="Princen and Bradley"):
        LappedFraming(8, np.concatenate([np.sin(angles), np.cos(angles)]))


@pytest.mark.parametrize(("frame_length", "hop"), [(2, 1), (3, 1), (4, 1), (8, 2), (10, 2)])
def test_the_hop_of_the_stft_is_a_quarter_of_a_frame(frame_length, hop):
    stft = STFT(frame_length)
    assert (stft.hop, stft.step, stft.n_bins) == (hop, hop, frame_length // 2 + 1)
    expected = (stft.n_frames(20), stft.n_bins)
    assert stft.synthesize(np.zeros(expected), 20).shape == (20,)
    for shape in ((expected[0] + 1, expected[1]), (expected[0], expected[1] + 1), (expected[1],)):
        with pytest.raises(
            ShapeError, match=rf"\(..., {expected[0]}, {expected[1]}\) for a signal of 20 samples"
        ):
            stft.synthesize(np.zeros(shape), 20)


def test_half_a_frame_is_the_largest_hop():
    assert STFT(2, 1).step == 1
    assert STFT(9, 4, "sine").step == 4
    with pytest.raises(InvalidParameterError, match="hop=5 is more than half of frame_length=9"):
        STFT(9, 5)
    with pytest.raises(InvalidParameterError, match="hop must be a whole number"):
        STFT(9, 2.0)
