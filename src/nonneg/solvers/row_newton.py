"""Newton steps on rows for a beta-divergence, with one shared model of their Hessians.

The Hessian of a row's problem is O' diag(c) O, with O the other factor and c the second derivatives along
the row: one matrix per row. Its diagonal is one more product. Its correlations are taken from a model that
all rows share, so that the quadratic problem of all rows has one Gram matrix and is solved by the same
coordinate passes as least squares. A line search along each row makes up for what the model lacks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.kernels import beta_products as beta_kernels
from nonneg.kernels.block_pivoting import block_pivoting
from nonneg.kernels.block_pivoting.array_api import block_pivoting as with_pivots
from nonneg.kernels.grams import DenseGrams
from nonneg.kernels.newton_targets import newton_targets
from nonneg.kernels.newton_targets.array_api import along
from nonneg.kernels.newton_targets.array_api import residuals as row_residuals
from nonneg.kernels.nonzeros import line_search, ratio_sums, row_hessians
from nonneg.kernels.sparse_products import sampled_product
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers.mu import update_ratio

# The part of the squared mean of a component that is added to its squares in the diagonals of Hessians: a row
# with few observed entries may see next to nothing of a component, which then would grow without limit.
DAMPING = 1e-3
# A row whose step is shorter than this takes a multiplicative step instead.
SHORTEST_STEP = 0.02


@dataclass(frozen=True)
class RowSubproblem:
    """The subproblem of the rows of one factor, given the other factor."""

    weights: Array | None  # weights of the columns, or of the entries
    l1: float  # penalties of this factor
    l2: float


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
    return correlations_of(rows.T @ rows)


def correlations_of(gram: Array) -> Array:
    """Return a Gram matrix scaled to a unit diagonal."""
    xp = array_namespace(gram)
    eye = xp.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
    diagonal = xp.sum(gram * eye, axis=1)
    root = xp.sqrt(xp.where(diagonal > 0, diagonal, xp.ones_like(diagonal)))
    return gram / root[:, None] / root[None, :] * (1 - eye) + eye


def damping(other: Array) -> Array:
    """Return what is added to the squares of every component of the fixed factor."""
    return DAMPING * array_namespace(other).mean(other, axis=0) ** 2


def damped_squares(other: Array) -> Array:
    """Return the squares of the fixed factor for the diagonals of Hessians."""
    return other * other + damping(other)


def capped_squares(other: Array) -> Array:
    """Return the same for rows that stop by their own residual."""
    # Not beyond the largest square of a column: where all components are zero and the data are not, second
    # derivatives have a pole, and any addition would make the row look converged.
    xp = array_namespace(other)
    squares = other * other
    largest = xp.max(squares, axis=1, keepdims=True)
    return squares + DAMPING * xp.minimum(xp.mean(other, axis=0)[None, :] ** 2, largest)


class Buffers:
    """Memory for a few arrays of the size of a block, used again for every block; NumPy only."""

    # Fresh arrays of this size are mapped and cleared by the system each time, one thread after another.

    def __init__(self, rows: int, columns: int, like: Array) -> None:
        self._shape = rows, columns
        self._like = like
        self._arrays: dict[str, Array] = {}

    def take(self, name: str, rows: int) -> Any:
        """Return memory for the rows of a block; None where arrays are not NumPy's."""
        if not isinstance(self._like, np.ndarray):
            return None
        if name not in self._arrays:
            self._arrays[name] = np.empty(self._shape, dtype=self._like.dtype)
        return self._arrays[name][:rows]

    def product(self, name: str, a: Array, b: Array) -> Array:
        """Return a b."""
        out = self.take(name, a.shape[0])
        return a @ b if out is None else np.matmul(a, b, out=out)

    def inner_product(self, name: str, a: Array, b: Array) -> Array:
        """Return a' b."""
        if not isinstance(self._like, np.ndarray):
            return a.T @ b
        if name not in self._arrays:
            self._arrays[name] = np.empty((a.shape[1], b.shape[1]), dtype=self._like.dtype)
        return np.matmul(a.T, b, out=self._arrays[name])

    def pair(self, *names: str, rows: int) -> Any:
        """Return memory for two arrays."""
        found = tuple(self.take(name, rows) for name in names)
        return None if found[0] is None else found


