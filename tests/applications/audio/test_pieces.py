"""Masks, features of pairs and priors against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.audio.affinity import (
    BIAS,
    WEIGHTS,
    affinities,
    component_features,
    correlations,
    pair_features,
    roughness,
)
from nonneg.applications.audio.continuity import Priors, _gradient, _value, factorize_with_priors
from nonneg.applications.audio.masks import checked_groups, masked_frames, wiener_masks
from nonneg.applications.audio.methods import spectrogram_params
from nonneg.exceptions import InvalidParameterError, ShapeError


@pytest.mark.parametrize("exponent", [1.0, 2.0])
@pytest.mark.parametrize("floor", [0.0, 0.6])
def test_masks_are_shares_of_the_sources(exponent, floor, rng):
    W, H, groups = rng.random((6, 3)), rng.random((3, 5)), np.array([0, 1, 0])
    W[2] = 0.0
    parts = np.array([W[:, groups == s] @ H[groups == s] + floor / 2 for s in range(2)]) ** exponent
    total = parts.sum(axis=0)
    found = wiener_masks(W, H, groups, floor=floor, exponent=exponent)
    np.testing.assert_allclose(found, np.where(total > 0, parts / np.where(total > 0, total, 1.0), 0.5))
    assert wiener_masks(W, H).shape == (3, 6, 5)
    frames, atoms = rng.random((2, 6, 5)), np.linalg.qr(rng.standard_normal((5, 5)))[0]
    separated = masked_frames(frames, atoms, found)
    np.testing.assert_allclose(separated.sum(axis=0), frames)
    np.testing.assert_allclose(separated[1], ((frames @ atoms.T) * found[1]) @ atoms)


def test_groups_are_numbered_without_gaps():
    np.testing.assert_array_equal(checked_groups([1, 0, 1], 3), [1, 0, 1])
    for wrong in ([0, 2, 2], [1, 1, 2], [-1, 0, 1]):
        with pytest.raises(InvalidParameterError, match="numbered from 0 without gaps"):
            checked_groups(wrong, 3)
    for wrong in ([0, 1], [0.0, 1.0, 1.0]):
        with pytest.raises(ShapeError, match="each of 3 components"):
            checked_groups(wrong, 3)
    with pytest.raises(ShapeError, match=r"got \(4, 2\) and \(3, 5\)"):
        wiener_masks(np.ones((4, 2)), np.ones((3, 5)))


def test_roughness_of_impulses_and_hums():
    W = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(roughness(W), [1.0, 0.25, 0.0])
    rows = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [5.0, 5.0, 5.0]])
    np.testing.assert_allclose(correlations(rows), [[1, -1, 0], [-1, 1, 0], [0, 0, 0]], atol=1e-12)


def test_features_of_components(rng):
    W, H, frequencies = rng.random((20, 3)), rng.random((3, 16)), np.linspace(0.0, 4000.0, 16)
    found = component_features(W, H, frequencies)
    template = H / H.sum(axis=1, keepdims=True)
    octaves = np.log2(np.maximum(frequencies, 1.0))
    np.testing.assert_allclose(found["centroid"], template @ octaves)
    np.testing.assert_allclose(found["jumps"], np.log(np.abs(np.diff(template)).sum(axis=1) / 2))
    np.testing.assert_allclose(found["peakedness"], np.log(np.sum(template**2, axis=1) * 16))
    activation = W / W.sum(axis=0)
    changes = np.diff(np.vstack([np.zeros(3), activation, np.zeros(3)]), axis=0)
    up, down = (np.sum(np.maximum(sign * changes, 0) ** 2, axis=0) for sign in (1, -1))
    np.testing.assert_allclose(found["asymmetry"], np.log(up / down))
    pairs = pair_features(W, H, frequencies)
    assert set(WEIGHTS) <= set(pairs)
    np.testing.assert_allclose(pairs["activations"], np.corrcoef(np.sqrt(W.T)))
    onsets = np.maximum(np.diff(np.vstack([np.zeros(3), W]), axis=0), 0.0).T
    np.testing.assert_allclose(pairs["onsets"], np.corrcoef(onsets))
    np.testing.assert_allclose(pairs["both rough"] + 0.0, pairs["both rough"].T)
    total = BIAS + sum(weight * pairs[name] for name, weight in WEIGHTS.items())
    np.testing.assert_allclose(affinities(W, H, frequencies), (total + total.T) / 2)


@pytest.mark.parametrize("kind", ["smooth", "sparse", "both"])
def test_gradients_of_priors_are_differences_of_their_values(kind, rng):
    factor = 0.5 + rng.random((7, 2))
    weights = np.array([[0.3, 0.7], [0.2, 0.5]])
    weights[{"smooth": 1, "sparse": 0, "both": slice(0, 0)}[kind]] = 0.0
    squares, changes = np.mean(factor**2, axis=0), np.sum(np.diff(factor, axis=0) ** 2, axis=0)
    value = np.sum(weights[0] * changes / squares + weights[1] * factor.sum(axis=0) / np.sqrt(squares))
    assert _value(factor, weights) == pytest.approx(value)
    plus, minus = _gradient(factor, weights)
    assert (np.asarray(plus) >= 0).all()
    assert (np.asarray(minus) >= 0).all()
    step = 1e-6
    for at in ((0, 0), (3, 1), (6, 0)):
        up, down = factor.copy(), factor.copy()
        up[at] += step
        down[at] -= step
        slope = (_value(up, weights) - _value(down, weights)) / (2 * step)
        assert np.broadcast_to(plus - minus, factor.shape)[at] == pytest.approx(slope, rel=1e-5, abs=1e-8)


def test_priors_of_components():
    found = Priors.harmonic_percussive(2, 1, 0.4)
    np.testing.assert_allclose(found.smooth_W, [0.4, 0.4, 0.0])
    np.testing.assert_allclose(found.sparse_W, [0.0, 0.0, 0.4])
    np.testing.assert_allclose(found.smooth_H, [0.0, 0.0, 0.4])
    np.testing.assert_allclose(found.sparse_H, [0.4, 0.4, 0.0])
    np.testing.assert_allclose(Priors.continuity(3, 0.2).smooth_W, 0.2)


def test_updates_with_priors_are_the_published_ones(rng):
    V, W, H = 0.1 + rng.random((8, 6)), 0.1 + rng.random((8, 2)), 0.1 + rng.random((2, 6))
    run = factorize_with_priors(V, W, H, Priors.continuity(2, 0.3), max_iter=1)
    mass = V.sum() / 2
    new_H = H * (W.T @ (V / (W @ H))) / W.sum(axis=0)[:, None]
    np.testing.assert_allclose(run.state.H, new_H)
    weights = np.array([[0.3, 0.3], [0.0, 0.0]]) * mass / 8
    plus, minus = _gradient(W, weights)
    new_W = W * ((V / (W @ new_H)) @ new_H.T + minus) / (new_H.sum(axis=1) + plus)
    np.testing.assert_allclose(run.state.W, new_W)
    model = W @ new_H
    divergence = np.sum(V * np.log(V / model) - V + model)
    assert run.history.loss[-1] == pytest.approx(divergence + _value(W, weights))


def test_features_of_components_follow_their_formulas():
    rng = np.random.default_rng(4)
    W, H, frequencies = rng.random((9, 3)), rng.random((3, 5)), np.array([0.0, 100.0, 200.0, 300.0, 400.0])
    W[:, 2] = [0, 0, 1, 0, 0, 0, 0, 0, 0]
    found = component_features(W, H, frequencies)
    T, A = H / H.sum(axis=1, keepdims=True), W / W.sum(axis=0)
    steps = np.diff(np.vstack([np.zeros(3), A, np.zeros(3)]), axis=0)
    rises, falls = (np.sum(np.clip(sign * steps, 0, None) ** 2, axis=0) for sign in (1, -1))
    expected = {
        "roughness": np.log(np.abs(steps).sum(axis=0) / 2),
        "centroid": T @ np.log2(np.maximum(frequencies, 1.0)),
        "asymmetry": np.log((rises + 1e-12) / (falls + 1e-12)),
        "jumps": np.log(np.abs(np.diff(T, axis=1)).sum(axis=1) / 2),
        "peakedness": np.log(np.sum(T**2, axis=1) * 5),
    }
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)
    # A silent component and a flat template have no logarithm of zero.
    still = component_features(np.zeros((9, 1)), np.ones((1, 5)), frequencies)
    assert still["roughness"] == still["jumps"] == np.log(1e-3)


@pytest.mark.parametrize("value", [True, -0.1, np.inf, "strong"])
@pytest.mark.parametrize("name", ["continuity", "exponent", "mask_exponent"])
def test_weights_and_exponents_are_numbers(name, value):
    with pytest.raises(InvalidParameterError, match=f"{name} must be a (nonnegative )?number"):
        spectrogram_params({name: value})


def test_continuity_needs_the_loss_and_the_solver_it_is_made_for():
    assert spectrogram_params({})["continuity"] == spectrogram_params({"continuity": None})["continuity"] > 0
    assert spectrogram_params({"beta_loss": "itakura-saito"})["continuity"] == 0
    assert spectrogram_params({"solver": "mu"})["continuity"] == 0
    for plain in ({"beta_loss": "itakura-saito"}, {"solver": "mu"}):
        with pytest.raises(InvalidParameterError, match="continuity"):
            spectrogram_params({"continuity": 0.1, **plain})
