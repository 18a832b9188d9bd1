"""The probability that selected anchors are wrong, for one who knows the planted anchors, noise and weights.

A statistic of the samples alone knows less, and cannot tell right answers from wrong ones better, up to the
normal approximation below.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, logsumexp

from nonneg._typing import FloatArray, IntArray
from nonneg.datasets import SeparableData
from reproduction.studies.planted_anchors import PURE, dirichlet_parameters

KINDS = ("uniform", "sparse", "near-duplicates", "duplicates", "scattered", "spectra", "unbalanced")
"""Kinds with normal noise of one level."""
COPIES = 0.1  # of the samples are (near-)copies of anchors in kinds with duplicates
_EDGES = np.concatenate([np.arange(0.0, 0.1, 0.01), np.arange(0.1, 0.3, 0.02), np.arange(0.3, 1.01, 0.05)])
_DISTANCES, _WIDTHS = 0.5 * (_EDGES[1:] + _EDGES[:-1]), np.diff(_EDGES)
"""One minus the weight of an anchor, on a grid that is finer where it is small."""


def wrong_probability(data: SeparableData, kind: str, selected: IntArray) -> float:
    """Return the probability that an anchor has no sample in the selection that is 90% of it or more."""
    k = len(data.H)
    alpha = dirichlet_parameters(kind, k)
    variance = data.noise**2 / data.X.size
    copies = COPIES / k if kind.endswith("duplicates") else 0.0
    missed = [_missed(data, at, alpha, variance, copies, selected) for at in range(k)]
    return 1.0 - float(np.prod(1.0 - np.array(missed)))


def _missed(
    data: SeparableData, at: int, alpha: FloatArray, variance: float, copies: float, selected: IntArray
) -> float:
    """Return the probability that no selected sample is one anchor, or nearly."""
    pure, mixed = _log_likelihoods(data, at, alpha, variance)
    near = logsumexp(mixed[_DISTANCES < 1.0 - PURE], axis=0)
    mixed = logsumexp(mixed, axis=0)
    if copies:
        near, mixed = (
            np.logaddexp(math.log1p(-COPIES) + one, math.log(copies) + pure) for one in (near, mixed)
        )
    # One sample is the anchor, and the others are drawn.
    ratio = pure - mixed
    is_anchor = np.exp(ratio - logsumexp(ratio))[selected].sum()
    none_near = np.prod(1.0 - np.exp(np.minimum(near - mixed, 0.0)[selected]))
    return float(max(1.0 - is_anchor, 0.0) * none_near)


def _log_likelihoods(
    data: SeparableData, at: int, alpha: FloatArray, variance: float
) -> tuple[FloatArray, FloatArray]:
    """Return those of all samples as the anchor itself, and as mixtures at every distance from it."""
    # A mixture is (1 - t) h + t v: t has a beta distribution, and v, a mixture of the other anchors, nearly a
    # normal one with the mean and covariance of the Dirichlet distribution.
    others = np.delete(alpha, at)
    total = float(others.sum())
    shares, H = others / total, np.delete(data.H, at, axis=0)
    mean = shares @ H
    _, spread, axes = np.linalg.svd(
        np.sqrt(shares / (total + 1.0))[:, None] * (H - mean), full_matrices=False
    )
    offset, step = data.X - data.H[at], mean - data.H[at]
    squares, along = np.einsum("ij,ij->i", offset, offset), offset @ step
    offset_axes, step_axes, step_square = offset @ axes.T, axes @ step, float(step @ step)
    a = float(alpha[at])
    prior = (a - 1.0) * np.log1p(-_DISTANCES) + (total - 1.0) * np.log(_DISTANCES) + np.log(_WIDTHS)
    prior += gammaln(a + total) - gammaln(a) - gammaln(total)
    prior -= logsumexp(prior)
    mixed = np.empty((len(_DISTANCES), len(data.X)))
    for i, t in enumerate(_DISTANCES):
        wider = (t * spread) ** 2
        rest = squares - 2.0 * t * along + t * t * step_square
        rest -= np.square(offset_axes - t * step_axes) @ (wider / (variance + wider))
        mixed[i] = prior[i] - 0.5 * rest / variance - 0.5 * np.log1p(wider / variance).sum()
    return -0.5 * squares / variance, mixed
