"""The scan of groups of data points that a bound could not rule out (compiled)."""

from __future__ import annotations

import numpy as np

from nonneg.kernels.compiled.jit import jit
from nonneg.kernels.compiled.self_dictionary import _centred_dot, _extra_at


@jit(error_model="numpy")
def settle_leaders(
    scores,
    leaders,
    tol,
    sizes,
    points,
    centre,
    residual,
    columns,
    base,
    indptr,
    rows,
    extra,
    exact,
    index,
    threshold,
):
    """Find the best of a few points for every column, in float64, and which scores may still beat it."""
    for c in range(columns.shape[0]):
        column, scale = columns[c], 1.0 / sizes[c] if sizes[c] > 0.0 else 0.0
        first = 0
        for a in range(1, leaders.shape[0]):
            if scores[a, c] < scores[first, c]:
                first = a
        at = leaders[first]
        best = _centred_dot(points[at], centre, residual[column]) + base[at]
        best += _extra_at(indptr, rows, extra, column, at)
        limit = best * scale + tol
        for a in range(leaders.shape[0]):
            if scores[a, c] <= limit and a != first:
                other = leaders[a]
                value = _centred_dot(points[other], centre, residual[column]) + base[other]
                value += _extra_at(indptr, rows, extra, column, other)
                if value < best or (value == best and other < at):
                    best, at = value, other
                    limit = best * scale + tol
        exact[c], index[c], threshold[c] = best, at, limit


@jit(error_model="numpy")
def count_alive(along, radii, norms, threshold, tol, counts):
    """Count the columns for which each group may hold a better point; `along` becomes the lower bounds."""
    total = 0
    for g in range(along.shape[0]):
        radius, found = radii[g], 0
        for c in range(along.shape[1]):
            low = along[g, c] - radius * norms[c] - (threshold[c] + tol)
            along[g, c] = low
            found += low <= 0.0
        counts[g] = found
        total += found
    return total


@jit(error_model="numpy")
def list_alive(bounds, group, found):
    """Write the columns for which a group may hold a better point."""
    n = 0
    for c in range(bounds.shape[1]):
        if bounds[group, c] <= 0.0:
            found[n] = c
            n += 1


@jit(error_model="numpy")
def settle_group(
    scores, members, places, tol, sizes, points, centre, residual, columns, base, indptr, rows, extra,
    exact, index, threshold,
):  # fmt: skip
    """Evaluate in float64 the scores of a group that may be the lowest of a column; keep the lowest."""
    n_rows, n_columns = scores.shape
    lowest = np.empty(n_columns, dtype=scores.dtype)
    for c in range(n_columns):
        lowest[c] = scores[0, c]
    for n in range(1, n_rows):
        for c in range(n_columns):
            less = scores[n, c] < lowest[c]
            lowest[c] = scores[n, c] if less else lowest[c]
    for c in range(n_columns):
        place = places[c]
        if lowest[c] <= threshold[place]:
            column = columns[place]
            scale = 1.0 / sizes[place] if sizes[place] > 0.0 else 0.0
            for n in range(n_rows):
                # A listed entry's extra slope is not negative: without it the score is a lower bound.
                if scores[n, c] <= threshold[place]:
                    at = members[n]
                    value = _centred_dot(points[at], centre, residual[column]) + base[at]
                    value += _extra_at(indptr, rows, extra, column, at)
                    if value < exact[place] or (value == exact[place] and at < index[place]):
                        exact[place], index[place] = value, at
                        threshold[place] = value * scale + tol
