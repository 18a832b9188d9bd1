"""`nonneg separate`: what it writes, and what it says when something is wrong."""

from __future__ import annotations

import json
import re
import shutil

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
    named = sorted(entry["frequencies"][0] for entry in record["sources"])
    assert named == pytest.approx([83.0, 209.0], abs=4.0)  # bins of 7.8 Hz
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
    learned = "What the transform has learned" in page
    assert page.count("<svg") == 7 + learned  # recording, sources, templates, activations, curves (atoms)
    if learned:
        # Places in this figure are no numbers of atoms: none are written beneath it.
        templates = page[page.index("Heat map by atoms by frequency") :].split("</svg>")[0]
        assert [int(text) for text in re.findall(r">(\d+)<", templates)] == [0, 1]


def test_a_chosen_transform_and_a_source_with_all_the_energy_are_told(recording, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["--method", "transform", "--lapped", *FRAMES, "--no-players"]
    assert separate(recording, *words, out=out) == 0
    choice = json.loads((out / "result.json").read_text())["result"]["transform_choice"]
    assert choice["reference"] == "dct-iv"
    assert len(choice["held_out"]) == len(choice["fractions"]) == 5
    assert "C per coefficient of held-out frames" in (out / "report.html").read_text()
    capsys.readouterr()
    loud = tmp_path / "loud.wav"
    t = np.arange(1500) / RATE
    write_sound(loud, 0.9 * np.sin(2 * np.pi * 83 * t) + 0.01 * np.sin(2 * np.pi * 300 * t) * (t > 1), RATE)
    assert separate(loud, "--no-players", out=out) == 0
    assert "of the energy: the components were hardly separated" in capsys.readouterr().err


def test_recordings_formats_parts_rates_and_earlier_results(separated, recording, tmp_path, capsys):
    out = shutil.copytree(separated, tmp_path / "out")
    other = tmp_path / "again.flac"
    write_sound(other, tones(0.5), RATE)
    words = [recording, other, "--method", "dct", "--format", "flac", "--no-players", "--components", 3]
    part = ["--rate", 500, "--begin", 0.2, "--seconds", 1]
    assert separate(*words, *part, *FRAMES, out=out) == 0
    assert {path.name for path in out.iterdir()} == {
        *(f"recording-{one}-source-{at}.flac" for one in (1, 2) for at in (1, 2)),
        "result.json", "model.npz", "report.html",
    }  # fmt: skip
    assert "<audio" not in (out / "report.html").read_text()
    parts = [read_sound(out / f"recording-2-source-{at}.flac").samples for at in (1, 2)]
    np.testing.assert_allclose(parts[0] + parts[1], read_sound(other, rate=500).samples[100:600], atol=1e-6)
    record = json.loads((out / "result.json").read_text())
    assert sorted(at for entry in record["sources"] for at in entry["components"]) == [0, 1, 2]
    assert (record["data"]["rate"], record["data"]["n_samples"]) == (500, [500, 500])
    assert capsys.readouterr().out.splitlines()[0].endswith("of the energy of 2 recordings.")


def test_what_goes_wrong_is_said_in_a_line(recording, tmp_path, capsys):
    def said(*words):
        assert separate(*words, *FRAMES, out=tmp_path / "out") == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    assert "no.wav does not exist" in said(tmp_path / "no.wav")
    broken = tmp_path / "broken.wav"
    broken.write_text("RIFF, but no sound")
    assert "broken.wav could not be read as sound" in said(broken)
    silent, short, slow = tmp_path / "silent.wav", tmp_path / "short.wav", tmp_path / "slow.wav"
    write_sound(silent, np.zeros(500), RATE)
    assert "The recording is silent" in said(silent)
    write_sound(short, np.ones(20), RATE)
    assert "has 20 samples, less than one frame of 32" in said(short)
    write_sound(slow, tones(), 500)
    assert "sampling rates of [500, 1000] Hz; they must be equal" in said(recording, slow)
    assert "Aligned recordings have the same length" in said(recording, silent)
    assert "nothing is left after --begin 9" in said(recording, "--begin", 9)
    assert "channel=1: two <tones>.wav has 1 channel" in said(recording, "--channel", 1)
    assert not (tmp_path / "out").exists()
