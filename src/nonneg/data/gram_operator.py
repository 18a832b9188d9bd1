"""The Gram operator of the data, X' diag(weights) X: its matrix, its products, and what squaring lost.

Squaring costs half of the digits: singular values below sqrt(eps) of the largest one drown in rounding. A
second, smaller decomposition in the space of the small ones (`resolve_small_singular_values`) brings this to
about eps^(3/4).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._threads import parallel_for
from nonneg.data.lanczos import Float64Array
from nonneg.data.matrix import DataMatrix, LocalMatrix, rows_per_block


def machine_epsilon(data: DataMatrix) -> float:
    """Return the machine epsilon of the dtype of the data."""
    return float(data.xp.finfo(data.dtype).eps)


def gram_matrix(data: DataMatrix) -> Float64Array:
    """Return X' diag(weights) X."""
    _, (gram,) = data.map_reduce_rows(_block_gram, n_out=0)
    gram = to_float64(gram)
    return 0.5 * (gram + gram.T)


def _block_gram(block: LocalMatrix) -> tuple[tuple[()], tuple[Any]]:
    xp, (n_rows, n_columns) = block.xp, block.shape
    step = rows_per_block(n_columns, 1 << 20)

    def work(start: int, stop: int) -> Any:
        gram: Any = 0.0
        for first in range(start, stop, step):
            last = min(first + step, stop)
            rows = xp.astype(block.dense_rows(first, last), xp.float64)
            if block.weights is not None:
                rows = rows * xp.sqrt(xp.astype(block.weights[first:last], xp.float64))[:, None]
            gram = gram + rows.T @ rows
        return gram

    # Each thread holds a sum of its own: as many as fit in half a gigabyte.
    most = max(1, (1 << 26) // n_columns**2)
    chunk_size = step * -(-n_rows // (step * most))
    on_threads = isinstance(block.to_device(np.zeros(1)), np.ndarray)
    small = 0.1 * n_rows * n_columns**2 if on_threads else 0.0
    return (), (sum(parallel_for(work, n_rows, chunk_size=chunk_size, operations=small)),)


def apply_gram(data: DataMatrix, V: Float64Array) -> Float64Array:
    """Return X' diag(weights) X V."""
    return to_float64(gram_product(data, data.to_device(V)))


def gram_product(data: DataMatrix, V: Any) -> Any:
    """Return X' diag(weights) X V, where V is on the device of the data, and so is the product."""
    return data.map_reduce_rows(_gram_product, n_out=0, V=V)[1][0]


def _gram_product(block: LocalMatrix, *, V: Any) -> tuple[tuple[()], tuple[Any]]:
    return (), (block.transposed_times(block.times(V)),)


def resolve_small_singular_values(data: DataMatrix, V: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Turn the vectors of small singular values among themselves, so that their values are exact."""
    # The columns of X V that belong to small values are small themselves, so that their own Gram matrix is
    # exact to eps of *their* size: decomposing it again wins back what squaring lost.
    _, (gram,) = data.map_reduce_rows(_projected_gram, n_out=0, V=data.to_device(V))
    gram = to_float64(gram)
    squares = np.diagonal(gram).copy()
    V = V.copy()
    small = np.flatnonzero(squares < np.sqrt(machine_epsilon(data)) * squares.max(initial=0.0))
    if small.size:
        values, rotation = np.linalg.eigh(gram[np.ix_(small, small)])
        V[:, small] = V[:, small] @ rotation[:, ::-1]
        squares[small] = values[::-1]
    order = np.argsort(-squares, kind="stable")
    return V[:, order], np.sqrt(np.maximum(squares[order], 0.0))


def _projected_gram(block: LocalMatrix, *, V: Any) -> tuple[tuple[()], tuple[Any]]:
    # Block by block: there may be as many vectors as columns, and X V would be as large as X.
    xp, gram = block.xp, 0.0
    step = rows_per_block(V.shape[1], 1 << 20)
    for start in range(0, block.shape[0], step):
        part = block.select(slice(start, min(start + step, block.shape[0])))
        XV = xp.astype(part.times(V), xp.float64)
        if part.weights is not None:
            XV = XV * xp.sqrt(xp.astype(part.weights, xp.float64))[:, None]
        gram = gram + XV.T @ XV
    return (), (gram,)