def newton_step(
    loss: BetaLoss,
    problem: RowSubproblem,
    x: Array,
    v: Array,
    factor: Array,
    other: Array,
    squares: Array,
    model: Array | Pairs,
    buffers: Buffers,
    exact: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Move a block of rows by one guarded Newton step; return them, their model and their residuals.

    `x` and the model `v` include the offset of the loss; the memory of `v` is used again.
    """
    xp = array_namespace(factor)
    out = buffers.pair("slope", "curvature", rows=x.shape[0])
    slope, curvature = beta_kernels.newton_terms(
        x,
        v,
        problem.weights,
        loss.beta,
        loss.lower_bound,
        curvature_bound=loss.curvature_bound,
        exact=exact,
        out=out,
    )
    own = gradient = slope @ other
    if problem.l1 or problem.l2:
        gradient = gradient + (problem.l1 + problem.l2 * factor)
    before = v
    if isinstance(model, Pairs):
        hessians = model.hessians(curvature, problem.l2)
        residuals, target = own_target(factor, gradient, hessians)
        direction = target - factor
        linear, quadratic, slopes = along(factor, gradient, direction, problem.l1, problem.l2)
    else:
        diagonal = curvature @ squares
        if problem.l2:
            diagonal = diagonal + problem.l2
        direction, residuals, linear, quadratic, slopes = newton_targets(
            factor, gradient, diagonal, model, None, problem.l1, problem.l2
        )
    del slope, curvature
    v, steps = beta_kernels.line_search(
        x,
        v,
        buffers.product("slope", direction, other.T),
        problem.weights,
        loss.beta,
        loss.lower_bound,
        linear,
        quadratic,
        slopes,
    )
    new = factor + steps[:, None] * direction
    new = np.maximum(new, 0) if isinstance(new, np.ndarray) else xp.clip(new, min=0.0)
    if isinstance(new, np.ndarray):
        short = np.flatnonzero((steps < SHORTEST_STEP) & (residuals > 0))
        if short.size:
            new[short] = _multiplicative(loss, problem, x, short, factor[short], other)
            v[short] = new[short] @ other.T + loss.offset
        return new, v, residuals
    # For all rows: to ask whether there are such rows would make a GPU wait.
    short = xp.logical_and(steps < SHORTEST_STEP, residuals > 0)
    power = problem.weights
    if loss.beta != 1:
        _, power = beta_kernels.ratio_terms(x, before, loss.beta, loss.lower_bound, power)
    power = xp.sum(other, axis=0) if power is None else power @ other
    # The gradient is the difference of the two sums.
    ratio = xp.clip(power - own, min=0.0)
    scaled = factor * update_ratio(factor, ratio, power, l1=problem.l1, l2=problem.l2, beta=loss.beta)
    new = xp.where(short[:, None], scaled, new)
    return new, new @ other.T + loss.offset, residuals


def nonzero_step(
    csr: Any,
    factor: Array,
    other: Array,
    sums: Array,
    lower_bound: float,
    penalties: Penalties,
    correlations: Array | None,
) -> tuple[Array, Array]:
    """Move rows by one guarded Newton step for the Kullback-Leibler divergence, by their nonzeros alone.

    `sums` are those of the columns of the other factor; without `correlations` every row has its own Hessian.
    Returns the rows, and their residuals where they were.
    """
    xp, l1, l2 = array_namespace(factor), penalties.l1_W, penalties.l2_W
    ratio = ratio_sums(csr, factor, other, lower_bound, second=correlations is not None)
    gradient = sums - ratio.product + (l1 + l2 * factor)
    if correlations is None:
        v = sampled_product(csr.indptr, csr.indices, factor, other, plan=csr.plan)
        v = xp.maximum(v, lower_bound)
        hessians = row_hessians(csr.indptr, csr.indices, csr.data / v / v, other)
        if l2:
            hessians = hessians + l2 * xp.eye(int(other.shape[1]), dtype=other.dtype, device=other.device)
        residuals, target = own_target(factor, gradient, hessians)
        direction = target - factor
        linear, quadratic, slopes = along(factor, gradient, direction, l1, l2)
    else:
        diagonal = ratio.second + ratio.trace[:, None] * damping(other) + l2
        direction, residuals, linear, quadratic, slopes = newton_targets(
            factor, gradient, diagonal, correlations, None, l1, l2
        )
    linear = linear + xp.sum(direction * sums, axis=1)
    steps = line_search(
        csr, factor, direction, other, lower_bound, linear, quadratic, slopes, beta_kernels.TRIES
    )
    new = xp.maximum(factor + steps[:, None] * direction, 0.0)
    return _multiplicative_where(steps, residuals, new, factor, ratio.product, sums, penalties), residuals


def _multiplicative_where(
    steps: Array, residuals: Array, new: Array, start: Array, pull: Array, sums: Array, penalties: Penalties
) -> Array:
    """Return the rows after their steps, those with a short step after a multiplicative one instead."""
    xp = array_namespace(new)
    penalty = {"l1": penalties.l1_W, "l2": penalties.l2_W}
    short = xp.logical_and(steps < SHORTEST_STEP, residuals > 0)
    if not isinstance(new, np.ndarray):
        # For all rows: to ask whether there are such rows would make a GPU wait.
        return xp.where(short[:, None], start * update_ratio(start, pull, sums, beta=1.0, **penalty), new)
    if (rows := np.flatnonzero(short)).size:
        cost = np.broadcast_to(sums, start.shape)[rows]
        new[rows] = start[rows] * update_ratio(start[rows], pull[rows], cost, beta=1.0, **penalty)
    return new


def own_target(factor: Array, gradient: Array, hessians: Array) -> tuple[Array, Array]:
    """Return the residuals of the rows, and the minimizers of their quadratic models with own Hessians.

    The memory of the Hessians is used again.
    """
    xp = array_namespace(factor)
    k = factor.shape[1]
    info = xp.finfo(factor.dtype)
    tiny = float(info.smallest_normal) * 1e8
    # A trace of the diagonal keeps parallel components from a singular system; the line search and
    # further steps make up for it.
    trace = 10 * float(info.eps)
    if isinstance(hessians, np.ndarray):
        # In place: an array of the size of the Hessians takes as long as solving them.
        diagonal = hessians.reshape(-1, k * k)[:, :: k + 1]
        root = np.sqrt(np.maximum(diagonal, tiny))
        diagonal += trace * diagonal.max(axis=1, keepdims=True) + tiny
        cross = np.einsum("iab,ib->ia", hessians, factor) - gradient
    else:
        eye = xp.eye(k, dtype=hessians.dtype, device=hessians.device)
        diagonal = xp.sum(hessians * eye, axis=2)
        root = xp.sqrt(xp.clip(diagonal, min=tiny))
        hessians = hessians + (trace * xp.max(diagonal, axis=1)[:, None, None] + tiny) * eye
        cross = (hessians @ factor[:, :, None])[:, :, 0] - gradient
    target, unsolved = block_pivoting(factor, DenseGrams(hessians), cross)
    if isinstance(factor, np.ndarray) and unsolved.any():
        # Fewer entries than components make the Hessian of a row singular except for the ridge above: a
        # factorization with pivots still solves it.
        some = factor[unsolved], DenseGrams(hessians[unsolved]), cross[unsolved]
        target[unsolved], unsolved[unsolved] = with_pivots(*some, 20 + 5 * k)
    target = xp.where(unsolved[:, None], factor, target)
    return row_residuals(factor * root, gradient / root), target


def _multiplicative(
    loss: BetaLoss, problem: RowSubproblem, x: Array, chosen: Any, factor: Array, other: Array
) -> Array:
    weights = problem.weights
    v = factor @ other.T + loss.offset
    ratio, power = beta_kernels.ratio_terms(x[chosen], v, loss.beta, loss.lower_bound)
    if weights is not None:
        weights = weights[chosen] if weights.ndim == 2 else weights
        ratio, power = ratio * weights, weights if power is None else power * weights
    cost = np.sum(other, axis=0) if power is None else power @ other
    step = update_ratio(factor, ratio @ other, cost, l1=problem.l1, l2=problem.l2, beta=loss.beta)
    return factor * step
