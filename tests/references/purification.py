"""Purification as the paper writes it, pair by pair and program by program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from reproduction.purification.perturbation import MixingRecorder
from scipy.optimize import linprog

from nonneg import purify


def purify_with_truth(X, init, *, truth, beta=4.0, **options):
    """The result of purify, with the mixing after each iteration in its history."""
    recorder = MixingRecorder(truth, beta=beta)
    result = purify(X, init, callback=recorder, **options)
    names = ("change", "threshold", "noise")
    return replace(result, history={name: result.history[name] for name in names} | recorder.history)


def paper_update(Y, A, alpha, eta, r, inverse):
    """One iteration of Algorithm 1 in the paper's orientation, the expectation over all ordered pairs."""
    X = np.maximum(inverse @ Y - alpha, 0)
    n_samples = Y.shape[1]
    total = np.zeros_like(A)
    for i in range(n_samples):
        for j in range(n_samples):
            total += np.outer(Y[:, i] - Y[:, j], X[:, i] - X[:, j])
    return (1 - eta) * A + r * eta * total / n_samples**2


def smallest_infinity_norm(A):
    """The pseudo-inverse of least infinity norm, row by row with HiGHS."""
    m, n = A.shape
    rows = []
    for i in range(n):
        found = linprog(np.ones(2 * m), A_eq=np.hstack([A.T, -A.T]), b_eq=np.eye(n)[i], method="highs")
        rows.append(found.x[:m] - found.x[m:])
    return np.array(rows)
