"""What is known about pairs of components, against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.audio import affinity
from nonneg.applications.audio.affinity import component_features, pair_features, roughness

W = np.random.default_rng(0).random((12, 4)) ** 3
H = np.random.default_rng(1).random((4, 40)) ** 3
FREQUENCIES = np.arange(40) * 100.0


def logistic(x):
    return 1 / (1 + np.exp(-x))


def expected_pairs(i: int, j: int) -> dict[str, float]:
    """Plain formulas for one pair."""
    single = {name: values[[i, j]] for name, values in component_features(W, H, FREQUENCIES).items()}
    found = {}
    for name, scale in affinity.SCALES.items():
        difference = single[name][0] - single[name][1]
        found[name] = difference**2 / (difference**2 + scale**2)
    rough = logistic((single["roughness"] - affinity.ROUGH) / affinity.ROUGH_WIDTH)
    peaked = logistic((single["jumps"] - affinity.PEAKED) / affinity.PEAKED_WIDTH)
    found["both rough"], found["both smooth"] = rough.prod(), (1 - rough).prod()
    found["both peaked"], found["both noisy"] = peaked.prod(), (1 - peaked).prod()
    for kind in ("rough", "peaked", "noisy"):
        found[f"both {kind}, centroid"] = found[f"both {kind}"] * found["centroid"]
    for kind in ("rough", "smooth"):
        found[f"both {kind}, asymmetry"] = found[f"both {kind}"] * found["asymmetry"]
    roots = np.sqrt(W)
    found["activations"] = np.corrcoef(roots[:, i], roots[:, j])[0, 1]
    rises = np.clip(np.diff(np.vstack([np.zeros(4), W]), axis=0), 0, None)
    found["onsets"] = np.corrcoef(rises[:, i], rises[:, j])[0, 1]
    unit = (roots - roots.mean(axis=0)) / np.linalg.norm(roots - roots.mean(axis=0), axis=0)
    lagged = max(
        unit[:-lag, one] @ unit[lag:, other] for lag in affinity.LAGS for one, other in ((i, j), (j, i))
    )
    found["successive"] = max(lagged - found["activations"], 0.0)
    return found


@pytest.mark.parametrize(("i", "j"), [(0, 1), (2, 0), (3, 2), (1, 1)])
def test_features_of_pairs_follow_their_formulas(i, j):
    found = pair_features(W, H, FREQUENCIES)
    expected = expected_pairs(i, j)
    assert set(found) == set(expected) | {"envelopes"} == set(affinity.WEIGHTS)
    for name, value in expected.items():
        assert found[name][i, j] == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_envelopes_are_energies_in_half_octaves_below_the_highest_frequency():
    found = pair_features(W, H, FREQUENCIES)["envelopes"]
    logs = []
    for row in H:
        # The lowest band has all that lies below, and the highest frequency itself is in none.
        energies = np.zeros(affinity.N_ENVELOPE)
        for frequency, value in zip(FREQUENCIES[:-1], row[:-1], strict=True):
            octaves = np.log2(3900.0 / frequency) if frequency > 0 else np.inf
            energies[max(affinity.N_ENVELOPE - int(np.ceil(min(2 * octaves, 100))), 0)] += value**2
        logs.append(np.log(energies + 1e-4 * energies.max() + 1e-30))
        logs[-1] -= logs[-1].mean()
    for i in range(4):
        for j in range(4):
            expected = np.sqrt(np.mean((logs[i] - logs[j]) ** 2))
            assert found[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_frequencies_below_one_hertz_are_taken_as_they_are():
    # Bins may have any unit: the lowest positive frequency stands for zero, at most 1.
    low = component_features(W, H, np.arange(40) / 100)
    octaves = np.log2(np.maximum(np.arange(40) / 100, 0.01))
    np.testing.assert_allclose(low["centroid"], (H / H.sum(axis=1, keepdims=True)) @ octaves)


def test_silent_components_have_features_too():
    still = component_features(np.zeros((5, 1)), np.zeros((1, 8)), np.arange(8.0))
    assert still["asymmetry"] == still["centroid"] == 0
    assert still["peakedness"] == pytest.approx(np.log(1e-12))
    both = pair_features(np.zeros((5, 2)), np.zeros((2, 8)), np.arange(8.0))
    assert all(np.isfinite(values).all() for values in both.values())


@pytest.mark.parametrize("n_frames", [2, 3, 5])
def test_lags_are_shorter_than_the_recording(n_frames):
    found = pair_features(W[:n_frames], H, FREQUENCIES)["successive"]
    roots = np.sqrt(W[:n_frames].T)
    unit = roots - roots.mean(axis=1, keepdims=True)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    lagged = np.max([unit[:, :-lag] @ unit[:, lag:].T for lag in (1, 2, 4) if lag < n_frames], axis=0)
    np.testing.assert_allclose(found, np.maximum(np.maximum(lagged, lagged.T) - unit @ unit.T, 0), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_roughness_does_not_depend_on_loudness(scale):
    np.testing.assert_allclose(roughness(scale * W), roughness(W))
    # A hum of n frames has 1 / n, a lone impulse has 1, also at the ends.
    np.testing.assert_allclose(
        roughness(scale * np.array([[1.0, 1, 0], [1, 0, 0], [1, 0, 1]])), [1 / 3, 1, 1]
    )
    features, other = (component_features(one, H, FREQUENCIES) for one in (W, scale * W))
    np.testing.assert_allclose(other["asymmetry"], features["asymmetry"])
