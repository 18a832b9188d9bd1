"""`nonneg separate`: what it writes, and what it says when something is wrong."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from nonneg import load
from nonneg.cli import main

pytest.importorskip("soundfile")
from nonneg.applications.audio import read_sound, write_sound

RATE = 1000


def tones(shift: float = 0.0) -> np.ndarray:
    t = np.arange(1500) / RATE
    low = np.sin(2 * np.pi * 83 * t + shift) * (t < 1)
    return 0.5 * (low + np.sin(2 * np.pi * 209 * t + 2 * shift) * (t > 0.5))


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("sounds") / "two <tones>.wav"
    write_sound(path, tones(), RATE)
    return path


FRAMES = ["--frame-length", 32, "--max-iter", 10]


def separate(*words, out):
    return main(["separate", *map(str, words), "--quiet", "-o", str(out)])


@pytest.fixture(scope="module", params=["stft", "tl"])
def separated(request, recording, tmp_path_factory):
    out = tmp_path_factory.mktemp("separated") / "out"
    method = [] if request.param == "stft" else ["--method", "tl", *FRAMES]
    assert separate(recording, "-k", 2, *method, out=out) == 0
    return out


def test_writes_sources_that_sum_to_the_recording(separated, recording):
    assert {path.name for path in separated.iterdir()} == {
        "source-1.wav", "source-2.wav", "result.json", "model.npz", "report.html",
    }  # fmt: skip
    sources = [read_sound(separated / f"source-{at}.wav") for at in (1, 2)]
    assert {sound.rate for sound in sources} == {RATE}
    total = sources[0].samples + sources[1].samples
    np.testing.assert_allclose(total, read_sound(recording).samples, atol=1e-6)
    record = json.loads((separated / "result.json").read_text())
    assert sum(entry["energy_share"] for entry in record["sources"]) == pytest.approx(1.0)
    model = load(separated / "model.npz")
    np.testing.assert_allclose(
        model.separate(read_sound(recording).samples), [sound.samples for sound in sources], atol=1e-6
    )
    assert model.rate_ == RATE
    assert record["result"]["n_frames"] == len(model.activations_)


def test_report_is_one_file_with_sounds_and_escaped_names(separated):
    page = (separated / "report.html").read_text()
    assert "two &lt;tones&gt;.wav" in page
    assert "<tones>" not in page
    assert "media-src data:" in page
    assert page.count("<audio controls") == 3
    assert not re.findall(r"(?:src|href)=[\"'](?!data:|#)", page)
    assert "<script" not in page
    assert page.count("<svg") == 1  # the loss
    for name in ("recording", "source 1", "source 2"):  # spectrograms
        assert f'alt="{name}"' in page


def test_a_chosen_transform_is_told(recording, tmp_path):
    out = tmp_path / "out"
    words = ["--method", "transform", *FRAMES]
    assert separate(recording, *words, out=out) == 0
    choice = json.loads((out / "result.json").read_text())["result"]["transform_choice"]
    assert choice["candidates"] == ["dct", "learned"]
    assert len(choice["held_out"]) == 2
    assert "held-out frames the objective of the learned one" in (out / "report.html").read_text()


def test_recordings_formats_parts_rates_and_earlier_results(recording, tmp_path, capsys):
    out = tmp_path / "out"
    assert separate(recording, *FRAMES, out=out) == 0  # whose files are replaced
    capsys.readouterr()
    other = tmp_path / "again.flac"
    write_sound(other, tones(0.5), RATE)
    words = [recording, other, "--method", "dct", "--components", 3]
    part = ["--rate", 500, "--seconds", 1]
    assert separate(*words, *part, *FRAMES, out=out) == 0
    assert {path.name for path in out.iterdir()} == {
        *(f"recording-{one}-source-{at}.wav" for one in (1, 2) for at in (1, 2)),
        "result.json", "model.npz", "report.html",
    }  # fmt: skip
    parts = [read_sound(out / f"recording-2-source-{at}.wav").samples for at in (1, 2)]
    np.testing.assert_allclose(parts[0] + parts[1], read_sound(other, rate=500).samples[:500], atol=1e-6)
    record = json.loads((out / "result.json").read_text())
    assert sorted(at for entry in record["sources"] for at in entry["components"]) == [1, 2, 3]
    assert (record["data"]["rate"], record["data"]["n_samples"]) == (500, [500, 500])
    assert capsys.readouterr().out.startswith("2 sources of 2 recordings: source 1 with ")


def test_what_goes_wrong_is_said_in_a_line(recording, tmp_path, capsys):
    def said(*words):
        assert separate(*words, *FRAMES, out=tmp_path / "out") == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    assert "no.wav does not exist" in said(tmp_path / "no.wav")
    broken = tmp_path / "broken.wav"
    broken.write_text("RIFF, but no sound")
    assert "broken.wav could not be read as sound" in said(broken)
    silent, short = tmp_path / "silent.wav", tmp_path / "short.wav"
    write_sound(silent, np.zeros(500), RATE)
    assert "silent.wav: nothing but silence" in said(silent)
    write_sound(short, np.ones(20), RATE)
    assert "has 20 samples, less than one frame of 32" in said(short)
    assert "Expected recordings of equal length" in said(recording, short)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def stereo(tmp_path_factory):
    """Two tones that always sound together, panned, in 16 bits, with a solo recording of each."""
    folder = tmp_path_factory.mktemp("stereo")
    t = np.arange(1500) / RATE
    swell = 0.4 * np.sin(3 * np.pi * t) ** 2
    low, high = swell * np.sin(2 * np.pi * 83 * t), swell * np.sin(2 * np.pi * 209 * t)
    mixture = np.stack([0.8 * low + 0.2 * high, 0.3 * low + 0.9 * high], axis=1)
    write_sound(folder / "mix.wav", mixture, RATE, subtype="PCM_16")
    write_sound(folder / "low.wav", low[:1000], RATE)
    write_sound(folder / "high.wav", np.repeat(high[:900], 2), 2 * RATE)  # at another rate
    return folder


SMALL = ["--frame-length", 64, "--components", 8]


def sources_of(folder, *names):
    return np.stack([read_sound(folder / f"{name}.wav", channel="all").samples for name in names])


def test_sources_are_named_after_training_files_and_keep_channels_and_bits(stereo, tmp_path, capsys):
    out = tmp_path / "out"
    training = ["--train", stereo / "low.wav", "--train", f"up={stereo / 'high.wav'}"]
    assert separate(stereo / "mix.wav", *training, *SMALL, out=out) == 0
    said = capsys.readouterr()
    assert said.out.startswith("2 sources of mix.wav: low with ")
    assert "note: high.wav was resampled from 2000 to 1000 Hz" in said.err
    mixture = read_sound(stereo / "mix.wav", channel="all")
    found = sources_of(out, "low", "up")
    assert found.shape == (2, 2, 1500)
    np.testing.assert_allclose(found.sum(axis=0), mixture.samples, atol=2.0**-15)
    sound = read_sound(out / "low.wav")
    assert (sound.subtype, sound.rate, sound.n_channels) == ("PCM_16", RATE, 2)
    record = json.loads((out / "result.json").read_text())
    assert record["data"]["training"] == {"low": ["low.wav"], "up": ["high.wav"]}
    assert [entry["components"] for entry in record["sources"]] == [[1, 2, 3, 4], [5, 6, 7, 8]]
    # The model separates further recordings, here one channel and its own.
    assert main(["transform", str(out), str(stereo / "low.wav"), "--quiet", "-o", str(tmp_path / "new")]) == 0
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"low.wav", "up.wav", "result.json"}
    new = sources_of(tmp_path / "new", "low", "up")
    np.testing.assert_allclose(new.sum(axis=0), read_sound(stereo / "low.wav").samples, atol=1e-6)
    assert np.square(new[1]).sum() < 0.05 * np.square(new[0]).sum()
    capsys.readouterr()
    # Again into the same folder.
    again = ["transform", str(out), str(stereo / "mix.wav"), "--quiet", "-o", str(tmp_path / "new")]
    assert main(again) == 0
    assert capsys.readouterr().out.startswith("low ")
    assert main([*again, "--maps", "npy"]) == 2
    assert "--maps does not apply here" in capsys.readouterr().err
    # At another rate than that of the model.
    other = ["transform", str(out), str(stereo / "high.wav"), "--quiet", "-o", str(tmp_path / "other")]
    assert main(other) == 0
    assert "note: high.wav was resampled from 2000 to 1000 Hz" in capsys.readouterr().err
    assert read_sound(tmp_path / "other" / "low.wav").rate == RATE


def test_groups_by_hand_and_further_sources(stereo, tmp_path, capsys):
    out = tmp_path / "out"
    groups = ["--group", "a/b=1,3", "--group", "c=2"]
    assert separate(stereo / "mix.wav", *groups, *SMALL, out=out) == 0
    assert {path.name for path in out.glob("*.wav")} == {"a-b.wav", "c.wav", "rest.wav"}
    assert sources_of(out, "a-b").shape == (1, 2, 1500)
    record = json.loads((out / "result.json").read_text())
    assert [entry["components"] for entry in record["sources"]] == [[1, 3], [2], [4, 5, 6, 7, 8]]
    words = ["-k", 2, "--train", stereo / "low.wav"]
    assert separate(stereo / "mix.wav", *words, *SMALL, out=out) == 0
    assert {path.name for path in out.glob("*.wav")} == {"low.wav", "rest.wav"}
    capsys.readouterr()

    def refused(*words, out=out):
        assert separate(stereo / "mix.wav", *words, *SMALL, out=out) == 2
        return capsys.readouterr().err

    assert "leave grouping (--group) out" in refused("--train", stereo / "low.wav", *groups)
    assert "leave one of them out" in refused("--grouping", "timbre", *groups)
    assert "--group c=... was given twice" in refused("--group", "c=1", "--group", "c=2")
    assert "components are numbered from 0 to 7 (from 1 to 8 on the command" in refused("--group", "c=9")
    # Sources named after training files must not replace these.
    before = (stereo / "low.wav").read_bytes()
    assert separate(stereo / "mix.wav", *words, *SMALL, out=stereo) == 0
    assert (stereo / "low.wav").read_bytes() == before
    write_sound(tmp_path / "none.wav", np.zeros(300), RATE)
    write_sound(tmp_path / "short.wav", np.ones(30), RATE)
    assert "none.wav: nothing but silence" in refused("--train", tmp_path / "none.wav")
    too_short = "training recording of 'short' has 30 samples, less than one frame of 64"
    assert too_short in refused("--train", tmp_path / "short.wav")
    assert "expected a name and numbers such as drums=1,3,5, got 'drums:1'" in refused("--group", "drums:1")


def test_sources_beyond_full_scale_are_written_as_floats(tmp_path):
    t = np.arange(1500) / RATE
    loud = 0.99 * np.sign(np.sin(2 * np.pi * 7 * t)) * np.where(t < 0.7, 1, np.sin(2 * np.pi * 200 * t))
    write_sound(tmp_path / "loud.wav", loud, RATE, subtype="PCM_16")
    assert separate(tmp_path / "loud.wav", "--frame-length", 64, out=tmp_path / "out") == 0
    sounds = [read_sound(tmp_path / "out" / f"source-{at}.wav") for at in (1, 2)]
    assert max(np.abs(sound.samples).max() for sound in sounds) > 1
    assert {sound.subtype for sound in sounds} == {"FLOAT"}
