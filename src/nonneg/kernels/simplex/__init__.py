"""Least squares over the probability simplex by block principal pivoting."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import is_cpu_tensor, is_float_array, numpy_view, tensor_view
from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg._typing import FloatArray
from nonneg.kernels.simplex import array_api


def simplex_pivoting(
    gram: Any, cross: Any, *, start: Any = None, max_pivots: int | None = None
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
    if is_cpu_tensor(cross):
        guess = None if start is None else numpy_view(start)
        rows, flags = simplex_pivoting(
            numpy_view(gram), numpy_view(cross), start=guess, max_pivots=max_pivots
        )
        return tensor_view(rows), tensor_view(flags)
    max_pivots = 20 + 5 * cross.shape[1] if max_pivots is None else max_pivots
    compiled = core() if is_float_array(cross) else None
    inverse = None if compiled is None else _accurate_inverse(gram)
    if compiled is None or inverse is None:
        return array_api.simplex_pivoting(start, gram, cross, max_pivots)
    n_rows, k = cross.shape
    gram = np.ascontiguousarray(gram, dtype=np.float64)
    # The minimizers with free signs and sum 1, and their derivative by c.
    sums = inverse.sum(axis=1)
    projector = np.ascontiguousarray(inverse - np.outer(sums, sums) / sums.sum())
    full = np.ascontiguousarray(cross.astype(np.float64) @ projector + sums / sums.sum())
    rows = np.array(full if start is None else start, dtype=cross.dtype, order="C")
    unsolved = np.zeros(n_rows, dtype=bool)
    threads = team_size(float(n_rows) * k * k * k / 8)
    targets = np.ascontiguousarray(cross)
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
