"""The rows' half of an ADMM iteration with the penalty tau sum_n max_l z_nl on nonnegative entries.

Its proximal operator cuts the entries of a row to the interval from 0 to a cap. The cap is where the sum of
what is cut off above equals tau, or 0 where the positive entries sum to less.
"""

from __future__ import annotations

import numpy as np

from nonneg._arrays import is_float_array
from nonneg._compiled import core
from nonneg._threads import team_size
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
    arrays = (offset, product, split, dual, caps)
    compiled = core() if is_float_array(product) else None
    if compiled is None or not all(array.flags.c_contiguous for array in arrays):
        return array_api.cap_rows(*arrays, relax=relax, tau=tau)
    unit = float(ROUNDINGS * np.finfo(product.dtype).eps)
    sums: tuple[float, float, float, float] = compiled.cap_rows(
        *arrays, relax, tau, unit, team_size(8.0 * product.size)
    )
    return sums
