"""Gains of components in channels, and the masks that follow from them."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.audio.masks import channel_gains, masked_parts, wiener_masks


@pytest.fixture
def factors(rng):
    return rng.random((9, 3)), rng.random((3, 20))


def test_gains_of_panned_components_are_found():
    # Components without a bin in common: one update is enough.
    W, H = np.random.default_rng(3).random((9, 3)), np.repeat(np.eye(3), 6, axis=1)
    true = np.array([[1.0, 0.2, 0.5], [0.1, 1.0, 0.5]])
    V = np.stack([(W * gain) @ H for gain in true])
    np.testing.assert_allclose(channel_gains(V, W, H) * V.mean(axis=(1, 2))[:, None], true)


def test_a_silent_channel_has_no_gain_and_a_silent_component_no_trouble(factors):
    W, H = factors
    W[:, 1] = 0.0
    found = channel_gains(np.stack([W @ H, np.zeros((9, 20))]), W, H)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[1], 0.0)
    assert found.dtype == np.float64
    assert channel_gains(np.ones((1, 9, 20)), W.astype(np.float32), H.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("with_gains", [True, False])
def test_masks_of_parts_are_those_of_their_factors(with_gains, factors):
    W, H = factors
    groups = np.array([1, 0, 1])
    # A part with two channels, and one with one, which has nothing to compare its gains with.
    parts = [np.random.default_rng(2).random((2, 5, 20)) - 0.5, np.ones((1, 4, 20))]
    options = {"floor": 0.1, "exponent": 2.0}
    found = list(masked_parts(parts, [W[:5], W[5:]], H, groups, with_gains=with_gains, **options))
    assert len(found) == 2
    gains = channel_gains(np.abs(parts[0]), W[:5], H) if with_gains else np.ones((1, 3))
    for source, (masks, given) in enumerate(found):
        assert given is parts
        expected = [wiener_masks(W[:5] * gain, H, groups, **options)[source] for gain in gains]
        np.testing.assert_allclose(masks[0], expected)
        np.testing.assert_allclose(masks[1], [wiener_masks(W[5:], H, groups, **options)[source]])
