"""Planted programs in counts."""

from __future__ import annotations

import numpy as np


def planted(k=4, *, n=150, m=60, depth=400, seed=0):
    """Return counts and the programs in them."""
    rng = np.random.default_rng(seed)
    H = rng.gamma(0.3, size=(k, m))
    H /= H.sum(axis=1, keepdims=True)
    W = rng.dirichlet(np.full(k, 0.3), size=n)
    X = rng.poisson(depth * W @ H).astype(float)
    found = X.sum(axis=0) > 0
    return X[:, found], H[:, found]
