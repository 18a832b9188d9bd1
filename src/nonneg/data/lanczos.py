"""Eigenvalues of an operator from products alone: block Lanczos, fully reorthogonalized, thick restarts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

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
