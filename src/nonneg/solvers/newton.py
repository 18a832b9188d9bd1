"""Newton steps on the rows of both factors for any beta-divergence, one pass over the data per iteration.

A pass moves the rows of W, each along its own line, and returns the gradient and the diagonal of the Hessian
for every column of H. Columns of H move by steps of their own; the losses of the columns, which the next
pass returns, say how good the steps were. So the loss of the accepted pair is always known.

A pass reads entries of the data and of W H once, in pieces that stay in a core's cache: six products of the
size of the data and no array of their size. Sparse data under the Kullback-Leibler divergence are read at
their nonzeros only; the steps are the same.

The Hessian of a row's problem is O' diag(c) O, with O the other factor and c the second derivatives along
the row: one matrix per row. Its diagonal is one more product. Its correlations are taken from a model that
all rows share, so that the quadratic problem of all rows has one Gram matrix and is solved by the same
coordinate passes as least squares. A line search along each row makes up for what the model lacks. Encodings
end with the Hessians of the rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._compiled import core
from nonneg._lazy import cached_property
from nonneg._typing import Array, IntArray, Namespace, SampleArray, SparseMatrix
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.iteration import SlowDecrease
from nonneg.iteration.loop import Candidates, Descent, changed, solver, unchanged
from nonneg.kernels import beta_products as beta_kernels
from nonneg.kernels.block_pivoting import block_pivoting
from nonneg.kernels.block_pivoting.array_api import block_pivoting as with_pivots
from nonneg.kernels.grams import DenseGrams, WeightedGrams
from nonneg.kernels.kl_newton import tiled_newton_pass
from nonneg.kernels.newton_targets import along, newton_targets
from nonneg.kernels.newton_targets import residuals as row_residuals
from nonneg.kernels.nonzeros import line_search, ratio_sums, row_hessians
from nonneg.kernels.sparse_products import sampled_product
from nonneg.losses.beta import BetaLoss, added, column_losses, over_blocks, sums_for_H, sums_for_W
from nonneg.losses.penalties import Penalties
from nonneg.solvers import extrapolation
from nonneg.solvers.extrapolation import extrapolate_bounded, extrapolates
from nonneg.solvers.mu import update_ratio

# A rejected iteration is tried again with shorter steps of the columns that became worse.
TRIES = 8
# Steps of columns are powers of two, so that the rounding of losses does not change them, and at least this.
SHORTEST = 2.0**-4
# A gain below this part of the loss drowns in rounding: in float32 losses of one pair differ by
# 5e-9 of themselves (mutations, 96 x 2700, k=20).
NOTHING = {"float64": 1e-14, "float32": 1e-9}
# The part of the squared mean of a component that is added to its squares in the diagonals of Hessians: a row
# with few observed entries may see next to nothing of a component, which then would grow without limit.
DAMPING = 1e-3
# A row whose step is shorter than this takes a multiplicative step instead.
SHORTEST_STEP = 0.02


def shared_correlations(beta: float, other: Array, means: Array) -> Array:
    """Return the correlations of other' diag(means^(beta - 2)) other, maybe of several restarts."""
    xp = array_namespace(other)
    top = xp.max(means, axis=-1, keepdims=True)
    means = xp.clip(means / xp.where(top > 0, top, xp.ones_like(top)), min=1e-6)
    scale = means ** (beta - 2.0)
    rows = other * xp.sqrt(scale / xp.max(scale, axis=-1, keepdims=True))[..., None]
    return correlations_of(xp.matrix_transpose(rows) @ rows)


def correlations_of(gram: Array) -> Array:
    """Return Gram matrices scaled to a unit diagonal."""
    xp = array_namespace(gram)
    eye = xp.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    diagonal = xp.linalg.diagonal(gram)
    root = xp.sqrt(xp.where(diagonal > 0, diagonal, xp.ones_like(diagonal)))
    return gram / root[..., :, None] / root[..., None, :] * (1 - eye) + eye


