"""Exact nonnegative least squares by block principal pivoting, all rows at once.

Every row has its own set of passive components. Rows and columns of the others are replaced by those
of the identity, so that one batched solve serves all rows.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from nonneg.kernels.block_pivoting.exchanges import PivotedRows, pivot_in_batches
from nonneg.kernels.grams import Gram, gram_matrices

# A batch holds one k x k matrix per row; this bounds it to some tens of megabytes.
BATCH_ENTRIES = 2_000_000


def block_pivoting(factor: Any, gram: Gram, cross: Any, max_pivots: int) -> tuple[Any, Any]:
    """Minimize over each row; see `kernels.block_pivoting.block_pivoting`."""
    matrices = gram_matrices(gram)
    xp = array_namespace(factor, matrices, cross)
    k = factor.shape[1]
    size = max(1, BATCH_ENTRIES // max(1, k * k))
    return pivot_in_batches(Rows, xp, factor, matrices, cross, max_pivots=max_pivots, size=size)


class Rows(PivotedRows):
    """Rows that are solved for nonnegative weights; see `PivotedRows`."""

    def __init__(self, xp: Any, gram: Any, cross: Any, passive: Any) -> None:
        super().__init__(xp, gram, cross, passive)
        self.passive = xp.logical_and(passive, self.diagonal > 0)

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
        if self.gram.ndim == 2:
            slope = x @ self.gram - self.cross
        else:
            slope = (self.gram @ x[:, :, None])[:, :, 0] - self.cross
        bad_slope = xp.logical_and(slope < -tolerance, self.diagonal > 0)
        wrong = xp.where(self.passive, x < 0, bad_slope)
        return x, xp.sum(xp.astype(wrong, xp.int64), axis=1), wrong
