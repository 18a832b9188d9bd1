"""Coordinate descent on rows, in array-API operations only; the twin of the compiled kernels."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def hals_passes(
    factor: Any, gram: Any, cross: Any, order: Any, max_passes: int, shrink: float
) -> tuple[Any, Any]:
    """Update all rows; see `kernels.hals_passes`. `gram` is (k, k), or (n_rows, k, k).

    Parameters
    ----------
    factor, gram, cross : array
        The start, the Gram matrix or matrices and the cross products.
    order : sequence of int
        The components, in the order of the updates.
    max_passes : int
        At most so many passes over the components.
    shrink : float
        A row stops when a pass changed it by less than this share of its first pass.

    Returns
    -------
    factor : array
        The updated rows.
    violation : array of shape ()
        Sum of the absolute projected slopes met in the first pass.
    """
    xp = array_namespace(factor, gram, cross)
    own = gram.ndim == 3
    factor = xp.asarray(factor, copy=True)
    zero = xp.zeros((), dtype=factor.dtype, device=factor.device)
    violation = zero
    active = None
    limit = zero
    for sweep in range(max_passes):
        change = xp.zeros_like(factor[:, 0])
        for a in order:
            a = int(a)
            if own:
                curvature = gram[:, a, a]
                slope = xp.sum(gram[:, a, :] * factor, axis=1) - cross[:, a]
            else:
                curvature = gram[a, a]
                slope = factor @ gram[:, a] - cross[:, a]
            old = factor[:, a]
            # Without curvature there is nothing to gain; `if` would make a GPU wait at every column.
            flat = curvature <= 0
            step = slope / xp.where(flat, xp.ones_like(curvature), curvature)
            new = xp.where(flat, old, xp.clip(old - step, min=0.0))
            if active is not None:
                new = xp.where(active, new, old)
            else:
                slope = xp.where(flat, xp.zeros_like(slope), slope)
                at_zero = xp.clip(slope, max=0.0)
                violation = violation + xp.sum(xp.abs(xp.where(old > 0, slope, at_zero)))
            change = change + (new - old) ** 2
            factor[:, a] = new
        if sweep == 0:
            limit = change * (shrink * shrink)
            active = change > limit
        else:
            active = xp.logical_and(active, change > limit)
        if sweep + 1 < max_passes and not bool(xp.any(active)):
            break
    return factor, violation
