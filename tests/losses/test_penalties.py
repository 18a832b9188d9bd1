"""Penalties and the shared scale of the factors."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.exceptions import UnknownNameError
from nonneg.losses.penalties import Penalties, rescale_pair


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_rescaling_leaves_the_product_unchanged(norm, rng, xp):
    W, Ht = rng.random((7, 3)), rng.random((5, 3)) * 40
    Ht[:, 1] = 0
    new_W, new_B = rescale_pair(xp.asarray(W), xp.asarray(Ht), norm)
    new_W, new_B = np.asarray(new_W), np.asarray(new_B)
    np.testing.assert_allclose(new_W @ new_B.T, W @ Ht.T, rtol=1e-14)
    order = {"l1": 1, "l2": 2, "max": np.inf}[norm]
    np.testing.assert_allclose(np.linalg.norm(new_B, order, axis=0), [1, 0, 1], rtol=1e-14)
    np.testing.assert_array_equal(new_W[:, 1], W[:, 1])


def test_rescaling_survives_tiny_single_precision_entries():
    Ht = np.full((4, 1), 1e-30, dtype=np.float32)
    W, unit = rescale_pair(np.ones((2, 1), dtype=np.float32), Ht)
    assert unit.dtype == W.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(unit), 1, rtol=1e-6)


def test_an_unknown_norm_is_named():
    with pytest.raises(UnknownNameError, match="norm='l3' is not known"):
        rescale_pair(np.ones((2, 1)), np.ones((3, 1)), "l3")


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
