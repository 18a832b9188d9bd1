"""Coordinate descent on rows in array API operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg.kernels.grams import Gram, SmoothGram, gram_matrices


def hals_passes(
    factor: Any, gram: Gram, cross: Any, order: Any, max_passes: int, shrink: float
) -> tuple[Any, Any]:
    """Update all rows; see `kernels.hals.hals_passes`."""
    matrices = gram_matrices(gram)
    xp = array_namespace(factor, matrices, cross)
    # One factor of all rows, or one for each row.
    axis = 1 if matrices.ndim == 3 else 0
    rows, target = (xp.expand_dims(array, axis=axis) for array in (factor, cross))
    grams = matrices if axis else matrices[None, :, :]
    rows, violations = batched_hals(rows, grams, target, order, max_passes, shrink, asks=True)
    return xp.squeeze(rows, axis=axis), xp.sum(violations)


def batched_hals(
    factor: Any,
    gram: Any,
    cross: Any,
    order: Any,
    max_passes: int,
    shrink: float,
    *,
    asks: bool = False,
) -> tuple[Any, Any]:
    """Update the rows of all factors; with `asks`, end when all rows have stopped, which a GPU waits for."""
    xp = array_namespace(factor, gram, cross)
    factor = xp.asarray(factor, copy=True)
    diagonal = xp.linalg.diagonal(gram)
    # Without curvature there is nothing to gain: a zero step. `if` would make a GPU wait at every column. The
    # inverse of a subnormal number may be infinite.
    flat = diagonal < xp.finfo(diagonal.dtype).smallest_normal
    inverse = xp.where(flat, xp.zeros_like(diagonal), 1.0 / xp.where(flat, xp.ones_like(diagonal), diagonal))
    violation = xp.zeros((factor.shape[0],), dtype=factor.dtype, device=factor.device)
    limit: Any = None
    active: Any = None
    for sweep in range(max_passes):
        before = xp.asarray(factor, copy=True)
        for a in (int(turn) for turn in order):
            old = factor[:, :, a]
            slope = (factor @ gram[:, :, a : a + 1])[:, :, 0] - cross[:, :, a]
            length = inverse[:, a][:, None]
            if active is None:
                counted = xp.where(old > 0, slope, xp.clip(slope, max=0.0))
                counted = xp.where(length > 0, xp.abs(counted), xp.zeros_like(counted))
                violation = violation + xp.sum(counted, axis=1)
            else:
                # Rows that have stopped take steps of length zero.
                length = length * xp.astype(active, factor.dtype)
            factor[:, :, a] = xp.clip(old - slope * length, min=0.0)
        change = xp.sum((factor - before) ** 2, axis=2)
        if active is None:
            limit = change * (shrink * shrink)
            active = change > limit
        else:
            active = xp.logical_and(active, change > limit)
        if asks and sweep + 1 < max_passes and not bool(xp.any(active)):
            break
    return factor, violation


def smooth_passes(
    factor: Any, gram: SmoothGram, cross: Any, order: Any, max_passes: int, shrink: float
) -> tuple[Any, float]:
    """Update rows that a graph couples: those of one color at once, each entry by its exact minimizer."""
    new, dtype, own = np.array(factor, order="C"), factor.dtype, np.diagonal(gram.matrix)
    others, turns = gram.matrix - np.diag(own), [a for a in order if own[a] > 0]  # others have no curvature
    colors = []
    for rows, edges in gram.graph.colors:
        curvature = own[:, None] + np.outer(gram.weights, gram.graph.degrees[rows])
        own_cross = np.ascontiguousarray(cross[rows].T)
        colors.append((rows, edges.astype(dtype, copy=False), own_cross, curvature.astype(dtype)))
    violation = limit = 0.0
    for sweep in range(max_passes):
        change = 0.0
        for rows, edges, own_cross, curvature in colors:
            # Neighbors have other colors, so that they stay while these rows move.
            target = own_cross + (gram.weights * (edges @ new)).T.astype(dtype)
            part = np.ascontiguousarray(new[rows].T)
            for a in turns:
                numerator = target[a] - others[a] @ part
                if sweep == 0:
                    slope = curvature[a] * part[a] - numerator
                    violation += float(np.abs(np.where(part[a] > 0, slope, np.minimum(slope, 0))).sum())
                numerator /= curvature[a]
                moved = np.maximum(numerator, 0, out=numerator)
                step = moved - part[a]
                change += float(step @ step)
                part[a] = moved
            new[rows] = part.T
        limit = limit if sweep else change * shrink * shrink
        if change <= limit:
            break
    return new, violation
