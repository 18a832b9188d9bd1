"""Newton steps on rows for a beta-divergence, with one shared model of their Hessians.

The Hessian of a row's problem is O' diag(c) O, with O the other factor and c the second derivatives along
the row: one matrix per row. Its diagonal is one more product. Its correlations are taken from a model that
all rows share, so that the quadratic problem of all rows has one Gram matrix and is solved by the same
coordinate passes as least squares. A line search along each row makes up for what the model lacks; its end
is the model W H for the update of the other factor, so that it costs one product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from nonneg._threads import parallel_for
from nonneg._typing import Array, IntArray
from nonneg.data.matrix import rows_per_block
from nonneg.kernels import beta_products as beta_kernels
from nonneg.kernels.block_pivoting import block_pivoting
from nonneg.kernels.grams import DenseGrams, SharedGram
from nonneg.kernels.hals import hals_passes
from nonneg.losses.beta import ARRAY_ENTRIES, BLOCK_ENTRIES, BetaLoss
from nonneg.solvers.majorizer import update_ratio

# Coordinate passes over the quadratic problem of a row; one that changes it by at most this fraction of the
# first is the last.
PASSES, SHRINK = 4, 0.1
# An entry decreases at most to this fraction in one step; to zero only if it is a small part of its row.
LARGEST_FALL, SMALL_PART = 0.2, 1e-3
# A row whose step is shorter than this takes a multiplicative step instead.
SHORTEST_STEP = 0.02
# Rows are processed in at least PARTS parts, unless these would have fewer than PART_ENTRIES entries.
PARTS, PART_ENTRIES = 4, 1 << 16


@dataclass(frozen=True)
class RowSubproblem:
    """The subproblem of the rows of one factor, given the other factor."""

    # Takes `start, stop` and returns these rows of the data (columns, for H).
    entries: Callable[[int, int], Array]
    n_rows: int  # of the data, transposed for H
    n_columns: int
    weights: Array | None  # weights of the entries along a row
    l1: float  # penalties of this factor
    l2: float
    order: IntArray | None = None  # the components that may change


@dataclass(frozen=True)
class Pairs:
    """Products of pairs of columns of the fixed factor, by which the Hessian of every row is one product."""

    products: Array  # the products
    place: Array  # which of them an entry of a Hessian is

    @classmethod
    def of(cls, other: Array) -> Pairs:
        """Multiply the pairs."""
        xp = array_namespace(other)
        k = other.shape[1]
        first, second = np.triu_indices(k)
        number = np.zeros((k, k), dtype=np.int64)
        number[first, second] = number[second, first] = np.arange(len(first))
        first, second, place = (
            xp.asarray(part, device=None if isinstance(other, np.ndarray) else other.device)
            for part in (first, second, number.ravel())
        )
        return cls(xp.take(other, first, axis=1) * xp.take(other, second, axis=1), place)

    def hessians(self, curvature: Array, l2: float) -> Array:
        """Return every row's Hessian."""
        xp = array_namespace(curvature)
        k = math.isqrt(self.place.shape[0])
        flat = xp.take(curvature @ self.products, self.place, axis=1)
        full = xp.reshape(flat, (curvature.shape[0], k, k))
        return full + l2 * xp.eye(k, dtype=full.dtype, device=full.device) if l2 else full


def shared_correlations(loss: BetaLoss, other: Array, means: Array, weights: Array | None) -> Array:
    """Return the correlations of other' diag(means^(beta - 2)) other."""
    xp = array_namespace(other)
    top = xp.max(means)
    means = xp.clip(means / xp.where(top > 0, top, xp.ones_like(top)), min=1e-6)
    scale = means ** (loss.beta - 2.0)
    if weights is not None:
        scale = scale * weights
    rows = other * xp.sqrt(scale / xp.max(scale))[:, None]
    gram = rows.T @ rows
    eye = xp.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
    diagonal = xp.sum(gram * eye, axis=1)
    root = xp.sqrt(xp.where(diagonal > 0, diagonal, xp.ones_like(diagonal)))
    return gram / root[:, None] / root[None, :] * (1 - eye) + eye


