"""What methods of separation are given, and what they pass on."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.applications import SourceSeparation
from nonneg.applications.audio import methods
from nonneg.applications.audio.constant_q import ConstantQ
from nonneg.applications.audio.frames import Framing
from nonneg.applications.audio.lapped import LappedFraming
from nonneg.applications.audio.recordings import checked_recordings
from nonneg.applications.audio.stft import STFT
from nonneg.exceptions import InvalidParameterError

SIGNAL = np.random.default_rng(0).standard_normal(400)
RECORDINGS = checked_recordings(SIGNAL, "aligned")


@pytest.mark.parametrize("name", ["exponent", "mask_exponent"])
def test_exponents_are_above_zero_and_at_most_ten(name):
    for value in (0.5, 1, 10):
        assert methods.spectrogram_params({name: value})[name] == value
    for value in (0, 10.5):
        with pytest.raises(InvalidParameterError, match=f"{name} must be a number above 0"):
            methods.spectrogram_params({name: value})


@pytest.mark.parametrize(
    ("params", "weight"),
    [
        ({}, 0.3),
        ({"beta_loss": 1}, 0.3),
        ({"beta_loss": 2}, 0.0),
        ({"solver": "hals"}, 0.0),
        ({"continuity": 0}, 0),
        ({"continuity": 0, "solver": "mu"}, 0),
        ({"continuity": 2}, 2),
    ],
)
def test_weights_of_the_continuity(params, weight):
    found = methods.spectrogram_params(params)
    assert found["continuity"] == weight
    assert (found["exponent"], found["mask_exponent"]) == (1.0, 2.0)


def test_what_the_user_says_goes_before_the_defaults():
    given = SourceSeparation(2, n_init=4, tol=0.0, random_state=3, n_jobs=1, verbose=2)
    found = methods.search_of(given, methods.SPECTROGRAM_SEARCH)
    assert found == {
        "init": "random", "n_init": 4, "max_iter": 200, "tol": 0.0,
        "random_state": 3, "verbose": 2, "n_jobs": 1, "callback": None,
    }  # fmt: skip


@pytest.mark.parametrize("rate", [None, 8000])
def test_frequencies_of_bins_and_atoms(rate):
    scale = 1.0 if rate is None else 8000.0
    np.testing.assert_allclose(methods.bin_frequencies(STFT(16), None, rate), np.arange(9) / 16 * scale)
    transform = ConstantQ(4000)
    np.testing.assert_array_equal(methods.bin_frequencies(transform, None, rate), transform.frequencies)
    # Sines with a whole number of periods, and one with two frequencies.
    t = np.arange(16)
    atoms = np.stack([np.sin(2 * np.pi * k * t / 16) for k in (1, 3)] + [np.cos(np.pi * t / 4)])
    atoms[2] += np.cos(np.pi * t / 2)
    found = methods.bin_frequencies(Framing(16), SimpleNamespace(transform_=atoms), rate)
    np.testing.assert_allclose(found, np.array([1, 3, 3]) / 16 * scale)


def test_coefficients_and_signals_of_spectrograms_and_frames():
    model = SimpleNamespace(analyze=lambda x: 2 * x, synthesize=lambda x: x / 2, transform=lambda x: x.sum())
    parts = checked_recordings([SIGNAL, SIGNAL[:300]], "consecutive")
    given = SourceSeparation(2, method_params={"mask_exponent": 1.5, "exponent": 2})
    for framing in (STFT(32), ConstantQ(4000)):
        found = methods.coefficients(framing, None, parts)
        np.testing.assert_array_equal(found[1], framing.analyze(SIGNAL[:300]))
        np.testing.assert_allclose(methods.synthesized(framing, None, found[0], 400)[0], SIGNAL, atol=1e-12)
        assert methods.mask_exponent(framing, given) == 1.5
    V = methods.spectrogram(STFT(32), parts, given)
    assert V.shape == (STFT(32).n_frames(400) + STFT(32).n_frames(300), 17)
    powers = np.concatenate([np.abs(STFT(32).analyze(part)[0]) ** 2 for part in (SIGNAL, SIGNAL[:300])])
    np.testing.assert_allclose(V, powers / powers.mean())
    assert methods.encoded(STFT(32), model, parts, given) == pytest.approx(V.sum())
    for framing in (Framing(32), LappedFraming(32)):
        found = methods.coefficients(framing, model, parts)
        np.testing.assert_array_equal(found[1], 2 * framing.split(SIGNAL[:300]))
        np.testing.assert_allclose(methods.synthesized(framing, model, found[0], 400)[0], SIGNAL, atol=1e-12)
        assert methods.mask_exponent(framing, given) == 1.0
        total = framing.split(SIGNAL).sum() + framing.split(SIGNAL[:300]).sum()
        assert methods.encoded(framing, model, parts, given) == pytest.approx(total)


class Fitted(Exception):
    """What a fit was given."""


@pytest.mark.parametrize(
    ("options", "framing", "reference"),
    [
        ({}, Framing(512, 256, ("tukey", 0.1)), "dct"),
        ({"frame_length": 32, "hop": 8, "window": "sine"}, Framing(32, 8, "sine"), "dct"),
        ({"lapped": True, "frame_length": 32}, LappedFraming(32, "sine"), "dct-iv"),
    ],
)
def test_frames_are_cut_as_documented(options, framing, reference, monkeypatch):
    def model(k, **params):
        return SimpleNamespace(fit=lambda frames: (_ for _ in ()).throw(Fitted(k, params, frames)))

    monkeypatch.setattr(methods, "TransformNMF", model)
    signal = np.random.default_rng(1).standard_normal(2000)
    recordings = checked_recordings(signal, "aligned")
    for n_components, method in ((None, "transform"), (5, "jd")):
        given = SourceSeparation(3, method=method, eps0=0.1, average_frames=2, **options)
        with pytest.raises(Fitted) as found:
            methods.fit_frames(given, recordings, n_components, 8000)
        k, params, frames = found.value.args
        assert k == (3 if n_components is None else 5)
        np.testing.assert_array_equal(frames, framing.split(signal))
        assert params["init"] == params["reference"] == reference
        assert params["method"] == ("auto" if method == "transform" else "jd")
        assert (params["eps0"], params["average_frames"]) == (0.1, 2)
        assert (params["n_init"], params["max_iter"], params["tol"]) == (3, 100, 1e-7)
    given = SourceSeparation(3, method="tl", init="random", **options)
    with pytest.raises(Fitted) as found:
        methods.fit_frames(given, recordings, None, None)
    assert found.value.args[1]["init"] == "random"


@pytest.mark.parametrize(("rate", "expected"), [(None, 22050), (4000, 4000)])
def test_the_constant_q_transform_has_a_rate(rate, expected):
    given = SourceSeparation(2, method="cqt", hop=50)
    found = methods._spectrogram_transform(given, RECORDINGS, rate)
    assert (found.rate, found.step) == (expected, 50)
    for name, value in (("frame_length", 64), ("window", "hann")):
        with pytest.raises(InvalidParameterError, match=f"'cqt' does not accept {name}; 'stft' does"):
            methods._spectrogram_transform(
                SourceSeparation(2, method="cqt", **{name: value}), RECORDINGS, rate
            )


def stages(monkeypatch, given, n_components, *, simple, longer=None, deep=None):
    """Return the framing of a fit by `fit_stft`, and what it was asked to fit."""
    seen = {}
    monkeypatch.setattr(methods, "is_simple", lambda V, n, pool, **_: simple)
    monkeypatch.setattr(methods, "concentrated_framing", lambda _, framing: longer or framing)
    monkeypatch.setattr(methods, "low_framing", lambda V, framing, *_: deep or framing)

    def fit(V, n_sources, k, **options):
        seen.update(options, V=V, n_sources=n_sources, k=k)
        return "model", "activations"

    monkeypatch.setattr(methods, "fit_spectrogram", fit)
    framing, *rest = methods.fit_stft(given, RECORDINGS, n_components, 8000)
    assert rest == ["model", "activations"]
    assert seen["V"].shape[1] == framing.n_bins
    return framing, seen


@pytest.mark.parametrize(
    ("n_components", "simple", "k", "length"),
    [(None, True, 2, 64), (2, False, 2, 64), (None, False, None, 32), (5, True, 5, 32)],
)
def test_one_component_per_source_has_longer_frames(n_components, simple, k, length, monkeypatch):
    options = {"simple": simple, "longer": STFT(64), "deep": STFT(32)}
    found, seen = stages(monkeypatch, SourceSeparation(2), n_components, **options)
    assert (found.frame_length, seen["k"], seen["n_sources"], seen["pool"]) == (length, k, 2, True)
    if length == 32:
        assert (seen["continuity"], seen["percussive"]) == (0.3, False)
    # Frames that the user chose stay.
    for given in (SourceSeparation(2, frame_length=100), SourceSeparation(2, hop=20, frame_length=100)):
        assert stages(monkeypatch, given, n_components, **options)[0].frame_length == 100
    usual = stages(monkeypatch, SourceSeparation(2), 5, simple=False)[0].frame_length
    assert stages(monkeypatch, SourceSeparation(2, hop=5), n_components, **options)[0].frame_length == usual


def test_harmonic_and_percussive_parts_have_several_components(monkeypatch):
    given = SourceSeparation(2, grouping="harmonic-percussive")
    assert stages(monkeypatch, given, None, simple=True)[1]["k"] is None
    assert stages(monkeypatch, given, 2, simple=True)[1]["percussive"] is True
    constant = SourceSeparation(2, method="cqt")
    assert stages(monkeypatch, constant, None, simple=True)[1]["pool"] is False
    assert stages(monkeypatch, constant, None, simple=False)[1]["pool"] is False
