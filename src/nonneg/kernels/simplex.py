"""Least squares over the probability simplex by block principal pivoting."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_float_array, serves_tensors
from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg._typing import Array, FloatArray
from nonneg.kernels.block_pivoting.array_api import PivotedRows, pivot_in_batches


@serves_tensors
def simplex_pivoting(
    gram: Any, cross: Array, *, start: Any = None, max_pivots: int | None = None
) -> tuple[Any, Any]:
    """Minimize 0.5 f G f' - c f' over every row f >= 0 with sum 1 exactly.

    Parameters
    ----------
    gram : array of shape (k, k)
        The matrix G, positive definite.
    cross : array of shape (n_rows, k)
        The rows c.
    start : array of shape (n_rows, k), optional
        Entries above zero are the first guess of the supports; by default those of the minimizers with free
        signs.
    max_pivots : int, optional
        Maximum number of exchanges; rows that need more are flagged. 20 + 5 k by default.

    Returns
    -------
    factor : array of shape (n_rows, k)
        The minimizers; flagged rows are returned unchanged.
    unsolved : array of bool of shape (n_rows,)
        True where the system was singular or the exchanges did not terminate.

    Notes
    -----
    A row and exchange cost O(s^3) with s the size of the support or the number of zeros, whichever is less:
    the equations of the zeros come from the inverse of G, which all rows share.

    References
    ----------
    .. [1] Kim & Park (2011), SIAM J. Sci. Comput. 33(6), Algorithm 1, here with one equality.
    """
    max_pivots = 20 + 5 * cross.shape[1] if max_pivots is None else max_pivots
    compiled = core() if is_float_array(cross) else None
    inverse = None if compiled is None else _accurate_inverse(gram)
    if compiled is None or inverse is None:
        return portable_simplex_pivoting(start, gram, cross, max_pivots)
    n_rows, k = cross.shape
    gram = np.ascontiguousarray(gram, dtype=np.float64)
    # The minimizers with free signs and sum 1, and their derivative by c.
    sums = inverse.sum(axis=1)
    shares = sums / sums.sum()  # products of sums vanish where entries of G are larger than 1e154
    projector = np.ascontiguousarray(inverse - np.outer(sums, shares))
    full = np.ascontiguousarray(cross.astype(np.float64) @ projector + shares)
    rows = np.array(full if start is None else start, dtype=cross.dtype, order="C")
    targets, unsolved = np.ascontiguousarray(cross), np.zeros(n_rows, dtype=bool)
    threads = team_size(float(n_rows) * k * k * k / 8)
    compiled.simplex_pivoting(rows, gram, projector, full, targets, unsolved, max_pivots, threads)
    return rows, unsolved


def _accurate_inverse(gram: FloatArray) -> FloatArray | None:
    """Return the inverse, or None where it lost more digits than a refinement restores: half of them."""
    try:
        inverse = np.linalg.inv(np.asarray(gram, dtype=np.float64))
    except np.linalg.LinAlgError:
        return None
    condition = np.linalg.norm(gram, 1) * np.linalg.norm(inverse, 1)
    return inverse if condition * np.sqrt(np.finfo(np.float64).eps) < 1 else None


# A batch holds one (k + 1) x (k + 1) matrix per row; this bounds it to some tens of megabytes, and to a few
# gigabytes on a GPU, which is slow with small batches.
BATCH_ENTRIES = 2_000_000
DEVICE_ENTRIES = 50_000_000
TOLERANCE = 1e-12


def portable_simplex_pivoting(start: Any, gram: Any, cross: Array, max_pivots: int) -> tuple[Any, Any]:
    """Minimize over each row; see `kernels.simplex.simplex_pivoting`."""
    factor = cross * 0.0 + 1.0 if start is None else start
    xp = array_namespace(factor, gram, cross)
    k = factor.shape[1]
    on_host = "cpu" in str(factor.device).lower()
    size = max(1, (BATCH_ENTRIES if on_host else DEVICE_ENTRIES) // (k + 1) ** 2)
    return pivot_in_batches(SimplexRows, xp, factor, gram, cross, max_pivots=max_pivots, size=size)


class SimplexRows(PivotedRows):
    """Rows that are solved for nonnegative weights of sum one; see `PivotedRows`."""

    def solve(self) -> tuple[Any, Any, Any]:
        """Solve for the current supports."""
        xp = self.xp
        # An empty support has no solution: all components enter.
        empty = xp.logical_not(xp.any(self.passive, axis=1))
        self.passive = xp.logical_or(self.passive, empty[:, None])
        mask = xp.astype(self.passive, xp.float64)
        n_rows, k = mask.shape
        scale = xp.maximum(xp.max(xp.abs(self.cross), axis=1), xp.max(self.diagonal))
        # The equation of the sum is of the size of the others.
        weight = xp.mean(self.diagonal)
        inner = self.gram * (mask[:, :, None] * mask[:, None, :]) + self.eye * (1.0 - mask)[:, :, None]
        edge = (weight * mask)[:, :, None]
        corner = xp.zeros((n_rows, 1, 1), dtype=xp.float64, device=mask.device)
        system = xp.concat(
            [xp.concat([inner, edge], axis=2), xp.concat([xp.matrix_transpose(edge), corner], axis=2)], axis=1
        )
        last = xp.full((n_rows, 1), 1.0, dtype=xp.float64, device=mask.device) * weight
        right = xp.concat([self.cross * mask, last], axis=1)
        solution = xp.linalg.solve(system, right[:, :, None])[:, :, 0]
        x = solution[:, :k] * mask
        level = -weight * solution[:, k]
        slope = x @ self.gram - self.cross - level[:, None]
        wrong = xp.where(self.passive, x < -TOLERANCE, slope < -TOLERANCE * scale[:, None])
        x = xp.clip(x, min=0.0)
        x = x / xp.sum(x, axis=1, keepdims=True)
        return x, xp.sum(xp.astype(wrong, xp.int64), axis=1), wrong
