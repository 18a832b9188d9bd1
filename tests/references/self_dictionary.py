"""MERIT as the paper writes it, with every array whole: Algorithm 1 in the paper's orientation."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax


def objective(X: Any, C: Any, lam: float, mu: float) -> float:
    """(18a); X has one point a column."""
    n = X.shape[1]
    penalty = np.sum(mu * (logsumexp(C / mu, axis=1) - np.log(n)))
    return float(0.5 * np.sum((X - X @ C) ** 2) + lam * penalty)


def gradient(X: Any, C: Any, lam: float, mu: float) -> Any:
    """Lines 14 to 16 of Algorithm 1 for all columns."""
    return X.T @ (X @ C - X) + lam * softmax(C / mu, axis=1)


def gap(X: Any, C: Any, lam: float, mu: float) -> float:
    """The largest value of <gradient, C - U> over the feasible U."""
    slope = gradient(X, C, lam, mu)
    return float(np.sum(slope * C) - np.sum(slope.min(axis=0)))


def frank_wolfe(X: Any, lam: float, mu: float, n_iter: int) -> Any:
    """Algorithm 1 from C = 0."""
    n = X.shape[1]
    C = np.zeros((n, n))
    for t in range(n_iter):
        vertices = np.argmin(gradient(X, C, lam, mu), axis=0)
        step = 2.0 / (t + 2)
        C *= 1.0 - step
        C[vertices, np.arange(n)] += step
    return C
