"""The objectives written out with W H as a whole, in float64."""

from __future__ import annotations

import numpy as np


def beta_divergence(X, Y, beta):
    """Return the beta-divergence of each entry."""
    if beta == 2:
        return 0.5 * (X - Y) ** 2
    if beta == 1:
        ratio = np.where(X > 0, X, 1.0) / np.where(X > 0, Y, 1.0)
        return np.where(X > 0, X * np.log(ratio), 0.0) - X + Y
    if beta == 0:
        return X / Y - np.log(X / Y) - 1
    return (X**beta + (beta - 1) * Y**beta - beta * X * Y ** (beta - 1)) / (beta * (beta - 1))


def objective(X, W, H, *, beta=2.0, weights=None, mask=None, alpha_W=0.0, alpha_H=None, l1_ratio=0.0):
    """Return loss and penalties with scikit-learn's meaning; the mask may have any weights of the entries."""
    W, H = np.asarray(W, dtype=np.float64), np.asarray(H, dtype=np.float64)
    X = np.asarray(X, dtype=np.float64)
    of_entries = np.ones(X.shape) if mask is None else np.asarray(mask)
    seen = of_entries != 0
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    alpha_H = alpha_W if alpha_H is None else alpha_H
    model = np.where(seen, W @ H, 1.0)
    terms = of_entries * np.where(seen, beta_divergence(np.where(seen, X, 1.0), model, beta), 0.0)
    loss = float(weights @ terms.sum(axis=1))
    left = X.shape[1] * alpha_W * (l1_ratio * W.sum(axis=1) + 0.5 * (1 - l1_ratio) * (W**2).sum(axis=1))
    right = weights.sum() * alpha_H * (l1_ratio * H.sum() + 0.5 * (1 - l1_ratio) * (H**2).sum())
    return loss + float(weights @ left) + float(right)


def slopes(function, array, step=1e-6):
    """Return the derivative of `function` by central differences, entry by entry."""
    out = np.empty_like(array)
    for index in np.ndindex(array.shape):
        width = step * max(1.0, abs(array[index]))
        up, down = array.copy(), array.copy()
        up[index] += width
        down[index] -= width
        out[index] = (function(up) - function(down)) / (2 * width)
    return out
