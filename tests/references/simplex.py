"""Slow versions: least squares over the simplex by trying all supports, successive projections."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def simplex_row(gram, cross):
    """Return the minimizer of 0.5 f G f' - c f' over the simplex, the best over all supports."""
    k = len(cross)
    best, answer = np.inf, None
    for size in range(1, k + 1):
        for support in combinations(range(k), size):
            part = np.ix_(support, support)
            system = np.block([[gram[part], np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            solved = np.linalg.lstsq(system, np.append(cross[list(support)], 1.0), rcond=None)[0][:size]
            if solved.min() < -1e-12 or abs(solved.sum() - 1) > 1e-9:
                continue
            f = np.zeros(k)
            f[list(support)] = solved
            value = 0.5 * f @ gram @ f - cross @ f
            if value < best:
                best, answer = value, f
    return answer


def simplex_kkt(factor, gram, cross):
    """Return the largest violation of the conditions of a minimum, relative to the terms of the slopes."""
    slope = factor @ gram - cross
    level = np.sum(factor * slope, axis=1, keepdims=True)
    wrong = np.where(factor > 0, np.abs(slope - level), np.maximum(level - slope, 0.0))
    scale = np.abs(factor) @ np.abs(gram) + np.abs(cross)
    off = max(float(np.abs(factor.sum(axis=1) - 1).max()), float(-factor.min()))
    return max(float(np.max(wrong / scale.max(axis=1, keepdims=True))), off)


def successive_projections(X, n_anchors, tie_tol=1e-6):
    """Return the picks; the residual matrix is formed and projected anew after every pick."""
    X = np.asarray(X, dtype=np.float64)
    original = np.sum(X * X, axis=1)
    left, picks = X.copy(), []
    for _ in range(n_anchors):
        squares = np.sum(left * left, axis=1)
        tied = np.flatnonzero(squares >= squares.max() * (1 - tie_tol))
        picks.append(int(tied[np.argmax(original[tied])]))
        basis = np.linalg.qr(X[picks].T)[0]
        left = X - (X @ basis) @ basis.T
    return picks
