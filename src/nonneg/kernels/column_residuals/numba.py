"""Residuals of a self-dictionary problem (compiled)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg.kernels.jit import jit


def is_supported(points: Any) -> bool:
    """Tell whether the compiled kernels accept an array."""
    return isinstance(points, np.ndarray) or sp.issparse(points)


@jit(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def column_products(own, source, places, residual, fit, square, start, stop):
    """Write r'(r + x - a) and r'r of columns start to stop, with x the point and a the vertex."""
    m = residual.shape[1]
    for c in range(start, stop):
        atom = source[places[c]]
        total, norm = 0.0, 0.0
        for k in range(m):
            r = residual[c, k]
            total += r * (r + (np.float64(own[c, k]) - np.float64(atom[k])))
            norm += r * r
        fit[c], square[c] = total, norm


@jit(error_model="numpy")
def step_residuals(own, source, entering, keep, gain, residual, out, start, stop):
    """Write the residuals of columns start to stop after a step of the same size toward their vertices."""
    for c in range(start, stop):
        mine, atom, before, after = own[c], source[entering[c]], residual[c], out[c]
        for k in range(residual.shape[1]):
            after[k] = keep * before[k] + gain * (np.float64(atom[k]) - np.float64(mine[k]))


@jit(error_model="numpy")
def advance_residuals(own, source, entering, leaving, keep, gain, cut, residual, out, start, stop):
    """Do the same with a step size of its own for each, and with vertices that lose weight."""
    m = residual.shape[1]
    for c in range(start, stop):
        atom = source[entering[c]]
        for k in range(m):
            out[c, k] = keep[c] * residual[c, k] + gain[c] * (np.float64(atom[k]) - np.float64(own[c, k]))
        if leaving[c] >= 0:
            atom = source[leaving[c]]
            for k in range(m):
                out[c, k] -= cut[c] * (np.float64(atom[k]) - np.float64(own[c, k]))


@jit(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def entry_products(points, rows, counts, residual, out, start, stop):
    """Write x_n'r_l for the listed entries (n, l) of the columns."""
    for column in range(start, stop):
        for p in range(counts[column]):
            total = 0.0
            point = points[rows[column, p]]
            for k in range(residual.shape[1]):
                total += point[k] * residual[column, k]
            out[column, p] = total
