"""Numbers and files of a separation, from models that are written by hand."""

from __future__ import annotations

import base64
import io
from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.applications.audio import STFT, Framing
from nonneg.cli import separate_results as results

soundfile = pytest.importorskip("soundfile")


def model(**fit):
    components = np.zeros((3, 65))
    components[0, [8, 9, 20]], components[1, 40], components[2, 30] = [4.0, 3.0, 2.0], 5.0, 1.0
    return SimpleNamespace(
        model_=SimpleNamespace(components_=components, n_features_in_=65, **fit),
        activations_=np.array([[1.0, 0.0, 2.0], [1.0, 3.0, 0.0]]),
        groups_=np.array([0, 1, 0]),
        source_names_=["low", "high"],
        framing_=STFT(128),
    )


def test_power_and_frequencies_of_sources():
    found = results._power_by_source(model())
    expected = np.zeros((2, 65))
    expected[0, [8, 9, 20, 30]], expected[1, 40] = [8.0, 6.0, 4.0, 2.0], 15.0
    np.testing.assert_array_equal(found, expected)
    # Bins beside a stronger one belong to the same partial.
    assert results._frequencies(model(), 0, 1280) == [80.0, 200.0, 300.0]
    assert results._frequencies(model(), 1, 1280) == [400.0]
    short = model()
    short.framing_ = STFT(3)
    assert results._frequencies(short, 0, 1280) == []
    silent = model()
    silent.activations_[:, 1] = 0.0
    assert results._frequencies(silent, 1, 1280) == []


def test_frequencies_of_atoms():
    time = np.arange(64) / 640.0
    tones = [100.0, 101.0, 150.0, 200.0, 250.0, 300.0]
    transform = np.stack([np.sin(2 * np.pi * tone * time) for tone in tones])
    found = model(transform_=transform)
    found.model_.components_ = np.diag([6.0, 5.0, 4.0, 3.0, 2.0, 0.01])
    found.model_.n_features_in_ = 64
    found.activations_, found.groups_ = np.ones((2, 6)), np.array([0, 0, 0, 0, 1, 0])
    found.framing_, found.strongest_atoms = Framing(64), lambda n: np.array([0, 4])[:n]
    assert results._frequencies(found, 0, 640) == pytest.approx([100, 150, 200], abs=1.0)
    first, second = results._atoms(found, 640)
    assert (first["atom"], first["source"], second["atom"], second["source"]) == (0, "low", 4, "high")
    assert (first["power_share"], second["power_share"]) == pytest.approx((6 / 20.01, 2 / 20.01))
    assert first["frequency"] == pytest.approx(100, abs=1.0)
    assert first["residual_share"] < 0.01
    assert results._atoms(model(), 640) == []


@pytest.mark.parametrize("bits", [8, 16])
def test_rounded_sources_sum_to_the_rounded_recording(bits, rng):
    sources = rng.uniform(-0.3, 0.3, (3, 50)) * [[0.1], [1.0], [0.5]]
    step = 2.0 ** (1 - bits)
    found = results.rounded(sources, bits)
    np.testing.assert_allclose(found / step, np.rint(found / step), atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=0) / step, np.rint(sources.sum(axis=0) / step), atol=1e-6)
    # Only the loudest one takes what rounding leaves.
    np.testing.assert_allclose(found[[0, 2]], np.rint(sources[[0, 2]] / step) * step, atol=1e-12)
    np.testing.assert_array_equal(results.rounded(np.array([[2.0, -2.0]]), bits), [[1.0 - step, -1.0]])


@pytest.mark.parametrize(("ending", "peak", "kinds", "scale"), [
    ("wav", 0.5, ["PCM_16", "FLOAT", None], 1.0), ("wav", 2.0, ["FLOAT", "FLOAT", None], 1.0),
    ("flac", 0.5, ["PCM_16", "PCM_24", "PCM_24"], 1.0), ("flac", 2.0, ["PCM_16", "PCM_24", "PCM_24"], 0.5),
])  # fmt: skip
def test_sources_have_the_kind_of_samples_of_their_recording(
    ending, peak, kinds, scale, monkeypatch, tmp_path, capsys
):
    written = []
    monkeypatch.setattr(results, "write_sound", lambda *given, subtype: written.append((*given, subtype)))
    sounds = [SimpleNamespace(subtype=kind, rate=100) for kind in ("PCM_16", "FLOAT", "ULAW")]
    sources = [np.array([[0.25, peak]])] * 3
    separated = results.Separated(SimpleNamespace(source_names_=["a"]), sounds, sources, 1.0)
    results.write_sounds(tmp_path, separated, ending)
    assert [subtype for *_, subtype in written] == kinds
    assert [path.name for path, *_ in written] == [f"recording-{at}-a.{ending}" for at in (1, 2, 3)]
    for _, samples, rate, _ in written:
        np.testing.assert_allclose(samples, scale * sources[0][0], atol=1e-4)
        assert rate == 100
    said = capsys.readouterr().err
    assert ("multiplied by 0.5" in said) == (scale == 0.5)
    assert ("32-bit floats" in said) == (ending == "wav" and peak > 1)


@pytest.mark.parametrize("shape", [(40,), (2, 40), (3, 40)])
@pytest.mark.parametrize("cut", [False, True])
def test_players_have_the_recording_and_its_sources(shape, cut, monkeypatch, rng):
    mixture = rng.uniform(-1, 1, shape)
    sources = np.stack([0.25 * mixture, 2.75 * mixture])
    channels = 2 if shape == (2, 40) else 1
    monkeypatch.setattr(results, "PLAYER_BYTES", 2 * 3 * channels * (20 if cut else 40))
    addresses, note = results._players(mixture, sources, 10)
    assert note == ("The players have the first 2 s; the files are complete." if cut else "")
    expected = np.stack([mixture, *sources])
    expected = expected.mean(axis=1) if shape == (3, 40) else expected
    expected = expected[..., : 20 if cut else 40] / max(1.0, np.abs(expected).max())
    for address, signal in zip(addresses, expected, strict=True):
        samples, rate = soundfile.read(
            io.BytesIO(base64.b64decode(address.removeprefix("data:audio/flac;base64,")))
        )
        assert rate == 10
        np.testing.assert_allclose(samples.T, signal, atol=1e-3)


def test_the_table_of_sources():
    entry = {"name": "low", "energy_share": 0.1234, "components": [1, 2, 3, 7], "frequencies": [80.04, 200.0]}
    lines = results.source_table({"sources": [entry]}).splitlines()
    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == [
        "source", "energy", "components", "strongest frequencies (Hz)",
    ]  # fmt: skip
    cells = [cell.strip() for cell in lines[-1].strip("|").split("|")]
    assert cells == ["low", "12.3%", results.wording.ranges([1, 2, 3, 7]), "80.0, 200.0"]
