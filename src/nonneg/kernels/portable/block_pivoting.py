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
    dtype = factor.dtype
    n_rows, k = factor.shape
    wide = xp.float64
    factor, gram, cross = xp.astype(factor, wide), xp.astype(gram, wide), xp.astype(cross, wide)
    eye = xp.eye(k, dtype=wide, device=factor.device)
    if gram.ndim == 2:
        gram = xp.broadcast_to(gram, (n_rows, k, k))
    diagonal = xp.sum(gram * eye, axis=2)
    tolerance = 1e-14 * xp.max(xp.abs(cross), axis=1, keepdims=True)
    # Turns an exactly singular system into a large but finite answer, which pivoting then refuses. A share
    # of each component's own curvature, so that components of small scale are not drowned.
    ridge = 1e-15 * diagonal[:, :, None] * eye
    passive = xp.logical_and(factor > 0, diagonal > 0)
    solved = xp.zeros(n_rows, dtype=xp.bool, device=factor.device)
    fewest = xp.full((n_rows,), k + 1, device=factor.device)
    patience = xp.full((n_rows,), 3, device=factor.device)
    position = xp.arange(k, device=factor.device)
    solution = factor
    for _ in range(max_pivots):
        mask = xp.astype(passive, wide)
        system = gram * mask[:, :, None] * mask[:, None, :] + eye * (1.0 - mask)[:, :, None] + ridge
        x = xp.linalg.solve(system, (cross * mask)[:, :, None])[:, :, 0] * mask
        slope = xp.sum(gram * x[:, None, :], axis=2) - cross
        bad_slope = xp.logical_and(slope < -tolerance, diagonal > 0)
        wrong = xp.where(passive, x < 0, bad_slope)
        n_wrong = xp.sum(xp.astype(wrong, xp.int64), axis=1)
        fresh = xp.logical_and(n_wrong == 0, xp.logical_not(solved))
        solution = xp.where(fresh[:, None], x, solution)
        solved = xp.logical_or(solved, n_wrong == 0)
        if bool(xp.all(solved)):
            break
        # Exchange all wrong components while that makes progress, else only the last one.
        better = n_wrong < fewest
        fewest = xp.where(better, n_wrong, fewest)
        out_of_patience = xp.logical_and(xp.logical_not(better), patience <= 0)
        patience = xp.where(better, xp.full_like(patience, 3), patience - 1)
        last = xp.max(xp.where(wrong, position, xp.full_like(position, -1)), axis=1)
        only_last = position == last[:, None]
        wrong = xp.where(out_of_patience[:, None], only_last, wrong)
        passive = xp.where(solved[:, None], passive, xp.where(wrong, xp.logical_not(passive), passive))
    return xp.astype(solution, dtype), xp.logical_not(solved)
