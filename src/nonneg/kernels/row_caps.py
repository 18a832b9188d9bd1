"""The rows' half of an ADMM iteration with the penalty tau sum_n max_l z_nl on nonnegative entries.

Its proximal operator cuts the entries of a row to the interval from 0 to a cap. The cap is where the sum of
what is cut off above equals tau, or 0 where the positive entries sum to less.
"""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_float_array
from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg._typing import Array


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
        return portable_cap_rows(*arrays, relax=relax, tau=tau)
    unit = float(ROUNDINGS * np.finfo(product.dtype).eps)
    sums: tuple[float, float, float, float] = compiled.cap_rows(
        *arrays, relax, tau, unit, team_size(8.0 * product.size)
    )
    return sums


# As in the compiled loop.
MOST_STEPS = 60
# A cap has arrived where a step changes it by so many rounding errors.
ROUNDINGS = 4


def portable_cap_rows(
    offset: Array, product: Array, split: Array, dual: Array, caps: Array, *, relax: float, tau: float
) -> tuple[float, float, float, float]:
    """Update split and dual variables; see `kernels.row_caps.cap_rows`."""
    xp = array_namespace(product)
    product += offset
    relaxed = relax * product + (1.0 - relax) * split + dual
    caps[...] = _caps(relaxed, caps, tau)
    new = xp.minimum(xp.clip(relaxed, 0.0, None), caps[:, None])
    squares = [xp.sum(values * values) for values in (product - new, new - split, new, relaxed - new)]
    split[...] = new
    dual[...] = relaxed - new
    product[...] = new - dual
    primal, change, size, dual_size = (float(value) for value in xp.stack(squares))
    return primal, change, size, dual_size


def _caps(rows: Array, caps: Array, tau: float) -> Array:
    # As in the compiled loop, all rows at once; a row that has arrived stays.
    xp = array_namespace(rows)
    unit = ROUNDINGS * float(xp.finfo(rows.dtype).eps)
    for step in range(MOST_STEPS):
        above = xp.clip(rows - caps[:, None], 0.0, None)
        total, count = xp.sum(above, axis=1), xp.sum(xp.astype(above > 0, rows.dtype), axis=1)
        new = xp.clip(caps + (total - tau) / xp.clip(count, 1.0, None), 0.0, None)
        new = xp.where(count > 0, new, xp.zeros_like(caps))
        arrived = (new == caps) | ((new >= caps) & (new - caps <= unit * caps))
        caps = new
        # Asking the device takes as long as a step.
        if step % 2 and bool(xp.all(arrived)):
            break
    return caps
