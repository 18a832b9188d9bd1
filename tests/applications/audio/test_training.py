"""Sources that users name: by solo recordings, by groups of components, and in several channels."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg import load
from nonneg.applications import SourceSeparation
from nonneg.exceptions import InvalidDataError, InvalidParameterError
from nonneg.metrics import separation_scores

RATE = 2000
FAST = {"frame_length": 128, "random_state": 0}


def tone(pitch: float, seconds: float = 1.5, phase: float = 0.0) -> np.ndarray:
    """Two partials that swell three times a second."""
    t = np.arange(round(seconds * RATE)) / RATE
    wave = np.cos(2 * np.pi * pitch * t + phase) + 0.5 * np.cos(4 * np.pi * pitch * t + phase)
    return 0.3 * np.sin(3 * np.pi * t) ** 2 * wave


# They always sound together: nothing but training can tell them apart.
TRUE = np.stack([tone(187.0), tone(311.0, phase=1.0)])
MIXTURE = TRUE.sum(axis=0)
SOLOS = {"low": tone(187.0, 1.0, 0.5), "high": tone(311.0, 0.8, 0.7)}


def test_solo_recordings_separate_what_always_sounds_together(tmp_path):
    model = SourceSeparation(n_components=16, **FAST)
    found = model.fit_separate(MIXTURE, RATE, training=SOLOS)
    assert model.source_names_ == ("low", "high")
    np.testing.assert_allclose(found.sum(axis=0), MIXTURE, atol=1e-13)
    assert model.divergences_[0] < model.divergences_[1]
    blind = SourceSeparation(2, **FAST).fit_separate(MIXTURE, RATE)
    better, untrained = (separation_scores(TRUE, one, distortion="gain").sdr.min() for one in (found, blind))
    assert better > 20
    assert better > untrained + 10
    # In the order of the training recordings.
    assert all(np.corrcoef(TRUE[at], found[at])[0, 1] > 0.99 for at in (0, 1))
    np.testing.assert_array_equal(model.separate(MIXTURE), found)
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert loaded.source_names_ == ("low", "high")
    np.testing.assert_array_equal(loaded.separate(MIXTURE), model.separate(MIXTURE))


def test_a_source_without_training_is_the_rest():
    t = np.arange(len(MIXTURE)) / RATE
    burst = 0.3 * np.random.default_rng(0).standard_normal(len(t)) * (t % 0.5 < 0.03)
    model = SourceSeparation(**FAST)
    # Several recordings of a source, one with two channels.
    training = {"low": [SOLOS["low"], np.stack([SOLOS["low"], 0.5 * SOLOS["low"]])]}
    found = model.fit_separate(TRUE[0] + burst, RATE, training=training)
    assert model.source_names_ == ("low", "rest")
    np.testing.assert_allclose(found.sum(axis=0), TRUE[0] + burst, atol=1e-13)
    assert all(
        np.corrcoef(one, other)[0, 1] > 0.8 for one, other in zip([TRUE[0], burst], found, strict=True)
    )
    model = SourceSeparation(n_components=8, **FAST)
    single = model.fit_separate(MIXTURE.astype(np.float32), RATE, training=SOLOS)
    assert single.dtype == model.model_.components_.dtype == np.float32
    further = SourceSeparation(4, n_components=9, **FAST).fit(MIXTURE + burst, RATE, training=SOLOS)
    assert further.source_names_ == ("low", "high", "source 3", "source 4")


def test_notes_that_no_solo_has_belong_to_the_source_that_sounds_alike():
    t = np.arange(2 * RATE) / RATE

    def notes(pitches):
        gates = np.stack([(t // 0.25 % len(pitches)) == at for at in range(len(pitches))])
        return sum(
            g * np.cos(2 * np.pi * p * t) * np.exp(-(t % 0.25) * 4)
            for g, p in zip(gates, pitches, strict=True)
        )

    def hiss(seed):
        return 0.5 * np.random.default_rng(seed).standard_normal(len(t)) * np.exp(-(t % 0.4) * 40)

    true = np.stack([notes([130.0, 190.0, 250.0]), hiss(0)])
    model = SourceSeparation(random_state=0)
    found = model.fit_separate(
        true.sum(axis=0), RATE, training={"notes": notes([160.0, 220.0]), "hiss": hiss(1)}
    )
    # Templates of the other notes do not explain these; components of the recording do.
    assert model.divergences_[1] < model.divergences_[0]
    assert separation_scores(true, found, distortion="gain").sir.min() > 15


def test_what_training_refuses():
    def refused(match, error=InvalidParameterError, **changes):
        fit = {"training": SOLOS} | {key: changes.pop(key) for key in ("training",) if key in changes}
        with pytest.raises(error, match=match):
            SourceSeparation(**(FAST | changes)).fit(MIXTURE, RATE, **fit)

    silent, short = SOLOS | {"low": np.zeros(500)}, SOLOS | {"high": SOLOS["high"][:99]}
    refused("The training recording of 'low' is silent", InvalidDataError, training=silent)
    refused(
        "recording of 'high' has 99 samples, less than one frame of 128", InvalidDataError, training=short
    )
    refused("training recordings of 2 sources .low, high., but n_sources=1", n_sources=1)
    refused("leave grouping .--group. out", grouping={"low": [0], "high": [1]})
    refused("need method='stft', got 'dct'", method="dct")
    refused("expected solo recordings by the names of their sources", training=SOLOS["low"])
    refused("expected solo recordings .* got none", training={})
    refused("expected solo recordings .* got list", training=list(SOLOS.values()))
    refused("expected the name of a source, got ''", training={"": SOLOS["low"]})


def test_components_are_grouped_by_hand_and_by_name(tmp_path):
    grouping = {"low": [0, 2], "high": [3]}
    model = SourceSeparation(n_components=4, grouping=grouping, **FAST).fit(MIXTURE, RATE)
    assert model.source_names_ == ("low", "high", "rest")
    assert model.groups_.tolist() == [0, 2, 0, 1]
    before = model.separate(MIXTURE)
    model.regroup({"all but one": [0, 2, 3], "one": 1})
    assert (model.source_names_, model.groups_.tolist()) == (("all but one", "one"), [0, 1, 0, 0])
    assert model.energy_shares_.sum() == pytest.approx(1.0)
    after = model.separate(MIXTURE)
    assert (before.shape, after.shape) == ((3, len(MIXTURE)), (2, len(MIXTURE)))
    np.testing.assert_allclose(after.sum(axis=0), MIXTURE, atol=1e-13)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(load(tmp_path / "model.npz").separate(MIXTURE), after)
    for bad, match in (
        ({"a": [4]}, "component 4 to 'a', but the 4 components are numbered from 0 to 3"),
        ({"a": [0], "b": [1, 0]}, "component 0 to 'a' and to 'b' .the first is 0, on the command line 1"),
        ({"a": []}, "expected the components of 'a'"),
        ({"rest": [1]}, "'rest' is the name of the source of all components that are not listed"),
        ("timbre", "Expected the components of each source"),
    ):
        with pytest.raises(InvalidParameterError, match=match):
            model.regroup(bad)
    # Names may be more than the sources that set the number of components.
    three = SourceSeparation(2, grouping={"a": [0], "b": [1], "c": [2]}, **FAST).fit(MIXTURE, RATE)
    assert (three.source_names_, len(three.groups_)) == (("a", "b", "c", "rest"), 16)


def test_a_named_source_may_have_nearly_all_of_the_energy():
    model = SourceSeparation(2, n_components=4, **FAST).fit(MIXTURE, RATE)
    weakest = int(np.argmin(model.activations_.sum(axis=0) * model.model_.components_.sum(axis=1)))
    others = [at for at in range(4) if at != weakest]
    model.model_.components_[weakest] *= 1e-3
    model.regroup({"much": others, "little": [weakest]})
    assert model.energy_shares_.max() > 0.9
    assert model.energy_shares_.sum() == pytest.approx(1.0)


def test_channels_share_components_and_have_their_own_masks():
    pan = np.array([[1.0, 0.1], [0.2, 1.0]])
    true = pan[:, :, None] * TRUE[:, None]
    stereo = true.sum(axis=0)
    model = SourceSeparation(n_components=16, **FAST)
    found = model.fit_separate(stereo, RATE, training=SOLOS)
    assert found.shape == (2, 2, len(MIXTURE))
    np.testing.assert_allclose(found.sum(axis=0), stereo, atol=1e-13)
    for channel in (0, 1):
        assert separation_scores(true[:, channel], found[:, channel], distortion="gain").sdr.min() > 15
