"""Encode samples: the minimizing W for a given H, each row on its own.

For the Frobenius loss the rows are exact minimizers, by block pivoting. Under other beta-divergences every
row starts from the best multiple of equal coefficients and stops by its own residual: the result does not
depend on other rows, on chunks or on threads. Sparse rows under the Kullback-Leibler divergence are swept
over their nonzeros one after another; on a GPU many take Newton steps at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import is_cpu_tensor, is_float32, row_major, serves_tensors, to_float64
from nonneg._devices import chosen_products
from nonneg._threads import single_threaded_blas
from nonneg._typing import Array, Namespace, SampleArray, SparseMatrix
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.matrix import rows_per_block
from nonneg.exceptions import UnsupportedError
from nonneg.kernels.beta_products import kl_passes
from nonneg.kernels.grams import Gram, SharedGram, WeightedGrams, quadratic_form
from nonneg.kernels.hals import hals_passes
from nonneg.kernels.rows import product_sum
from nonneg.kernels.sparse_products import row_sums
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.losses.beta import ARRAY_ENTRIES, BetaLoss, over_blocks, sums_for_W
from nonneg.losses.penalties import Penalties
from nonneg.solvers.newton import damping, newton_step, nonzero_step, shared_correlations

# Coordinate passes that guess the supports before the exact solve; vectorized over rows they cost less than
# the exchanges of supports they save.
GUESS_PASSES, GUESS_SHRINK = 20, 0.02
# Steps with shared correlations before those with a Hessian per row, which converge quadratically.
SHARED_STEPS = 2
# Entries of the Hessians of sparse rows on a GPU at a time.
HESSIANS = 1 << 26
# Sweeps over the nonzeros of a row per full gradient.
SWEEPS, SHRINK = 6, 0.1
# Newton steps of a row at most.
MAX_ITER = 500
# Residuals at which rows are done, in float64 and float32.
TOL, SINGLE_TOL = 1e-9, 1e-5


def encode(
    data: DataMatrix, Ht: Array, *, beta: float, penalties: Penalties
) -> tuple[SampleArray, float | None]:
    """Minimize the penalized loss of every row over W >= 0, with Ht fixed; return W and its loss or None."""
    # For 1 <= beta <= 2 the problem is convex and solved to tolerance; otherwise it is a descent from initial
    # coefficients that depend on this row of X alone.
    if penalties.smooth_H is not None:
        if data.has_missing:
            raise UnsupportedError("penalty_H does not take missing or weighted entries. Leave these out.")
        penalties = penalties.given_H(Ht)
    if beta == 2.0:
        gram = None if data.has_missing else SharedGram(Ht.T @ Ht)
        with chosen_products():
            (W,), (loss,) = data.map_reduce_rows(_encode_rows, Ht=Ht, gram=gram, penalties=penalties)
        return row_major(W), max(0.5 * data.squared_norm() + float(loss), 0.0)
    return encode_beta(data, Ht, beta=beta, penalties=penalties), None


def _encode_rows(
    block: LocalMatrix, *, Ht: Array, gram: Gram | None, penalties: Penalties
) -> tuple[tuple[Array], tuple[Any]]:
    xp = block.xp
    if gram is None:
        gram = block.row_grams(Ht)
    system = gram.plus_ridge(penalties.l2_W)
    cross = block.times(Ht)
    target = cross - penalties.l1_W if penalties.l1_W else cross
    guess = None
    if isinstance(system, SharedGram):
        # From the positive entries of least squares: van Benthem & Keenan (2004), J. Chemometrics 18(10).
        matrix = np.nan_to_num(to_float64(system.matrix), posinf=0.0, neginf=0.0)
        rounding = len(matrix) * float(xp.finfo(target.dtype).eps)
        inverse = block.to_device(np.linalg.pinv(matrix, rcond=rounding, hermitian=True))
        guess = xp.clip(target @ inverse, min=0.0)
        guess, _ = hals_passes(guess, system, target, max_passes=GUESS_PASSES, shrink=GUESS_SHRINK)
    W = nonnegative_least_squares(system, target, start=guess, in_place=True)
    if block.weights is None:
        quadratic = quadratic_form(W, gram)
    else:
        root = xp.sqrt(block.weights)
        quadratic = quadratic_form(W * root[:, None], gram)
    loss = 0.5 * quadratic - product_sum(block.weighted(W), cross) + penalties.of_W(W, block.weights)
    return (W,), (loss,)


def encode_beta(
    data: DataMatrix, Ht: Array, *, beta: float, penalties: Penalties, offset: float = 0.0
) -> SampleArray:
    """Minimize the penalized divergence of every row over W >= 0, with Ht fixed."""
    with single_threaded_blas():
        loss, tol = BetaLoss.of(data, beta, offset), SINGLE_TOL if is_float32(data.dtype) else TOL
        return data.map_rows(_encode_block, Ht=Ht, loss=loss, penalties=penalties, tol=tol)


def _encode_block(
    block: LocalMatrix, *, Ht: Array, loss: BetaLoss, penalties: Penalties, tol: float
) -> Array:
    local, options = isinstance(Ht, np.ndarray), (penalties, tol)
    if local and loss.beta == 1 and (block.container == "sparse" or block.observed is not None):
        csr = sp.csr_array(block.products)  # type: ignore[attr-defined]
        return _encode_nonzeros(csr, Ht, sums_for_W(block, Ht), *options)
    if loss.at_nonzeros(block):
        return _encode_sparse_array(block, Ht, loss, *options)
    by_nonzeros = local and loss.beta == 1 and not loss.offset and block.container == "dense"
    shared = shared_correlations(loss.beta, Ht, block.xp.sum(Ht, axis=1))
    squares, hessians = Ht * Ht + damping(Ht), WeightedGrams(None, Ht, penalties.l2_W)

    def step(number: int, rows: Any, factor: Array, residuals: Array) -> tuple[Array, Array, Any]:
        (x, mask), v = rows, loss.model(factor, Ht.T)
        x = x + loss.offset if loss.offset else x
        own = number >= SHARED_STEPS
        model = hessians if own else shared
        new, _, residuals = newton_step(loss, penalties, mask, x, v, factor, Ht, squares, model, exact=own)
        # Second derivatives that were below zero leave steps that do not square the residuals.
        return new, residuals, _done(number, residuals, tol) if loss.convex else residuals <= tol

    def visit(begin: int, end: int) -> Array:
        x = block.dense_rows(begin, end)
        mask = None if block.observed is None else block.observed.dense_rows(begin, end)
        factor = _best_multiple(x, Ht, loss, mask)
        # Where a row's nonzeros are so few, sweeps over them take less time than Newton steps with all
        # columns, for 8 to 40 components.
        if by_nonzeros and (few := np.count_nonzero(x, axis=1) <= x.shape[1] // 4 + 40).any():
            out, many = np.array(factor), ~few
            out[few] = _encode_nonzeros(sp.csr_array(x[few]), Ht, Ht.sum(axis=0), *options)
            out[many] = _solve(step, (x[many], None), factor[many])
            return out
        return _solve(step, (x, mask), factor)

    # On a GPU every row of a block has its own Hessian besides its entries.
    size = None if local else rows_per_block(block.shape[1] + 4 * Ht.shape[1] ** 2, ARRAY_ENTRIES)
    return block.xp.concat(over_blocks(block, visit, rows=size), axis=0)


def _encode_sparse_array(block: Any, Ht: Array, loss: BetaLoss, penalties: Penalties, tol: float) -> Array:
    sums = sums_for_W(block, Ht)
    if is_cpu_tensor(Ht):
        return _encode_nonzeros(block.csr.to_scipy(), Ht.contiguous(), sums, penalties, tol)
    xp, csr, k = block.xp, block.csr, int(Ht.shape[1])
    first = _equal(xp, row_sums(csr.indptr, csr.data, plan=csr.plan), xp.sum(sums, axis=-1), Ht)
    correlations = shared_correlations(1.0, Ht, xp.sum(Ht, axis=1))

    def step(number: int, rows: Any, factor: Array, residuals: Array) -> tuple[Array, Array, Any]:
        problem, model = (loss.lower_bound, penalties), correlations if number < SHARED_STEPS else None
        new, residuals = nonzero_step(rows[0], factor, Ht, rows[1], *problem, model)
        return new, residuals, _done(number, residuals, tol)

    size = max(1, HESSIANS // (k * k))
    blocks = ((0, csr.shape[0]),) if csr.plan is None else [block[:2] for block in csr.plan.blocks]
    parts = []
    for part in (slice(i, min(i + size, end)) for begin, end in blocks for i in range(begin, end, size)):
        own = sums[part, :] if sums.ndim == 2 else xp.broadcast_to(sums, first[part, :].shape)
        parts.append(_solve(step, (csr[part], own), first[part, :]))
    return xp.concat(parts, axis=0)


def _done(number: int, residuals: Array, tol: float) -> Any:
    """Tell which rows a step with their own Hessians has solved: it squares the residuals."""
    # Damped diagonals of shared correlations may make a row look converged.
    return residuals <= (-1.0 if number < SHARED_STEPS else tol**0.5 / 30)


@serves_tensors
def _encode_nonzeros(csr: SparseMatrix, Ht: Array, sums: Array, penalties: Penalties, tol: float) -> Array:
    totals = np.asarray(csr.sum(axis=1)).ravel()
    W, _, _ = kl_passes(
        (csr.indptr, csr.indices, csr.data),
        _equal(np, totals, sums.sum(axis=-1), Ht),
        Ht,
        sums,
        l1=penalties.l1_W,
        l2=penalties.l2_W,
        max_rounds=MAX_ITER // 2,
        max_sweeps=SWEEPS,
        shrink=SHRINK,
        tol=tol,
    )
    return W


def _equal(xp: Namespace, totals: Array, scale: Array, Ht: Array) -> Array:
    """Return equal coefficients in every row, with which the model has the given total."""
    safe = xp.where(scale > 0, scale, xp.ones_like(scale))
    multiple = xp.where(scale > 0, totals / safe, xp.zeros_like(totals))
    return xp.astype(
        multiple[:, None] * xp.ones((1, Ht.shape[1]), dtype=Ht.dtype, device=Ht.device), Ht.dtype
    )


def _best_multiple(x: Array, Ht: Array, loss: BetaLoss, mask: Array | None) -> Array:
    # The scale s that minimizes the divergence of x from s Ht 1: sum x b^(beta - 1) / sum b^beta.
    xp = array_namespace(x, Ht)
    model = xp.clip(xp.sum(Ht, axis=1), min=loss.lower_bound)
    power = xp.ones_like(model) if loss.beta == 1 else model ** (loss.beta - 1)
    whole = xp.sum(power * model) if mask is None else mask @ (power * model)
    return _equal(xp, (x if mask is None else x * mask) @ power, whole, Ht)


def _solve(step: Callable[..., Any], rows: tuple[Any, Any], factor: Array) -> Array:
    """Move all rows until each meets the tolerance; those that are done stay as they are, or leave.

    `rows` has what a step knows of each row. A step returns the rows moved, and of where they were: their
    residuals, and which of them are done.
    """
    xp = array_namespace(factor)
    # The part of the rows, at most, that stays when the others leave. On a GPU to gather nonzeros takes time
    # as well, and to gather entries as long as a step.
    leaving = 1.0 if isinstance(factor, np.ndarray) else 0.5 if hasattr(rows[0], "indptr") else 0.0
    out, places = factor, None  # where the rows in work are among all; None for all of them
    residuals = xp.full(factor.shape[:1], float("inf"), dtype=factor.dtype, device=factor.device)
    going = residuals > 0
    for number in range(MAX_ITER):
        new, residuals, done = step(number, rows, factor, residuals)
        factor = xp.where(going[:, None], new, factor)
        going = xp.logical_and(going, xp.logical_not(done))
        n_going = int(xp.count_nonzero(going))
        if n_going == 0:
            break
        if n_going < factor.shape[0] and n_going <= leaving * factor.shape[0]:
            out = _placed(out, places, factor)
            rest = xp.nonzero(going)[0]
            places = rest if places is None else places[rest]
            rows = _chosen(rows[0], rest), _chosen(rows[1], rest)
            factor, residuals, going = factor[rest, ...], residuals[rest], going[rest]
    return _placed(out, places, factor)


def _chosen(part: Any, rows: Array) -> Any:
    return part if part is None else part[rows] if hasattr(part, "indptr") else part[rows, ...]


def _placed(out: Array, places: Array | None, rows: Array) -> Array:
    if places is None:
        return rows
    out = array_namespace(out).asarray(out, copy=True)
    out[places, ...] = rows
    return out
