"""Leading singular values and vectors of the data, from products alone.

The right singular vectors are the eigenvectors of the Gram operator v -> X' diag(weights) X v, so that a
row of weight 3 counts like three rows and neither the order nor the repetition of rows matters. Few
columns: the Gram matrix is formed in float64, block by block, and decomposed whole. Many: block Lanczos
with full reorthogonalization and thick restarts, from a start that depends on the number of columns alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import on_gpu
from nonneg._random import Seed, generator
from nonneg._ties import REPEATED, fixed_vectors
from nonneg.data.gram_operator import (
    Float64Array,
    apply_gram,
    block_lanczos,
    gram_matrix,
    machine_epsilon,
    resolve_small_singular_values,
)
from nonneg.data.matrix import DataMatrix
from nonneg.data.sparse import SparseRows
from nonneg.data.views import ScaledMatrix, can_be_transposed, transposed
from nonneg.exceptions import InvalidParameterError

DENSE_COLUMNS = 500  # up to here the whole Gram matrix is cheaper than Lanczos
_DENSE_LIMIT = 4096  # beyond it the Gram matrix is never formed, however many values are requested
_MAX_PASSES = 300


def leading_vectors(
    data: DataMatrix, k: int, rng: Seed = None, *, tol: float | None = None, max_passes: int = _MAX_PASSES
) -> Float64Array:
    """Return the k leading right singular vectors."""
    values, V = leading_eigenpairs(data, k, rng=rng, tol=tol, max_passes=max_passes)
    return fixed_vectors(values, V, _repeated(data))


def _repeated(data: DataMatrix) -> float:
    return max(REPEATED, 100 * machine_epsilon(data))


def numerical_noise(data: DataMatrix, largest: float) -> float:
    """Return the size below which a computed singular value is rounding."""
    eps = machine_epsilon(data)
    return largest * max(10 * eps**0.75, max(data.shape) * eps)


def check_count(data: DataMatrix, k: int) -> None:
    """Reject a number of singular values that the data do not have."""
    if not 1 <= k <= min(data.shape):
        raise InvalidParameterError(
            f"Expected a number of singular values from 1 to {min(data.shape)} for data of shape "
            f"{data.shape}, got {k}."
        )


def leading_eigenpairs(
    data: DataMatrix, k: int, *, rng: Seed = None, tol: float | None = None, max_passes: int = _MAX_PASSES
) -> tuple[Float64Array, Float64Array]:
    """Return the k largest eigenvalues of X'X and their vectors."""
    n_columns = data.shape[1]
    check_count(data, k)
    # A fixed seed: the same data in another order or with repeated rows must give the same vectors.
    source = np.random.default_rng(n_columns) if rng is None else generator(rng)
    tol = max(1e-12 if tol is None else tol, 100 * machine_epsilon(data))
    like = None
    if on_gpu(data.to_device(np.zeros(1))) and n_columns > 4 * k:
        data = data.as_torch()
        like = data.xp.astype(data.to_device(np.zeros(1)), data.xp.float64)
    elif n_columns <= DENSE_COLUMNS or (4 * k > n_columns and n_columns <= _DENSE_LIMIT):
        return dense_eigenpairs(data, k)

    def apply(V: Any) -> Any:
        return apply_gram(data, V)

    return block_lanczos(apply, n_columns, k, source, tol=tol, max_passes=max_passes, like=like)


def dense_eigenpairs(data: DataMatrix, k: int) -> tuple[Float64Array, Float64Array]:
    """Return the same as `leading_eigenpairs`, from the whole Gram matrix."""
    values, V = np.linalg.eigh(gram_matrix(data))
    values, V = values[::-1], np.ascontiguousarray(V[:, ::-1])
    if values[k - 1] < np.sqrt(machine_epsilon(data)) * values[0]:
        # The small ones are mixed with those that were not requested: all take part in resolving them.
        V, s = resolve_small_singular_values(data, V)
        values = s**2
    return values[:k], np.ascontiguousarray(V[:, :k])


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
    if isinstance(base, SparseRows):
        product = _SPARSE * base.csr.nnz
    basis = _THIN * 12 * n_columns * 2 * (k + width)
    lanczos = _PASSES * width * (4 * product + basis)
    return n_rows * n_columns**2 + _EIGEN * n_columns**3 <= lanczos
