"""Sound files: what is written is read back, and bad ones are named."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from nonneg.applications import SourceSeparation
from nonneg.applications.audio.files import read_sound, write_sound
from nonneg.exceptions import (
    FileFormatError,
    InvalidDataError,
    InvalidParameterError,
    MissingDependencyError,
    NonFiniteDataError,
    OutputError,
    ShapeError,
)

soundfile = pytest.importorskip("soundfile")


@pytest.mark.parametrize(("ending", "error"), [(".wav", 1e-7), (".flac", 1.3e-7), (".WAV", 1e-7)])
def test_what_is_written_is_read(ending, error, tmp_path, rng):
    signal = rng.uniform(-1, 1, 1000)
    path = tmp_path / f"a{ending}"
    write_sound(path, signal, 8000)
    sound = read_sound(path)
    assert (sound.rate, sound.n_channels, sound.source) == (8000, 1, path.name)
    np.testing.assert_allclose(sound.samples, signal, atol=error)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_floats_beyond_one_are_not_clipped(tmp_path):
    write_sound(tmp_path / "a.wav", [0.0, 3.0, -2.0], 10)
    np.testing.assert_array_equal(read_sound(tmp_path / "a.wav").samples, [0.0, 3.0, -2.0])
    with pytest.raises(
        InvalidDataError,
        match=r"largest sample is 3: .flac with PCM_24 is limited to \[-1, 1\] and would clip",
    ):
        write_sound(tmp_path / "a.flac", [0.0, 3.0, -2.0], 10)


def test_channels(tmp_path, rng):
    both = rng.uniform(-1, 1, (100, 2)).astype(np.float32)
    write_sound(tmp_path / "a.wav", both, 10)
    np.testing.assert_allclose(read_sound(tmp_path / "a.wav").samples, both.mean(axis=1), atol=1e-7)
    assert read_sound(tmp_path / "a.wav").n_channels == 2
    np.testing.assert_array_equal(read_sound(tmp_path / "a.wav", channel=1).samples, both[:, 1])
    with pytest.raises(
        InvalidParameterError, match=r"channel=2: a.wav has 2 channels. Expected 'all', 'mean' or a"
    ):
        read_sound(tmp_path / "a.wav", channel=2)


@pytest.mark.parametrize(("ending", "subtype"), [(".wav", "PCM_16"), (".wav", "PCM_24"), (".flac", "PCM_16")])
def test_all_channels_and_whole_numbers_are_kept_exactly(ending, subtype, tmp_path, rng):
    bits = int(subtype[-2:])
    whole = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (100, 3)) / 2 ** (bits - 1)
    path = tmp_path / f"a{ending}"
    write_sound(path, whole, 8000, subtype=subtype)
    sound = read_sound(path, channel="all")
    assert (sound.subtype, sound.n_channels, sound.samples.shape) == (subtype, 3, (3, 100))
    np.testing.assert_array_equal(sound.samples.T, whole)
    assert read_sound(path, channel="all", rate=4000).samples.shape == (3, 50)
    with pytest.raises(ShapeError, match=r"at most 1024 channels, got .*pass samples.T"):
        write_sound(path, np.zeros((2, 1025)), 8000)
    with pytest.raises(InvalidParameterError, match="do not support samples of type 'PCM_99'"):
        write_sound(path, whole, 8000, subtype="PCM_99")
    with pytest.raises(InvalidDataError, match="would clip it"):
        write_sound(path, 3 * whole, 8000, subtype=subtype)


def test_resampling_keeps_a_tone(tmp_path):
    tone = np.sin(2 * np.pi * 50 * np.arange(2000) / 1000)
    write_sound(tmp_path / "a.wav", tone, 1000)
    sound = read_sound(tmp_path / "a.wav", rate=750)
    assert sound.rate == 750
    assert len(sound.samples) == 1500
    inside = slice(100, 1400)
    expected = np.sin(2 * np.pi * 50 * np.arange(1500) / 750)
    np.testing.assert_allclose(sound.samples[inside], expected[inside], atol=0.01)
    with pytest.raises(InvalidParameterError, match="rate must be an integer of at least 1, got 0"):
        read_sound(tmp_path / "a.wav", rate=0)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileFormatError, match=r"no.wav does not exist"):
        read_sound(tmp_path / "no.wav")
    with pytest.raises(FileFormatError, match="is not a file"):
        read_sound(tmp_path)
    (tmp_path / "text.wav").write_text("not a sound")
    with pytest.raises(
        FileFormatError, match=r"text.wav could not be read as sound \(.*ffmpeg -i IN OUT.wav"
    ):
        read_sound(tmp_path / "text.wav")
    (tmp_path / "nothing.wav").write_bytes(b"")
    with pytest.raises(FileFormatError, match="could not be read as sound"):
        read_sound(tmp_path / "nothing.wav")
    soundfile.write(tmp_path / "empty.wav", np.zeros((0, 1)), 8000)
    with pytest.raises(InvalidDataError, match=r"empty.wav contains no samples"):
        read_sound(tmp_path / "empty.wav")
    soundfile.write(tmp_path / "nan.wav", np.array([0, 0, np.nan, 0]), 4, subtype="FLOAT")
    with pytest.raises(NonFiniteDataError, match=r"nan.wav: sample 2 \(0.500 s\) is nan"):
        read_sound(tmp_path / "nan.wav")


def test_what_is_not_written(tmp_path):
    with pytest.raises(InvalidParameterError, match=r"ends in .wav or .flac, got 'a.mp3'"):
        write_sound(tmp_path / "a.mp3", [0.0], 10)
    with pytest.raises(InvalidParameterError, match="rate must be an integer"):
        write_sound(tmp_path / "a.wav", [0.0], 0.5)
    with pytest.raises(ShapeError, match="at least one sample"):
        write_sound(tmp_path / "a.wav", [], 10)
    with pytest.raises(NonFiniteDataError, match="Expected finite samples"):
        write_sound(tmp_path / "a.wav", [np.nan], 10)
    with pytest.raises(ShapeError, match=r"Expected floats .* got int16 .* Divide whole numbers"):
        write_sound(tmp_path / "a.wav", np.array([0, 12000], dtype=np.int16), 10)
    with pytest.raises(OutputError, match="could not be written"):
        write_sound(tmp_path / "no folder" / "a.wav", [0.0], 10)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [".wav", ".flac"])
def test_a_full_disk_leaves_the_old_sound(ending, largest_file, tmp_path, rng):
    path = tmp_path / f"a{ending}"
    write_sound(path, [0.5, -0.5], 8000)
    before = path.read_bytes()
    for size in (100, 5000):
        with largest_file(size), pytest.raises(OutputError, match=r"could not be written.*too large"):
            write_sound(path, rng.uniform(-1, 1, 3000), 8000)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(MissingDependencyError, match=r"needs soundfile.*pip install .*\[audio\]'"):
        read_sound(tmp_path / "a.wav")


@pytest.mark.parametrize("method", ["tl"])
def test_huge_floats_are_separated_or_named(method, tmp_path):
    time = np.arange(4000) / 8000
    signal = np.sin(2765 * time) * (time < 0.25) + np.sin(5655 * time) * (time > 0.2)
    model = SourceSeparation(2, method=method, frame_length=64, max_iter=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for size in (1e37, 1e300):
            soundfile.write(tmp_path / "a.wav", signal * size, 8000, subtype="DOUBLE")
            sound = read_sound(tmp_path / "a.wav")
            if size == 1e300:
                with pytest.raises(
                    InvalidDataError, match=r"largest sample is .*e\+300: products of powers overflow"
                ):
                    model.fit(sound.samples, sound.rate)
            else:
                sources = model.fit_separate(sound.samples, sound.rate)
                np.testing.assert_allclose(sources.sum(axis=0), sound.samples, atol=1e-12 * size)


@pytest.mark.parametrize(("subtype", "bits"), [("PCM_16", 16), ("PCM_24", 24), ("PCM_32", 32)])
def test_full_scale_is_the_largest_number(subtype, bits, tmp_path):
    write_sound(tmp_path / "a.wav", [1.0, -1.0, 0.0, 0.5], np.int64(10), subtype=subtype)
    largest = 1 - 2.0 ** (1 - bits)
    np.testing.assert_allclose(
        read_sound(tmp_path / "a.wav").samples, [largest, -1.0, 0.0, 0.5], rtol=0, atol=1e-15
    )


def test_the_first_sample_of_any_channel_that_is_not_finite(tmp_path):
    samples = np.zeros((5, 2))
    samples[3, 0] = samples[1, 1] = np.inf
    soundfile.write(tmp_path / "a.wav", samples, 4, subtype="FLOAT")
    with pytest.raises(NonFiniteDataError, match=r"sample 1 \(0.250 s\) is"):
        read_sound(tmp_path / "a.wav", channel="all")
    with pytest.raises(NonFiniteDataError, match=r"sample 3 \(0.750 s\) is inf"):
        read_sound(tmp_path / "a.wav", channel=0)
