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

from nonneg._arrays import to_float64
from nonneg._threads import parallel_for
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


Float64Array: TypeAlias = npt.NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_EQUAL = 1e-10  # eigenvalues that differ by less of the largest one are taken for one repeated value


def block_lanczos(
    apply: Callable[[Float64Array], Float64Array],
    order: int,
    k: int,
    rng: np.random.Generator,
    *,
    tol: float,
    max_passes: int = 300,
) -> tuple[Float64Array, Float64Array]:
    """Return the k largest eigenvalues and their vectors of a positive semidefinite operator."""
    # A block finds no more than its width of the vectors of one repeated eigenvalue. Where a found value has
    # that many equals, random directions are added until no further one turns up.
    # Wu & Simon (2000), SIAM J. Matrix Anal. Appl. 22(2), 602-616 (thick restarts).
    width = min(order, max(8, k // 2))
    keep = min(order, k + width)
    limit = min(order, 3 * (k + width))
    basis = np.empty((order, limit), order="F")
    projected = np.zeros((limit, limit))
    block = np.linalg.qr(rng.standard_normal((order, width)))[0]
    size, n_blocks = 0, 1
    values, rotation = np.zeros(0), np.zeros((0, 0))
    for _ in range(max_passes):
        new = slice(size, size + block.shape[1])
        size = new.stop
        basis[:, new] = block
        active = basis[:, :size]
        column, outside = _split(active, apply(block))
        projected[:size, new], projected[new, :size] = column, column.T
        values, rotation = np.linalg.eigh(projected[:size, :size])
        values, rotation = values[::-1], rotation[:, ::-1]
        directions, triangle = np.linalg.qr(outside)
        residuals = np.linalg.norm(triangle @ rotation[new, :k], axis=0)
        if size == order:
            break
        if size > k and np.all(residuals <= tol * max(values[0], 0.0)):
            if most_equal(values[:k]) < n_blocks * width:
                break
            n_blocks += 1
            triangle = np.zeros_like(triangle)
        block = _next_block(directions, triangle, values[0])
        if block.shape[1] == 0:
            # The space is invariant: only random directions can find what is outside of it.
            block = _outside(active, rng.standard_normal((order, width)))
        block = _outside(active, block)[:, : order - size]
        if size + block.shape[1] > limit:
            basis[:, :keep] = active @ rotation[:, :keep]
            projected[:] = 0.0
            projected[range(keep), range(keep)] = values[:keep]
            size, rotation = keep, np.eye(keep)
    return values[:k], basis[:, :size] @ rotation[:, :k]


def _split(basis: Float64Array, product: Float64Array) -> tuple[Float64Array, Float64Array]:
    # Twice: what the first projection leaves inside is rounding of the large parts.
    inside = basis.T @ product
    outside = product - basis @ inside
    correction = basis.T @ outside
    return inside + correction, outside - basis @ correction


def _next_block(directions: Float64Array, triangle: Float64Array, scale: float) -> Float64Array:
    # Directions of rounding size are dropped.
    left, sizes, _ = np.linalg.svd(triangle)
    return directions @ left[:, sizes > 100 * _EPS * scale]


def _outside(basis: Float64Array, block: Float64Array) -> Float64Array:
    return np.linalg.qr(_split(basis, block)[1])[0]


def most_equal(values: Float64Array) -> int:
    """Return the largest number of equal values, zeros aside."""
    positive = values[values > _EQUAL * values[0]]
    if positive.size == 0:
        return 0
    edges = np.flatnonzero(-np.diff(positive) > _EQUAL * values[0])
    runs = np.diff(np.concatenate([[-1], edges, [positive.size - 1]]))
    return int(runs.max())


# Blocks between two decompositions of the projected matrix.
BLOCKS = 3
# Entries of the basis: 128 MB.
MOST_ENTRIES = 1 << 24
# Columns of a block shorter than this part of the largest eigenvalue are rounding.
SHORTEST = 1e-11


def device_lanczos(
    data: DataMatrix, k: int, rng: np.random.Generator, *, tol: float, max_passes: int
) -> tuple[Float64Array, Float64Array] | None:
    """Return the k largest eigenvalues of X'X and their vectors; None where it breaks down."""
    import torch

    data, order = data.as_torch(), data.shape[1]
    width = min(order, max(8, k // 2))
    keep, limit = min(order, k + width), 3 * (k + width)
    if limit + width > order or order * limit > MOST_ENTRIES:
        return None
    first = np.linalg.qr(rng.standard_normal((order, width)))[0]
    block = torch.from_numpy(first).to(data.to_device(np.zeros(1)).device)
    basis = torch.zeros((limit, order), dtype=block.dtype, device=block.device).T
    projected = torch.zeros((limit, limit), dtype=block.dtype, device=block.device)
    # The shortest column so far, and 1 while all factorizations succeed.
    health = torch.tensor([np.inf, 1.0], dtype=block.dtype).to(block.device)
    size = 0
    for n_pass in range(1, max_passes + 1):
        new = slice(size, size + width)
        basis[:, new] = block
        size += width
        active = basis[:, :size]
        product = gram_product(data, block.to(data.dtype)).to(block.dtype)
        inside = active.T @ product
        projected[new, :size] = inside.T  # NumPy reads the lower triangle
        block, triangle = _orthonormal(torch, product - active @ inside, active, health)
        full = size + width > limit
        if not full and n_pass % BLOCKS:
            continue
        found, (shortest, sound) = projected[:size, :size].cpu().numpy(), health.tolist()
        if not (sound and np.isfinite(found).all()):
            return None
        values, rotation = np.linalg.eigh(found)
        values, rotation = values[::-1], np.ascontiguousarray(rotation[:, ::-1])
        if not shortest > SHORTEST * values[0] > 0.0:
            return None
        residuals = np.linalg.norm(triangle.cpu().numpy() @ rotation[new, :k], axis=0)
        turned = torch.from_numpy(rotation).to(block.device)
        if size > k and np.all(residuals <= tol * values[0]):
            if most_equal(values[:k]) >= width:
                return None
            return values[:k], (active @ turned[:, :k]).cpu().numpy()
        if full:
            basis[:, :keep] = active @ turned[:, :keep]
            projected.zero_()
            projected[range(keep), range(keep)] = torch.from_numpy(values[:keep].copy()).to(block.device)
            size = keep
    return None


def _orthonormal(torch: Any, block: Any, basis: Any, health: Any) -> tuple[Any, Any]:
    """Return an orthonormal basis of the columns, outside `basis`, and the triangle that gives them."""
    lengths = torch.linalg.vector_norm(block, dim=0)
    health[0] = torch.minimum(health[0], lengths.min())
    q, triangle = block / lengths, torch.diag(lengths)
    for _ in range(3):
        # Each step squares the loss of orthogonality of the one before it.
        lower, failed = torch.linalg.cholesky_ex(q.T @ q)
        health[1] = torch.where(failed == 0, health[1], torch.zeros_like(health[1]))
        q = torch.linalg.solve_triangular(lower, q.T, upper=False).T
        q = q - basis @ (basis.T @ q)
        triangle = lower.T @ triangle
    return q, triangle
