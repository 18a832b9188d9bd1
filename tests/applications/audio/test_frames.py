"""Frames and back: nothing is lost, whatever window and hop."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st

from nonneg.applications.audio.frames import Framing, as_recordings
from nonneg.exceptions import DataTypeError, InvalidDataError, InvalidParameterError, ShapeError


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_hop_and_length_gives_the_signal_back(data):
    length = data.draw(st.integers(2, 40))
    centered = data.draw(st.booleans())
    hop = data.draw(st.integers(1, length // 2 if centered else length))
    n_samples = data.draw(st.integers(1, 100))
    window = data.draw(st.sampled_from(["sine", "rectangular", ("kaiser", 4.0), "hamming"]))
    signals = np.random.default_rng(0).standard_normal((3, n_samples))
    framing = Framing(length, hop, window, centered=centered)
    frames = framing.split(signals)
    assert frames.shape == (3, framing.n_frames(n_samples), length)
    np.testing.assert_allclose(framing.join(frames, n_samples), signals, atol=1e-12)


@pytest.mark.parametrize("window", ["hann", ("tukey", 0.1), "blackman", "sine"])
def test_windows_that_vanish_at_the_edge_lose_nothing_with_overlap(window):
    signal = np.random.default_rng(1).standard_normal(777)
    framing = Framing(64, 32, window)
    np.testing.assert_allclose(framing.join(framing.split(signal), 777)[0], signal, atol=1e-12)


def test_join_is_the_nearest_signal(rng):
    framing = Framing(8, 3, "hann")
    frames = rng.standard_normal((1, framing.n_frames(20), 8))
    joined = framing.join(frames, 20)
    distance = np.linalg.norm(framing.split(joined) - frames)
    for _ in range(20):
        other = joined + 1e-3 * rng.standard_normal(joined.shape)
        assert np.linalg.norm(framing.split(other) - frames) > distance


def test_single_precision_stays_and_input_is_not_changed(rng):
    signal = rng.standard_normal(50).astype(np.float32)
    before = signal.copy()
    framing = Framing(16)
    frames = framing.split(signal)
    frames *= 2
    assert frames.dtype == framing.join(frames, 50).dtype == np.float32
    np.testing.assert_array_equal(signal, before)


def test_frames_of_whole_numbers_are_joined_as_numbers():
    framing = Framing(8, 3)
    frames = np.arange(8 * framing.n_frames(20)).reshape(-1, 8)
    np.testing.assert_array_equal(framing.join(frames, 20), framing.join(frames.astype(float), 20))


def test_what_is_refused():
    with pytest.raises(InvalidParameterError, match="frame_length must be an integer of at least 2, got 1"):
        Framing(1)
    with pytest.raises(InvalidParameterError, match="hop=9 exceeds frame_length=8"):
        Framing(8, 9)
    with pytest.raises(InvalidParameterError, match=r"would be lost. Use a smaller hop, such as 4"):
        Framing(8, 8, "hann")
    with pytest.raises(InvalidParameterError, match="hop=5 is more than half of frame_length=9"):
        Framing(9, 5, centered=True)
    with pytest.raises(InvalidParameterError, match="window='hanni' is not known"):
        Framing(8, 4, "hanni")
    with pytest.raises(ShapeError, match="Expected a window of frame_length = 8"):
        Framing(8, 4, np.ones(7))
    with pytest.raises(ShapeError, match=r"Expected frames of shape \(..., 6, 8\)"):
        Framing(8, 4).join(np.zeros((1, 5, 8)), 20)
    with pytest.raises(DataTypeError, match="frames of real numbers"):
        Framing(8, 4).join(np.zeros((6, 8), dtype=complex), 20)
    with pytest.raises(InvalidParameterError, match=r"n_samples must be an integer .*, got 20\.0"):
        Framing(8, 4).join(np.zeros((6, 8)), 20.0)
    with pytest.raises(InvalidParameterError, match=r"window=\('tukey', 'a'\) is not known"):
        Framing(8, 4, ("tukey", "a"))
    with pytest.raises(ShapeError, match="recordings of equal length"):
        as_recordings([[1.0, 2.0], [1.0]])
    with pytest.raises(DataTypeError, match="Read the file with read_sound"):
        as_recordings("song.wav")
    with pytest.raises(InvalidDataError, match="at least one sample"):
        Framing(8).split([])
    with pytest.raises(ShapeError, match="or recordings of shape"):
        Framing(8).split(np.zeros((1, 2, 3)))
    with pytest.raises(DataTypeError, match="real numbers, got dtype complex128"):
        as_recordings(np.zeros(4, dtype=complex))


@pytest.mark.parametrize("length", [2, 3, 8])
def test_a_hop_is_half_a_frame_by_default(length):
    assert (Framing(length).hop, Framing(length).padding) == (max(length // 2, 1), length - length // 2)
    framing = Framing(length, length, "rectangular")
    assert (framing.padding, framing.n_frames(1), framing.n_frames(length + 1)) == (0, 1, 2)
    np.testing.assert_array_equal(framing.join(framing.split([3.0]), 1), [[3.0]])


def test_a_sample_without_weight_is_named():
    with pytest.raises(InvalidParameterError, match="hop 2 sample 1 of every hop has weight zero"):
        Framing(4, 2, [1.0, 0.0, 1.0, 0.0])
    with pytest.raises(InvalidParameterError, match=r"hop 3 sample 2 of every hop .* such as 2, or"):
        Framing(5, 3, [1.0, 1.0, 0.0, 1.0, 1.0])
    Framing(5, 2, [1.0, 1.0, 0.0, 1.0, 1.0])


def test_centered_frames_have_the_conventions_of_librosa():
    x = np.random.default_rng(0).standard_normal(1000)
    # center=True, zeros outside, periodic Hann window.
    padded, window = np.pad(x, 32), scipy.signal.get_window("hann", 64)
    expected = np.stack([padded[at : at + 64] * window for at in range(0, 1001, 16)])
    framing = Framing(64, 16, "hann", centered=True)
    np.testing.assert_allclose(framing.split(x)[0], expected, atol=1e-12)
    assert framing.n_frames(1000) == len(expected) == 1 + 1000 // 16
