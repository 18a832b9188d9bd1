"""Priors on components: their gradients, and what they do to the factors."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.audio import continuity
from nonneg.applications.audio.continuity import Priors, factorize_with_priors


def slopes(factor, weights):
    """Return the gradient of a prior, by differences."""
    found = np.empty_like(factor)
    for at in np.ndindex(factor.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = factor.copy()
            moved[at] += step
            ends.append(continuity._value(moved, weights))
        found[at] = (ends[0] - ends[1]) / 2e-6
    return found


@pytest.mark.parametrize(
    "weights", [[[2.0, 0.5], [0.0, 0.0]], [[0.0, 0.0], [1.0, 3.0]], [[1.0, 2.0], [0.5, 0.0]]]
)
def test_gradients_of_priors_are_those_of_their_values(weights):
    rng = np.random.default_rng(0)
    factor, weights = rng.random((7, 2)) + 0.1, np.array(weights)
    plus, minus = continuity._gradient(factor, weights)
    np.testing.assert_allclose(plus - minus, slopes(factor, weights), rtol=1e-5, atol=1e-7)
    assert np.min(plus) >= 0
    assert np.min(minus) >= 0


def test_activations_become_smooth_and_the_loss_decreases():
    rng = np.random.default_rng(1)
    V = rng.random((60, 3)) @ rng.random((3, 20)) + 0.1 * rng.random((60, 20))
    W, H = rng.random((60, 3)), rng.random((3, 20))
    changes = []
    for weight in (0.0, 0.3, 3.0):
        run = factorize_with_priors(V, W, H, Priors.continuity(3, weight), max_iter=100)
        losses = np.array(run.history.loss)
        assert np.diff(losses).max() <= 1e-9 * losses[0]
        found = run.state.W / np.linalg.norm(run.state.W, axis=0)
        changes.append(np.square(np.diff(found, axis=0)).sum())
        assert run.state.W.dtype == np.float64
    assert changes[0] > 1.5 * changes[1] > 3 * changes[2]
    single = factorize_with_priors(
        *(x.astype(np.float32) for x in (V, W, H)), Priors.continuity(3, 0.3), max_iter=2
    )
    assert single.state.W.dtype == single.state.H.dtype == np.float32


def test_lines_in_time_and_over_frequency_fall_to_different_components():
    V = np.full((80, 60), 1e-3)
    V[:, [9, 20, 31]] += 1.0  # partials that last
    V[10::20] += 1.0  # strokes with all frequencies
    rng = np.random.default_rng(2)
    run = factorize_with_priors(
        V, rng.random((80, 2)), rng.random((2, 60)), Priors.harmonic_percussive(1, 1, 0.1), max_iter=200
    )
    W, H = run.state.W / run.state.W.max(axis=0), run.state.H / run.state.H.max(axis=1, keepdims=True)
    assert W[:, 0].min() > 0.5 > np.median(H[0]) * 10
    assert H[1].min() > 0.5 > np.median(W[:, 1]) * 10


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_few_frames(n):
    factor = np.arange(1.0, 2 * n + 1).reshape(n, 2)
    for weights in (np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([[1.0, 0.5], [0.0, 0.0]])):
        plus, minus = continuity._gradient(factor, weights)
        expected = slopes(factor, weights)
        found = np.broadcast_to(plus - minus, factor.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_without_weights_there_is_no_gradient():
    plus, minus = continuity._gradient(np.ones((3, 2)), np.zeros((2, 2)))
    assert plus == minus == 0
    # One frame changes by nothing, and has its sum over its size.
    assert continuity._value(np.array([[2.0, 3.0]]), np.array([[1.0, 1.0], [0.5, 0.25]])) == pytest.approx(
        0.75
    )


def test_updates_of_sparse_and_smooth_templates(rng):
    V, W, H = 0.1 + rng.random((8, 6)), 0.1 + rng.random((8, 3)), 0.1 + rng.random((3, 6))
    priors = Priors.harmonic_percussive(1, 2, 0.3)
    run = factorize_with_priors(V, W, H, priors, max_iter=1)
    per_bin = V.sum() / 3 / 6 * np.stack([priors.smooth_H, priors.sparse_H])
    plus, minus = continuity._gradient(H.T, per_bin)
    new = H * (W.T @ (V / (W @ H)) + minus.T) / (W.sum(axis=0)[:, None] + plus.T)
    np.testing.assert_allclose(run.state.H, new)
    per_frame = V.sum() / 3 / 8 * np.stack([priors.smooth_W, priors.sparse_W])
    model = W @ new
    divergence = np.sum(V * np.log(V / model) - V + model)
    priors_too = continuity._value(W, per_frame) + continuity._value(new.T, per_bin)
    assert run.history.loss[-1] == pytest.approx(divergence + priors_too)
