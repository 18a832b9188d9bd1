"""Beta-divergences: values, and positive and negative parts of their gradients, a block of rows at a time.

D(x | v) = (x^beta + (beta - 1) v^beta - beta x v^(beta - 1)) / (beta (beta - 1)), with the limits
x log(x / v) - x + v at 1 (Kullback-Leibler) and x / v - log(x / v) - 1 at 0 (Itakura-Saito). At 2 it is half
the squared difference. For sparse data the Kullback-Leibler divergence needs W H at the nonzeros only:
elsewhere it is the model itself, whose sum is a product of column sums, over the observed entries where some
are missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from nonneg._arrays import is_float32
from nonneg._threads import parallel_for
from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.matrix import rows_per_block
from nonneg.kernels import beta_products as beta_kernels
from nonneg.kernels.nonzeros import ratio_sums
from nonneg.losses.penalties import Penalties

# Entries of W H in memory at a time: half a megabyte per thread, or enough work for a GPU.
BLOCK_ENTRIES = 1 << 16
ARRAY_ENTRIES = 1 << 25
# Part of the mean of the data below which second derivatives for 1 < beta < 2 are bounded.
CURVATURE_BOUND = 1e-3


@dataclass(frozen=True)
class Terms:
    """The two nonnegative parts of the gradient with respect to a factor, `power - ratio`."""

    ratio: Array  # (x v^(beta - 2)) times the other factor, nonnegative
    power: Array  # (v^(beta - 1)) times the other factor, nonnegative
    loss: float = 0.0  # the weighted divergence; 0 where it was not asked for


@dataclass(frozen=True)
class BetaLoss:
    """A beta-divergence of X from W H, both plus an offset."""

    beta: float
    lower_bound: float  # of the model where it is divided by; depends on dtype and scale of the data
    offset: float = 0.0  # added to data and model: part of the objective, not a safeguard
    # Lower bound of the model in the part of second derivatives that does not depend on x. It has a pole at
    # zero for beta between 1 and 2, where it holds for no step, and where its value would be rounding.
    curvature_bound: float = 0.0

    @classmethod
    def of(cls, data: DataMatrix, beta: float, offset: float = 0.0) -> BetaLoss:
        """Return the divergence with the lower bound that fits the data."""
        single = is_float32(data.dtype)
        eps = float(np.finfo(np.float32 if single else np.float64).eps)
        scale = data.mean()
        scale = scale if scale > 0 else 1.0
        return cls(float(beta), eps * eps * scale, offset, CURVATURE_BOUND * scale if 1 < beta < 2 else 0.0)

    @property
    def convex(self) -> bool:
        """Whether the divergence is convex in the model."""
        return 1.0 <= self.beta <= 2.0

    def model(self, W: Array, H: Array) -> Array:
        """Return W H plus the offset."""
        return W @ H + self.offset if self.offset else W @ H

    def terms_of_W(self, block: Any, W: Array, Ht: Array, *, want_loss: bool = False) -> Terms:
        """Return the terms of the gradient with respect to the rows of W."""
        if self._gram_form(block):
            loss = self._gram_loss(block, W, Ht) if want_loss else 0.0
            return Terms(block.times(Ht), W @ (Ht.T @ Ht), loss)
        if self.at_nonzeros(block):
            sums = sums_for_W(block, Ht)
            ratios = ratio_sums(block.csr, W, Ht, self.lower_bound, logs=want_loss)
            return Terms(ratios.product, sums, _from_logs(block, W, sums, ratios.logs) if want_loss else 0.0)
        xp = block.xp

        def visit(start: int, stop: int) -> tuple[Any, Any, Any]:
            x, v, mask = self._model(block, W[start:stop, :], Ht, start, stop)
            terms = beta_kernels.ratio_terms_and_losses if want_loss else beta_kernels.ratio_terms
            ratio, power, *losses = terms(x, v, self.beta, self.lower_bound, mask)
            loss = self._summed(losses[0], block, start, stop) if want_loss else 0.0
            return ratio @ Ht, None if power is None else power @ Ht, loss

        parts = over_blocks(block, visit)
        loss = sum(part[2] for part in parts)
        ratio = xp.concat([part[0] for part in parts], axis=0)
        if parts[0][1] is None:
            return Terms(ratio, xp.sum(Ht, axis=0), loss)
        return Terms(ratio, xp.concat([part[1] for part in parts], axis=0), loss)

    def terms_of_H(self, block: Any, W: Array, Ht: Array) -> Terms:
        """Return the terms of the gradient with respect to Ht, summed over the weighted rows of a block."""
        if self._gram_form(block):
            return Terms(block.transposed_times(W), Ht @ block.weighted_gram(W))
        if self.at_nonzeros(block):
            ratios = ratio_sums(block.transposed, Ht, W, self.lower_bound, weights=block.weights)
            return Terms(ratios.product, sums_for_H(block, W))
        xp = block.xp
        weighted = block.weighted(W)

        def visit(start: int, stop: int) -> tuple[Any, Any]:
            x, v, mask = self._model(block, W[start:stop, :], Ht, start, stop)
            ratio, power = beta_kernels.ratio_terms(x, v, self.beta, self.lower_bound, mask)
            rows = weighted[start:stop, :]
            return ratio.T @ rows, None if power is None else power.T @ rows

        ratio, power = over_blocks(block, visit, add=added)[0]
        return Terms(ratio, xp.sum(weighted, axis=0) if power is None else power)

    def value(self, block: Any, W: Array, Ht: Array) -> Any:
        """Return the weighted divergence over the observed entries of a block."""
        if self._gram_form(block) and block.is_sparse:
            return self._gram_loss(block, W, Ht)
        if self.at_nonzeros(block):
            ratios = ratio_sums(block.csr, W, Ht, self.lower_bound, product=False, logs=True)
            return _from_logs(block, W, sums_for_W(block, Ht), ratios.logs)
        return self.of_entries(block, W, Ht)

    def _gram_form(self, block: LocalMatrix) -> bool:
        return self.beta == 2.0 and block.observed is None and self.offset == 0.0

    def at_nonzeros(self, block: Any) -> bool:
        """Tell whether the model is needed at the nonzeros of the block only."""
        return self.beta == 1.0 and block.is_sparse and self.offset == 0.0 and not block.is_weighted

    def _gram_loss(self, block: LocalMatrix, W: Array, Ht: Array) -> Any:
        if not block.is_sparse:
            # From the entries: sums of products would cancel near an exact fit.
            return self.of_entries(block, W, Ht)
        xp = block.xp
        gram = xp.astype(block.weighted_gram(W), xp.float64) * xp.astype(Ht.T @ Ht, xp.float64)
        cross = xp.astype(block.transposed_times(W), xp.float64) * xp.astype(Ht, xp.float64)
        return max(0.0, 0.5 * block.squared_norm() - float(xp.sum(cross)) + 0.5 * float(xp.sum(gram)))

    def of_entries(self, block: LocalMatrix, W: Array, Ht: Array) -> Any:
        """Return the same as `value`, from the entries one by one, zeros of sparse data among them."""

        def visit(start: int, stop: int) -> Any:
            x, v, mask = self._model(block, W[start:stop, :], Ht, start, stop)
            losses = beta_kernels.row_losses(x, v, self.beta, self.lower_bound, mask=mask)
            return self._summed(losses, block, start, stop)

        return sum(over_blocks(block, visit))

    def _model(self, block: LocalMatrix, W: Array, Ht: Array, start: int, stop: int) -> tuple[Any, Any, Any]:
        x, v = block.dense_rows(start, stop), self.model(W, Ht.T)
        x = x + self.offset if self.offset else x
        mask = None if block.observed is None else block.observed.dense_rows(start, stop)
        if mask is not None and isinstance(x, np.ndarray):
            mask = mask.astype(x.dtype, copy=False)
        return x, v, mask

    def _summed(self, losses: Any, block: LocalMatrix, start: int, stop: int) -> Any:
        # A number where the data are: nobody waits for a GPU.
        if block.weights is not None:
            losses = losses * block.xp.astype(block.weights[start:stop], losses.dtype)
        total = block.xp.sum(losses)
        return float(total) if isinstance(total, np.generic) else total


def sums_for_W(block: Any, Ht: Array) -> Array:
    """Return the sum of the rows of Ht over the observed columns of every row."""
    return block.xp.sum(Ht, axis=0) if block.observed is None else block.observed.row_sums(Ht)


def sums_for_H(block: Any, W: Array) -> Array:
    """Return the weighted sum of the rows of W over the observed rows of every column."""
    weighted = block.weighted(W)
    return block.xp.sum(weighted, axis=0) if block.observed is None else block.observed.T.row_sums(weighted)


def column_losses(block: Any, W: Array, Ht: Array, logs: Array) -> Array:
    """Return the weighted divergence of every column, from the sums of x log(x / v) - x of the columns."""
    xp = block.xp
    sums = xp.astype(sums_for_H(block, W), xp.float64)
    return logs + xp.sum(xp.astype(Ht, xp.float64) * sums, axis=1)


def _from_logs(block: Any, W: Array, sums: Array, logs: Array) -> float:
    """Return the weighted divergence, from the sums of x log(x / v) - x of the rows."""
    xp = block.xp
    rows = logs + xp.sum(xp.astype(W, xp.float64) * xp.astype(sums, xp.float64), axis=1)
    return float(xp.sum(rows if block.weights is None else rows * xp.astype(block.weights, xp.float64)))


def added(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    """Add what two blocks returned, part by part; lists are joined."""
    return tuple(None if a is None else a + b for a, b in zip(first, second, strict=True))


def over_blocks(
    block: LocalMatrix,
    visit: Callable[[int, int], Any],
    *,
    add: Callable[[Any, Any], Any] | None = None,
    rows: int | None = None,
    operations: float = math.inf,
) -> list[Any]:
    """Call `visit(start, stop)` on ranges of rows of a local container, on the pool's threads for NumPy."""
    n_rows, n_columns = block.shape
    local = block.container in ("dense", "sparse")
    size = rows or rows_per_block(n_columns, BLOCK_ENTRIES if local else ARRAY_ENTRIES)
    if not local and n_rows:
        size = -(-n_rows // -(-n_rows // size))  # no small last block

    def work(start: int, stop: int) -> list[Any]:
        begins = range(start, max(stop, start + 1), size)
        results = (visit(begin, min(begin + size, stop)) for begin in begins)
        return list(results) if add is None else [reduce(add, results)]

    if not local:
        return work(0, n_rows)
    parts = parallel_for(work, n_rows, chunk_size=size, operations=operations)
    flat = [result for part in parts for result in part]
    return flat if add is None else [reduce(add, flat)]


def _value_pass(block: LocalMatrix, W: Array, *, Ht: Array, loss: BetaLoss, penalties: Penalties) -> float:
    return loss.value(block, W, Ht) + penalties.of_W(W, block.weights)


def objective(
    data: DataMatrix, W: SampleArray, Ht: Array, *, beta: float, penalties: Penalties | None = None
) -> float:
    """Return the weighted divergence of the data from W H, plus the penalties."""
    penalties = Penalties() if penalties is None else penalties.given_H(Ht)
    loss = BetaLoss.of(data, beta)
    value = data.reduce_rows(_value_pass, W, Ht=Ht, loss=loss, penalties=penalties)
    return float(value) + penalties.given_W(W).of_H(Ht)
