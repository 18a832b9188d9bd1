"""The rows' half of an ADMM iteration with the penalty tau sum_n max_l z_nl on nonnegative entries.

Its proximal operator cuts the entries of a row to the interval from 0 to a cap. The cap is where the sum of
what is cut off above equals tau, or 0 where the positive entries sum to less.
"""

from __future__ import annotations

from array_api_compat import array_namespace

from nonneg._arrays import is_float_array
from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg._typing import Array

# As in the compiled loop.
MOST_STEPS = 60
# A cap has arrived where a step changes it by so many rounding errors.
ROUNDINGS = 4


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
    arrays, xp = (offset, product, split, dual, caps), array_namespace(product)
    unit = ROUNDINGS * float(xp.finfo(product.dtype).eps)
    compiled = core() if is_float_array(product) else None
    if compiled is not None and all(array.flags.c_contiguous for array in arrays):
        sums: tuple[float, float, float, float] = compiled.cap_rows(
            *arrays, relax, tau, unit, team_size(8.0 * product.size)
        )
        return sums
    product += offset
    relaxed = relax * product + (1.0 - relax) * split + dual
    # As in the compiled loop, all rows at once; a row that has arrived stays.
    for step in range(MOST_STEPS):
        above = xp.clip(relaxed - caps[:, None], 0.0, None)
        total, count = xp.sum(above, axis=1), xp.sum(xp.astype(above > 0, product.dtype), axis=1)
        lowered = xp.clip(caps + (total - tau) / xp.clip(count, 1.0, None), 0.0, None)
        lowered = xp.where(count > 0, lowered, xp.zeros_like(caps))
        arrived = (lowered == caps) | ((lowered >= caps) & (lowered - caps <= unit * caps))
        caps[...] = lowered
        # Asking the device takes as long as a step.
        if step % 2 and bool(xp.all(arrived)):
            break
    new = xp.minimum(xp.clip(relaxed, 0.0, None), caps[:, None])
    squares = [xp.sum(values * values) for values in (product - new, new - split, new, relaxed - new)]
    split[...] = new
    dual[...] = relaxed - new
    product[...] = new - dual
    primal, change, size, dual_size = (float(value) for value in xp.stack(squares))
    return primal, change, size, dual_size
