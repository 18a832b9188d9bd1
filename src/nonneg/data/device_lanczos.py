"""Block Lanczos on a GPU: `lanczos.block_lanczos` with the basis there, and few questions to it.

Blocks are made orthonormal by Cholesky factorizations, which need no answer from the GPU. The projected
matrix is read and decomposed every few blocks. Where a block loses rank, or a value repeats as often as a
block is wide, the caller falls back to the version for processors, which handles that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.data.gram_operator import gram_product
from nonneg.data.lanczos import Float64Array, most_equal
from nonneg.data.matrix import DataMatrix

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
