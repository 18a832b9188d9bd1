"""Block principal pivoting in array API operations, all rows at once, each with its own support.

What is solved for a support, and which components then violate a condition, is up to the subclass: here for
nonnegative weights, in `kernels.simplex` for weights that sum to one. Rows and columns of components that are
not passive are replaced by those of the identity, so that one batched solve serves all rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._typing import Array, Namespace
from nonneg.kernels.grams import Gram, gram_matrices

# All infeasible components are exchanged while that makes progress, and this often when it makes none (Kim &
# Park 2011).
PATIENCE = 3
# A batch holds one k x k matrix per row; this bounds it to some tens of megabytes.
BATCH_ENTRIES = 2_000_000
# In host memory a megabyte, of which there are a few copies, stays in the caches.
HOST_ENTRIES = 1 << 17


def block_pivoting(factor: Array, gram: Gram, cross: Array, max_pivots: int) -> tuple[Any, Any]:
    """Minimize over each row; see `kernels.block_pivoting.block_pivoting`."""
    matrices = gram_matrices(gram)
    xp = array_namespace(factor, matrices, cross)
    k = factor.shape[1]
    entries = HOST_ENTRIES if isinstance(factor, np.ndarray) else BATCH_ENTRIES
    size = max(1, entries // max(1, k * k))
    return pivot_in_batches(Rows, xp, factor, matrices, cross, max_pivots=max_pivots, size=size)


class PivotedRows(ABC):
    """The rows that are not solved yet, with their guesses of the support."""

    def __init__(self, xp: Namespace, gram: Any, cross: Array, passive: Any) -> None:
        self.xp, self.gram, self.cross = xp, gram, cross
        n_rows, k = cross.shape
        device = cross.device
        self.eye = xp.eye(k, dtype=xp.float64, device=device)
        self.diagonal = xp.sum(gram * self.eye, axis=-1)
        self.passive = xp.logical_and(passive, self.diagonal > 0)
        self.fewest = xp.full((n_rows,), k + 1, device=device)
        self.patience = xp.full((n_rows,), PATIENCE, device=device)
        self.position = xp.arange(k, device=device)

    @abstractmethod
    def solve(self) -> tuple[Any, Any, Any]:
        """Solve for the current supports."""

    def exchange(self, n_wrong: Any, wrong: Any) -> None:
        """Exchange all wrong components while that makes progress, else only the last one."""
        xp = self.xp
        better = n_wrong < self.fewest
        self.fewest = xp.where(better, n_wrong, self.fewest)
        out_of_patience = xp.logical_and(xp.logical_not(better), self.patience <= 0)
        self.patience = xp.where(better, xp.full_like(self.patience, PATIENCE), self.patience - 1)
        last = xp.max(xp.where(wrong, self.position, xp.full_like(self.position, -1)), axis=1)
        wrong = xp.where(out_of_patience[:, None], self.position == last[:, None], wrong)
        self.passive = xp.where(wrong, xp.logical_not(self.passive), self.passive)

    def keep(self, rows: Array) -> None:
        """Drop all other rows."""
        take = self.xp.take
        if self.gram.ndim == 3:
            self.gram = take(self.gram, rows, axis=0)
            self.diagonal = take(self.diagonal, rows, axis=0)
        self.cross, self.passive = take(self.cross, rows, axis=0), take(self.passive, rows, axis=0)
        self.fewest, self.patience = take(self.fewest, rows), take(self.patience, rows)


def pivot_in_batches(
    kind: type[PivotedRows], xp: Any, factor: Array, gram: Any, cross: Array, *, max_pivots: int, size: int
) -> tuple[Any, Any]:
    """Solve all rows, `size` at a time."""
    parts, flags = [], []
    for start in range(0, max(factor.shape[0], 1), size):
        rows = slice(start, min(factor.shape[0], start + size))
        own = gram[rows, :, :] if gram.ndim == 3 else gram
        part, flag = _pivot(kind, xp, factor[rows, :], own, cross[rows, :], max_pivots)
        parts.append(part)
        flags.append(flag)
    return xp.concat(parts, axis=0), xp.concat(flags, axis=0)


def _pivot(
    kind: type[PivotedRows], xp: Namespace, factor: Array, gram: Any, cross: Array, max_pivots: int
) -> tuple[Any, Any]:
    dtype, wide = factor.dtype, xp.float64
    solution, gram, cross = xp.astype(factor, wide), xp.astype(gram, wide), xp.astype(cross, wide)
    todo = kind(xp, gram, cross, solution > 0)
    unsolved = xp.ones(factor.shape[0], dtype=xp.bool, device=factor.device)
    for _ in range(max_pivots):
        x, n_wrong, wrong = todo.solve()
        right = n_wrong == 0
        # Each unsolved row of the whole takes the next one of the batch.
        turn = xp.clip(xp.cumulative_sum(xp.astype(unsolved, xp.int64)) - 1, min=0)
        fresh = xp.logical_and(unsolved, xp.take(right, turn))
        solution = xp.where(fresh[:, None], xp.take(x, turn, axis=0), solution)
        unsolved = xp.logical_and(unsolved, xp.logical_not(fresh))
        if not bool(xp.any(unsolved)):
            break
        todo.exchange(n_wrong, wrong)
        todo.keep(xp.nonzero(xp.logical_not(right))[0])
    return xp.astype(solution, dtype), unsolved


class Rows(PivotedRows):
    """Rows that are solved for nonnegative weights; see `PivotedRows`."""

    def solve(self) -> tuple[Any, Any, Any]:
        """Solve for the current supports."""
        xp = self.xp
        mask = xp.astype(self.passive, xp.float64)
        tolerance = 1e-14 * xp.max(xp.abs(self.cross), axis=1, keepdims=True)
        # Turns an exactly singular system into a large but finite answer, which pivoting then refuses. A
        # share of each component's own curvature, so that components of small scale are not drowned, and
        # some times the rounding of k eliminations, which could cancel it.
        ridge = 1e-15 * (4 + mask.shape[1]) * self.diagonal[..., None] * self.eye
        system = (
            self.gram * (mask[:, :, None] * mask[:, None, :]) + self.eye * (1.0 - mask)[:, :, None] + ridge
        )
        x = xp.linalg.solve(system, (self.cross * mask)[:, :, None])[:, :, 0] * mask
        # A second solve removes the ridge from a regular system's answer.
        x = x - xp.linalg.solve(system, (self._slope(x) * mask)[:, :, None])[:, :, 0] * mask
        slope = self._slope(x)
        bad_slope = xp.logical_and(slope < -tolerance, self.diagonal > 0)
        wrong = xp.where(self.passive, x < 0, bad_slope)
        return x, xp.sum(xp.astype(wrong, xp.int64), axis=1), wrong

    def _slope(self, x: Array) -> Any:
        if self.gram.ndim == 2:
            return x @ self.gram - self.cross
        return (self.gram @ x[:, :, None])[:, :, 0] - self.cross
