"""Rows b of least l1 norm with b A = e_i by the simplex method: the twin of the compiled kernel in NumPy."""

from __future__ import annotations

import numpy as np

from nonneg._typing import FloatArray, IntArray


def l1_rows(
    A: FloatArray,
    targets: FloatArray,
    supports: IntArray,
    out: FloatArray,
    dual: FloatArray,
    steps: IntArray,
    tol: float,
    max_steps: int,
    start: int,
    stop: int,
) -> None:
    """Solve the problems `start` to `stop`, in place; see `kernels.l1_simplex`."""
    for i in range(start, stop):
        support = supports[i]
        inverse = np.linalg.inv(A[support])
        signs = np.where(targets[i] @ inverse >= 0, 1.0, -1.0)
        steps[i] = -1
        for step in range(max_steps):
            sizes = np.abs(A @ (inverse @ signs))
            sizes[support] = 0.0
            entering = int(np.argmax(sizes))
            if sizes[entering] <= 1.0 + tol:
                steps[i] = step
                break
            side = 1.0 if A[entering] @ (inverse @ signs) > 0 else -1.0
            rates = side * (A[entering] @ inverse)
            place = _leaving(targets[i] @ inverse, rates, signs, 1.0 - sizes[entering])
            if place < 0:
                break
            signs[place] = side
            support[place] = entering
            inverse = np.linalg.inv(A[support])
        out[i] = 0.0
        out[i, support] = inverse[i]
        dual[i] = inverse @ signs


def _leaving(values: FloatArray, rates: FloatArray, signs: FloatArray, slope: float) -> int:
    # The entries that fall towards zero, in the order in which they reach it; equal ones by falling rate.
    falling = np.flatnonzero(signs * rates > 1e-11)
    lengths = np.maximum(values[falling] / rates[falling], 0.0)
    for place in falling[np.lexsort((-np.abs(rates[falling]), lengths))]:
        slope += 2.0 * abs(rates[place])
        signs[place] = -signs[place]
        if slope >= 0:
            return int(place)
    return -1
