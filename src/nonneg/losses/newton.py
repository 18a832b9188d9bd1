"""Rows moved by Newton's method for a beta divergence, with one shared model of their Hessians.

The Hessian of a row's problem is O' diag(c) O, with O the other factor and c the second derivatives along
the row: one matrix a row. Its diagonal is one more product. Its correlations are taken from a model that
all rows share, so that the quadratic problem of all rows has one Gram matrix and is solved by the same
coordinate passes as least squares. A line search along each row makes up for what the model lacks; its end
is the model W B' for the next half of the iteration, so that it costs one product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from nonneg import kernels
from nonneg._threads import over_ranges
from nonneg._typing import Array, IntArray
from nonneg.data.matrix import block_rows
from nonneg.kernels import beta as beta_kernels
from nonneg.losses.beta import ARRAY_ENTRIES, BLOCK_ENTRIES, BetaLoss
from nonneg.losses.majorizer import update_ratio

# Coordinate passes over the quadratic problem of a row, and the share of the first that ends them.
PASSES, SHRINK = 4, 0.1
# An entry falls at most to this share in one step, unless it is a small part of its row: then to zero.
LARGEST_FALL, SMALL_PART = 0.2, 1e-3
# A row whose step is shorter than this takes a multiplicative step instead.
SHORTEST_STEP = 0.02


@dataclass(frozen=True)
class Side:
    """One half of the problem: rows of one factor against the other factor, which is held.

    Parameters
    ----------
    entries : callable
        Takes `start, stop` and returns these rows of the data (columns, for the right factor).
    n_rows, n_columns : int
        Of the data as seen from this side.
    weights : array of shape (n_columns,) or None
        Weights of the entries along a row.
    l1, l2 : float
        Penalties of this factor.
    order : array of int or None
        The components that may change.
    """

    entries: Callable[[int, int], Array]
    n_rows: int
    n_columns: int
    weights: Array | None
    l1: float
    l2: float
    order: IntArray | None = None


def shared_correlations(loss: BetaLoss, other: Array, means: Array, weights: Array | None) -> Array:
    """Return the correlations of other' diag(means^(beta - 2)) other.

    Parameters
    ----------
    loss : BetaLoss
        The divergence.
    other : array of shape (n_columns, k)
        The factor that is held.
    means : array of shape (n_columns,)
        Proportional to the mean of the model in every column.
    weights : array of shape (n_columns,) or None
        Weights of the columns.

    Returns
    -------
    array of shape (k, k)
        Ones on the diagonal.
    """
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
    loss: BetaLoss, side: Side, factor: Array, other: Array, correlations: Array, *, want_loss: bool = False
) -> tuple[Array, float, Array]:
    """Move every row of a factor by one guarded Newton step.

    Parameters
    ----------
    loss : BetaLoss
        The divergence.
    side : Side
        The data and penalties.
    factor : array of shape (n_rows, k)
        The factor that moves; not changed.
    other : array of shape (n_columns, k)
        The factor that is held.
    correlations : array of shape (k, k)
        See `shared_correlations`.
    want_loss : bool
        Whether to return the divergence at the end.

    Returns
    -------
    factor : array of shape (n_rows, k)
        The new rows.
    loss : float
        The divergence, with the weights of the columns; 0 where it was not asked for.
    residuals : array of shape (n_rows,)
        Unmet optimality at the start of the step; 0 at an optimum.

    Notes
    -----
    Four products of the size of the data. A row depends on nothing but itself, the other factor and the
    correlations.
    """
    xp = array_namespace(factor)
    numpy = isinstance(factor, np.ndarray)
    rows = block_rows(side.n_columns, BLOCK_ENTRIES if numpy else ARRAY_ENTRIES)
    squares = other * other

    def work(start: int, stop: int) -> list[tuple[Array, float, Array]]:
        parts = []
        for begin in range(start, max(stop, start + 1), rows):
            x, part = side.entries(begin, min(begin + rows, stop)), factor[begin : min(begin + rows, stop), :]
            parts.append(_step(loss, side, x, part, other, squares, correlations, want_loss))
        return parts

    ranges = over_ranges(work, side.n_rows, grain=rows) if numpy else [work(0, side.n_rows)]
    parts = [part for some in ranges for part in some]
    moved = xp.concat([part[0] for part in parts], axis=0)
    return moved, sum(part[1] for part in parts), xp.concat([part[2] for part in parts], axis=0)


def _step(
    loss: BetaLoss,
    side: Side,
    x: Array,
    factor: Array,
    other: Array,
    squares: Array,
    correlations: Array,
    want_loss: bool,
) -> tuple[Array, float, Array]:
    xp = array_namespace(factor)
    tiny = float(xp.finfo(factor.dtype).smallest_normal) * 1e8
    v = factor @ other.T
    if loss.offset:
        x, v = x + loss.offset, v + loss.offset
    slope, curvature = beta_kernels.newton_terms(x, v, side.weights, loss.beta, loss.floor)
    gradient = slope @ other + (side.l1 + side.l2 * factor)
    diagonal = curvature @ squares + side.l2
    del slope, curvature
    root = xp.sqrt(xp.clip(diagonal, min=tiny))
    scaled = factor * root
    residuals = _residuals(scaled, gradient / root)
    cross = scaled @ correlations - gradient / root
    target, _ = kernels.hals_passes(
        scaled,
        kernels.SharedGram(correlations),
        cross,
        order=None if side.order is None else side.order.tolist(),
        max_passes=PASSES,
        shrink=SHRINK,
    )
    target = _not_too_low(target / root, factor)
    direction = target - factor
    linear = xp.sum((side.l1 + side.l2 * factor) * direction, axis=1)
    v, steps = beta_kernels.line_search(
        x,
        v,
        direction @ other.T,
        side.weights,
        loss.beta,
        loss.floor,
        linear,
        side.l2 * xp.sum(direction * direction, axis=1),
        xp.sum(gradient * direction, axis=1),
    )
    new = xp.clip(factor + steps[:, None] * direction, min=0.0)
    if isinstance(new, np.ndarray):
        short = np.flatnonzero((steps < SHORTEST_STEP) & (residuals > 0))
        if short.size:
            new[short] = _multiplicative(loss, side, x[short], factor[short], other)
            v[short] = new[short] @ other.T + loss.offset
    if not want_loss:
        return new, 0.0, residuals
    total = float(xp.sum(beta_kernels.row_losses(x, v, loss.beta, loss.floor, side.weights)))
    return new, total, residuals


def _residuals(scaled: Array, gradient: Array) -> Array:
    # The projected gradient in the metric of the diagonal, beside the row itself.
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


def _multiplicative(loss: BetaLoss, side: Side, x: Array, factor: Array, other: Array) -> Array:
    held = other if side.weights is None else other * side.weights[:, None]
    v = factor @ other.T + loss.offset
    ratio, power = beta_kernels.ratio_terms(x, v, loss.beta, loss.floor)
    numerator = ratio @ held
    denominator = np.sum(held, axis=0) if power is None else power @ held
    step = update_ratio(factor, numerator, denominator, l1=side.l1, l2=side.l2, beta=loss.beta)
    if side.order is None:
        return factor * step
    new = factor.copy()
    new[:, side.order] *= step[:, side.order]
    return new
