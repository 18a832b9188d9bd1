"""Sources of recordings: they sum to the recording, and are those that were mixed."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.data import instrument_sound

from nonneg.applications import SourceSeparation
from nonneg.exceptions import (
    InvalidDataError,
    InvalidParameterError,
    NonFiniteDataError,
    ShapeError,
    UnknownNameError,
)
from nonneg.metrics import separation_scores

RATE = 1000


def notes(n_samples: int = 3000, phase: float = 0.0) -> np.ndarray:
    """Two notes of two partials off the grid of the cosine transform: one, the other, both."""
    t = np.arange(n_samples)
    bumps = [np.where(t // 1000 == part, np.sin(np.pi * t / 1000) ** 2, 0.0) for part in range(3)]
    gates = bumps[0] + bumps[2], bumps[1] + bumps[2]
    return np.stack(
        [
            gate * (np.cos(2 * np.pi * f * t / RATE + phase) + 0.5 * np.cos(4 * np.pi * f * t / RATE + phase))
            for gate, f in zip(gates, (83.0, 109.0), strict=True)
        ]
    )


def separation(**changes):
    options = {"method": "tl", "frame_length": 40, "max_iter": 40, "random_state": 0}
    return SourceSeparation(**({"n_sources": 2} | options | changes))


def ratio(true, found):
    return separation_scores(true, found, distortion="gain").sdr.min()


def test_a_learnt_transform_separates_better_than_the_cosine_transform():
    true = notes()
    mixture = true.sum(axis=0)
    learned = separation()
    found = learned.fit_separate(mixture, RATE)
    assert found.shape == (2, 3000)
    np.testing.assert_allclose(found.sum(axis=0), mixture, atol=1e-13)
    fixed = separation(method="dct").fit_separate(mixture)
    np.testing.assert_allclose(fixed.sum(axis=0), mixture, atol=1e-13)
    assert ratio(true, found) > 20
    assert ratio(true, found) > ratio(true, fixed) + 5
    power = learned.activations_.sum(axis=0) @ learned.model_.components_
    strongest = learned.model_.transform_[np.argsort(-power)[:2]]
    peaks = np.abs(np.fft.rfft(strongest, 2**14)).argmax(axis=1)
    frequencies = np.fft.rfftfreq(2**14, 1 / RATE)[peaks]
    assert np.isclose(frequencies[:, None], [83.0, 109.0], atol=1.5).any(axis=1).all()
    # A recording that the fit has not seen.
    again = learned.separate(notes(2500, phase=1.0).sum(axis=0))
    assert ratio(notes(2500, phase=1.0), again) > 15


def test_aligned_recordings_share_activations():
    true = np.stack([notes(phase=phase) for phase in (0.0, 1.0, 2.0)], axis=1)
    model = separation(method="jd")
    found = model.fit_separate(true.sum(axis=0))
    assert found.shape == (2, 3, 3000)
    np.testing.assert_allclose(found.sum(axis=0), true.sum(axis=0), atol=1e-13)
    assert model.model_.activations_.shape[0] == model.framing_.n_frames(3000)
    assert min(ratio(true[:, signal], found[:, signal]) for signal in range(3)) > 20


def test_several_components_a_source():
    true = notes()
    learned = separation(n_components=4)
    found = learned.fit_separate(true.sum(axis=0))
    assert len(learned.groups_) == 4
    assert set(learned.groups_.tolist()) == {0, 1}
    assert found.shape == (2, 3000)
    given = separation(n_components=3, grouping={"a": [1], "b": [0, 2]}, max_iter=5)
    assert given.fit_separate(true.sum(axis=0)).shape == (2, 3000)
    assert given.groups_.tolist() == [1, 0, 1]


def test_what_is_refused():
    sound = notes().sum(axis=0)
    with pytest.raises(InvalidDataError, match="less than one frame of 40"):
        separation().fit(sound[:39])
    with pytest.raises(InvalidDataError, match="is silent"):
        separation().fit(0 * sound)
    with pytest.raises(InvalidDataError, match="is silent: all samples are equal"):
        separation().fit(0 * sound + 0.25)
    # As files of sound are often read: one column a channel.
    with pytest.raises(InvalidDataError, match=r"has 2 samples.*Recordings are rows: pass signals\.T"):
        separation().fit(np.stack([sound, sound], axis=1))
    for rate in ("fast", -5, float("inf"), True):
        with pytest.raises(InvalidParameterError, match="rate must be None or a sampling rate"):
            separation().fit(sound, rate)
    broken = sound.copy()
    broken[7] = np.inf
    with pytest.raises(NonFiniteDataError, match="Sample 7 of recording 0 is inf"):
        separation().fit(broken)
    with pytest.raises(ShapeError, match="recordings of equal length"):
        separation().fit([sound, sound[:9]])
    with pytest.raises(InvalidParameterError, match="n_components=1 is less than n_sources=2"):
        separation(n_components=1).fit(sound)
    with pytest.raises(InvalidParameterError, match="n_sources must be an integer"):
        SourceSeparation(0).fit(sound)
    with pytest.raises(InvalidParameterError, match="Expected the components of each source"):
        separation(grouping=[0, 1]).fit(sound)
    with pytest.raises(UnknownNameError, match="grouping='activation' is not known"):
        separation(grouping="activation").fit(sound)
    with pytest.raises(UnknownNameError, match="does not accept n_nmf_update"):
        separation(method_params={"n_nmf_update": 2}).fit(sound)


def test_the_default_separates_two_notes_and_an_instrument_from_drums():
    true = notes()
    model = SourceSeparation(2, random_state=0)
    found = model.fit_separate(true.sum(axis=0), RATE)
    np.testing.assert_allclose(found.sum(axis=0), true.sum(axis=0), atol=1e-13)
    assert ratio(true, found) > 25
    np.testing.assert_array_equal(model.separate(true.sum(axis=0)), found)
    rate = 8000
    parts = np.stack([instrument_sound(name, 3.0, rate=rate, rng=5) for name in ("piano", "drums")])
    model = SourceSeparation(2, random_state=0)
    assert ratio(parts, model.fit_separate(parts.sum(axis=0), rate)) > 8
    assert len(model.groups_) == 16
    assert 0.5 <= model.energy_shares_.max() < 0.95
    # The certificate has the number of every proposal, and the smallest one was taken.
    grouping = model.certificate_["grouping"]
    assert list(grouping.quantities.values()) == model.proposals_.tolist()
    assert grouping.number == model.proposals_.min()
    # Loudness does not matter.
    louder = SourceSeparation(2, random_state=0).fit(1024 * parts.sum(axis=0), rate)
    np.testing.assert_allclose(louder.model_.components_, model.model_.components_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method_params": {"continuity": 0}, "max_iter": 30},
        {"method": "transform", "frame_length": 40, "max_iter": 30},
    ],
)
def test_aligned_recordings_by_any_method(options):
    signals = np.stack([notes(phase=phase).sum(axis=0) for phase in (0.0, 1.0)])
    aligned = SourceSeparation(2, random_state=0, n_init=1, **options)
    found = aligned.fit_separate(signals)
    assert found.shape == (2, 2, 3000)
    np.testing.assert_allclose(found.sum(axis=0), signals, atol=1e-13)


def test_what_methods_do_not_accept():
    sound = notes().sum(axis=0)
    with pytest.raises(UnknownNameError, match="method='stft' does not accept eps0"):
        SourceSeparation(2, method_params={"eps0": 0.1}).fit(sound)
    with pytest.raises(UnknownNameError, match="Did you mean 'stft'"):
        SourceSeparation(2, method="stf").fit(sound)
    with pytest.raises(InvalidParameterError, match="begins with init='random', got 'nndsvd'"):
        SourceSeparation(2, init="nndsvd").fit(sound)
    with pytest.raises(InvalidParameterError, match="continuity must be a finite number of at least 0"):
        SourceSeparation(2, method_params={"continuity": -1}).fit(sound)


def test_frames_are_as_long_as_concentrates_the_energy():
    rate = 22050
    t = np.arange(2 * rate) / rate
    steady = np.sin(2 * np.pi * 440 * t) + np.sin(2 * np.pi * 466 * t)
    clicks = (np.arange(len(t)) % 2205 < 2).astype(float)
    options = {"n_components": 2, "grouping": {"a": [0], "b": [1]}, "max_iter": 1, "random_state": 0}
    lengths = [
        SourceSeparation(**options).fit(sound, rate).framing_.frame_length for sound in (steady, clicks)
    ]
    assert lengths == [8192, 1024]
    given = SourceSeparation(frame_length=300, **options).fit(steady, rate).framing_
    assert (given.frame_length, given.hop) == (300, 75)


def test_smooth_activations_are_smoother_and_hum_is_told_from_clicks():
    rng = np.random.default_rng(0)
    signal = notes().sum(axis=0) + 0.05 * rng.standard_normal(3000)

    def roughness(continuity):
        params = {"continuity": continuity}
        model = SourceSeparation(2, n_components=6, random_state=0, method_params=params).fit(signal, RATE)
        W = model.activations_
        return (np.square(np.diff(W, axis=0)).sum(axis=0) / np.square(W).sum(axis=0)).mean()

    assert roughness(10.0) < 0.7 * roughness(0.0)


def test_a_run_is_taken_up_again(tmp_path):
    signal = notes().sum(axis=0)
    options = {"random_state": 0, "checkpoint": str(tmp_path)}
    whole = SourceSeparation(2, max_iter=30, tol=0, random_state=0).fit_separate(signal, RATE)
    SourceSeparation(2, max_iter=10, tol=0, **options).fit(signal, RATE)
    again = SourceSeparation(2, max_iter=30, tol=0, **options)
    np.testing.assert_array_equal(again.fit_separate(signal, RATE), whole)
    assert again.model_.n_iter_ == 30
