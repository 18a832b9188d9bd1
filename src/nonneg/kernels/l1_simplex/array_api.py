"""The simplex method for rows of minimum l1 norm, in NumPy."""

from __future__ import annotations

import numpy as np

from nonneg._typing import FloatArray, IntArray


def l1_rows(
    A: FloatArray,
    targets: FloatArray,
    bases: IntArray,
    out: FloatArray,
    dual: FloatArray,
    n_pivots: IntArray,
    tol: float,
    max_pivots: int,
    start: int,
    stop: int,
) -> None:
    """Solve problems `start` to `stop`, in place; see `kernels.l1_simplex.minimum_l1_rows`."""
    for i in range(start, stop):
        basis = bases[i]
        inverse = np.linalg.inv(A[basis])
        signs = np.where(targets[i] @ inverse >= 0, 1.0, -1.0)
        n_pivots[i] = -1
        for pivot in range(max_pivots):
            sizes = np.abs(A @ (inverse @ signs))
            sizes[basis] = 0.0
            entering = int(np.argmax(sizes))
            if sizes[entering] <= 1.0 + tol:
                n_pivots[i] = pivot
                break
            side = 1.0 if A[entering] @ (inverse @ signs) > 0 else -1.0
            rates = side * (A[entering] @ inverse)
            place = _leaving(targets[i] @ inverse, rates, signs, 1.0 - sizes[entering])
            if place < 0:
                break
            signs[place] = side
            basis[place] = entering
            inverse = np.linalg.inv(A[basis])
        out[i] = 0.0
        out[i, basis] = inverse[i]
        dual[i] = inverse @ signs


def _leaving(values: FloatArray, rates: FloatArray, signs: FloatArray, slope: float) -> int:
    # The entries that shrink to zero, in the order in which they reach it; ties by decreasing rate.
    falling = np.flatnonzero(signs * rates > 1e-11)
    lengths = np.maximum(values[falling] / rates[falling], 0.0)
    for place in falling[np.lexsort((-np.abs(rates[falling]), lengths))]:
        slope += 2.0 * abs(rates[place])
        signs[place] = -signs[place]
        if slope >= 0:
            return int(place)
    return -1
