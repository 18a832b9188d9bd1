"""The rows' half of an ADMM iteration with the penalty tau sum_n max_l z_nl on nonnegative entries.

Its proximal operator cuts the entries of a row to the interval from 0 to a cap. The cap is where the sum of
what is cut off above equals tau, or 0 where the positive entries sum to less.
"""

from __future__ import annotations

import numpy as np

from nonneg._threads import parallel_for
from nonneg._typing import Array
from nonneg.kernels.row_caps import array_api
from nonneg.kernels.row_caps.array_api import ROUNDINGS


def cap_rows(
    offset: Array,
    product: Array,
    split: Array,
    dual: Array,
    caps: Array,
    *,
    relax: float,
    tau: float,
) -> tuple[float, float, float, float]:
    """Update split and dual variables in place, given the first variable C = offset + product.

    Parameters
    ----------
    offset, product : array of shape (n_rows, n_columns)
        Their sum is C. `product` is overwritten with split minus dual variable.
    split, dual : array of shape (n_rows, n_columns)
        The split variable Z and the scaled dual variable U; overwritten with their next values.
    caps : array of shape (n_rows,)
        The caps of the last iteration, from which the search begins, overwritten with the new ones.
    relax : float
        Over-relaxation, between 1 and 2.
    tau : float
        Weight of the penalty, positive.

    Returns
    -------
    primal, change, size, dual_size : float
        Squared norms of C - Z, of the change of Z, of Z and of U.

    Notes
    -----
    Costs a few passes over every row: Newton's method on the piecewise linear sum, from the last cap, ends
    after a finite number of steps and mostly two or three.
    """
    from nonneg.kernels.row_caps import numba  # loaded with the first fit, not with the package

    if not numba.is_supported(product):
        return array_api.cap_rows(offset, product, split, dual, caps, relax=relax, tau=tau)
    arrays = (offset, product, split, dual, caps)
    numbers = numba.constants(product.dtype, relax, tau, ROUNDINGS * np.finfo(product.dtype).eps)

    def work(start: int, stop: int) -> tuple[float, float, float, float]:
        found: tuple[float, float, float, float] = numba.cap_rows(*arrays, numbers, start, stop)
        return found

    # Sums over fixed blocks, so that they do not depend on the number of threads.
    def blocks(start: int, stop: int) -> list[tuple[float, float, float, float]]:
        return [work(first, min(first + BLOCK, stop)) for first in range(start, stop, BLOCK)]

    parts = parallel_for(blocks, len(caps), chunk_size=BLOCK, operations=8.0 * product.size)
    sums = [sum(values) for values in zip(*(one for part in parts for one in part), strict=True)]
    return sums[0], sums[1], sums[2], sums[3]


# Rows that one call of the compiled loop takes: 16 threads still share the 100 rows of a small problem.
BLOCK = 4
