"""A slow plain HALS with weights, missing entries and penalties, written from its formula."""

from __future__ import annotations

import numpy as np
from tests.references.least_squares import coordinate_passes


def plain_hals(X, W, Ht, *, n_iter, mask=None, weights=None, l1=(0.0, 0.0), l2=(0.0, 0.0)):
    """Return W and B after `n_iter` iterations of one pass over W and one over B."""
    seen = np.ones(X.shape) if mask is None else np.asarray(mask, dtype=float)
    X = np.where(seen > 0, X, 0.0)
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    k = W.shape[1]
    for _ in range(n_iter):
        grams = [Ht.T @ (Ht * row[:, None]) + l2[0] * np.eye(k) for row in seen]
        W, _ = coordinate_passes(W, grams, X @ Ht - l1[0], range(k), 1, 0.0)
        grams = [W.T @ (W * (weights * column)[:, None]) + l2[1] * np.eye(k) for column in seen.T]
        Ht, _ = coordinate_passes(Ht, grams, X.T @ (weights[:, None] * W) - l1[1], range(k), 1, 0.0)
    return W, Ht