def damping(other: Array) -> Array:
    """Return what is added to the squares of every component of the fixed factor."""
    return DAMPING * array_namespace(other).mean(other, axis=-2, keepdims=True) ** 2


def _kernels(factor: Array) -> Any:
    """Return the operations on one model, or on those of several restarts."""
    if factor.ndim == 2:
        return beta_kernels
    from nonneg.kernels import batched_kl  # loads Triton

    return batched_kl


def newton_step(
    loss: BetaLoss,
    penalties: Penalties,
    mask: Array | None,
    x: Array,
    v: Array,
    factor: Array,
    other: Array,
    squares: Array,
    model: Array | WeightedGrams,
    exact: bool = False,
) -> tuple[Array, Array, Array]:
    """Move a block of rows by one guarded Newton step; return them, their model and their residuals.

    `x` and the model `v` include the offset of the loss; the memory of `v` is used again. Hessians share the
    correlations in `model`, or are its matrices. Factors may have a first axis of several restarts.
    """
    xp, l1, l2 = array_namespace(factor), penalties.l1_W, penalties.l2_W
    bounds, kernels, other_T = (loss.beta, loss.lower_bound), _kernels(factor), xp.matrix_transpose(other)
    slope, curvature = kernels.newton_terms(
        x, v, mask, *bounds, curvature_bound=loss.curvature_bound, exact=exact
    )
    own = gradient = slope @ other
    if l1 or l2:
        gradient = gradient + (l1 + l2 * factor)
    if isinstance(model, WeightedGrams):
        hessians = replace(model, weights=curvature).dense().matrices
        step = own_targets(factor, gradient, hessians, l1, l2)
    else:
        step = newton_targets(factor, gradient, curvature @ squares + l2, model, None, l1, l2)
    direction, residuals, *along_rows = step
    del slope, curvature
    v, steps = kernels.line_search(x, v, direction @ other_T, mask, *bounds, *along_rows)
    new = factor + steps[..., None] * direction
    new = np.maximum(new, 0) if isinstance(new, np.ndarray) else xp.clip(new, min=0.0)
    short = xp.logical_and(steps < SHORTEST_STEP, residuals > 0)
    if isinstance(new, np.ndarray) and not short.any():  # to ask would make a GPU wait
        return new, v, residuals
    del v  # its memory was used again
    power = mask
    if loss.beta != 1:
        _, power = beta_kernels.ratio_terms(x, loss.model(factor, other_T), *bounds, mask)
    power = xp.sum(other, axis=-2, keepdims=True) if power is None else power @ other
    # The gradient is the difference of the two sums.
    ratio = xp.clip(power - own, min=0.0)
    scaled = factor * update_ratio(factor, ratio, power, l1=l1, l2=l2, beta=loss.beta)
    new = xp.where(short[..., None], scaled, new)
    return new, loss.model(new, other_T), residuals


