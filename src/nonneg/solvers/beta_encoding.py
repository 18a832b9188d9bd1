"""Encode samples under a beta-divergence: the minimizing W for a given H, each row on its own.

Every row starts from the best multiple of equal coefficients and stops by its own residual: the result does
not depend on other rows, on chunks or on threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import is_cpu_tensor, is_float32, numpy_view, tensor_view
from nonneg._blas import single_threaded_blas
from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.beta_products import kl_passes
from nonneg.losses.beta import BetaLoss, over_blocks
from nonneg.losses.nonzeros import sums_for_W
from nonneg.losses.penalties import Penalties
from nonneg.solvers.nonzero_encoding import encode_on_gpu
from nonneg.solvers.row_newton import (
    Buffers,
    Pairs,
    RowSubproblem,
    capped_squares,
    newton_step,
    shared_correlations,
)

# Steps with shared correlations before those with a Hessian per row, which converge quadratically.
SHARED_STEPS = 2
# Below this residual a row of a divergence that is not convex uses true second derivatives.
NEAR = 0.05
# Maximum number of stored products of pairs of components; beyond it, all steps use shared correlations.
MAX_PAIRS = 1 << 23
# Sweeps over the nonzeros of a row per full gradient.
SWEEPS, SHRINK = 6, 0.1
# Dense rows with fewer columns take Newton steps even where most entries are zero.
NARROW = 100


def encode_beta(
    data: DataMatrix,
    Ht: Array,
    *,
    beta: float,
    penalties: Penalties,
    tol: float | None = None,
    max_iter: int = 500,
    start: SampleArray | None = None,
    offset: float = 0.0,
) -> SampleArray:
    """Minimize the penalized divergence of every row over W >= 0, with Ht fixed."""
    single = is_float32(data.dtype)
    tol = (1e-5 if single else 1e-9) if tol is None else tol
    loss = BetaLoss.of(data, beta, offset)
    sample_arrays = () if start is None else (start,)
    with single_threaded_blas():
        (W,), _ = data.map_reduce_rows(
            _encode_block, *sample_arrays, Ht=Ht, loss=loss, penalties=penalties, tol=tol, max_iter=max_iter
        )
    return W


def _encode_block(
    block: LocalMatrix,
    start: Array | None = None,
    *,
    Ht: Array,
    loss: BetaLoss,
    penalties: Penalties,
    tol: float,
    max_iter: int,
) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
    local = isinstance(Ht, np.ndarray)
    if local and loss.beta == 1 and (block.container == "sparse" or block.observed is not None):
        csr = sp.csr_array(block.products)  # type: ignore[attr-defined]
        return (_encode_nonzeros(csr, start, Ht, sums_for_W(block, Ht), penalties, tol, max_iter),), ()
    if loss.at_nonzeros(block):
        return (_encode_sparse_array(block, start, Ht, loss, penalties, tol, max_iter),), ()
    by_nonzeros = local and loss.beta == 1 and not loss.offset and block.container == "dense"
    own = None
    if Ht.shape[0] * Ht.shape[1] * (Ht.shape[1] + 1) // 2 <= MAX_PAIRS:
        own = Pairs.of(Ht)
    shared = shared_correlations(loss, Ht, block.xp.sum(Ht, axis=1), None)
    squares = capped_squares(Ht)

    def visit(begin: int, end: int) -> Array:
        x = block.dense_rows(begin, end)
        mask = None if block.observed is None else block.observed.dense_rows(begin, end)
        problem = RowSubproblem(mask, penalties.l1_W, penalties.l2_W)
        factor = _best_multiple(x, Ht, loss, mask) if start is None else start[begin:end, :]
        rows = _Rows(loss, problem, Ht, squares, shared, own, tol, max_iter)
        if by_nonzeros and (few := _few_nonzeros(x)).any():
            out, many = np.array(factor), ~few
            sums = Ht.sum(axis=0)
            out[few] = _encode_nonzeros(sp.csr_array(x[few]), factor[few], Ht, sums, penalties, tol, max_iter)
            out[many] = rows.only(many).solve(x[many], factor[many])
            return out
        return rows.solve(x, factor) if local else rows.solve_together(x, factor)

    return (block.xp.concat(over_blocks(block, visit), axis=0),), ()


def _encode_sparse_array(
    block: Any,
    start: Array | None,
    Ht: Array,
    loss: BetaLoss,
    penalties: Penalties,
    tol: float,
    max_iter: int,
) -> Array:
    sums = sums_for_W(block, Ht)
    if not is_cpu_tensor(Ht):
        return encode_on_gpu(block, start, Ht, sums, loss, penalties, tol, max_iter)
    first = None if start is None else numpy_view(start)
    given = numpy_view(Ht.contiguous()), numpy_view(sums)
    return tensor_view(_encode_nonzeros(block.csr.to_scipy(), first, *given, penalties, tol, max_iter))


def _few_nonzeros(x: Any) -> Any:
    # Where a row's nonzeros are so few, sweeps over them take less time than Newton steps with all columns,
    # for 8 to 40 components. Rows of the digits (64 columns) gain nothing, and would wait six seconds for the
    # sweeps to be compiled.
    if x.shape[1] < NARROW:
        return np.zeros(x.shape[0], dtype=bool)
    return np.count_nonzero(x, axis=1) <= x.shape[1] // 4 + 40


def _encode_nonzeros(
    csr: Any, start: Array | None, Ht: Array, sums: Array, penalties: Penalties, tol: float, max_iter: int
) -> Array:
    if start is None:
        totals = np.asarray(csr.sum(axis=1)).ravel()
        scale = np.broadcast_to(sums, (len(totals), Ht.shape[1])).sum(axis=1)
        multiple = np.where(scale > 0, totals / np.where(scale > 0, scale, 1), 0)
        start = np.repeat(multiple[:, None], Ht.shape[1], axis=1).astype(Ht.dtype)
    W, _, _ = kl_passes(
        (csr.indptr, csr.indices, csr.data),
        start,
        Ht,
        sums,
        l1=penalties.l1_W,
        l2=penalties.l2_W,
        max_rounds=max(1, max_iter // 2),
        max_sweeps=SWEEPS,
        shrink=SHRINK,
        tol=tol,
    )
    return W


def _best_multiple(x: Array, Ht: Array, loss: BetaLoss, mask: Array | None) -> Array:
    # The scale s that minimizes the divergence of x from s Ht 1: sum x b^(beta - 1) / sum b^beta.
    xp = array_namespace(x, Ht)
    model = xp.clip(xp.sum(Ht, axis=1), min=loss.lower_bound)
    power = xp.ones_like(model) if loss.beta == 1 else model ** (loss.beta - 1)
    whole = xp.sum(power * model) if mask is None else mask @ (power * model)
    multiple = ((x if mask is None else x * mask) @ power) / xp.clip(whole, min=loss.lower_bound)
    return multiple[:, None] * xp.ones((1, Ht.shape[1]), dtype=Ht.dtype, device=Ht.device)


@dataclass(frozen=True)
class _Progress:
    """Where the rows of a block stand: residual, and below which of them true second derivatives are used."""

    residuals: Array
    near: Array
    used: Array
    going: Array

    @classmethod
    def begin(cls, factor: Array) -> _Progress:
        xp = array_namespace(factor)
        residuals = xp.full(factor.shape[:1], float("inf"), dtype=factor.dtype, device=factor.device)
        yes = xp.ones(factor.shape[0], dtype=xp.bool, device=factor.device)
        return cls(residuals, xp.full_like(residuals, NEAR), xp.logical_not(yes), yes)

    @property
    def arrays(self) -> list[Array]:
        return [self.residuals, self.near, self.used, self.going]

    def rows(self, chosen: Any) -> _Progress:
        return _Progress(*(array[chosen] for array in self.arrays))


@dataclass(frozen=True)
class _Rows:
    """Newton steps on a block of rows until each meets the tolerance."""

    loss: BetaLoss
    problem: RowSubproblem
    Ht: Array
    squares: Array
    shared: Array
    own: Pairs | None
    tol: float
    max_iter: int

    def step(self, number: int, x: Array, factor: Array, before: _Progress) -> tuple[Array, _Progress]:
        """Move all rows."""
        # Far from a minimum of a divergence that is not convex the true second derivatives mislead: a row
        # where they did not help waits until it is ten times nearer.
        xp = array_namespace(x, factor)
        shared = number < SHARED_STEPS or self.own is None
        guarded = not self.loss.convex and not shared
        exact = before.residuals < before.near if guarded else None
        model = self.shared if self.own is None or shared else self.own
        v = factor @ self.Ht.T
        if self.loss.offset:
            x, v = x + self.loss.offset, v + self.loss.offset
        fixed = self.Ht, self.squares, model, Buffers(x.shape[0], x.shape[1], factor)
        new, _, residuals = newton_step(self.loss, self.problem, x, v, factor, *fixed, exact)
        going = residuals > self.tol
        near, used = before.near, before.used
        if not shared:
            # The step squares the residual.
            quick = residuals <= self.tol**0.5 / 30
            quick = quick if exact is None else xp.logical_and(quick, exact)
            going = xp.logical_and(going, xp.logical_not(quick))
        if exact is not None:
            failed = xp.logical_and(used, residuals > 0.5 * before.residuals)
            near, used = xp.where(failed, 0.1 * residuals, near), exact
        return new, _Progress(residuals, near, used, xp.logical_and(before.going, going))

    def solve(self, x: Any, factor: Any) -> Any:
        """Rows that are done leave the block."""
        out = np.array(factor)
        left = np.arange(len(out))
        now = _Progress.begin(out)
        rows = self
        for number in range(self.max_iter):
            out[left], now = rows.step(number, x, out[left], now)
            if not now.going.all():
                rows, left, x, now = rows.only(now.going), left[now.going], x[now.going], now.rows(now.going)
            if left.size == 0:
                break
        return out

    def only(self, chosen: Any) -> _Rows:
        """Return the same for some of the rows, with their own observed entries."""
        mask = self.problem.weights
        return (
            self if mask is None else replace(self, problem=replace(self.problem, weights=mask[chosen, ...]))
        )

    def solve_together(self, x: Array, factor: Array) -> Array:
        """Rows that are done stay as they are: no indexing by values, which would make a GPU wait."""
        xp = array_namespace(x, factor)
        now = _Progress.begin(factor)
        for number in range(self.max_iter):
            new, after = self.step(number, x, factor, now)
            factor = xp.where(now.going[:, None], new, factor)
            now = after
            if not bool(xp.any(now.going)):
                break
        return factor
