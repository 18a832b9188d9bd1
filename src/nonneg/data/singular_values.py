"""Leading singular values without vectors, by the cheaper of two methods on the shorter side.

The Gram matrix of the shorter side is formed and its eigenvalues are computed whole where that takes less
work than the passes of Lanczos; a noisy spectrum, whose values lie close together, takes many.
"""

from __future__ import annotations

import numpy as np

from nonneg._random import Seed
from nonneg.data.gram_operator import gram_matrix, machine_epsilon, resolve_small_singular_values
from nonneg.data.lanczos import Float64Array
from nonneg.data.matrix import DataMatrix
from nonneg.data.sparse import SparseMatrix
from nonneg.data.sparse_array import SparseArrayMatrix
from nonneg.data.spectral import check_count, dense_eigenpairs, leading_eigenpairs
from nonneg.data.views import ScaledMatrix, can_be_transposed, transposed

FORM_LIMIT = 4096
"""With more rows and columns than this the Gram matrix is never formed."""
# Measured: Lanczos passes for 65 values of noisy data, to 1e-8; and how many operations of a square product
# take the time of one operation in thin products, in sparse ones and in eigenvalues.
_PASSES, _THIN, _SPARSE, _EIGEN = 20, 2.0, 10.0, 7.0
# Residuals below this share of the largest square give values that are exact to its own square, unless some
# are small themselves: those ask for the full precision.
_TOL, _SMALL = 1e-8, 1e-2


def leading_singular_values(data: DataMatrix, k: int, rng: Seed = None) -> Float64Array:
    """Return the k largest singular values in descending order."""
    # With m the shorter side and n the longer one (m is the number of columns for chunked and weighted data):
    # n m^2 + O(m^3) operations where the Gram matrix is formed, else 10 to 60 passes with blocks of k / 2
    # vectors and O(m k) memory.
    check_count(data, k)
    if data.shape[0] < data.shape[1] and can_be_transposed(data):
        data = transposed(data)  # type: ignore[arg-type]
    safe = float(np.sqrt(machine_epsilon(data)))
    if gram_is_cheaper(data, k):
        values = np.linalg.eigvalsh(gram_matrix(data))[::-1]
        if values[k - 1] >= safe * values[0] and values[0] > 0.0:
            return np.sqrt(values[:k])
        return resolve_small_singular_values(data, dense_eigenpairs(data, k)[1])[1]
    values, V = leading_eigenpairs(data, k, rng=rng, tol=_TOL)
    if values[-1] < _SMALL**2 * values[0]:
        values, V = leading_eigenpairs(data, k, rng=rng)
    if values[-1] >= safe * values[0] and values[0] > 0.0:
        return np.sqrt(values)
    return resolve_small_singular_values(data, V)[1]


def gram_is_cheaper(data: DataMatrix, k: int) -> bool:
    """Tell whether forming the Gram matrix takes less work than Lanczos."""
    n_rows, n_columns = (float(side) for side in data.shape)
    if n_columns > FORM_LIMIT:
        return False
    base = data.base if isinstance(data, ScaledMatrix) else data
    width = max(8, k // 2)
    product = _THIN * n_rows * n_columns
    if isinstance(base, SparseMatrix | SparseArrayMatrix):
        product = _SPARSE * base.csr.nnz
    basis = _THIN * 12 * n_columns * 2 * (k + width)
    lanczos = _PASSES * width * (4 * product + basis)
    return n_rows * n_columns**2 + _EIGEN * n_columns**3 <= lanczos
