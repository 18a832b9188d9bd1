"""Columns with few entries, each a short list of rows and weights (compiled)."""

from __future__ import annotations

import numpy as np

from nonneg.kernels.jit import jit


@jit(error_model="numpy")
def step_columns(
    rows,
    weights,
    counts,
    entering,
    leaving,
    keep,
    gain,
    cut,
    floor,
    new_rows,
    new_weights,
    new_counts,
    reached,
    start,
    stop,
):
    """Write columns start to stop after a step; see `kernels.sparse_columns.step_columns`."""
    for column in range(start, stop):
        enters, leaves, share = entering[column], leaving[column], keep[column]
        n, found = 0, False
        for p in range(counts[column]):
            row = rows[column, p]
            weight = weights[column, p] * share
            if row == enters:
                weight += gain[column]
                found = True
                reached[column] = weight
            if row == leaves:
                weight -= cut[column]
            if weight > floor:
                new_rows[column, n] = row
                new_weights[column, n] = weight
                n += 1
        if not found and gain[column] > 0:
            new_rows[column, n] = enters
            new_weights[column, n] = gain[column]
            reached[column] = gain[column]
            n += 1
        new_counts[column] = n
        for p in range(n, new_rows.shape[1]):
            new_rows[column, p] = 0
            new_weights[column, p] = 0


@jit(error_model="numpy")
def add_to_columns(
    rows, weights, counts, entering, gain, new_rows, new_weights, new_counts, reached, start, stop
):
    """Write columns start to stop after each gained the same weight in one row."""
    room, wider = rows.shape[1], new_rows.shape[1]
    for column in range(start, stop):
        for p in range(room):
            new_rows[column, p] = rows[column, p]
        for p in range(room):
            new_weights[column, p] = weights[column, p]
        for p in range(room, wider):
            new_rows[column, p] = 0
            new_weights[column, p] = 0
        enters, n = entering[column], counts[column]
        at = n
        for p in range(n):
            if rows[column, p] == enters:
                at = p
                break
        if at == n:
            new_rows[column, at] = enters
            new_weights[column, at] = 0
        new_weights[column, at] += gain
        reached[column] = new_weights[column, at]
        new_counts[column] = n + 1 if at == n else n


@jit(error_model="numpy")
def raise_row_facts(entering, reached, fresh, row_max, row_count):
    """Update the largest weight and the number of entries of the rows after columns gained weight."""
    for column in range(entering.shape[0]):
        row = entering[column]
        if reached[column] > row_max[row]:
            row_max[row] = reached[column]
        if fresh[column]:
            row_count[row] += 1


@jit(error_model="numpy")
def row_facts(rows, weights, counts, row_max, row_count):
    """Find the largest weight and the number of entries of every row."""
    for column in range(rows.shape[0]):
        for p in range(counts[column]):
            row = rows[column, p]
            row_count[row] += 1
            if weights[column, p] > row_max[row]:
                row_max[row] = weights[column, p]


@jit(error_model="numpy")
def count_near(rows, weights, counts, row_max, reach, found, start, stop):
    """Count the entries of every column that lie within `reach` of their row's largest."""
    for column in range(start, stop):
        n = 0
        for p in range(counts[column]):
            if row_max[rows[column, p]] - weights[column, p] <= reach:
                n += 1
        found[column] = n


@jit(error_model="numpy")
def fill_near(
    rows, weights, counts, row_max, reach, scale, indptr, near_rows, near_weights, values, start, stop
):
    """List these entries with exp((weight - largest) * scale)."""
    for column in range(start, stop):
        at = indptr[column]
        for p in range(counts[column]):
            row = rows[column, p]
            below = row_max[row] - weights[column, p]
            if below <= reach:
                near_rows[at] = row
                near_weights[at] = weights[column, p]
                values[at] = 1.0 if below == 0 else np.exp(-below * scale)
                at += 1


@jit(error_model="numpy")
def list_near(rows, weights, counts, row_max, reach, scale, indptr, near_rows, near_weights, values):
    """Do both in one pass; return False where the arrays are too short."""
    at, room = 0, near_rows.shape[0]
    indptr[0] = 0
    for column in range(rows.shape[0]):
        if at + counts[column] > room:
            return False
        for p in range(counts[column]):
            row = rows[column, p]
            below = row_max[row] - weights[column, p]
            if below <= reach:
                near_rows[at] = row
                near_weights[at] = weights[column, p]
                values[at] = 1.0 if below == 0 else np.exp(-below * scale)
                at += 1
        indptr[column + 1] = at
    return True


@jit(error_model="numpy")
def add_by_row(rows, values, sums):
    """Add every value to the sum of its row, in their order."""
    for p in range(rows.shape[0]):
        sums[rows[p]] += values[p]


@jit(error_model="numpy")
def value_at(indptr, rows, values, places, otherwise, out, start, stop):
    """Write the listed value of column c at row places[c], or otherwise[places[c]] where it is not listed."""
    for column in range(start, stop):
        found = otherwise[places[column]]
        for p in range(indptr[column], indptr[column + 1]):
            if rows[p] == places[column]:
                found = values[p]
        out[column] = found


@jit(error_model="numpy")
def row_slopes(row_max, row_count, sums, scale, total, mu, base):
    """Complete the sums of the rows, write the gradient at zero entries, return the value of the penalty."""
    n = row_max.shape[0]
    tops, logs = 0.0, 0.0
    for row in range(n):
        height = row_max[row] / scale
        at_zero = np.exp(-height) if height < 745.2 else 0.0
        sums[row] += (n - row_count[row]) * at_zero
        base[row] = at_zero / sums[row]
        if row_count[row] > 0:
            tops += row_max[row] / total
            logs += np.log(sums[row] / n)
    return tops + mu * logs


@jit(error_model="numpy")
def entry_slopes(indptr, rows, weights, values, sums, total, shares, inner):
    """Write the gradient at the listed entries, and gradient times entry summed over each column."""
    for column in range(inner.shape[0]):
        inside = 0.0
        for p in range(indptr[column], indptr[column + 1]):
            share = values[p] / sums[rows[p]]
            shares[p] = share
            inside += share * (weights[p] / total)
        inner[column] = inside


@jit(error_model="numpy")
def row_tops(rows, entries, directions, size, tops, sums):
    """Write the largest entry of every row at entries + size * directions; `sums` becomes zero there."""
    for p in range(rows.shape[0]):
        value = entries[p] + size * directions[p]
        row = rows[p]
        sums[row] = 0.0
        if value > tops[row]:
            tops[row] = value


@jit(error_model="numpy")
def row_sums(rows, entries, directions, size, inverse, tops, sums, slopes):
    """Add exp((entry - top) * inverse) by row, and the same times the direction."""
    for p in range(rows.shape[0]):
        row = rows[p]
        below = tops[row] - (entries[p] + size * directions[p])
        if below == 0.0:
            sums[row] += 1.0
            slopes[row] += directions[p]
        elif below * inverse < 745.2:
            value = np.exp(-below * inverse)
            sums[row] += value
            slopes[row] += value * directions[p]
