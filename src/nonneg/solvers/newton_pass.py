"""One pass of Newton's method over the rows of a block: it moves W and sums up what the update of H needs.

Entries of the data and of W H are read once, in pieces that stay in a core's cache: six products of the size
of the data and no array of their size. Sparse data under the Kullback-Leibler divergence are read at their
nonzeros only; the steps are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._threads import parallel_for
from nonneg._typing import Array
from nonneg.data import LocalMatrix
from nonneg.data.matrix import rows_per_block
from nonneg.kernels import beta_products as beta_kernels
from nonneg.kernels.nonzeros import ratio_sums
from nonneg.losses.beta import ARRAY_ENTRIES, BetaLoss
from nonneg.losses.nonzeros import column_losses, sums_for_H, sums_for_W
from nonneg.losses.penalties import Penalties
from nonneg.solvers.extrapolation import extrapolate_bounded, extrapolates
from nonneg.solvers.row_newton import Buffers, RowSubproblem, damped_squares, newton_step, nonzero_step

# Entries of a piece: its four arrays are about the size of a core's second-level cache.
PIECE_ENTRIES = 1 << 16
# Rows of a piece are a multiple of the block of rows of `kernels.hals`; fewer would also make the sums for H,
# which are as large as H, cost more than the products. Very wide data have pieces of MOST_ENTRIES.
PIECE_ROWS, MOST_ENTRIES = 128, 1 << 20


@dataclass(frozen=True)
class RowPass:
    """What a pass needs besides the rows: the same for all blocks."""

    Ht: Array  # the present H'
    loss: BetaLoss  # the divergence
    penalties: Penalties  # L1 and L2
    correlations: Array  # the shared model of the Hessians of the rows
    momentum: Any  # of the extrapolation with which rows start; it may be a number on their GPU
    unit: float  # about the sum of a row of the data

    def gram(self, rows: Array, weights: Array | None) -> Array:
        """Return the Gram matrix of the rows, weighted as a column of the Hessian is on average."""
        xp = array_namespace(rows)
        means = rows @ (xp.sum(self.Ht, axis=0) / self.unit)
        means = np.maximum(means, 1e-6) if isinstance(means, np.ndarray) else xp.clip(means, min=1e-6)
        scale = means ** (self.loss.beta - 2.0)
        return (rows * (scale if weights is None else scale * weights)[:, None]).T @ rows


def newton_pass(
    block: LocalMatrix, W: Array, W_before: Array | None = None, *, shared: RowPass
) -> tuple[tuple[Array], tuple[Any, ...]]:
    """Move the rows of a block; return them and sums over the block.

    The sums: the losses of the columns where the rows started (0 where they were extrapolated, which would
    say nothing about the columns) and where they ended; gradient, diagonal of the Hessians (and their traces
    for rows of ones, in a last column) and Gram matrix for the update of H; the sum of the rows, and the
    penalty on them.
    """
    work = _nonzeros if shared.loss.at_nonzeros(block) else _entries
    rows, sums = work(block, W, W_before, shared)
    return (rows,), (*sums, shared.penalties.of_W(rows, block.weights))


def _entries(
    block: LocalMatrix, W: Array, W_before: Array | None, shared: RowPass
) -> tuple[Array, tuple[Any, ...]]:
    xp, Ht, loss, penalties = block.xp, shared.Ht, shared.loss, shared.penalties
    n_rows, n_columns = block.shape
    numpy = isinstance(Ht, np.ndarray)
    squares, moves = damped_squares(Ht), extrapolates(shared.momentum)
    if numpy:
        size = max(rows_per_block(n_columns, PIECE_ENTRIES) // PIECE_ROWS, 1) * PIECE_ROWS
        size = min(size, rows_per_block(n_columns, MOST_ENTRIES))
    else:
        size = rows_per_block(n_columns, ARRAY_ENTRIES)

    def visit(begin: int, end: int, buffers: Buffers) -> tuple[Array, tuple[Any, ...]]:
        x = block.dense_rows(begin, end)
        mask = None if block.observed is None else block.observed.dense_rows(begin, end)
        weights = None if block.weights is None else block.weights[begin:end]
        before = None if W_before is None else W_before[begin:end, :]
        start = extrapolate_bounded(W[begin:end, :], before, shared.momentum)
        v = buffers.product("model", start, Ht.T)
        if loss.offset:
            x, v = x + loss.offset, v + loss.offset
        bounds = loss.beta, loss.lower_bound
        at_start = 0.0 if moves else beta_kernels.column_losses(x, v, *bounds, weights, mask)
        problem = RowSubproblem(mask, penalties.l1_W, penalties.l2_W)
        new, v, _ = newton_step(loss, problem, x, v, start, Ht, squares, shared.correlations, buffers)
        if loss.beta not in (1.0, 2.0):
            # Where x is zero the model tends to zero and its negative powers matter: the sum of the model and
            # the step would be rounding there.
            v = buffers.product("model", new, Ht.T)
            v = v + loss.offset if loss.offset else v
        at_end = beta_kernels.column_losses(x, v, *bounds, weights, mask)
        out = buffers.pair("slope", "curvature", rows=x.shape[0])
        slope, curvature = beta_kernels.newton_terms(
            x, v, mask, *bounds, curvature_bound=loss.curvature_bound, out=out
        )
        weighted = new if weights is None else new * weights[:, None]
        squared = _squares_and_weights(xp, weighted, new, weights)
        gradient = buffers.inner_product("gradient", slope, weighted)
        diagonal = buffers.inner_product("diagonal", curvature, squared)
        sums = gradient, diagonal, shared.gram(new, weights)
        return new, (at_start, at_end, *sums, xp.sum(weighted, axis=0))

    rows = np.empty(W.shape, dtype=W.dtype) if numpy else None

    def work(start: int, stop: int) -> tuple[list[Array], tuple[Any, ...]]:
        buffers = Buffers(max(1, min(size, stop - start)), n_columns, Ht)
        parts: list[Array] = []
        total: tuple[Any, ...] = ()
        for begin in range(start, max(stop, start + 1), size):
            end = min(begin + size, stop)
            new, sums = visit(begin, end, buffers)
            if rows is None:
                parts.append(new)
            else:
                rows[begin:end] = new
            total = _added(total, sums)
        return parts, total

    if numpy:
        # Products are BLAS's, which does several operations in the time of one of our kernels.
        operations = 0.2 * 12.0 * n_rows * n_columns * Ht.shape[1]
        ranges = parallel_for(work, n_rows, chunk_size=size, operations=operations)
    else:
        ranges = [work(0, n_rows)]
    total: tuple[Any, ...] = ()
    for _, sums in ranges:
        total = _added(total, sums)
    if rows is not None:
        return rows, total
    return xp.concat([part for parts, _ in ranges for part in parts], axis=0), total


def _squares_and_weights(xp: Any, weighted: Array, rows: Array, weights: Array | None) -> Array:
    # One more column, for the damping of the diagonals.
    last = xp.ones_like(rows[:, :1]) if weights is None else weights[:, None]
    return xp.concat([weighted * rows, last], axis=1)


def _added(total: tuple[Any, ...], sums: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the sums; arrays of NumPy are copied once and then added to."""
    if not total:
        return tuple(np.array(part) if isinstance(part, np.ndarray) else part for part in sums)
    return tuple(
        np.add(a, b, out=a) if isinstance(a, np.ndarray) and a.ndim else a + b
        for a, b in zip(total, sums, strict=True)
    )


