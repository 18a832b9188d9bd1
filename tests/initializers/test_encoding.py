"""Factors of which the components are samples."""

from __future__ import annotations

import numpy as np

from nonneg.data import as_data_matrix
from nonneg.initializers.encoding import init_from_anchors


def test_anchors_are_the_components(rng):
    H = np.vstack([np.eye(3), rng.random((2, 3))])[:3] + 0.1
    W = rng.dirichlet(np.ones(3), 8)
    W[[2, 5, 7]] = np.eye(3)
    new_W, Ht = init_from_anchors(as_data_matrix(W @ H), np.array([2, 5, 7]))
    np.testing.assert_allclose(Ht.T, H)
    np.testing.assert_allclose(new_W, W, atol=1e-8)
