"""Exact least squares over the probability simplex, all rows at once.

Rows and columns of the components outside a row's support are replaced by those of the identity, and the
sum is one more equation, so that one batched solve serves all rows.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from nonneg.kernels.block_pivoting.exchanges import PivotedRows, pivot_in_batches

# A batch holds one (k + 1) x (k + 1) matrix per row; this bounds it to some tens of megabytes, and to a few
# gigabytes on a GPU, which is slow with small batches.
BATCH_ENTRIES = 2_000_000
DEVICE_ENTRIES = 50_000_000
TOLERANCE = 1e-12


def simplex_pivoting(start: Any, gram: Any, cross: Any, max_pivots: int) -> tuple[Any, Any]:
    """Minimize over each row; see `kernels.simplex.simplex_pivoting`."""
    factor = cross * 0.0 + 1.0 if start is None else start
    xp = array_namespace(factor, gram, cross)
    k = factor.shape[1]
    on_host = "cpu" in str(factor.device).lower()
    size = max(1, (BATCH_ENTRIES if on_host else DEVICE_ENTRIES) // (k + 1) ** 2)
    return pivot_in_batches(SimplexRows, xp, factor, gram, cross, max_pivots=max_pivots, size=size)


class SimplexRows(PivotedRows):
    """Rows that are solved for nonnegative weights of sum one; see `PivotedRows`."""

    def __init__(self, xp: Any, gram: Any, cross: Any, passive: Any) -> None:
        super().__init__(xp, gram, cross, passive)
        self.scale = xp.maximum(xp.max(xp.abs(cross), axis=1), xp.max(self.diagonal))
        # The equation of the sum is of the size of the others.
        self.weight = xp.mean(self.diagonal)

    def solve(self) -> tuple[Any, Any, Any]:
        """Solve for the current supports."""
        xp = self.xp
        # An empty support has no solution: all components enter.
        empty = xp.logical_not(xp.any(self.passive, axis=1))
        self.passive = xp.logical_or(self.passive, empty[:, None])
        mask = xp.astype(self.passive, xp.float64)
        n_rows, k = mask.shape
        inner = self.gram * (mask[:, :, None] * mask[:, None, :]) + self.eye * (1.0 - mask)[:, :, None]
        edge = (self.weight * mask)[:, :, None]
        corner = xp.zeros((n_rows, 1, 1), dtype=xp.float64, device=mask.device)
        system = xp.concat(
            [xp.concat([inner, edge], axis=2), xp.concat([xp.matrix_transpose(edge), corner], axis=2)], axis=1
        )
        last = xp.full((n_rows, 1), 1.0, dtype=xp.float64, device=mask.device) * self.weight
        right = xp.concat([self.cross * mask, last], axis=1)
        answer = xp.linalg.solve(system, right[:, :, None])[:, :, 0]
        x = answer[:, :k] * mask
        level = -self.weight * answer[:, k]
        slope = x @ self.gram - self.cross - level[:, None]
        wrong = xp.where(self.passive, x < -TOLERANCE, slope < -TOLERANCE * self.scale[:, None])
        x = xp.clip(x, min=0.0)
        x = x / xp.sum(x, axis=1, keepdims=True)
        return x, xp.sum(xp.astype(wrong, xp.int64), axis=1), wrong

    def keep(self, rows: Any) -> None:
        """Drop all other rows."""
        super().keep(rows)
        self.scale = self.xp.take(self.scale, rows)
