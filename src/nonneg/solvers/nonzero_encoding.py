"""Encode sparse samples under the Kullback-Leibler divergence on a GPU: Newton steps on many rows at once.

The CPU sweeps over the nonzeros of one row after another (`kernels.beta_products.kl_passes`); both solve each
row to the same tolerance.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.kernels.beta_products import TRIES
from nonneg.kernels.newton_targets import newton_targets
from nonneg.kernels.newton_targets.array_api import along
from nonneg.kernels.nonzeros import line_search, ratio_sums, row_hessians
from nonneg.kernels.sparse_products import row_sums, sampled_product
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers.newton_pass import multiplicative_where
from nonneg.solvers.row_newton import damping, own_target, shared_correlations

# Steps with shared correlations before those with a Hessian per row; entries of these Hessians at a time.
SHARED_STEPS, HESSIANS = 4, 1 << 26
# Rows that are done leave when only this part of them is left: to gather the others takes time as well.
LEFT = 0.5


def encode_on_gpu(
    block: Any,
    start: Array | None,
    Ht: Array,
    sums: Array,
    loss: BetaLoss,
    penalties: Penalties,
    tol: float,
    max_iter: int,
) -> Array:
    """Minimize the penalized divergence of every row over W >= 0, with Ht fixed."""
    xp, csr, k = block.xp, block.csr, int(Ht.shape[1])
    totals = row_sums(csr.indptr, csr.data, plan=csr.plan)
    scale = xp.sum(sums, axis=-1)
    multiple = xp.where(scale > 0, totals / xp.where(scale > 0, scale, xp.ones_like(scale)), 0 * totals)
    first = multiple[:, None] * xp.ones((1, k), dtype=Ht.dtype, device=Ht.device)
    # Where the model is zero and the data are not, a row would begin at infinity.
    first = first if start is None else start + 1e-3 * first
    rows = _Rows(Ht, loss, penalties, tol, max_iter)
    step = max(1, HESSIANS // (k * k))
    parts = []
    for first_row, last_row in _ranges(csr, step):
        part = slice(first_row, last_row)
        own = sums if sums.ndim == 1 else sums[part, :]
        parts.append(rows.solve(csr.take_rows(part), first[part, :], own))
    return xp.concat(parts, axis=0)


def _ranges(csr: Any, step: int) -> list[tuple[int, int]]:
    blocks = ((0, csr.shape[0]),) if csr.plan is None else [block[:2] for block in csr.plan.blocks]
    return [(at, min(at + step, last)) for first, last in blocks for at in range(first, last, step)]


class _Rows:
    """Newton steps on a block of rows until each meets the tolerance."""

    def __init__(self, Ht: Array, loss: BetaLoss, penalties: Penalties, tol: float, max_iter: int) -> None:
        self.Ht, self.lower_bound, self.penalties = Ht, loss.lower_bound, penalties
        self.tol, self.max_iter = tol, max_iter
        self.damping = damping(Ht)
        means = array_namespace(Ht).sum(Ht, axis=1)
        self.correlations = shared_correlations(loss, Ht, means, None)

    def solve(self, csr: Any, W: Array, sums: Array) -> Array:
        """Return the minimizing rows."""
        xp = csr.xp
        out, left = W, None  # `left`: where the rows in work are among all, None for all of them
        going = xp.ones(W.shape[0], dtype=xp.bool, device=W.device)
        for number in range(self.max_iter):
            new, residuals = self.step(csr, W, sums, own=number >= SHARED_STEPS)
            W = xp.where(going[:, None], new, W)
            if number < SHARED_STEPS:
                # The damped diagonals of these steps may make a row look converged.
                continue
            # The step squares the residual.
            going = xp.logical_and(going, residuals > max(self.tol, self.tol**0.5 / 30))
            n_left = int(xp.count_nonzero(going))
            if n_left == 0:
                break
            if n_left <= LEFT * W.shape[0]:
                out = _placed(xp, out, left, W)
                rows = xp.nonzero(going)[0]
                left = rows if left is None else xp.take(left, rows)
                csr, W = csr.take_rows(rows), xp.take(W, rows, axis=0)
                sums = sums if sums.ndim == 1 else xp.take(sums, rows, axis=0)
                going = xp.take(going, rows)
        return _placed(xp, out, left, W)

    def step(self, csr: Any, W: Array, sums: Array, *, own: bool) -> tuple[Array, Array]:
        """Move all rows; return them and the residuals where they were."""
        xp, Ht, penalties = csr.xp, self.Ht, self.penalties
        l1, l2 = penalties.l1_W, penalties.l2_W
        found = ratio_sums(csr, W, Ht, self.lower_bound, second=not own)
        gradient = sums - found.product + (l1 + l2 * W)
        if own:
            v = xp.maximum(sampled_product(csr.indptr, csr.indices, W, Ht, plan=csr.plan), self.lower_bound)
            hessians = row_hessians(csr.indptr, csr.indices, csr.data / v / v, Ht)
            if l2:
                hessians = hessians + l2 * xp.eye(int(Ht.shape[1]), dtype=Ht.dtype, device=Ht.device)
            residuals, target = own_target(W, gradient, hessians)
            direction = target - W
            linear, quadratic, slopes = along(W, gradient, direction, l1, l2)
        else:
            diagonal = found.second + found.trace[:, None] * self.damping + l2
            direction, residuals, linear, quadratic, slopes = newton_targets(
                W, gradient, diagonal, self.correlations, None, l1, l2
            )
        linear = linear + xp.sum(direction * sums, axis=1)
        steps = line_search(csr, W, direction, Ht, self.lower_bound, linear, quadratic, slopes, TRIES)
        new = xp.maximum(W + steps[:, None] * direction, 0.0)
        return multiplicative_where(steps, residuals, new, W, found.product, sums, penalties), residuals


def _placed(xp: Any, out: Array, left: Array | None, W: Array) -> Array:
    if left is None:
        return W
    out = xp.asarray(out, copy=True)
    out[left, ...] = W
    return out