def nonzero_step(
    csr: SparseMatrix,
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
        step = own_targets(factor, gradient, hessians, l1, l2)
    else:
        diagonal = ratio.second + ratio.trace[:, None] * damping(other) + l2
        step = newton_targets(factor, gradient, diagonal, correlations, None, l1, l2)
    direction, residuals, linear, quadratic, slopes = step
    linear = linear + xp.sum(direction * sums, axis=1)
    steps = line_search(
        csr, factor, direction, other, lower_bound, linear, quadratic, slopes, beta_kernels.TRIES
    )
    new = xp.maximum(factor + steps[:, None] * direction, 0.0)
    short = xp.logical_and(steps < SHORTEST_STEP, residuals > 0)
    if not isinstance(new, np.ndarray) or short.any():
        # For all rows: to ask whether there are such rows would make a GPU wait.
        scaled = factor * update_ratio(factor, ratio.product, sums, l1=l1, l2=l2, beta=1.0)
        new = xp.where(short[:, None], scaled, new)
    return new, residuals


def own_targets(factor: Array, gradient: Array, hessians: Array, l1: float, l2: float) -> tuple[Array, ...]:
    """Return what `newton_targets` returns for rows with own Hessians, whose memory is used again."""
    xp = array_namespace(factor)
    k = factor.shape[1]
    info = xp.finfo(factor.dtype)
    tiny = float(info.smallest_normal) * 1e8
    # A trace of the diagonal keeps parallel components from a singular system; the line search and
    # further steps make up for it.
    trace = 10 * float(info.eps)
    flat = xp.reshape(hessians, (-1, k * k))
    diagonal = flat[:, :: k + 1]
    root = xp.sqrt(xp.clip(diagonal, min=tiny))
    # In place: an array of the size of the Hessians takes as long as solving them.
    flat[:, :: k + 1] = diagonal + (trace * xp.max(diagonal, axis=1, keepdims=True) + tiny)
    hessians = xp.reshape(flat, (-1, k, k))
    cross = (hessians @ factor[:, :, None])[:, :, 0] - gradient
    target, unsolved = block_pivoting(factor, DenseGrams(hessians), cross)
    if isinstance(factor, np.ndarray) and unsolved.any():
        # Fewer entries than components make the Hessian of a row singular except for the ridge above: a
        # factorization with pivots still solves it.
        system = factor[unsolved], DenseGrams(hessians[unsolved]), cross[unsolved]
        target[unsolved], unsolved[unsolved] = with_pivots(*system, 20 + 5 * k)
    direction = xp.where(unsolved[:, None], factor, target) - factor
    residuals = row_residuals(factor * root, gradient / root)
    return direction, residuals, *along(factor, gradient, direction, l1, l2)


@dataclass(frozen=True)
class RowPass:
    """Arguments of a pass besides the rows: the same for all blocks."""

    Ht: Array  # the present H'
    loss: BetaLoss  # the divergence
    penalties: Penalties  # L1 and L2
    correlations: Array  # the shared model of the Hessians of the rows
    momentum: Any  # of the extrapolation with which rows start; it may be a number on their GPU
    unit: Any  # about the sum of a row of the data

    @cached_property
    def squares(self) -> Array:
        """The squares of H', damped."""
        return self.Ht * self.Ht + damping(self.Ht)

    @cached_property
    def means(self) -> Array:
        """The sums of the rows of H in the unit of the data."""
        return array_namespace(self.Ht).sum(self.Ht, axis=-2) / self.unit

    def gram(self, rows: Array, weights: Array | None) -> Array:
        """Return the Gram matrix of the rows, weighted as a column of the Hessian is on average."""
        xp = array_namespace(rows)
        means = (rows @ self.means[..., None])[..., 0]
        means = np.maximum(means, 1e-6) if isinstance(means, np.ndarray) else xp.clip(means, min=1e-6)
        scale = means ** (self.loss.beta - 2.0)
        return xp.matrix_transpose(rows * (scale if weights is None else scale * weights)[..., None]) @ rows

    def move(
        self, x: Array, start: Array, mask: Array | None = None, weights: Array | None = None
    ) -> tuple[Array, tuple[Any, ...]]:
        """Move rows from where they start; return them and the sums of `newton_pass` but for the penalty."""
        xp, Ht, loss, kernels = array_namespace(start), self.Ht, self.loss, _kernels(start)
        bounds, v = (loss.beta, loss.lower_bound), start @ xp.matrix_transpose(Ht)
        at_start: Any = 0.0
        if not extrapolates(self.momentum):
            at_start = kernels.column_losses(x, v, *bounds, weights, mask)
        new, v, _ = newton_step(loss, self.penalties, mask, x, v, start, Ht, self.squares, self.correlations)
        if isinstance(v, np.ndarray) and loss.beta not in (1.0, 2.0):
            # Where x is zero the model tends to zero and its negative powers matter: the sum of the model and
            # the step would be rounding there.
            v = new @ Ht.T
        at_end = kernels.column_losses(x, v, *bounds, weights, mask)
        slope, curvature = kernels.newton_terms(x, v, mask, *bounds, curvature_bound=loss.curvature_bound)
        weighted = new if weights is None else new * weights[:, None]
        # One more column, for the damping of the diagonals.
        last = xp.ones_like(new[..., :1]) if weights is None else weights[:, None]
        squared = xp.concat([weighted * new, last], axis=-1)
        gradient, diagonal = xp.matrix_transpose(slope) @ weighted, xp.matrix_transpose(curvature) @ squared
        total = xp.sum(weighted, axis=-2)
        return new, (at_start, at_end, gradient, diagonal, self.gram(new, weights), total)


def newton_pass(
    block: LocalMatrix, W: Array, W_before: Array | None = None, *, shared: RowPass
) -> tuple[tuple[Array], tuple[Any, ...]]:
    """Move the rows of a block; return them and sums over the block.

    The sums: the losses of the columns where the rows started (0 where they were extrapolated, which would
    say nothing about the columns) and where they ended; gradient, diagonal of the Hessians (and their traces
    for rows of ones, in a last column) and Gram matrix for the update of H; the sum of the rows, and the
    penalty on them.
    """
    plain = shared.loss.beta == 1.0 and block.observed is None and isinstance(W, np.ndarray)
    if shared.loss.at_nonzeros(block):
        work = _nonzeros
    elif plain and isinstance(block.raw_rows(), np.ndarray) and core() is not None:
        work = _tiles
    else:
        work = _entries
    rows, sums = work(block, W, W_before, shared)
    return (rows,), (*sums, shared.penalties.of_W(rows, block.weights))


def _tiles(
    block: LocalMatrix, W: Array, W_before: Array | None, shared: RowPass
) -> tuple[Array, tuple[Any, ...]]:
    # Kullback-Leibler on a whole NumPy array: the compiled core makes the pass in one call.
    return tiled_newton_pass(
        block,
        W,
        W if W_before is None else W_before,
        shared.momentum,
        shared.Ht,
        shared.correlations,
        shared.squares,
        l1=shared.penalties.l1_W,
        l2=shared.penalties.l2_W,
        lower_bound=shared.loss.lower_bound,
        unit=shared.unit,
        fraction=extrapolation.LOWEST_FRACTION,
        shortest=SHORTEST_STEP,
        tries=beta_kernels.TRIES,
    )


def _entries(
    block: LocalMatrix, W: Array, W_before: Array | None, shared: RowPass
) -> tuple[Array, tuple[Any, ...]]:
    Ht, (n_rows, n_columns) = shared.Ht, block.shape

    def visit(begin: int, end: int) -> tuple[Any, ...]:
        mask = None if block.observed is None else block.observed.dense_rows(begin, end)
        weights = None if block.weights is None else block.weights[begin:end]
        before = None if W_before is None else W_before[begin:end, :]
        start = extrapolate_bounded(W[begin:end, :], before, shared.momentum)
        new, sums = shared.move(block.dense_rows(begin, end), start, mask, weights)
        return [new], *sums

    # Products are BLAS's, which does several operations in the time of one of our kernels.
    operations = 0.2 * 12.0 * n_rows * n_columns * Ht.shape[1]
    rows, *sums = over_blocks(block, visit, add=added, operations=operations)[0]
    return block.xp.concat(rows, axis=0), tuple(sums)


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
    weights, xp = block.weights, block.xp
    sums = ratio_sums(block.transposed, Ht, new, lower_bound, weights=weights, second=True, logs=True)
    diagonal = xp.concat([sums.second, sums.trace[:, None]], axis=1)
    at_end = column_losses(block, new, Ht, sums.logs)
    gradient = sums_for_H(block, new) - sums.product
    total = xp.sum(block.weighted(new), axis=0)
    return new, (at_start, at_end, gradient, diagonal, shared.gram(new, weights), total)


@dataclass(frozen=True)
class NewtonState:
    """The accepted pair, what the update of H needs there, and what extrapolation remembers."""

    W: SampleArray  # the accepted factors; X is about W H
    Ht: Array
    loss: float = float("inf")  # of the accepted pair, penalties included
    W_before: SampleArray | None = None  # the accepted W one iteration earlier
    Ht_plain: Array | None = None  # the last H' before it was extrapolated
    gradient: Array | None = None  # of the divergence with respect to Ht
    diagonal: Array | None = None  # of the Hessian of every column of H, and its curvatures' sum
    gram: Array | None = None  # whose correlations the Hessians share
    total: Array | None = None  # the weighted sum of the rows of W
    columns: Array | None = None  # the divergence of every column
    steps: Array | None = None  # of the columns, between 0 and 1
    momentum: float = 0.0  # see `ExtrapolatedState`
    ceiling: float = 1.0


@dataclass(frozen=True)
class NewtonProblem:
    """Data, loss and the components that may change: all that an iteration needs besides its state."""

    data: DataMatrix
    loss: BetaLoss
    penalties: Penalties
    free: IntArray | None
    unit: float  # about the sum of a row of the data
    total_weight: float  # the sum of the row weights

    def column_penalties(self, Ht: Array) -> Array:
        """Return the penalty on every row of Ht, in float64."""
        xp = self.data.xp
        wide = xp.astype(Ht, xp.float64)
        return xp.sum(wide * (self.penalties.l1_H + 0.5 * self.penalties.l2_H * wide), axis=1)

    def evaluate(self, state: NewtonState, Ht: Array, momentum: Any) -> tuple[dict[str, Any], Array]:
        """Pass over the data at Ht; return what changes, and the losses of the columns before it."""
        total = state.total
        means = self.data.xp.sum(Ht, axis=1) if total is None else Ht @ total
        correlations = shared_correlations(self.loss.beta, Ht, means)
        shared = RowPass(Ht, self.loss, self.penalties, correlations, momentum, self.unit)
        moves = extrapolates(momentum) and state.W_before is not None
        rows = (state.W, state.W_before) if moves else (state.W,)
        (W,), sums = self.data.map_reduce_rows(newton_pass, *rows, shared=shared)
        at_start, columns, gradient, diagonal, gram, total, penalty = sums
        changes = {
            "W": W,
            "Ht": Ht,
            "loss": self.data.xp.sum(columns) + penalty + self.penalties.of_H(Ht),
            "gradient": gradient,
            "diagonal": diagonal,
            "gram": gram,
            "total": total,
            "columns": columns,
        }
        return changes, at_start

    def attempt(self, state: NewtonState, momentum: Any) -> dict[str, Any]:
        """Move both factors by the steps of the state.

        Returns what changes, with the steps of the next iteration, what the steps were to gain, and shorter
        ones for the columns that became worse, None after extrapolation.
        """
        xp = self.data.xp
        direction, slopes = column_directions(state, self.total_weight, self.penalties, self.free)
        steps = xp.ones_like(slopes) if state.steps is None else state.steps
        Ht = state.Ht + xp.astype(steps, direction.dtype)[:, None] * direction
        gained = steps * slopes
        of_pair = {"Ht_plain": Ht, "W_before": state.W, "gained": xp.sum(gained)}
        if extrapolates(momentum):
            extrapolated = extrapolate_bounded(Ht, state.Ht_plain, momentum)
            # What the columns gained by their own steps is not known.
            following = xp.where(steps < 0.5, 2.0 * steps, xp.ones_like(steps))
            changes, _ = self.evaluate(state, extrapolated, momentum)
            return changes | of_pair | {"steps": following, "shorter": None}
        changes, at_start = self.evaluate(state, Ht, 0.0)
        assert state.columns is not None
        change = at_start + self.column_penalties(Ht) - (state.columns + self.column_penalties(state.Ht))
        following, shorter = next_steps(xp, steps, gained, change, changes["columns"])
        return changes | of_pair | {"steps": following, "shorter": shorter}

    def candidates(self, state: NewtonState) -> Candidates:
        """Yield the next state, and as long as its loss is higher, those after shorter steps."""
        begin, momentum, ceiling = state, state.momentum, state.ceiling
        nothing = NOTHING["float64" if "64" in str(self.data.dtype) else "float32"]
        # After an iteration that kept its pair, which the last line here returned, the same tries would fail.
        stuck = state.W_before is None and state.steps is not None
        for _ in range(1 if stuck else TRIES):
            # A momentum of zero may have been a rejected one: the schedule continues below it.
            below = not momentum and ceiling < 1.0
            following = (
                extrapolation.rejected(ceiling) if below else extrapolation.accepted(momentum, ceiling)
            )
            trial = changed(begin, **following)
            changes = yield trial, self.attempt, momentum
            if momentum:
                momentum, ceiling = 0.0, momentum
                continue
            if float(changes["gained"]) > -nothing * abs(float(state.loss)):
                break
            begin = changed(begin, steps=changes["shorter"])
        # Rounding only: keep the better pair and let the stopping rule end the run.
        yield changed(state, momentum=0.0, ceiling=1.0, W_before=None, Ht_plain=None), unchanged


def column_directions(
    state: Any, total_weight: float, penalties: Penalties, free: IntArray | None
) -> tuple[Array, Array]:
    """Return the step of every column of H, and the derivatives of their losses along it."""
    xp, Ht = array_namespace(state.Ht), state.Ht
    gradient = state.gradient + (penalties.l1_H + penalties.l2_H * Ht)
    damping = DAMPING * (state.total / total_weight)[..., None, :] ** 2
    diagonal = state.diagonal[..., :-1] + (state.diagonal[..., -1:] * damping + penalties.l2_H)
    direction, _, _, _, slopes = newton_targets(
        Ht, gradient, diagonal, correlations_of(state.gram), free, penalties.l1_H, penalties.l2_H
    )
    slopes = xp.astype(slopes, xp.float64)
    # A column whose model misleads stays.
    down = slopes < 0
    direction = xp.where(down[..., None], direction, xp.zeros_like(direction))
    return direction, xp.where(down, slopes, xp.zeros_like(slopes))


def next_steps(xp: Any, steps: Array, gained: Array, change: Array, losses: Array) -> tuple[Array, Array]:
    """Return the next steps of columns, and shorter ones for those that became worse.

    Given what the present steps were to gain, and what became of the `losses`.
    """
    unclear = -gained < 1e-12 * losses
    best = steps * _power_of_two(xp, gained, change, most=2.0)
    following = xp.clip(xp.where(unclear, 2.0 * steps, best), min=SHORTEST, max=1.0)
    return following, xp.where(change > 0, steps * _power_of_two(xp, gained, change, most=0.5), steps)


def _power_of_two(xp: Namespace, slope: Array, change: Array, *, most: float) -> Array:
    """Return about where a parabola with this slope at 0 and this change at 1 is lowest: a power of two."""
    bend = change - slope
    factor = xp.full_like(slope, 0.125)
    for power in (0.25, 0.5, 1.0, 2.0):
        # The lowest point is -slope / (2 bend).
        reached = -slope >= 2.0 * (0.7 * power) * bend
        if power <= most:
            factor = xp.where(reached, xp.full_like(factor, power), factor)
    return factor


@solver(SlowDecrease)
def scaled_newton(
    data: DataMatrix,
    W: SampleArray,
    Ht: Array,
    *,
    penalties: Penalties,
    beta: float = 1.0,
    free: IntArray | None = None,
) -> tuple[Any, NewtonState]:
    """Minimize a beta-divergence plus penalties by Newton steps on the rows of both factors."""
    # An iteration is one pass with six products of the size of the data, a multiplicative one has four.
    # Rejected iterations cost a pass more; they are rare.
    mean = data.mean()
    unit = data.shape[1] * mean if mean > 0 else 1.0
    problem = NewtonProblem(data, BetaLoss.of(data, beta), penalties, free, unit, data.total_weight())
    descent = Descent(problem.candidates, data.container)

    def step(state: NewtonState) -> tuple[NewtonState, dict[str, float]]:
        if state.gradient is None:
            # The rows of W alone: nothing is known of the columns yet.
            changes, _ = problem.evaluate(state, state.Ht, 0.0)
            state = changed(state, **changes | {"loss": float(changes["loss"])})
        return descent(state)

    return step, NewtonState(W, Ht)
