"""States of a run: thresholds, noise and scales follow their definitions."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.metrics.mixing import mixing
from nonneg.purification.decode import HIGHEST, LOWEST, LOWEST_WITH_DECAY, NOISE_FACTOR, initial_threshold
from nonneg.purification.iteration import (
    PurificationState,
    balancing_scales,
    effective_threshold,
    initial_state,
    noise_level,
)
from nonneg.purification.options import Options
from nonneg.purification.pseudo_inverse import pseudo_inverse
from nonneg.purification.studies import MixingRecorder


@pytest.fixture
def state(rng):
    return PurificationState(
        rng.random((3, 8)), np.array([0.1, 0.2, 0.3]), np.array([0.01, 0.02, 0.0]),
        np.array([1.0, 2.0, 0.5]), np.array([0.4, 0.5, 0.6]), 0.5,
    )  # fmt: skip


def test_features_that_are_rescaled_rescale_what_their_weights_are_compared_with(state):
    factors = np.array([2.0, 4.0, 0.5])
    found = replace(state, balancing=factors).rescaled(factors)
    np.testing.assert_allclose(found.H, state.H * factors[:, None])
    for name in ("threshold", "noise", "weight_scale", "reference"):
        np.testing.assert_allclose(getattr(found, name) * factors, getattr(state, name))
    assert found.balancing is None
    assert found.step_size == 0.5


def test_what_exceeds_noise(state):
    worst = NOISE_FACTOR * max(0.01 / 1.0, 0.02 / 2.0)
    expected = np.maximum(NOISE_FACTOR * state.noise, min(worst, HIGHEST) * state.weight_scale)
    np.testing.assert_allclose(noise_level(state), expected)
    loud = replace(state, noise=np.array([5.0, 0.0, 0.0]))
    np.testing.assert_allclose(noise_level(loud)[1:], HIGHEST * state.weight_scale[1:])
    silent = replace(state, weight_scale=np.zeros(3))
    np.testing.assert_allclose(noise_level(silent), NOISE_FACTOR * state.noise)
    np.testing.assert_allclose(
        effective_threshold(loud, "unshifted"), np.maximum(state.threshold, noise_level(loud))
    )
    np.testing.assert_allclose(effective_threshold(loud, "shifted"), state.threshold)


@pytest.mark.parametrize("decay", [1.0, 0.9])
def test_the_first_state_is_that_of_the_decoded_samples(decay, rng):
    H = rng.random((3, 8)) + np.eye(3, 8)
    samples = (rng.random((40, 3)) < 0.5) * rng.random((40, 3)) @ H + 0.01 * rng.standard_normal((40, 8))
    inverse = pseudo_inverse(H)
    options = Options("regression", "unshifted", None, 0.5, True, None, threshold_decay=decay)
    found = initial_state(samples, H, inverse, options)
    values = samples @ inverse.inverse.T
    lowest = LOWEST if decay == 1.0 else LOWEST_WITH_DECAY
    np.testing.assert_allclose(found.threshold, initial_threshold(values, lowest))
    negative = [column[column < 0] for column in values.T]
    np.testing.assert_allclose(found.noise, [np.sqrt(np.mean(part**2)) for part in negative])
    kept = np.where(values > found.threshold, values, 0.0)
    np.testing.assert_allclose(found.reference, kept.mean(axis=0))
    given = initial_state(samples, H, inverse, replace(options, threshold=0.25))
    np.testing.assert_array_equal(given.threshold, [0.25] * 3)


def test_balanced_weights_have_equal_second_moments(rng):
    weights = rng.random((50, 3)) * [1.0, 4.0, 0.2]
    scales = balancing_scales(weights)
    np.testing.assert_allclose(np.mean((weights / scales) ** 2, axis=0), np.mean(weights[:, 1] ** 2))
    assert scales.max() == 1.0
    weights[:, 0] = 0.0
    assert balancing_scales(weights)[0] == 1.0
    np.testing.assert_array_equal(balancing_scales(np.zeros((2, 2))), [1.0, 1.0])


def test_a_recorder_undoes_the_balancing(state, rng):
    true = rng.random((3, 8)) + np.eye(3, 8)
    recorder = MixingRecorder(true, beta=2.0)
    D = np.array([1.0, 2.0, 4.0])
    recorder(SimpleNamespace(state=state))
    recorder(SimpleNamespace(state=replace(state, H=state.H * D[:, None], balancing=D)))
    found = mixing(true, state.H)
    expected = {
        "e_norm": found.e_norm, "n_norm": found.n_norm, "potential": found.potential(2.0),
        "normalized_error": found.normalized_error,
    }  # fmt: skip
    assert set(recorder.history) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(recorder.history[name], [value, value])
