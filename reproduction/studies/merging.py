"""Merged components as an initialization: fit more components, then merge pairs (Guo & Holy 2025)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from nonneg._typing import FloatArray
from nonneg.initializers.merged import merges
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
    to_W, to_H = merges(W.T @ W, Ht.T @ Ht, k)
    return W @ to_W, Ht @ to_H
