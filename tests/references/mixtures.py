"""Mixtures of a few spectra of which no sample is purer than a given share."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np


def mixtures(n, m, k, *, purity=1.0, snr=np.inf, rng=None):
    """Return uniform mixtures of random spectra, with noise of a signal-to-noise ratio in decibels."""
    rng = np.random.default_rng(rng)
    H = rng.gamma(1.0, size=(k, m)) + 0.5
    W = np.empty((0, k))
    while len(W) < n:
        drawn = rng.dirichlet(np.ones(k), 4 * n)
        W = np.concatenate([W, drawn[drawn.max(axis=1) <= purity]])
    W = W[:n]
    X = W @ H
    sigma = np.sqrt(np.mean(X**2)) * 10 ** (-snr / 20)
    return SimpleNamespace(X=np.maximum(X + sigma * rng.standard_normal(X.shape), 0), W=W, H=H, sigma=sigma)