def _nonzeros(block: Any, W: Array, W_before: Array | None, shared: RowPass) -> tuple[Array, tuple[Any, ...]]:
    Ht, lower_bound = shared.Ht, shared.loss.lower_bound
    start = extrapolate_bounded(W, W_before, shared.momentum)
    at_start: Any = 0.0
    if not extrapolates(shared.momentum):
        before = ratio_sums(
            block.transposed, Ht, start, lower_bound, weights=block.weights, product=False, logs=True
        )
        at_start = column_losses(block, start, Ht, before.logs)
    new, _ = nonzero_step(
        block.csr, start, Ht, sums_for_W(block, Ht), lower_bound, shared.penalties, shared.correlations
    )
    return new, (at_start, *_sums_for_H(block, new, shared))


def _sums_for_H(block: Any, W: Array, shared: RowPass) -> tuple[Any, Any, Any, Any, Any]:
    xp, Ht, weights = block.xp, shared.Ht, block.weights
    sums = ratio_sums(
        block.transposed, Ht, W, shared.loss.lower_bound, weights=weights, second=True, logs=True
    )
    gradient = sums_for_H(block, W) - sums.product
    diagonal = xp.concat([sums.second, sums.trace[:, None]], axis=1)
    at_end = column_losses(block, W, Ht, sums.logs)
    return at_end, gradient, diagonal, shared.gram(W, weights), xp.sum(block.weighted(W), axis=0)
