"""The Gram operator of the data, X' diag(weights) X: matrix, products, leading eigenpairs by block Lanczos.

Squaring costs half of the digits: singular values below sqrt(eps) of the largest one drown in rounding. A
second, smaller decomposition in the space of the small ones (`resolve_small_singular_values`) brings this to
about eps^(3/4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from nonneg._arrays import to_device, to_float64, to_numpy
from nonneg._threads import parallel_for
from nonneg._typing import Array
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


def apply_gram(data: DataMatrix, V: Array) -> Array:
    """Return X' diag(weights) X V in float64: for a NumPy array on the host, else on the device of V."""
    _, (product,) = data.map_reduce_rows(_gram_product, n_out=0, V=data.to_device(V))
    return to_float64(product) if isinstance(V, np.ndarray) else data.xp.astype(product, V.dtype)


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


Float64Array: TypeAlias = npt.NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_EQUAL = 1e-10  # eigenvalues that differ by less of the largest one are taken for one repeated value


def block_lanczos(
    apply: Callable[[Array], Array],
    order: int,
    k: int,
    rng: np.random.Generator,
    *,
    tol: float,
    max_passes: int = 300,
    like: Array | None = None,
) -> tuple[Float64Array, Float64Array]:
    """Return the k largest eigenvalues and their vectors of a positive semidefinite operator.

    The basis is on the device of `like`; the small projected matrix is decomposed on the host.
    """
    # A block finds no more than its width of the vectors of one repeated eigenvalue. Where a found value has
    # that many equals, random directions are added until no further one turns up.
    # Wu & Simon (2000), SIAM J. Matrix Anal. Appl. 22(2), 602-616 (thick restarts).
    like = np.empty(0) if like is None else like
    xp = array_namespace(like)

    def drawn() -> Array:
        return to_device(rng.standard_normal((order, width)), like)

    width = min(order, max(8, k // 2))
    keep = min(order, k + width)
    limit = min(order, 3 * (k + width))
    basis = to_device(np.empty((order, limit), order="F"), like)
    projected = np.zeros((limit, limit))
    block = xp.linalg.qr(drawn())[0]
    size, n_blocks = 0, 1
    values, rotation = np.zeros(0), np.zeros((0, 0))
    for _ in range(max_passes):
        new = slice(size, size + block.shape[1])
        size = new.stop
        basis[:, new] = block
        active = basis[:, :size]
        column, outside = _split(active, apply(block))
        projected[:size, new] = to_numpy(column)
        projected[new, :size] = projected[:size, new].T
        values, rotation = np.linalg.eigh(projected[:size, :size])
        values, rotation = values[::-1], np.ascontiguousarray(rotation[:, ::-1])
        directions, factor = xp.linalg.qr(outside)
        triangle = to_numpy(factor)
        residuals = np.linalg.norm(triangle @ rotation[new, :k], axis=0)
        if size == order:
            break
        if size > k and np.all(residuals <= tol * max(values[0], 0.0)):
            if most_equal(values[:k]) < n_blocks * width:
                break
            n_blocks += 1
            triangle = np.zeros_like(triangle)
        # Directions of rounding size are dropped. In an invariant space none is left, and only random ones
        # can find what is outside of it.
        left, sizes, _ = np.linalg.svd(triangle)
        left = left[:, sizes > 100 * _EPS * values[0]]
        block = directions @ to_device(left, like) if left.shape[1] else _outside(active, drawn())
        block = _outside(active, block)[:, : order - size]
        if size + block.shape[1] > limit:
            basis[:, :keep] = active @ to_device(rotation[:, :keep], like)
            projected[:] = 0.0
            projected[range(keep), range(keep)] = values[:keep]
            size, rotation = keep, np.eye(keep)
    return values[:k], to_numpy(basis[:, :size]) @ rotation[:, :k]


def _split(basis: Array, product: Array) -> tuple[Array, Array]:
    # Twice: what the first projection leaves inside is rounding of the large parts.
    inside = basis.T @ product
    outside = product - basis @ inside
    correction = basis.T @ outside
    return inside + correction, outside - basis @ correction


def _outside(basis: Array, block: Array) -> Array:
    return array_namespace(block).linalg.qr(_split(basis, block)[1])[0]


def most_equal(values: Float64Array) -> int:
    """Return the largest number of equal values, zeros aside."""
    positive = values[values > _EQUAL * values[0]]
    if positive.size == 0:
        return 0
    edges = np.flatnonzero(-np.diff(positive) > _EQUAL * values[0])
    runs = np.diff(np.concatenate([[-1], edges, [positive.size - 1]]))
    return int(runs.max())
