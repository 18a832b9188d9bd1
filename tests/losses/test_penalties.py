"""Penalties."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.losses.penalties import Penalties


def test_weights_count_as_repetition_in_the_penalty(rng):
    W = rng.random((4, 2))
    counts = np.array([1, 3, 2, 1])
    penalties = Penalties(l1_W=0.3, l2_W=0.7, l1_H=2.0)
    repeated = penalties.of_W(np.repeat(W, counts, axis=0))
    np.testing.assert_allclose(penalties.of_W(W, counts.astype(float)), repeated)
    np.testing.assert_allclose(repeated, (0.3 * W + 0.35 * W**2).sum(1) @ counts)
    assert penalties.of_H(W) == pytest.approx(2.0 * W.sum())
    assert penalties.any
    assert not Penalties().any
