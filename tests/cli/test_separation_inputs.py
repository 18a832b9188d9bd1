"""Sounds and names of `nonneg separate`, and the parts of files that are read."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.applications.audio import Sound
from nonneg.cli import separate_inputs as inputs
from nonneg.cli import separate_results as results
from nonneg.cli import transform_sounds
from nonneg.exceptions import InvalidDataError, InvalidParameterError, OutputError

RATE = 100


def sound(samples, name="a.wav", rate=RATE, subtype=None):
    samples = np.asarray(samples, dtype=float)
    return Sound(samples, rate, 1 if samples.ndim == 1 else len(samples), name, subtype)


def options(**changes):
    given = {"channel": "all", "rate": None, "files": ["a.wav"], "begin": 0.0, "seconds": None, "quiet": True}
    return argparse.Namespace(**(given | changes))


@pytest.fixture
def files(monkeypatch):
    """Sounds by the names of files; what they were read with."""
    stored, asked = {"a.wav": sound(np.arange(1.0, 301.0) / 400)}, []

    def read(path, *, channel="mean", rate=None):
        asked.append((str(path), channel, rate))
        found = stored[str(path)]
        return found if rate is None else Sound(found.samples[..., ::2], rate, found.n_channels, found.source)

    monkeypatch.setattr(inputs, "read_sound", read)
    monkeypatch.setattr(transform_sounds, "read_sound", read)
    return stored, asked


@pytest.mark.parametrize(
    ("begin", "seconds", "first", "last"),
    [
        (0.0, None, 0, 300),
        (1.0, None, 100, 300),
        (1.0, 0.5, 100, 150),
        (2.5, 9.0, 250, 300),
        (0.0, 3.0, 0, 300),
    ],
)
def test_a_part_of_a_recording(begin, seconds, first, last, files):
    (part,) = inputs.read_recordings(options(begin=begin, seconds=seconds))
    np.testing.assert_array_equal(part.samples, files[0]["a.wav"].samples[first:last])


@pytest.mark.parametrize(("channel", "asked"), [("all", "all"), ("mean", "mean"), ("0", 0), ("1", 1)])
def test_channels_by_number_or_name(channel, asked, files, capsys):
    files[0]["b.wav"] = sound(np.ones((2, 150)), "b.wav")
    inputs.read_recordings(options(channel=channel, files=["a.wav", "b.wav"], quiet=False))
    assert files[1] == [("a.wav", asked, None), ("b.wav", asked, None)]
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "read a.wav: 3.00 s, 100 Hz"
    assert said[1] == "read b.wav: 1.50 s, 100 Hz, 2 channels" + ("" if channel == "all" else f" ({channel})")


def test_recordings_that_are_refused(files):
    with pytest.raises(InvalidParameterError, match=r"--begin must be at least 0, got -1"):
        inputs.read_recordings(options(begin=-1))
    with pytest.raises(InvalidDataError, match=r"a.wav ends after 3.00 s; nothing is left after --begin 3\."):
        inputs.read_recordings(options(begin=3.0))
    files[0]["b.wav"] = sound(np.zeros(50), "b.wav", 50)
    with pytest.raises(InvalidDataError, match=r"sampling rates of \[50, 100\] Hz.*such as --rate 50"):
        inputs.read_recordings(options(files=["a.wav", "b.wav"]))
    with pytest.raises(InvalidDataError, match=r"b.wav: nothing but silence"):
        inputs.read_recordings(options(files=["b.wav"]))
    files[0]["b.wav"] = sound(np.zeros(50), "b.wav")
    assert len(inputs.read_recordings(options(files=["b.wav", "a.wav"]))) == 2  # one is not silent


def test_training_files_and_their_sources(files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files[0].update({"drums.wav": sound(np.ones(200), "drums.wav", 200), "x.wav": sound(np.ones(9), "x.wav")})
    given = options(train=["drums.wav", "drums=x.wav", "bass = a.wav"], quiet=False)
    files[0][" a.wav"] = files[0]["a.wav"]
    signals, names = inputs.read_training(given, RATE)
    assert names == {"drums": ["drums.wav", "x.wav"], "bass": ["a.wav"]}
    assert [len(signal) for signal in signals["drums"]] == [100, 9]
    said = capsys.readouterr().err
    assert "note: drums.wav was resampled from 200 to 100 Hz" in said
    assert "read x.wav: 0.09 s, 100 Hz, training of drums" in said
    assert "a.wav was resampled" not in said
    assert inputs.read_training(options(train=None), RATE) == ({}, {})
    with pytest.raises(InvalidParameterError, match=r"--train drums.wav: a source called drums already has"):
        inputs.read_training(options(train=["drums=x.wav", "drums.wav"]), RATE)
    files[0]["none.wav"] = sound(np.zeros(9), "none.wav")
    with pytest.raises(InvalidDataError, match=r"training file none.wav is silent"):
        inputs.read_training(options(train=["none.wav"]), RATE)


def test_names_before_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert inputs._name_and_path("drums=b.wav")[0::2] == ("drums", True)
    assert inputs._name_and_path("b.wav")[0::2] == ("b", False)
    assert inputs._name_and_path("=b.wav")[2] is False
    (tmp_path / "a=b.wav").write_text("")
    assert inputs._name_and_path("a=b.wav")[0::2] == ("a=b", False)  # a file of that name


def test_components_by_hand_begin_at_one():
    assert inputs.grouping_by_hand([("a", [1, 3]), ("b", [2])]) == {"a": [0, 2], "b": [1]}
    with pytest.raises(InvalidParameterError, match=r"--group a=... was given twice"):
        inputs.grouping_by_hand([("a", [1]), ("a", [2])])


def test_channels_of_several_files_are_rows_and_come_apart_again():
    mono, stereo = np.arange(4.0), np.arange(8.0).reshape(2, 4)
    sounds = [sound(mono), sound(stereo), sound(mono[None])]
    rows = inputs.stacked([one.samples for one in sounds], "aligned")
    np.testing.assert_array_equal(rows, [mono, *stereo, mono])
    assert inputs.stacked([mono], "aligned") is mono
    assert [
        part is one
        for part, one in zip(inputs.stacked([mono, stereo], "consecutive"), (mono, stereo), strict=True)
    ] == [True, True]
    sources = np.stack([rows, 2 * np.asarray(rows)])
    first, second, third = inputs.separated_by_recording(sources, sounds, "aligned")
    np.testing.assert_array_equal(first, [mono, 2 * mono])
    np.testing.assert_array_equal(second, [stereo, 2 * stereo])
    assert third.shape == (2, 1, 4)
    assert inputs.separated_by_recording(sources, sounds[:1], "aligned")[0] is sources
    assert inputs.separated_by_recording((1, 2), sounds[:2], "consecutive") == [1, 2]


@pytest.mark.parametrize(
    ("names", "n_recordings", "expected"),
    [
        (["low", "high"], 1, [["low.wav", "high.wav"]]),
        (["source 1", "a/b"], 1, [["source-1.wav", "a-b.wav"]]),
        (["x", "X"], 1, [["x.wav", "X-2.wav"]]),
        (["..", "y"], 1, [["source-1.wav", "y.wav"]]),
        (["x"], 2, [["recording-1-x.wav"], ["recording-2-x.wav"]]),
    ],
)
def test_names_of_files(names, n_recordings, expected):
    assert results.file_names(names, n_recordings, "wav") == expected


def test_sounds_that_are_not_of_an_earlier_run_stay(tmp_path):
    results.check_targets(tmp_path / "none", ["x"], 1, "wav")
    (tmp_path / "x.wav").write_text("")
    with pytest.raises(OutputError, match=r"x.wav exists and is not the result of an earlier run"):
        results.check_targets(tmp_path, ["x"], 1, "wav")
    results.check_targets(tmp_path, ["x"], 1, "flac")
    results.check_targets(tmp_path, ["x"], 2, "wav")
    (tmp_path / "source-1.wav").write_text("")
    assert results.earlier_sounds(tmp_path) == {"source-1.wav"}
    (tmp_path / "result.json").write_text(
        '{"command": "separate", "sources": [{"files": ["../x.wav", "y.txt"]}]}'
    )
    assert results.earlier_sounds(tmp_path) == {"source-1.wav", "x.wav"}
    (tmp_path / "result.json").write_text(
        '{"command": "transform", "result": {"sources": [{"files": ["z.flac"]}]}}'
    )
    assert results.earlier_sounds(tmp_path) == {"source-1.wav", "z.flac"}
    assert results.earlier_sounds(tmp_path / "none") == set()


@pytest.mark.parametrize("recordings", ["aligned", "consecutive"])
def test_new_recordings_are_separated_one_by_one(recordings, files, tmp_path, monkeypatch, capsys):
    files[0]["b.wav"] = sound(np.ones(200), "b.wav", 200)
    seen = []

    def separate(signal):
        several = recordings == "consecutive"
        assert isinstance(signal, list) is several
        samples = signal[0] if several else signal
        seen.append(samples)
        found = np.stack([0.6 * samples, 0.4 * samples])
        return [found] if several else found

    model = SimpleNamespace(
        source_names_=("low", "high"), rate_=RATE, recordings=recordings, separate=separate,
        regroup=lambda groups: seen.append(groups),
    )  # fmt: skip
    monkeypatch.setattr(transform_sounds, "write_sounds", lambda *_: None)
    saved = SimpleNamespace(model=model, path="model.npz", class_name="SourceSeparation")
    given = argparse.Namespace(files=["a.wav", "b.wav"], format=None, group=[("x", [1])])
    said = transform_sounds.separate_new(saved, given, tmp_path / "out")
    assert seen[0] == {"x": [0]}
    assert [len(samples) for samples in seen[1:]] == [300, 100]
    share = 0.36 / (0.36 + 0.16)
    assert said.startswith(f"low {100 * share:.1f}%, high {100 * (1 - share):.1f}% of the energy; written to")
    assert "b.wav was resampled from 200 to 100 Hz, the rate of the model" in capsys.readouterr().err
    record = transform_sounds._record(
        saved, results.Separated(model, [sound(np.ones(3))], [np.zeros((2, 3))], 0.0), "wav"
    )
    assert [entry["energy_share"] for entry in record["result"]["sources"]] == [0.0, 0.0]
    assert [entry["files"] for entry in record["result"]["sources"]] == [["low.wav"], ["high.wav"]]
    assert record["title"] == "Sources of a.wav"