def newton_rows(
    loss: BetaLoss,
    problem: RowSubproblem,
    factor: Array,
    other: Array,
    correlations: Array,
    *,
    want_loss: bool = False,
) -> tuple[Array, float, Array]:
    """Move every row of a factor by one guarded Newton step."""
    # Four products of the size of the data. A row depends on nothing but itself, the other factor and the
    # correlations.
    xp = array_namespace(factor)
    numpy = isinstance(factor, np.ndarray)
    rows = rows_per_block(problem.n_columns, BLOCK_ENTRIES if numpy else ARRAY_ENTRIES)
    # Small data are cut as well, into parts that are worth a thread each.
    rows = min(rows, max(-(-problem.n_rows // PARTS), -(-PART_ENTRIES // problem.n_columns)))
    squares = other * other

    def work(start: int, stop: int) -> list[tuple[Array, float, Array]]:
        parts = []
        for begin in range(start, max(stop, start + 1), rows):
            x, part = (
                problem.entries(begin, min(begin + rows, stop)),
                factor[begin : min(begin + rows, stop), :],
            )
            parts.append(newton_step(loss, problem, x, part, other, squares, correlations, want_loss))
        return parts

    ranges = parallel_for(work, problem.n_rows, chunk_size=rows) if numpy else [work(0, problem.n_rows)]
    parts = [part for some in ranges for part in some]
    moved = xp.concat([part[0] for part in parts], axis=0)
    return moved, sum(part[1] for part in parts), xp.concat([part[2] for part in parts], axis=0)


def newton_step(
    loss: BetaLoss,
    problem: RowSubproblem,
    x: Array,
    factor: Array,
    other: Array,
    squares: Array,
    model: Array | Pairs,
    want_loss: bool = False,
    exact: Array | None = None,
) -> tuple[Array, float, Array]:
    """Move a block of rows by one guarded Newton step."""
    xp = array_namespace(factor)
    v = factor @ other.T
    if loss.offset:
        x, v = x + loss.offset, v + loss.offset
    slope, curvature = beta_kernels.newton_terms(x, v, problem.weights, loss.beta, loss.lower_bound, exact)
    gradient = slope @ other + (problem.l1 + problem.l2 * factor)
    if isinstance(model, Pairs):
        hessians = model.hessians(curvature, problem.l2)
        residuals, target = _own_target(factor, gradient, hessians)
    else:
        residuals, target = _shared_target(
            factor, gradient, curvature @ squares + problem.l2, model, problem.order
        )
    del slope, curvature
    direction = target - factor
    linear = xp.sum((problem.l1 + problem.l2 * factor) * direction, axis=1)
    v, steps = beta_kernels.line_search(
        x,
        v,
        direction @ other.T,
        problem.weights,
        loss.beta,
        loss.lower_bound,
        linear,
        problem.l2 * xp.sum(direction * direction, axis=1),
        xp.sum(gradient * direction, axis=1),
    )
    new = xp.clip(factor + steps[:, None] * direction, min=0.0)
    if isinstance(new, np.ndarray):
        short = np.flatnonzero((steps < SHORTEST_STEP) & (residuals > 0))
        if short.size:
            new[short] = _multiplicative(loss, problem, x[short], factor[short], other)
            v[short] = new[short] @ other.T + loss.offset
    total = 0.0
    if want_loss:
        total = float(xp.sum(beta_kernels.row_losses(x, v, loss.beta, loss.lower_bound, problem.weights)))
    return new, total, residuals


def _shared_target(
    factor: Array, gradient: Array, diagonal: Array, correlations: Array, order: IntArray | None
) -> tuple[Array, Array]:
    xp = array_namespace(factor)
    root = xp.sqrt(xp.clip(diagonal, min=float(xp.finfo(factor.dtype).smallest_normal) * 1e8))
    scaled, slope = factor * root, gradient / root
    target, _ = hals_passes(
        scaled,
        SharedGram(correlations),
        scaled @ correlations - slope,
        order=None if order is None else order.tolist(),
        max_passes=PASSES,
        shrink=SHRINK,
    )
    target = _not_too_low(target / root, factor)
    if order is not None:
        moving = np.zeros(factor.shape[1], dtype=bool)
        moving[order] = True
        target = xp.where(xp.asarray(moving, device=factor.device), target, factor)
    return _residuals(scaled, slope), target


def _own_target(factor: Array, gradient: Array, hessians: Array) -> tuple[Array, Array]:
    xp = array_namespace(factor)
    k = factor.shape[1]
    eye = xp.eye(k, dtype=hessians.dtype, device=hessians.device)
    diagonal = xp.sum(hessians * eye, axis=2)
    tiny = float(xp.finfo(factor.dtype).smallest_normal) * 1e8
    root = xp.sqrt(xp.clip(diagonal, min=tiny))
    # A trace of the diagonal keeps parallel components from a singular system; the line search and
    # further steps make up for it.
    hessians = (
        hessians
        + (float(xp.finfo(factor.dtype).eps) * 10 * xp.max(diagonal, axis=1)[:, None, None] + tiny) * eye
    )
    cross = (hessians @ factor[:, :, None])[:, :, 0] - gradient
    if isinstance(factor, np.ndarray):
        from nonneg.kernels.block_pivoting.numba import block_pivoting_rows

        target = np.array(factor)
        unsolved = np.zeros(len(factor), dtype=bool)
        systems = np.ascontiguousarray(hessians, dtype=np.float64)
        block_pivoting_rows(
            target, systems, np.ascontiguousarray(cross), True, 20 + 5 * k, 0, len(factor), unsolved
        )
        if unsolved.any():
            # Fewer entries than components make the Hessian of a row singular except for the ridge above: a
            # factorization with pivots still solves it.
            grams = DenseGrams(systems[unsolved])
            target[unsolved], unsolved[unsolved] = block_pivoting(factor[unsolved], grams, cross[unsolved])
    else:
        target, unsolved = block_pivoting(factor, DenseGrams(hessians), cross)
    target = xp.where(unsolved[:, None], factor, target)
    return _residuals(factor * root, gradient / root), target


def _residuals(scaled: Array, gradient: Array) -> Array:
    # The projected gradient relative to the row, in the metric of the diagonal.
    xp = array_namespace(scaled)
    projected = xp.where(scaled > 0, gradient, xp.clip(gradient, max=0.0))
    projected = scaled - xp.clip(scaled - projected, min=0.0)
    size = xp.sqrt(xp.sum(scaled * scaled, axis=1))
    return xp.sqrt(xp.sum(projected * projected, axis=1)) / xp.where(size > 0, size, xp.ones_like(size))


def _not_too_low(target: Array, factor: Array) -> Array:
    xp = array_namespace(factor)
    part = SMALL_PART * xp.max(factor, axis=1)[:, None]
    lowest = xp.where(factor > part, LARGEST_FALL * factor, xp.zeros_like(factor))
    return xp.where(target < lowest, lowest, target)


def _multiplicative(loss: BetaLoss, problem: RowSubproblem, x: Array, factor: Array, other: Array) -> Array:
    held = other if problem.weights is None else other * problem.weights[:, None]
    v = factor @ other.T + loss.offset
    ratio, power = beta_kernels.ratio_terms(x, v, loss.beta, loss.lower_bound)
    numerator = ratio @ held
    denominator = np.sum(held, axis=0) if power is None else power @ held
    step = update_ratio(factor, numerator, denominator, l1=problem.l1, l2=problem.l2, beta=loss.beta)
    if problem.order is None:
        return factor * step
    new = factor.copy()
    new[:, problem.order] *= step[:, problem.order]
    return new
