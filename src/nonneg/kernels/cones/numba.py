"""Farthest rows and products of rows with the vector of their own cluster (compiled).

`rows` is a dense array, or the three arrays (indptr, indices, data) of a sparse one: the loops are written
once, and what differs between the two is in `row_dot` and `add_row`.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from nonneg.kernels.jit import jit

# How often the row that promises most is looked at before all rows are compared with the best one so far.
PROBES = 8
LOOSE = {"contract", "nsz", "reassoc"}


# Names for compiled code alone: the overloads below give them their meaning, for dense rows and for CSR.
def row_dot(rows, i, vector):
    """Return the product of row `i` with a vector."""
    raise NotImplementedError


def add_row(rows, i, factor, total):
    """Add `factor` times row `i` to `total` in place."""
    raise NotImplementedError


def two_dots(rows, i, j, vector):
    """Return the products of two rows with a vector."""
    raise NotImplementedError


def add_two_rows(rows, i, j, of_i, of_j, total):
    """Add two rows times their factors to `total` in place."""
    raise NotImplementedError


@overload(row_dot, jit_options={"fastmath": LOOSE, "error_model": "numpy"})
def _row_dot(rows, i, vector):
    if isinstance(rows, types.Array):

        def dense(rows, i, vector):
            total = vector.dtype.type(0.0)
            for f in range(rows.shape[1]):
                total += rows[i, f] * vector[f]
            return total

        return dense

    def sparse(rows, i, vector):
        indptr, indices, data = rows
        total = vector.dtype.type(0.0)
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * vector[indices[p]]
        return total

    return sparse


@overload(add_row, jit_options={"fastmath": LOOSE, "error_model": "numpy"})
def _add_row(rows, i, factor, total):
    if isinstance(rows, types.Array):

        def dense(rows, i, factor, total):
            for f in range(rows.shape[1]):
                total[f] += factor * rows[i, f]

        return dense

    def sparse(rows, i, factor, total):
        indptr, indices, data = rows
        for p in range(indptr[i], indptr[i + 1]):
            total[indices[p]] += factor * data[p]

    return sparse


# Two rows at once load the vector once for both, and load and store the sum once: loads and stores are what
# one row alone is bound by. More rows no longer fit into a core's first cache beside the vector and the sum.
@overload(two_dots, jit_options={"fastmath": LOOSE, "error_model": "numpy"})
def _two_dots(rows, i, j, vector):
    if isinstance(rows, types.Array):

        def dense(rows, i, j, vector):
            of_i, of_j = vector.dtype.type(0.0), vector.dtype.type(0.0)
            for f in range(rows.shape[1]):
                entry = vector[f]
                of_i += rows[i, f] * entry
                of_j += rows[j, f] * entry
            return of_i, of_j

        return dense

    def sparse(rows, i, j, vector):
        return row_dot(rows, i, vector), row_dot(rows, j, vector)

    return sparse


@overload(add_two_rows, jit_options={"fastmath": LOOSE, "error_model": "numpy"})
def _add_two_rows(rows, i, j, of_i, of_j, total):
    if isinstance(rows, types.Array):

        def dense(rows, i, j, of_i, of_j, total):
            for f in range(rows.shape[1]):
                total[f] += of_i * rows[i, f] + of_j * rows[j, f]

        return dense

    def sparse(rows, i, j, of_i, of_j, total):
        add_row(rows, i, of_i, total)
        add_row(rows, j, of_j, total)

    return sparse


@jit(error_model="numpy")
def _look(rows, i, inverse_norms, centroids, nearest, seen, rate, shift, bound):
    """Raise row `i`'s cosine by centroids it has not been compared with, until its gain is below `bound`."""
    j = seen[i]
    while j < centroids.shape[0]:
        cosine = row_dot(rows, i, centroids[j]) * inverse_norms[i, 0]
        j += 1
        if cosine > nearest[i, 0]:
            nearest[i, 0] = cosine
            if rate * (shift - cosine) < bound:
                break
    seen[i] = j
    return rate * (shift - nearest[i, 0])


@jit(error_model="numpy")
def farthest_block(rows, inverse_norms, centroids, nearest, seen, rates, shift, start, stop):
    """Make the best row of a range exact, in place; see `kernels.cones.compare_rows`."""
    n_centroids = centroids.shape[0]
    uniform = rates.shape[0] == 0
    best, bound = -1, nearest.dtype.type(-1e300)
    for _ in range(PROBES):
        lead, promise = start, -1e300
        for i in range(start, stop):
            rate = 1.0 if uniform else rates[i, 0]
            gain = rate * (shift - nearest[i, 0])
            if gain > promise:
                lead, promise = i, gain
        if seen[lead, 0] >= n_centroids:
            return
        rate = 1.0 if uniform else rates[lead, 0]
        gain = _look(rows, lead, inverse_norms, centroids, nearest, seen[:, 0], rate, shift, -1e300)
        if gain > bound or (gain == bound and lead < best):
            best, bound = lead, gain
    for i in range(start, stop):
        if seen[i, 0] >= n_centroids:
            continue
        rate = 1.0 if uniform else rates[i, 0]
        gain = rate * (shift - nearest[i, 0])
        if gain > bound or (gain == bound and i < best):
            gain = _look(rows, i, inverse_norms, centroids, nearest, seen[:, 0], rate, shift, bound)
            if seen[i, 0] >= n_centroids and (gain > bound or (gain == bound and i < best)):
                best, bound = i, gain


@jit(error_model="numpy")
def own_products_block(rows, order, starts, stops, owners, vectors, weights, products, totals, start, stop):
    """Multiply rows by their cluster's vector and sum them up, in place; see `kernels.cones.own_products`."""
    weighted = weights.shape[0] > 0
    for piece in range(start, stop):
        vector, total = vectors[owners[piece]], totals[piece]
        p = starts[piece]
        while p + 2 <= stops[piece]:
            i, j = order[p], order[p + 1]
            of_i, of_j = two_dots(rows, i, j, vector)
            products[i], products[j] = of_i, of_j
            if weighted:
                of_i, of_j = of_i * weights[i], of_j * weights[j]
            add_two_rows(rows, i, j, of_i, of_j, total)
            p += 2
        if p < stops[piece]:
            i = order[p]
            product = row_dot(rows, i, vector)
            products[i] = product
            add_row(rows, i, product * weights[i] if weighted else product, total)


@jit(error_model="numpy")
def settle_block(rows, inverse_norms, centroids, scores, enough, tries, labels, cosines, start, stop):
    """Compare rows with the centroids of their best scores; see `kernels.cones.settled_centroids`."""
    # A row ends with the label of a centroid whose cosine is `enough` to exclude all others, or with -1. The
    # scores are used up.
    for i in range(start, stop):
        labels[i] = -1
        for _ in range(tries):
            guess = np.argmax(scores[i - start])
            scores[i - start, guess] = -np.inf
            cosine = row_dot(rows, i, centroids[guess]) * inverse_norms[i, 0]
            if cosine > enough[guess]:
                labels[i], cosines[i] = guess, cosine
                break
