"""Exact least squares over the probability simplex, all rows at once: the twin of the compiled kernel.

Rows and columns of the components outside a row's support are replaced by those of the identity, and the
sum is one more equation, so that one batched solve serves all rows.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

# A batch holds one (k + 1) x (k + 1) matrix a row; this bounds it to some tens of megabytes, and to a few
# gigabytes on a GPU, which is slow with small batches.
BATCH_ENTRIES = 2_000_000
DEVICE_ENTRIES = 50_000_000
TOLERANCE = 1e-12


def simplex_pivoting(factor: Any, gram: Any, cross: Any, max_pivots: int) -> tuple[Any, Any]:
    """Minimise over each row; see `kernels.simplex.simplex_pivoting`.

    Parameters
    ----------
    factor, gram, cross : array
        The start (its positive entries are the first guess), the Gram matrix, the cross products.
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
    on_host = "cpu" in str(factor.device).lower()
    size = max(1, (BATCH_ENTRIES if on_host else DEVICE_ENTRIES) // (k + 1) ** 2)
    parts, flags = [], []
    for start in range(0, n_rows, size):
        rows = slice(start, min(n_rows, start + size))
        part, flag = _pivot(xp, factor[rows, :], gram, cross[rows, :], max_pivots)
        parts.append(part)
        flags.append(flag)
    return xp.concat(parts, axis=0), xp.concat(flags, axis=0)


def _pivot(xp: Any, factor: Any, gram: Any, cross: Any, max_pivots: int) -> tuple[Any, Any]:
    dtype, wide = factor.dtype, xp.float64
    n_rows = factor.shape[0]
    solution, gram, cross = xp.astype(factor, wide), xp.astype(gram, wide), xp.astype(cross, wide)
    todo = SimplexRows(xp, gram, cross, solution > 0)
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


class SimplexRows:
    """The rows that are not solved yet, with their guesses of the support.

    Parameters
    ----------
    xp : namespace
        Of the arrays.
    gram : array of shape (k, k)
        The system, float64.
    cross : array of shape (n_rows, k)
        The right-hand sides.
    passive : bool array of shape (n_rows, k)
        The first guess of the supports.
    """

    def __init__(self, xp: Any, gram: Any, cross: Any, passive: Any) -> None:
        self.xp, self.gram, self.cross, self.passive = xp, gram, cross, passive
        n_rows, k = cross.shape
        device = cross.device
        self.eye = xp.eye(k, dtype=xp.float64, device=device)
        self.fewest = xp.full((n_rows,), k + 1, device=device)
        self.patience = xp.full((n_rows,), 3, device=device)
        self.position = xp.arange(k, device=device)
        diagonal = xp.sum(gram * self.eye, axis=-1)
        self.scale = xp.maximum(xp.max(xp.abs(cross), axis=1), xp.max(diagonal))
        # The equation of the sum is of the size of the others.
        self.weight = xp.mean(diagonal)

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
        wrong = xp.where(out_of_patience[:, None], self.position == last[:, None], wrong)
        self.passive = xp.where(wrong, xp.logical_not(self.passive), self.passive)

    def keep(self, rows: Any) -> None:
        """Drop all other rows.

        Parameters
        ----------
        rows : array of int
            The rows that stay.
        """
        take = self.xp.take
        self.cross, self.passive = take(self.cross, rows, axis=0), take(self.passive, rows, axis=0)
        self.fewest, self.patience = take(self.fewest, rows), take(self.patience, rows)
        self.scale = take(self.scale, rows)
