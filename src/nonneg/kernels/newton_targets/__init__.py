"""Newton steps of rows whose Hessians share their correlations."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import is_float_array
from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg.kernels.newton_targets import array_api


def newton_targets(
    factor: Any, gradient: Any, diagonal: Any, correlations: Any, order: Any, l1: float, l2: float
) -> tuple[Any, Any, Any, Any, Any]:
    """Return the steps to the minimizers of the quadratic models of all rows, and what a line search needs.

    Parameters
    ----------
    factor : array of shape (n_rows, k)
        The rows, nonnegative; not modified.
    gradient, diagonal : array of shape (n_rows, k)
        Gradients, and diagonals of the Hessians, penalties included.
    correlations : array of shape (k, k)
        The Hessians scaled to a unit diagonal: the same for all rows.
    order : array of int or None
        The components that may change; all by default.
    l1, l2 : float
        The penalties.

    Returns
    -------
    direction : array of shape (n_rows, k)
        The steps. They come from a few coordinate passes and make no entry negative; an entry that is not
        small in its row loses at most four fifths.
    residuals : array of shape (n_rows,)
        Norms of the projected gradients relative to the rows, in the metric of the diagonal.
    linear, quadratic, slopes : array of shape (n_rows,)
        The penalty along the step is ``linear t + quadratic t^2 / 2``; derivatives of the whole at 0.
    """
    compiled = core() if is_float_array(factor) else None
    if compiled is not None:
        n_rows, k = factor.shape
        arrays = (
            np.ascontiguousarray(a, dtype=factor.dtype) for a in (factor, gradient, diagonal, correlations)
        )
        turns = np.arange(k) if order is None else np.asarray(order, dtype=np.int64)
        direction, notes = np.empty((n_rows, k), factor.dtype), np.empty((4, n_rows), factor.dtype)
        least = float(np.finfo(factor.dtype).smallest_normal) * array_api.LEAST_DIAGONAL
        threads = team_size(8.0 * n_rows * k * k)
        compiled.newton_targets(*arrays, turns, l1, l2, least, direction, notes, threads)
        return direction, *notes
    return array_api.newton_targets(factor, gradient, diagonal, correlations, order, l1, l2)
