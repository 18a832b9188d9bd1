"""Products with rows inside compiled kernels, for dense rows and for CSR.

`rows` is a dense array, or the three arrays (indptr, indices, data) of a sparse one (`LocalMatrix.raw_rows`).
A kernel is written once, and what differs between the two is in these functions.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

# Sums may be reordered and fused, so that they are vectorized; NaN and infinities keep their meaning.
LOOSE = {"contract", "nsz", "reassoc"}
DENSE = (types.Array, np.ndarray)


# Numba replaces each body by its overload below; with NUMBA_DISABLE_JIT=1 the body calls it.
def row_dot(rows, i, vector):
    """Return the product of row `i` with a vector."""
    return _row_dot(rows, i, vector)(rows, i, vector)


def add_row(rows, i, factor, total):
    """Add `factor` times row `i` to `total` in place."""
    return _add_row(rows, i, factor, total)(rows, i, factor, total)


def two_dots(rows, i, j, vector):
    """Return the products of two rows with a vector."""
    return _two_dots(rows, i, j, vector)(rows, i, j, vector)


def add_two_rows(rows, i, j, of_i, of_j, total):
    """Add two rows times their factors to `total` in place."""
    return _add_two_rows(rows, i, j, of_i, of_j, total)(rows, i, j, of_i, of_j, total)


@overload(row_dot, jit_options={"fastmath": LOOSE, "error_model": "numpy"})
def _row_dot(rows, i, vector):
    if isinstance(rows, DENSE):

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
    if isinstance(rows, DENSE):

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
    if isinstance(rows, DENSE):

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
    if isinstance(rows, DENSE):

        def dense(rows, i, j, of_i, of_j, total):
            for f in range(rows.shape[1]):
                total[f] += of_i * rows[i, f] + of_j * rows[j, f]

        return dense

    def sparse(rows, i, j, of_i, of_j, total):
        add_row(rows, i, of_i, total)
        add_row(rows, j, of_j, total)

    return sparse
