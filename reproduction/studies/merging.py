"""Merged components as an initialization: fit more components, then merge pairs (Guo & Holy 2025)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from nonneg._typing import FloatArray
from nonneg.initializers.registry import INITS
from nonneg.losses.penalties import Penalties
from nonneg.solvers.registry import SOLVERS
from reproduction.cr1.initializations import Initialization, Samples

SURPLUS, N_ITER = 1.2, 5
"""Components before the merges, as a multiple of those after them, and iterations of HALS on them."""


def timed(make: Callable[[], tuple[FloatArray, FloatArray]]) -> Initialization:
    """Make factors and take the time of the processor, which other processes do not lengthen."""
    started = time.process_time()
    W, Ht = make()
    return Initialization(W, Ht, time.process_time() - started)


def merged_init(samples: Samples, k: int) -> tuple[FloatArray, FloatArray]:
    """Fit more components from cones by a few iterations of HALS, and merge them down to k."""
    W, Ht = INITS["cone"](samples.rows, min(math.ceil(SURPLUS * k), samples.rows.shape[0]))
    fit = SOLVERS["hals"].run(samples.rows, W, Ht, penalties=Penalties(), beta=2.0, max_iter=N_ITER, tol=0.0)
    return merge_components(fit.state.W, fit.state.Ht, k)


def merge_components(W: FloatArray, Ht: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Merge the pair of components whose sum is nearest to rank one, until k are left."""
    # Guo & Holy (2025), IEEE Trans. Signal Processing 73, 2862-2878: the best rank-one approximation of
    # w1 h1' + w2 h2' has a closed form, by the eigenvectors of a 2 x 2 matrix. It is nonnegative.
    lengths = np.linalg.norm(Ht, axis=0)
    W, Ht = W * lengths, Ht / np.where(lengths > 0, lengths, 1.0)
    while W.shape[1] > k:
        W_gram, cosines = W.T @ W, Ht.T @ Ht
        squares = np.diag(W_gram)
        trace = squares[:, None] + squares + 2.0 * W_gram * cosines
        determinant = (squares[:, None] * squares - W_gram**2) * (1.0 - cosines**2)
        lost = 0.5 * (trace - np.sqrt(np.maximum(trace**2 - 4.0 * determinant, 0.0)))
        lost[np.tril_indices(len(lost))] = np.inf
        a, b = np.unravel_index(int(np.argmin(lost)), lost.shape)
        gram, cosine = W_gram[np.ix_([a, b], [a, b])], cosines[a, b]
        direction = leading_pair(gram, float(cosine))
        merged = Ht[:, [a, b]] @ direction
        merged /= max(float(np.linalg.norm(merged)), 1e-300)
        W[:, a] = W[:, [a, b]] @ (Ht[:, [a, b]].T @ merged)
        Ht[:, a] = merged
        W, Ht = np.delete(W, b, axis=1), np.delete(Ht, b, axis=1)
    return np.ascontiguousarray(W), np.ascontiguousarray(Ht)


def leading_pair(gram: FloatArray, cosine: float) -> FloatArray:
    """Return the weights of two unit vectors in the leading right singular vector of their combination."""
    product = gram @ np.array([[1.0, cosine], [cosine, 1.0]])
    half = 0.5 * (product[0, 0] - product[1, 1])
    root = math.sqrt(half**2 + product[0, 1] * product[1, 0])
    weights = np.array([half + root, product[1, 0]]) if half > 0 else np.array([product[0, 1], root - half])
    return weights / max(float(np.linalg.norm(weights)), 1e-300) if weights.any() else np.ones(2)
