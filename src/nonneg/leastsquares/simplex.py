"""Exact least squares over the probability simplex for all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_float64
from nonneg._typing import Array, Namespace
from nonneg.kernels.simplex import simplex_pivoting
from nonneg.leastsquares.nonnegative import with_rows

# Turns a singular system into one that has a single answer, close to the shortest of the minimizers.
RIDGE = 1e-11
SINGULAR = 1e-12
FALLBACK_STEPS = 3000


def simplex_least_squares(gram: Array, cross: Array, *, start: Array | None = None) -> Array:
    """Minimize 0.5 f G f' - c f' over f >= 0 with sum 1 for every row c of `cross`."""
    # The data are never needed. Because the entries sum to one, a multiple of the matrix of ones may be added
    # to G: points that are independent only once shifted (k points in k - 1 dimensions) have a single answer
    # too. Where they are not even that (twins), a ridge of 1e-11 picks one of the minimizers.
    xp = array_namespace(cross)
    k = cross.shape[1]
    if k == 1:
        return cross * 0.0 + 1.0
    system = xp.asarray(_definite(to_float64(gram)), dtype=xp.float64, device=cross.device)
    solution, unsolved = simplex_pivoting(system, cross, start=start)
    if bool(xp.any(unsolved)):
        rows = xp.nonzero(unsolved)[0]
        part = _descended(xp, system, xp.astype(xp.take(cross, rows, axis=0), xp.float64))
        solution = with_rows(solution, unsolved, xp.astype(part, cross.dtype))
    return solution


def _definite(gram: Any) -> Any:
    diagonal = np.diagonal(gram)
    positive = diagonal[diagonal > 0]
    if not positive.size:
        return np.eye(len(gram))  # all points are the origin, and all weights are as good
    system = gram + positive.min()
    scale = np.sqrt(np.diagonal(system))
    lowest = np.linalg.eigvalsh(system / np.outer(scale, scale))[0]
    if lowest < SINGULAR:
        system = system + np.diag(RIDGE * np.diagonal(system))
    return system


def _descended(xp: Namespace, gram: Array, cross: Array) -> Array:
    # Accelerated projected gradient, restarted where a step goes uphill: for what pivoting could not end.
    step = 1.0 / float(xp.linalg.matrix_norm(gram, ord=2))
    x = onto_simplex(cross * step)
    ahead, before = x, xp.ones((cross.shape[0], 1), dtype=xp.float64, device=cross.device)
    for _ in range(FALLBACK_STEPS):
        slope = ahead @ gram - cross
        new = onto_simplex(ahead - step * slope)
        uphill = xp.sum((ahead - new) * (new - x), axis=1, keepdims=True) > 0
        after = xp.where(uphill, xp.ones_like(before), 0.5 * (1.0 + xp.sqrt(1.0 + 4.0 * before * before)))
        pull = xp.where(uphill, xp.zeros_like(before), (before - 1.0) / after)
        moved = float(xp.max(xp.abs(new - x)))
        ahead, x, before = new + pull * (new - x), new, after
        if moved <= 1e-15:
            break
    return x


def onto_simplex(rows: Array) -> Array:
    """Return the nearest points with nonnegative entries that sum to one."""
    # By sorting, O(k log k) per row.
    # Held, Wolfe & Crowder (1974), Mathematical Programming 6.
    xp = array_namespace(rows)
    k = rows.shape[1]
    falling = xp.sort(rows, axis=1, descending=True)
    count = xp.astype(xp.arange(1, k + 1, device=rows.device), rows.dtype)
    above = (xp.cumulative_sum(falling, axis=1) - 1.0) / count
    # The largest support for which its smallest entry stays above the level it requires.
    supported = xp.sum(xp.astype(falling > above, xp.int64), axis=1)
    supported = xp.clip(supported, min=1)
    position = xp.arange(1, k + 1, device=rows.device)
    chosen = xp.astype(position[None, :] == supported[:, None], rows.dtype)
    level = xp.sum(above * chosen, axis=1, keepdims=True)
    return xp.clip(rows - level, min=0.0)
