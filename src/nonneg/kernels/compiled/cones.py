"""Farthest rows and products of rows with the vector of their own cluster (compiled).

`rows` is a dense array, or the three arrays (indptr, indices, data) of a sparse one: the loops are written
once, and what differs between the two is in `row_dot` and `add_row`.
"""

from __future__ import annotations

from numba import types
from numba.extending import overload

from nonneg.kernels.compiled.jit import jit

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
        vector = vectors[owners[piece]]
        for p in range(starts[piece], stops[piece]):
            i = order[p]
            product = row_dot(rows, i, vector)
            products[i] = product
            add_row(rows, i, product * weights[i] if weighted else product, totals[piece])
