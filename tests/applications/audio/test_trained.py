"""Pieces of separation with solo recordings, against plain formulas."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.applications.audio import STFT, trained
from nonneg.applications.audio.recordings import checked_recordings
from nonneg.applications.audio.spectrogram import COMPONENTS_PER_SOURCE, REFINEMENTS, band_edges
from nonneg.applications.audio.trained import TEMPLATES_PER_SOURCE, TRANSPOSITIONS, with_transpositions
from nonneg.exceptions import InvalidParameterError
from nonneg.solvers.result import FactorizationResult


def given(**changes):
    options = {
        "max_iter": None, "tol": None, "n_jobs": 1, "verbose": 0, "callback": None, "checkpoint": None,
        "n_sources": 2, "n_components": None, "init": None, "n_init": None, "random_state": 0,
        "method_params": None, "method": "stft",
    }  # fmt: skip
    return SimpleNamespace(**(options | changes))


def test_transpositions_move_frequencies_and_the_rest_is_silent(rng):
    V, frequencies = rng.random((3, 40)), np.linspace(0.0, 4000.0, 40)
    rows = with_transpositions(V, frequencies)
    assert rows.shape == (3 * len(TRANSPOSITIONS), 40)
    for at, semitones in enumerate(TRANSPOSITIONS):
        source = frequencies / 2 ** (semitones / 12)
        expected = [np.where(source <= 4000, np.interp(source, frequencies, row), 0.0) for row in V]
        np.testing.assert_allclose(rows[3 * at : 3 * at + 3], expected, atol=1e-12)
    # Not transposed, the last bin is there too.
    np.testing.assert_allclose(rows[6:9], V)
    assert with_transpositions(V.astype(np.float32), frequencies).dtype == np.float32


@pytest.mark.parametrize("n_frames", [4, 5])
def test_of_many_transposed_frames_evenly_spaced_ones_are_kept(n_frames, monkeypatch):
    monkeypatch.setattr(trained, "MOST_FRAMES", 20)
    V = np.arange(1.0, n_frames + 1)[:, None] * np.ones(6)
    rows = with_transpositions(V, np.arange(6.0))
    assert len(rows) == 20
    everything = np.tile(V[:, 1], 5)
    kept = np.linspace(0, 5 * n_frames - 1, 20).astype(int)
    np.testing.assert_allclose(rows[:, 1], everything[kept])


@pytest.mark.parametrize(
    ("n_sources", "n_components", "n_trained", "expected"),
    [
        (2, None, 2, (TEMPLATES_PER_SOURCE, 0)),
        (3, None, 2, (TEMPLATES_PER_SOURCE, COMPONENTS_PER_SOURCE)),
        (4, None, 2, (TEMPLATES_PER_SOURCE, 2 * COMPONENTS_PER_SOURCE)),
        (2, 17, 2, (8, 0)),
        (3, 17, 2, (5, 7)),
    ],
)
def test_numbers_of_templates(n_sources, n_components, n_trained, expected):
    found = trained._numbers(given(n_sources=n_sources, n_components=n_components), n_trained)
    assert found == expected


def test_a_search_passes_on_what_the_user_set(tmp_path, monkeypatch):
    seen = []

    def record(X, k, **options):
        seen.append(options | {"k": k})
        return SimpleNamespace(W=options["W"], H=options["H"])

    monkeypatch.setattr(trained, "run_factorization", record)
    arrays = np.ones((4, 6)), np.ones((4, 2)), np.ones((2, 6))
    for changes, most in (({}, 100), ({"max_iter": 3, "tol": 0.5, "checkpoint": tmp_path, "verbose": 1}, 3)):
        search = trained._Search(given(**changes), "training on drums", "training-0")
        search.run(*arrays, "bands")
        search.run(*arrays, "bins")
        bands, bins = seen[-2:]
        assert (bands["max_iter"], bins["max_iter"]) == (most, min(most, REFINEMENTS))
        assert (bands["verbose"], bins["verbose"]) == (changes.get("verbose", 0), 0)
        for stage, options in (("bands", bands), ("bins", bins)):
            assert options["tol"] == changes.get("tol", 1e-4)
            assert (options["k"], options["beta"], options["caller"]) == (2, 1.0, "training on drums")
            folder = tmp_path / "training-0" / stage if changes else None
            assert options["checkpoint"] == folder


@pytest.mark.parametrize("n_bins", [20, 120])
def test_an_exact_factorization_stays_one(n_bins, rng):
    # Bins pooled to bands, and the templates of bins scaled by what the bands changed.
    W, H = rng.random((15, 2)) + 0.1, rng.random((2, n_bins)) + 0.1
    found = trained._Search(given(), "", "").run_twice(W @ H, W, 3.0 * H)
    np.testing.assert_allclose(found[0] @ found[1], W @ H, rtol=1e-3)


def test_noise_around_the_mean_spectrum(rng):
    V = rng.random((30, 12)).astype(np.float32)
    W, H = trained._noise(V, 4, np.random.default_rng(0))
    assert W.dtype == H.dtype == np.float32
    np.testing.assert_allclose(H.sum(axis=1), 1.0, rtol=1e-5)
    loud = W / (V.sum(axis=1, keepdims=True) / 4)
    assert 0.5 <= loud.min() < 0.7 < 1.3 < loud.max() <= 1.5 + 1e-5
    shape = H / (V.mean(axis=0) / V.mean(axis=0).sum())
    assert 0.3 < shape.min() < shape.max() < 3.0
    np.testing.assert_array_equal(
        trained._normalized(np.array([[0.0, 0.0], [1.0, 3.0]])), [[0, 0], [0.25, 0.75]]
    )


def test_the_mean_of_two_models_is_a_model(rng):
    V = rng.random((6, 5))
    one, other = (one_update(rng.random((6, k)), rng.random((k, 5))) for k in (2, 3))
    found = trained._average(V, one, other)
    np.testing.assert_allclose(found.W @ found.H, (one.W @ one.H + other.W @ other.H) / 2)
    np.testing.assert_allclose(found.H.sum(axis=1), 1.0)
    model = found.W @ found.H
    assert found.loss == pytest.approx(np.sum(V * np.log(V / model) - V + model))
    assert "stationarity" in [entry.name for entry in found.certificate]


def one_update(W, H):
    from nonneg.data import as_data_matrix
    from nonneg.losses.penalties import Penalties
    from nonneg.solvers.factorize import run_factorization

    found = run_factorization(
        as_data_matrix(W @ H), len(H), beta=1.0, penalties=Penalties(), solver="mu", init="custom", W=W, H=H,
        max_iter=1, tol=0.0,
    )  # fmt: skip
    assert isinstance(found, FactorizationResult)
    return found


def test_activations_of_given_templates(rng):
    W, H = rng.random((10, 2)), np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 1.0]])
    found = trained.encoded(W @ H, H, given())
    np.testing.assert_array_equal(found.H, H)
    np.testing.assert_allclose(found.W, W, rtol=1e-6)  # templates without a bin in common
    model, activations = trained._model_of(found, given())
    assert activations is found.W
    assert (model.n_components_, model.n_features_in_, model.n_init) == (2, 4, 1)
    assert model.reconstruction_err_ == pytest.approx(np.sqrt(2 * max(found.loss, 0.0)))
    assert model.certificate_ is found.certificate


@pytest.mark.parametrize("sound", [0.0, 3.0, 20.0])
def test_own_templates_belong_to_the_source_that_holds_them_unless_they_sound_like_another(
    sound, rng, monkeypatch
):
    # Two sources with bins of their own, never together.
    W, H = np.repeat(np.eye(2), 15, axis=0), np.repeat(np.eye(2), 10, axis=1)
    V = W * (1 + rng.random((30, 1))) @ H + 1e-6
    odds = np.tile([0.0, sound], (2 * COMPONENTS_PER_SOURCE, 1))
    asked = []
    monkeypatch.setattr(trained, "source_odds", lambda *args, **_: (asked.append(args), odds)[1])
    solos = [checked_recordings(rng.random(50), "aligned"), checked_recordings(rng.random(60), "aligned")]
    result, found = trained._own_templates(
        V, H, W, np.array([0, 1]), given(), framing=STFT(38), solos=solos, rate=None
    )
    assert len(found) == len(result.H) == 2 * COMPONENTS_PER_SOURCE
    # Without a rate, pitches are those at librosa's default.
    np.testing.assert_allclose(asked[0][3], np.arange(20) / 38 * 22050.0)
    low = result.H[:, :10].sum(axis=1) > result.H[:, 10:].sum(axis=1)
    loud = result.W.sum(axis=0) * result.H.sum(axis=1) > 1e-2
    # The trained templates are at most a thousand to one sure.
    seen = np.where(low, 0, 1) if sound < np.log(1000) else np.ones(len(found))
    np.testing.assert_array_equal(found[loud], seen[loud])
    w, h = asked[0][5](V)
    assert w.shape == (30, 2 * COMPONENTS_PER_SOURCE)
    np.testing.assert_allclose(w @ h, result.W @ result.H, atol=1e-6)


def test_templates_are_pulled_towards_the_trained_ones(rng, monkeypatch):
    V, templates = rng.random((8, 6)), rng.random((2, 6))
    seen = []
    monkeypatch.setattr(
        trained._Search, "run_twice", lambda self, X, W, H: (seen.append((X, W, H)), (W, H))[1]
    )
    trained._fit_recording(V, templates, 1, given(), np.random.default_rng(0))
    X, W, H = seen[0]
    weight = trained.PRIOR_WEIGHT * V.sum() / 3
    unit = templates / templates.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(X, np.concatenate([V, weight * unit]))
    np.testing.assert_allclose(W[8:], [[weight, 0, 0], [0, weight, 0]])
    np.testing.assert_allclose(H[:2], unit)


@pytest.mark.parametrize("loss", ["kullback-leibler", 1, 1.0])
def test_training_is_for_the_divergence_of_magnitudes(loss):
    trained._check_params(given(method_params={"beta_loss": loss}))
    with pytest.raises(
        InvalidParameterError, match="beta_loss='kullback-leibler', the default, got 'frobenius'"
    ):
        trained._check_params(given(method_params={"beta_loss": "frobenius"}))
    with pytest.raises(InvalidParameterError, match="method='stft', got 'cqt'"):
        trained._check_params(given(method="cqt"))


def test_solo_recordings_as_users_pass_them():
    t = np.sin(np.arange(50.0))
    assert trained.checked_training(None) == {}
    assert list(trained.checked_training([t, t])) == ["source 1", "source 2"]
    assert list(trained.checked_training((t,))) == ["source 1"]
    found = trained.checked_training({"a": t, "b": [t, t[:30]], "c": np.stack([t, t]), "d": list(t)})
    assert {name: solo.lengths for name, solo in found.items()} == {
        "a": [50],
        "b": [50, 30],
        "c": [50],
        "d": [50],
    }
    for wrong in (t, [1.0, 2.0], [], "drums"):
        with pytest.raises(InvalidParameterError, match="training: expected solo recordings"):
            trained.checked_training(wrong)


@pytest.mark.parametrize("n_bins", [20, 120])
def test_bins_change_as_their_bands_do(n_bins, rng, monkeypatch):
    X, W, H = rng.random((9, n_bins)), rng.random((9, 2)), rng.random((2, n_bins))
    edges = band_edges(n_bins)
    bands = np.searchsorted(edges, np.arange(n_bins), side="right") - 1
    factors = rng.random((2, len(edges)))
    seen = []

    def run(self, data, W, H, stage):
        seen.append((stage, data, W, H))
        return (2 * W, H * factors) if stage == "bands" else (W, H)

    monkeypatch.setattr(trained._Search, "run", run)
    found_W, found_H = trained._Search(given(), "", "").run_twice(X, W, H)
    np.testing.assert_array_equal(found_W, 2 * W)
    np.testing.assert_allclose(found_H, H * factors[:, bands])
    assert [entry[0] for entry in seen] == (["bands"] if n_bins == 20 else ["bands", "bins"])
    pooled = np.stack([X[:, bands == band].sum(axis=1) for band in range(len(edges))], axis=1)
    np.testing.assert_allclose(seen[0][1], pooled)
    np.testing.assert_array_equal(seen[-1][1], X)
    # Templates of a source are those after the last fit.
    templates = trained._learned(X, 2, trained._Search(given(), "", ""), np.random.default_rng(0))
    np.testing.assert_array_equal(templates, seen[-1][3] * (factors if n_bins == 20 else 1.0))
