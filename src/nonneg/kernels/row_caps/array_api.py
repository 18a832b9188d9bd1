"""Caps of rows, for arrays of any namespace (portable)."""

from __future__ import annotations

from array_api_compat import array_namespace

from nonneg._typing import Array

# As in the compiled loop.
MOST_STEPS = 60
# A cap has arrived where a step changes it by so many rounding errors.
ROUNDINGS = 4


def cap_rows(
    offset: Array, product: Array, split: Array, dual: Array, caps: Array, *, relax: float, tau: float
) -> tuple[float, float, float, float]:
    """Update split and dual variables; see `kernels.row_caps.cap_rows`."""
    xp = array_namespace(product)
    product += offset
    relaxed = relax * product + (1.0 - relax) * split + dual
    caps[...] = _caps(relaxed, caps, tau)
    new = xp.minimum(xp.clip(relaxed, 0.0, None), caps[:, None])
    sums = xp.stack([_square(xp, product - new), _square(xp, new - split), _square(xp, new)])
    split[...] = new
    dual[...] = relaxed - new
    product[...] = new - dual
    primal, change, size = (float(value) for value in sums)
    return primal, change, size, float(_square(xp, dual))


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


def _square(xp: object, values: Array) -> Array:
    return xp.sum(values * values)  # type: ignore[attr-defined]
