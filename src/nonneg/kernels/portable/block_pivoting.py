"""Exact nonnegative least squares by block principal pivoting, all rows at once.

Every row has its own set of passive components. Rows and columns of the others are replaced by those
of the identity, so that one batched solve serves all rows; the twin of the compiled kernel.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

# A batch holds one k x k matrix a row; this bounds it to some tens of megabytes.
BATCH_ENTRIES = 2_000_000


def block_pivoting(factor: Any, gram: Any, cross: Any, max_pivots: int) -> tuple[Any, Any]:
    """Minimise over each row; see `kernels.block_pivoting`. `gram` is (k, k), or (n_rows, k, k).

    Parameters
    ----------
    factor, gram, cross : array
        The start (its positive entries are the first guess), the Gram matrices, the cross products.
    max_pivots : int
        Rows that need more exchanges are flagged.

    Returns
    -------
    factor : array
        The minimisers; flagged rows are as they came.
    unsolved : array of bool
        The flags.
    """
    xp = array_namespace(factor, gram, cross)
    n_rows, k = factor.shape
    size = max(1, BATCH_ENTRIES // max(1, k * k))
    parts, flags = [], []
    for start in range(0, max(n_rows, 1), size):
        rows = slice(start, min(n_rows, start + size))
        own = gram[rows, :, :] if gram.ndim == 3 else gram
        part, flag = _pivot(xp, factor[rows, :], own, cross[rows, :], max_pivots)
        parts.append(part)
        flags.append(flag)
    return xp.concat(parts, axis=0), xp.concat(flags, axis=0)


def _pivot(xp: Any, factor: Any, gram: Any, cross: Any, max_pivots: int) -> tuple[Any, Any]:
    dtype, wide = factor.dtype, xp.float64
    n_rows = factor.shape[0]
    solution, gram, cross = xp.astype(factor, wide), xp.astype(gram, wide), xp.astype(cross, wide)
    todo = Rows(xp, gram, cross, solution > 0)
    unsolved = xp.ones(n_rows, dtype=xp.bool, device=factor.device)
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


class Rows:
    """The rows that are not solved yet, with their guesses of the support.

    Parameters
    ----------
    xp : namespace
        Of the arrays.
    gram : array of shape (k, k) or (n_rows, k, k)
        The systems, float64.
    cross : array of shape (n_rows, k)
        The right-hand sides.
    passive : bool array of shape (n_rows, k)
        The first guess of the supports.
    """

    def __init__(self, xp: Any, gram: Any, cross: Any, passive: Any) -> None:
        self.xp, self.gram, self.cross = xp, gram, cross
        n_rows, k = cross.shape
        device = cross.device
        self.eye = xp.eye(k, dtype=xp.float64, device=device)
        self.diagonal = xp.sum(gram * self.eye, axis=-1)
        self.passive = xp.logical_and(passive, self.diagonal > 0)
        self.fewest = xp.full((n_rows,), k + 1, device=device)
        self.patience = xp.full((n_rows,), 3, device=device)
        self.position = xp.arange(k, device=device)

    def solve(self) -> tuple[Any, Any, Any]:
        """Solve for the present supports.

        Returns
        -------
        x : array of shape (n_rows, k)
            The solutions.
        n_wrong : array of int of shape (n_rows,)
            How many components violate a condition.
        wrong : bool array of shape (n_rows, k)
            Which.
        """
        xp = self.xp
        mask = xp.astype(self.passive, xp.float64)
        tolerance = 1e-14 * xp.max(xp.abs(self.cross), axis=1, keepdims=True)
        # Turns an exactly singular system into a large but finite answer, which pivoting then refuses. A
        # share of each component's own curvature, so that components of small scale are not drowned.
        ridge = 1e-15 * self.diagonal[..., None] * self.eye
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

    def exchange(self, n_wrong: Any, wrong: Any) -> None:
        """Exchange all wrong components while that makes progress, else only the last one.

        Parameters
        ----------
        n_wrong, wrong : array
            From `solve`.
        """
        xp = self.xp
        better = n_wrong < self.fewest
        self.fewest = xp.where(better, n_wrong, self.fewest)
        out_of_patience = xp.logical_and(xp.logical_not(better), self.patience <= 0)
        self.patience = xp.where(better, xp.full_like(self.patience, 3), self.patience - 1)
        last = xp.max(xp.where(wrong, self.position, xp.full_like(self.position, -1)), axis=1)
        only_last = self.position == last[:, None]
        wrong = xp.where(out_of_patience[:, None], only_last, wrong)
        self.passive = xp.where(wrong, xp.logical_not(self.passive), self.passive)

    def keep(self, rows: Any) -> None:
        """Drop all other rows.

        Parameters
        ----------
        rows : array of int
            The rows that stay.
        """
        take = self.xp.take
        if self.gram.ndim == 3:
            self.gram = take(self.gram, rows, axis=0)
            self.diagonal = take(self.diagonal, rows, axis=0)
        self.cross, self.passive = take(self.cross, rows, axis=0), take(self.passive, rows, axis=0)
        self.fewest, self.patience = take(self.fewest, rows), take(self.patience, rows)
