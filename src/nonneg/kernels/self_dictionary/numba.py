"""The scan for the best data point of every column of a self-dictionary problem (compiled).

A block of scores is made by one float32 product and read once while it is in the cache; what is too close
to call is decided in float64.
"""

from __future__ import annotations

import numpy as np

from nonneg.kernels.jit import jit


@jit(error_model="numpy")
def fill_dense(points, centre, inverse, start, stop, out):
    """Write centred, scaled points and leave the last feature, the penalty's, at zero."""
    m = points.shape[1]
    for n in range(start, stop):
        for k in range(m):
            out[n, k] = (points[n, k] - centre[k]) * inverse
        out[n, m] = 0.0


@jit(error_model="numpy")
def fill_sparse_tile(indptr, indices, data, centre, inverse, base, base_inverse, start, stop, tile):
    """Write centred, scaled rows of a CSR matrix with their share of the penalty as the last feature."""
    m = centre.shape[0]
    for n in range(start, stop):
        for k in range(m):
            tile[n - start, k] = -centre[k] * inverse
        for p in range(indptr[n], indptr[n + 1]):
            k = indices[p]
            tile[n - start, k] = (data[p] - centre[k]) * inverse
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
    """Add what the penalty's slope has beyond its base at the listed entries of these rows and columns."""
    for c in range(columns.shape[0]):
        column = columns[c]
        for p in range(indptr[column], indptr[column + 1]):
            n = rows[p] - first_row
            if 0 <= n < n_rows and sizes[c] > 0.0:
                scores[n, c] += extra[p] / sizes[c]


@jit(error_model="numpy")
def _lowest_of_eight(scores, n, lowest, fresh):
    # Selections instead of branches, so that the loop over columns runs on vectors.
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


@jit(error_model="numpy")
def lowest_two(scores, first_row, best, second, index):
    """Take the rows of a block of scores into the running minimum, its index and the second lowest value."""
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
    """Put the listed entries of a block of scores right and take it into the running minima."""
    add_listed(scores, first_row, scores.shape[0], columns, indptr, rows, extra, sizes)
    lowest_two(scores, first_row, best, second, index)


@jit(error_model="numpy")
def _extra_at(indptr, rows, extra, column, n):
    for p in range(indptr[column], indptr[column + 1]):
        if rows[p] == n:
            return extra[p]
    return 0.0


# Summed in one order for every row, so that equal points have equal scores and the first of them wins.
@jit(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def _centred_dot(row, centre, other):
    total = 0.0
    for k in range(row.shape[0]):
        total += (row[k] - centre[k]) * other[k]
    return total


@jit(error_model="numpy")
def settle_dense(
    scores, first_row, threshold, points, centre, residual, columns, base, indptr, rows, extra, exact, index
):
    """Evaluate in float64 every score that may be the lowest, and keep the lowest of them."""
    for n in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            if scores[n, c] <= threshold[c]:
                at, column = first_row + n, columns[c]
                value = _centred_dot(points[at], centre, residual[column]) + base[at]
                value += _extra_at(indptr, rows, extra, column, at)
                if value < exact[c]:
                    exact[c], index[c] = value, at


@jit(error_model="numpy")
def scan_dense(
    rounded, points, centre, residual, columns, radius, base_scale, base, indptr, rows, extra, tol,
    height, width, found, start, stop,
):  # fmt: skip
    """Find the best point of columns start to stop; see `kernels.self_dictionary.best_atoms`."""
    # The products are made here too, by SciPy's BLAS, so that no block of scores waits for the GIL.
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
            settle_dense(
                scores, row, best, points, centre, residual, close, base, indptr, rows, extra, exact, index
            )
        for c in range(n_close):
            found[places[c]] = index[c]


@jit(error_model="numpy")
def settle_sparse(
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


@jit(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def column_products(own, source, places, residual, fit, square, start, stop):
    """Write r'(r + x - a) and r'r of columns start to stop, with x the point and a the chosen one."""
    m = residual.shape[1]
    for c in range(start, stop):
        atom = source[places[c]]
        total, norm = 0.0, 0.0
        for k in range(m):
            r = residual[c, k]
            total += r * (r + (np.float64(own[c, k]) - np.float64(atom[k])))
            norm += r * r
        fit[c], square[c] = total, norm


@jit(error_model="numpy")
def step_residuals(own, source, entering, keep, gain, residual, out, start, stop):
    """Write the residuals after columns start to stop kept a share and gained a point, all alike."""
    for c in range(start, stop):
        mine, atom, before, after = own[c], source[entering[c]], residual[c], out[c]
        for k in range(residual.shape[1]):
            after[k] = keep * before[k] + gain * (np.float64(atom[k]) - np.float64(mine[k]))


@jit(error_model="numpy")
def advance_residuals(own, source, entering, leaving, keep, gain, cut, residual, out, start, stop):
    """Do the same where each has shares of its own and may lose a part of another point."""
    m = residual.shape[1]
    for c in range(start, stop):
        atom = source[entering[c]]
        for k in range(m):
            out[c, k] = keep[c] * residual[c, k] + gain[c] * (np.float64(atom[k]) - np.float64(own[c, k]))
        if leaving[c] >= 0:
            atom = source[leaving[c]]
            for k in range(m):
                out[c, k] -= cut[c] * (np.float64(atom[k]) - np.float64(own[c, k]))


@jit(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def entry_products(points, rows, counts, residual, out, start, stop):
    """Write x_n'r_l for the listed entries (n, l) of the columns."""
    for column in range(start, stop):
        for p in range(counts[column]):
            total = 0.0
            point = points[rows[column, p]]
            for k in range(residual.shape[1]):
                total += point[k] * residual[column, k]
            out[column, p] = total
