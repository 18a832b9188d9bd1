"""Spectrograms: frames, bands and magnitudes by their definitions, and what a fit does with them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.applications.audio import spectrogram
from nonneg.applications.audio.recordings import checked_recordings
from nonneg.applications.audio.spectrogram import (
    COMPONENTS_PER_SOURCE,
    REFINEMENTS,
    band_edges,
    concentrated_framing,
    fit_spectrogram,
    is_simple,
    low_framing,
    magnitudes,
    spectrogram_framing,
)
from nonneg.applications.audio.stft import STFT, automatic_frame_length

# Few iterations are enough to see what is asked here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
OPTIONS = {
    "beta_loss": "kullback-leibler", "solver": "auto", "init": "random", "n_init": 1, "max_iter": 30,
    "tol": 1e-4, "random_state": 0, "verbose": 0, "n_jobs": 1, "callback": None,
}  # fmt: skip


@pytest.mark.parametrize("exponent", [1, 0.5, 2.0])
def test_magnitudes_are_root_mean_squares_over_recordings(exponent, rng):
    parts = [rng.standard_normal((2, 3, 4)) + 1j * rng.standard_normal((2, 3, 4)), np.ones((1, 2, 4))]
    rows = [np.sqrt((np.abs(part) ** 2).mean(axis=0)) for part in parts]
    expected = np.concatenate(rows) ** exponent
    np.testing.assert_allclose(magnitudes(parts, exponent), expected / expected.mean())
    np.testing.assert_array_equal(magnitudes([np.zeros((1, 2, 3))], exponent), 0.0)
    np.testing.assert_allclose(
        magnitudes([1e-3 * part for part in parts], exponent), expected / expected.mean()
    )
    assert magnitudes([part.astype(np.complex64) for part in parts], exponent).dtype == np.float32


def test_magnitudes_are_not_raised_to_a_power_by_default():
    np.testing.assert_allclose(magnitudes([np.array([[[1.0, 3.0]]])]), [[0.5, 1.5]])


def test_bands_are_single_bins_and_then_half_semitones():
    assert band_edges(1).tolist() == [0]
    # A band of half a semitone at bin 51 is one and a half bins wide.
    assert band_edges(52).tolist() == list(range(52))
    for n_bins in (100, 1025):
        edges = band_edges(n_bins)
        widths = np.diff([*edges, n_bins])
        np.testing.assert_array_equal(
            widths[:-1], np.maximum(np.round(edges[:-1] * (2 ** (1 / 24) - 1)), 1).astype(int)
        )
        assert 0 < widths[-1] <= max(round(edges[-1] * (2 ** (1 / 24) - 1)), 1)
        assert edges[0] == 0


@pytest.mark.parametrize(
    ("n_samples", "rate", "expected"),
    [
        (100_000, None, 2048),
        (8192, None, 2048),
        (8191, None, 1024),
        (100_000, 22050, 2048),
        (100_000, 44100, 4096),
        (100_000, 8000, 1024),
        (100_000, 100, 16),
        (100_000, 1, 16),
        (1, 22050, 16),
        (64, 22050, 16),
        (127, 22050, 16),
        (128, 22050, 32),
    ],
)
def test_frames_are_as_long_as_those_of_librosa(n_samples, rate, expected):
    assert automatic_frame_length(n_samples, rate) == expected
    recordings = SimpleNamespace(shortest=n_samples)
    found = spectrogram_framing(recordings, None, None, None, rate)
    assert (found.frame_length, found.step, found.window) == (expected, expected // 4, "hann")
    given = spectrogram_framing(recordings, 48, 12, "sine", rate)
    assert (given.frame_length, given.step, given.window) == (48, 12, "sine")


def spread(signal, length):
    values = np.abs(STFT(length).analyze(signal))
    return values.sum() / np.sqrt(np.sum(values**2) * values.size)


@pytest.mark.parametrize(
    ("n_samples", "factors"), [(1023, [1]), (255, [1]), (1024, [1, 2]), (2047, [1, 2]), (2048, [1, 2, 4])]
)
def test_longer_frames_are_taken_where_they_concentrate_the_energy(n_samples, factors):
    t = np.arange(n_samples)
    steady = np.sin(2 * np.pi * 0.1013 * t) + np.sin(2 * np.pi * 0.1057 * t)
    clicks = np.where(t % 400 == 200, 1.0, 0.0)
    framing = STFT(128)
    for signal in (steady, clicks):
        found = concentrated_framing(checked_recordings(signal, "aligned"), framing)
        spreads = np.array([spread(signal, 128 * factor) for factor in factors])
        expected = 128 * next(
            factor for factor, value in zip(factors, spreads, strict=True) if 0.9 * value <= spreads.min()
        )
        assert (found.frame_length, found.step, found.window) == (expected, expected // 4, "hann")
    # Parts in a row count together.
    pieces = [steady[: n_samples // 2], clicks[: n_samples // 2]]
    both = checked_recordings(pieces, "consecutive")
    values = np.concatenate([np.abs(STFT(64).analyze(piece)).ravel() for piece in pieces])
    expected = values.sum() / np.sqrt(np.sum(values**2) * values.size)
    assert spectrogram._spread(both, STFT(64)) == pytest.approx(expected)


def test_silence_has_no_spread():
    assert spectrogram._spread(checked_recordings(np.zeros(200), "aligned"), STFT(64)) == 1.0


def test_a_share_of_low_sounds_decides_on_longer_frames():
    recordings, framing = SimpleNamespace(shortest=100_000), STFT(1024, None, "hann")
    V = np.zeros((2, 513))
    V[:, 3] = np.sqrt(0.66)  # at 150 Hz exactly the sound is no longer low
    V[:, 100] = np.sqrt(0.34)
    assert low_framing(V, framing, recordings, 49152.0).frame_length == 2048  # 144 Hz
    assert low_framing(V, framing, recordings, 51200.0) is framing  # 150 Hz
    V[:, 3] = V[:, 100]
    assert low_framing(V, framing, recordings, 49152.0) is framing


def low_rank(n_bins: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random((40, 2)) ** 2) @ (rng.random((2, n_bins)) ** 2) + 1e-3


def test_two_components_explain_a_spectrogram_of_two():
    assert is_simple(low_rank(30), 2, True, **OPTIONS)
    assert not is_simple(np.eye(40)[:, :30] + 1e-3, 2, True, **OPTIONS)
    assert is_simple(low_rank(200), 2, False, **OPTIONS)


def test_powers_are_those_per_bin(monkeypatch):
    # A model that explains single bins and no wide band, and the reverse.
    widths = np.diff([*band_edges(110), 110])
    for explained, simple in ((widths == 1, True), (widths > 1, False)):
        fit = {
            "fit_transform": lambda self, V: np.eye(len(V)),
            "components_": np.diag(explained.astype(float)),
        }
        monkeypatch.setattr(spectrogram, "NMF", lambda *_, fit=fit, **__: type("Model", (), fit)())
        # Every band has the same sum, which is a share of its width in every bin.
        V = np.repeat(np.eye(len(widths)) / widths, widths, axis=1)
        shares = (1 / widths)[~explained].sum() / (1 / widths).sum()
        assert (shares <= 0.2) == simple
        assert is_simple(V, 2, True, **OPTIONS) == simple


@pytest.mark.parametrize("continuity", [0.0, 0.3])
@pytest.mark.parametrize("n_components", [None, 3])
def test_a_fit_has_as_many_components_as_asked_for(continuity, n_components):
    V = low_rank(90)
    model, W = fit_spectrogram(V, 1, n_components, continuity=continuity, **OPTIONS)
    k = COMPONENTS_PER_SOURCE if n_components is None else n_components
    assert (W.shape, model.components_.shape) == ((40, k), (k, 90))
    assert model.n_iter_ <= REFINEMENTS
    np.testing.assert_allclose((W @ model.components_).sum(axis=0), V.sum(axis=0), rtol=0.05)


def test_where_bands_are_bins_the_first_fit_is_the_last():
    model, _ = fit_spectrogram(low_rank(30), 2, 2, **(OPTIONS | {"tol": 0.0}))
    assert model.n_iter_ == 30
    unpooled, _ = fit_spectrogram(low_rank(90), 2, 2, pool=False, **(OPTIONS | {"tol": 0.0}))
    assert unpooled.n_iter_ == 30


def test_checkpoints_of_bands_and_bins_are_in_folders_of_their_own(tmp_path):
    fit_spectrogram(low_rank(90), 2, 2, checkpoint=tmp_path, **OPTIONS)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["bands", "bins"]
    fit_spectrogram(
        low_rank(90), 2, 2, checkpoint=tmp_path / "b", continuity=0.1, **(OPTIONS | {"n_init": 2})
    )
    assert sorted(entry.name for entry in (tmp_path / "b").iterdir()) == ["bands-0", "bands-1", "bins"]


def test_the_best_of_several_initializations_is_kept(monkeypatch):
    losses = iter([5.0, 3.0, 4.0])
    seen = []

    def one_run(V, W, H, priors, **_):
        seen.append(priors)
        loss = next(losses)
        history = SimpleNamespace(loss=[9.0, loss])
        return SimpleNamespace(history=history, state=SimpleNamespace(W=loss, H=-loss))

    monkeypatch.setattr(spectrogram, "factorize_with_priors", one_run)
    options = OPTIONS | {"n_init": 3}
    assert spectrogram._with_priors(low_rank(20), 5, 0.2, True, None, options) == (3.0, -3.0)
    # Half of the components are harmonic, one more if their number is odd.
    np.testing.assert_array_equal(seen[0].smooth_W, [0.2, 0.2, 0.2, 0.0, 0.0])
    losses = iter([5.0])
    assert spectrogram._with_priors(low_rank(20), 5, 0.2, False, None, OPTIONS) == (5.0, -5.0)
    np.testing.assert_array_equal(seen[-1].smooth_W, 0.2)
