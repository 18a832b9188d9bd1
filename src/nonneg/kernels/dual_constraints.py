"""The dual constraints of a self-dictionary problem with an l1,inf penalty: product and sum in one pass.

The constraint of data point n is ``sum_l max(0, t_l - x_n'r_l) <= lam``. The scores are computed block by
block in float32 and never stored. Their error bound is added to the levels, so that no sum is too small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_numpy
from nonneg._threads import parallel_for
from nonneg._typing import Array, FloatArray
from nonneg.kernels.self_dictionary.types import near_tie

# Points and columns of a block: its scores (1 MB) stay in a core's second-level cache. On other devices a
# block is as large as 64 million scores.
ROWS, COLUMNS, ENTRIES = 256, 1024, 1 << 26
# Scores that are added in float32 on other devices.
SHORT = 128


def constraint_sums(
    tile: Callable[[int, int], Array], n_points: int, radius: float, residual: Array, levels: Array
) -> FloatArray:
    """Return sum_l max(0, t_l - x_n'r_l) for every data point n, or slightly more.

    Parameters
    ----------
    tile : callable
        ``tile(start, stop)`` returns a range of the points, dense, relative to some center.
    n_points : int
        The number of points.
    radius : float
        The largest norm of a point.
    residual : array of float64 of shape (n_columns, n_features)
        The rows r_l, on the device of the points.
    levels : array of float64 of shape (n_columns,)
        The numbers t_l, relative to the same center.

    Returns
    -------
    array of float64 of shape (n_points,)
        A NumPy array; upper bounds that differ from the sums by rounding errors of float32.

    Notes
    -----
    Costs 2 n_points n_columns n_features operations.
    """
    xp = array_namespace(residual)
    n_columns, m = residual.shape
    # One score has half the error of a difference of two.
    sizes = radius * xp.sqrt(xp.sum(residual * residual, axis=1)) + xp.abs(levels)
    raised = levels + 0.5 * near_tie(m) * sizes
    right = xp.astype(xp.concat([-residual, raised[:, None]], axis=1), xp.float32)
    host = isinstance(right, np.ndarray)
    rows = ROWS if host else max(1, min(n_points, ENTRIES // (8 * COLUMNS)))
    columns = min(n_columns, COLUMNS if host else max(1, ENTRIES // rows))
    right = right.T  # BLAS reads it as it is
    found = np.empty(n_points)

    def work(start: int, stop: int) -> None:
        for first in range(start, stop, rows):
            part = slice(first, min(first + rows, stop))
            points = xp.astype(tile(part.start, part.stop), xp.float32)
            ones = xp.ones((points.shape[0], 1), dtype=xp.float32, device=residual.device)
            found[part] = _sums(xp, xp.concat([points, ones], axis=1), right, columns)

    if host:
        parallel_for(work, n_points, chunk_size=rows, operations=2.0 * n_points * n_columns * m)
    else:
        work(0, n_points)
    # Sums in float32 lose this share at most.
    return found * (1.0 + (columns if host else SHORT) * 2.0**-24)


def _sums(xp: Any, points: Array, right: Array, columns: int) -> FloatArray:
    n_columns = right.shape[1]
    if isinstance(points, np.ndarray):
        total = np.zeros(len(points))
        room = np.empty((len(points), min(columns, n_columns)), dtype=np.float32)
        for first in range(0, n_columns, columns):
            some = right[:, first : first + columns]
            scores = np.matmul(points, some, out=room[:, : some.shape[1]])
            total += np.maximum(scores, np.float32(0.0), out=scores).sum(axis=1)
        return total
    whole = xp.zeros(points.shape[0], dtype=xp.float64, device=points.device)
    for first in range(0, n_columns, columns):
        scores = points @ right[:, first : min(first + columns, n_columns)]
        scores = scores.clamp_(min=0.0) if hasattr(scores, "clamp_") else xp.clip(scores, 0.0, None)
        # Short sums in float32 first: a conversion of all scores would take as long as the product.
        n_short = scores.shape[1] // SHORT
        short = xp.reshape(scores[:, : n_short * SHORT], (scores.shape[0], n_short, SHORT))
        whole = whole + xp.sum(xp.sum(short, axis=2), axis=1, dtype=xp.float64)
        whole = whole + xp.sum(scores[:, n_short * SHORT :], axis=1, dtype=xp.float64)
    found: FloatArray = to_numpy(whole)
    return found
