"""Newton steps for the Kullback-Leibler divergence on small dense tables: one call per pass over the data.

The steps are those of `solvers.newton_pass`, to rounding. On a table of 500 x 96 counts most of its time goes
into calls from Python and arrays that leave the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.kernels.newton_targets.array_api import LEAST_DIAGONAL

# Entries of the data, and of H, up to which a pass is done here. A pass of `solvers.newton_pass` over so many
# entries is one thread's work, too; H and the sums for it stay in a core's cache.
ENTRIES, ENTRIES_OF_H = 1 << 16, 1 << 12


def is_supported(data: Any, k: int) -> bool:
    """Tell whether the data are a small NumPy array without missing entries."""
    return (
        data.container == "dense"
        and data.observed is None
        and data.shape[0] * data.shape[1] <= ENTRIES
        and data.shape[1] * k <= ENTRIES_OF_H
    )


def kl_newton_pass(
    data: Any,
    W: Any,
    before: Any,
    momentum: float,
    Ht: Any,
    means: Any,
    *,
    l1: float,
    l2: float,
    lower_bound: float,
    unit: float,
    damping: float,
    fraction: float,
    shortest: float,
    tries: int,
) -> tuple[Any, tuple[Any, ...]]:
    """Move the rows of W by one guarded Newton step each; return them and sums over them.

    Parameters
    ----------
    data : DenseMatrix
        The data, for which `is_supported` holds.
    W, before : array of shape (n_rows, k)
        The rows, and those of an iteration earlier.
    momentum : float
        Rows start at W + momentum (W - before).
    Ht : array of shape (n_columns, k)
        The other factor.
    means : array of shape (n_columns,)
        Means of the model, up to a factor: what the rows' Hessians share.
    l1, l2 : float
        Penalties of W.
    lower_bound, unit : float
        Lower bound of the model where it is divided by; about the sum of a row of the data.
    damping : float
        `DAMPING` of `solvers.row_newton`.
    fraction : float
        Rows start at least at this fraction of W.
    shortest, tries : float, int
        `SHORTEST_STEP` and `TRIES` of `kernels.beta_products`.

    Returns
    -------
    W : array of shape (n_rows, k)
        The rows.
    sums : tuple
        What `solvers.newton_pass.newton_pass` sums, without the penalty.
    """
    from nonneg.kernels.hals.native import row_updates  # loaded with the first fit
    from nonneg.kernels.kl_newton.numba import pass_over_rows

    n_rows, n = data.shape
    k = Ht.shape[1]
    dtype = Ht.dtype
    info = np.finfo(dtype)
    weights = np.ones(n_rows, dtype) if data.weights is None else data.weights
    numbers = np.array(
        [
            l1,
            l2,
            lower_bound,
            info.smallest_normal * LEAST_DIAGONAL,
            info.smallest_normal,
            float(info.max) ** 0.25,
            unit,
        ],
        dtype,
    )
    new = np.empty((n_rows, k), dtype)
    losses = np.zeros((2, n))
    sums, curvatures = np.zeros((k, n), dtype), np.zeros((k + 1, n), dtype)
    gram, total = np.empty((k, k), dtype), np.zeros(k)
    pass_over_rows(
        row_updates(dtype).address, np.ascontiguousarray(data.array), np.ascontiguousarray(weights, dtype),
        np.ascontiguousarray(W), np.ascontiguousarray(before), float(momentum), fraction,
        np.ascontiguousarray(Ht), np.ascontiguousarray(means), damping, numbers, shortest, tries,
        np.arange(k), new, losses[0], losses[1], sums, curvatures, gram, total,
    )  # fmt: skip
    at_start = 0.0 if momentum else losses[0]
    return new, (at_start, losses[1], sums.T, curvatures.T, gram, total.astype(dtype))


def kl_newton_direction(
    Ht: Any,
    gradient: Any,
    diagonal: Any,
    gram: Any,
    means: Any,
    *,
    order: Any,
    l1: float,
    l2: float,
    damping: float,
) -> tuple[Any, Any]:
    """Return the Newton steps of the columns of H, and the derivatives of their losses along them.

    Parameters
    ----------
    Ht : array of shape (n_columns, k)
        The present factor.
    gradient, diagonal, gram : array
        Sums of a pass.
    means : array of shape (k,)
        Means of the columns of W, whose squares damp the diagonals.
    order : array of int or None
        The components that may change; all by default.
    l1, l2 : float
        Penalties of H.
    damping : float
        `DAMPING` of `solvers.row_newton`.

    Returns
    -------
    direction : array of shape (n_columns, k)
        The steps; zero for columns whose model misleads.
    slopes : array of shape (n_columns,)
        The derivatives in float64, at most zero.
    """
    from nonneg.kernels.hals.native import row_updates
    from nonneg.kernels.kl_newton.numba import direct

    kind = Ht.dtype.type
    Ht = np.ascontiguousarray(Ht)
    turns = np.arange(Ht.shape[1]) if order is None else np.asarray(order, dtype=np.int64)
    direction, slopes = np.empty_like(Ht), np.empty(len(Ht))
    least = kind(np.finfo(Ht.dtype).smallest_normal * LEAST_DIAGONAL)
    arrays = (np.ascontiguousarray(each) for each in (gradient, diagonal, gram, means))
    update = row_updates(Ht.dtype).address
    direct(update, Ht, *arrays, kind(damping), turns, kind(l1), kind(l2), least, direction, slopes)
    return direction, slopes
