"""The scan of groups of data points that a bound could not rule out (compiled)."""

from __future__ import annotations

import numpy as np

from nonneg.kernels.jit import jit
from nonneg.kernels.self_dictionary.numba import _centred_dot, _extra_at

# Points whose scores are made side by side, and features in a vector or more: groups are filled up to these.
POINTS, FEATURES = 4, 8


@jit(error_model="numpy")
def group_radii(rounded, order, starts, centres, stretch, radii, first, last):
    """Write the largest distance of a point of each group from its centre, in stretched coordinates."""
    m = stretch.shape[0]
    apart = np.empty(m)
    for g in range(first, last):
        furthest = 0.0
        for n in range(starts[g], starts[g + 1]):
            point = rounded[order[n]]
            for j in range(m):
                apart[j] = 0.0
            for k in range(m):
                along = np.float64(point[k]) - np.float64(centres[g, k])
                for j in range(m):
                    apart[j] += along * stretch[k, j]
            square = 0.0
            for j in range(m):
                square += apart[j] * apart[j]
            furthest = max(furthest, square)
        # Rounded up: the radius is part of a lower bound.
        radii[g] = np.sqrt(furthest) * (1.0 + 1e-6)


@jit(error_model="numpy")
def settle_leaders(
    scores, leaders, tol, sizes, points, centre, residual, columns, base, indptr, rows, extra,
    exact, index, threshold,
):  # fmt: skip
    """Find the best of a few points for every column, in float64, and which scores may still beat it."""
    for c in range(columns.shape[0]):
        column, scale = columns[c], 1.0 / sizes[c] if sizes[c] > 0.0 else 0.0
        first, lowest = 0, scores[c, 0]
        for a in range(1, leaders.shape[0]):
            if scores[c, a] < lowest:
                first, lowest = a, scores[c, a]
        at = leaders[first]
        best = _centred_dot(points[at], centre, residual[column]) + base[at]
        best += _extra_at(indptr, rows, extra, column, at)
        limit = best * scale + tol
        for a in range(leaders.shape[0]):
            if scores[c, a] <= limit and a != first:
                other = leaders[a]
                value = _centred_dot(points[other], centre, residual[column]) + base[other]
                value += _extra_at(indptr, rows, extra, column, other)
                if value < best or (value == best and other < at):
                    best, at = value, other
                    limit = best * scale + tol
        exact[c], index[c], threshold[c] = best, at, limit


@jit(error_model="numpy")
def mark_alive(along, radii, norms, threshold, tol, marks):
    """Mark the columns for which each group may hold a better point than is known; return their number."""
    total = 0
    for g in range(along.shape[0]):
        radius, found = radii[g], np.int32(0)
        for c in range(along.shape[1]):
            alive = np.uint8(along[g, c] - radius * norms[c] <= threshold[c] + tol)
            marks[g, c] = alive
            found += np.int32(alive)
        total += int(found)
    return total


@jit(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def _four_scores(points, n, row):
    a, b, c, d = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for k in range(row.shape[0]):
        a += points[n, k] * row[k]
        b += points[n + 1, k] * row[k]
        c += points[n + 2, k] * row[k]
        d += points[n + 3, k] * row[k]
    return a, b, c, d


@jit(error_model="numpy")
def settle_groups(
    marks, along, radii, norms, starts, rounded, members, scaled, tol, sizes, points, centre, residual,
    columns, base, indptr, rows, extra, exact, index, threshold,
):  # fmt: skip
    """Look at the groups for the columns marked; what may be lowest is evaluated in float64."""
    for g in range(along.shape[0]):
        # Eight marks at a time, nearly all of which are zero.
        words = marks[g].view(np.uint64)
        for w in range(words.shape[0]):
            if words[w] == 0:
                continue
            for c in range(8 * w, 8 * w + 8):
                # The limit falls as better points are found.
                if marks[g, c] == 0 or along[g, c] - radii[g] * norms[c] > threshold[c] + tol:
                    continue
                for n in range(starts[g], starts[g + 1], POINTS):
                    scores = _four_scores(rounded, n, scaled[c])
                    if min(scores) > threshold[c]:
                        continue
                    column, scale = columns[c], 1.0 / sizes[c] if sizes[c] > 0.0 else 0.0
                    for p in range(POINTS):
                        # A listed entry's extra slope is not negative: without it the score is a lower bound.
                        if scores[p] <= threshold[c]:
                            at = members[n + p]
                            value = _centred_dot(points[at], centre, residual[column]) + base[at]
                            value += _extra_at(indptr, rows, extra, column, at)
                            if value < exact[c] or (value == exact[c] and at < index[c]):
                                exact[c], index[c] = value, at
                                threshold[c] = value * scale + tol
