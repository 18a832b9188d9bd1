"""The compiled loops of the scan for the vertex of every column, plain and grouped."""

from __future__ import annotations

import numpy as np

from nonneg.kernels.jit import jit, part

# Points whose scores are computed together, and features per vector: groups are padded to multiples of these.
POINTS, FEATURES = 4, 8


@jit(error_model="numpy")
def fill_dense(points, center, inverse, start, stop, out):
    """Write centered, scaled points and leave the last feature, the penalty's, at zero."""
    m = points.shape[1]
    for n in range(start, stop):
        for k in range(m):
            out[n, k] = (points[n, k] - center[k]) * inverse
        out[n, m] = 0.0


@jit(error_model="numpy")
def fill_sparse_tile(indptr, indices, data, center, inverse, base, base_inverse, start, stop, tile):
    """Write centered, scaled rows of a CSR matrix with the base of the penalty as the last feature."""
    m = center.shape[0]
    for n in range(start, stop):
        for k in range(m):
            tile[n - start, k] = -center[k] * inverse
        for p in range(indptr[n], indptr[n + 1]):
            k = indices[p]
            tile[n - start, k] = (data[p] - center[k]) * inverse
        tile[n - start, m] = base[n] * base_inverse


@jit(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def fill_columns(residual, columns, radius, base_scale, out, sizes):
    """Write the residuals of some columns, scaled so that no score exceeds 1; `sizes` gets the scales."""
    m = residual.shape[1]
    for c in range(columns.shape[0]):
        row = residual[columns[c]]
        square = 0.0
        for k in range(m):
            square += row[k] * row[k]
        size = radius * np.sqrt(square) + base_scale
        sizes[c] = size
        inverse = 1.0 / size if size > 0.0 else 0.0
        for k in range(m):
            out[c, k] = row[k] * (radius * inverse)
        out[c, m] = base_scale * inverse


@jit(error_model="numpy")
def add_listed(scores, first_row, n_rows, columns, indptr, rows, extra, sizes):
    """Add the extra gradient of the penalty at the listed entries of these rows and columns."""
    for c in range(columns.shape[0]):
        column = columns[c]
        for p in range(indptr[column], indptr[column + 1]):
            n = rows[p] - first_row
            if 0 <= n < n_rows and sizes[c] > 0.0:
                scores[n, c] += extra[p] / sizes[c]


@part(error_model="numpy")
def _lowest_of_eight(scores, n, lowest, fresh):
    # Selections instead of branches, so that the loop over columns is vectorized.
    for c in range(scores.shape[1]):
        a, b, d, e = scores[n, c], scores[n + 1, c], scores[n + 2, c], scores[n + 3, c]
        f, g, h, i = scores[n + 4, c], scores[n + 5, c], scores[n + 6, c], scores[n + 7, c]
        less = b < a
        a = b if less else a
        less = e < d
        d = e if less else d
        less = g < f
        f = g if less else f
        less = i < h
        h = i if less else h
        less = d < a
        a = d if less else a
        less = h < f
        f = h if less else f
        less = f < a
        a = f if less else a
        less = (lowest[c] < a) & (not fresh)
        lowest[c] = lowest[c] if less else a


@part(error_model="numpy")
def lowest_two(scores, first_row, best, second, index):
    """Update the running minimum, its index and the second lowest value with a block of scores."""
    n_rows, n_columns = scores.shape
    lowest = np.empty(n_columns, dtype=scores.dtype)
    for n in range(0, n_rows, 16):
        stop = min(n + 16, n_rows)
        if stop - n == 16:
            _lowest_of_eight(scores, n, lowest, True)
            _lowest_of_eight(scores, n + 8, lowest, False)
        else:
            lowest[:] = -np.inf
        # Sixteen rows seldom bring one of the two lowest values of a column.
        for c in range(n_columns):
            if lowest[c] < second[c]:
                low, high, at = best[c], second[c], index[c]
                for row in range(n, stop):
                    value = scores[row, c]
                    if value < high:
                        if value < low:
                            high, low, at = low, value, first_row + row
                        else:
                            high = value
                best[c], second[c], index[c] = low, high, at


@jit(error_model="numpy")
def take_block(scores, first_row, columns, indptr, rows, extra, sizes, best, second, index):
    """Correct the listed entries of a block of scores and update the running minima."""
    add_listed(scores, first_row, scores.shape[0], columns, indptr, rows, extra, sizes)
    lowest_two(scores, first_row, best, second, index)


@part(error_model="numpy")
def _extra_at(indptr, rows, extra, column, n):
    for p in range(indptr[column], indptr[column + 1]):
        if rows[p] == n:
            return extra[p]
    return 0.0


# Summed in one order for every row, so that equal points have equal scores and the first of them wins.
@part(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def _centered_dot(row, center, other):
    total = 0.0
    for k in range(row.shape[0]):
        total += (row[k] - center[k]) * other[k]
    return total


@part(error_model="numpy")
def decide_dense(
    scores, first_row, threshold, points, center, residual, columns, base, indptr, rows, extra, exact, index
):
    """Evaluate in float64 every score that may be the lowest, and keep the lowest of them."""
    for n in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            if scores[n, c] <= threshold[c]:
                at, column = first_row + n, columns[c]
                value = _centered_dot(points[at], center, residual[column]) + base[at]
                value += _extra_at(indptr, rows, extra, column, at)
                if value < exact[c]:
                    exact[c], index[c] = value, at


@jit(error_model="numpy")
def scan_dense(
    rounded, points, center, residual, columns, radius, base_scale, base, indptr, rows, extra, tol,
    height, width, found, start, stop,
):  # fmt: skip
    """Find the vertices of columns start to stop; see `kernels.self_dictionary.minimizing_vertices`."""
    # The products are computed here too, by SciPy's BLAS, so that no block of scores waits for the GIL.
    n_points, m = rounded.shape
    room = np.empty(min(height, n_points) * width, dtype=np.float32)
    right, sizes = np.empty((width, m), dtype=np.float32), np.empty(width)
    best, second = np.empty(width, dtype=np.float32), np.empty(width, dtype=np.float32)
    exact, index = np.empty(width), np.empty(width, dtype=np.int64)
    close, places = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
    for first in range(start, stop, width):
        n = min(width, stop - first)
        named = columns[first : first + n]
        fill_columns(residual, named, radius, base_scale, right, sizes)
        best[:n], second[:n], index[:n] = np.inf, np.inf, 0
        for row in range(0, n_points, height):
            left = rounded[row : row + height]
            scores = room[: left.shape[0] * n].reshape((left.shape[0], n))
            np.dot(left, right[:n].T, scores)
            take_block(scores, row, named, indptr, rows, extra, sizes, best[:n], second[:n], index[:n])
        n_close = 0
        for c in range(n):
            found[first + c] = index[c]
            if not second[c] - best[c] > tol:
                close[n_close], places[n_close] = named[c], first + c
                best[n_close] = best[c] + tol
                n_close += 1
        if n_close == 0:
            continue
        fill_columns(residual, close[:n_close], radius, base_scale, right, sizes)
        exact[:n_close], index[:n_close] = np.inf, 0
        for row in range(0, n_points, height):
            left = rounded[row : row + height]
            scores = room[: left.shape[0] * n_close].reshape((left.shape[0], n_close))
            np.dot(left, right[:n_close].T, scores)
            add_listed(scores, row, left.shape[0], close[:n_close], indptr, rows, extra, sizes)
            decide_dense(
                scores, row, best, points, center, residual, close, base, indptr, rows, extra, exact, index
            )
        for c in range(n_close):
            found[places[c]] = index[c]


@jit(error_model="numpy")
def decide_sparse(
    scores,
    first_row,
    threshold,
    point_starts,
    point_features,
    point_values,
    residual,
    columns,
    base,
    indptr,
    rows,
    extra,
    exact,
    index,
):
    """Do the same with points in CSR."""
    for n in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            if scores[n, c] <= threshold[c]:
                at, column = first_row + n, columns[c]
                value = 0.0
                for p in range(point_starts[at], point_starts[at + 1]):
                    value += point_values[p] * residual[column, point_features[p]]
                value += base[at]
                value += _extra_at(indptr, rows, extra, column, at)
                if value < exact[c]:
                    exact[c], index[c] = value, at


@jit(error_model="numpy")
def group_radii(rounded, order, starts, centers, stretch, radii, first, last):
    """Write the largest distance of a point of each group from its center, in stretched coordinates."""
    m = stretch.shape[0]
    apart = np.empty(m)
    for g in range(first, last):
        furthest = 0.0
        for n in range(starts[g], starts[g + 1]):
            point = rounded[order[n]]
            for j in range(m):
                apart[j] = 0.0
            for k in range(m):
                along = np.float64(point[k]) - np.float64(centers[g, k])
                for j in range(m):
                    apart[j] += along * stretch[k, j]
            square = 0.0
            for j in range(m):
                square += apart[j] * apart[j]
            furthest = max(furthest, square)
        # Rounded up: the radius is part of a lower bound.
        radii[g] = np.sqrt(furthest) * (1.0 + 1e-6)


@jit(error_model="numpy")
def decide_leaders(
    scores, leaders, tol, sizes, points, center, residual, columns, base, indptr, rows, extra,
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
        best = _centered_dot(points[at], center, residual[column]) + base[at]
        best += _extra_at(indptr, rows, extra, column, at)
        limit = best * scale + tol
        for a in range(leaders.shape[0]):
            if scores[c, a] <= limit and a != first:
                other = leaders[a]
                value = _centered_dot(points[other], center, residual[column]) + base[other]
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


@part(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def _four_scores(points, n, row):
    a, b, c, d = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for k in range(row.shape[0]):
        a += points[n, k] * row[k]
        b += points[n + 1, k] * row[k]
        c += points[n + 2, k] * row[k]
        d += points[n + 3, k] * row[k]
    return a, b, c, d


@jit(error_model="numpy")
def decide_groups(
    marks, along, radii, norms, starts, rounded, members, scaled, tol, sizes, points, center, residual,
    columns, base, indptr, rows, extra, exact, index, threshold,
):  # fmt: skip
    """Score the groups for the marked columns; what may be lowest is evaluated in float64."""
    for g in range(along.shape[0]):
        # Eight marks at a time, nearly all of which are zero.
        words = marks[g].view(np.uint64)
        for w in range(words.shape[0]):
            if words[w] == 0:
                continue
            for c in range(8 * w, 8 * w + 8):
                # The limit decreases as better points are found.
                if marks[g, c] == 0 or along[g, c] - radii[g] * norms[c] > threshold[c] + tol:
                    continue
                for n in range(starts[g], starts[g + 1], POINTS):
                    scores = _four_scores(rounded, n, scaled[c])
                    if min(scores) > threshold[c]:
                        continue
                    column, scale = columns[c], 1.0 / sizes[c] if sizes[c] > 0.0 else 0.0
                    for p in range(POINTS):
                        # The extra of a listed entry is nonnegative: without it the score is a lower bound.
                        if scores[p] <= threshold[c]:
                            at = members[n + p]
                            value = _centered_dot(points[at], center, residual[column]) + base[at]
                            value += _extra_at(indptr, rows, extra, column, at)
                            if value < exact[c] or (value == exact[c] and at < index[c]):
                                exact[c], index[c] = value, at
                                threshold[c] = value * scale + tol
