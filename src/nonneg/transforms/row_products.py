"""Products of frames with a transform, of which small directions are made in single precision.

The coordinates of frames in the directions that they span fall by many orders of magnitude. Rounded to single
precision, small ones are as exact beside the large ones as the frames themselves: what is left out of them
altogether is larger (`nonneg.transforms.working`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.kernels import frame_rows
from nonneg.transforms.likelihoods import variances, weighted_rows

# Multiplications from which two products are quicker than one.
LEAST_WORK = 1 << 22
# What is beyond this leaves the range of single precision.
LARGEST_SINGLE = 1e25


def frames_and_variances(P: Array, data: Any) -> tuple[Array, Array]:
    """Return the frames in the coordinates of a transform."""
    xp = array_namespace(P)
    if not _splits(data, P):
        X = data.rows @ xp.matrix_transpose(P)
        return X, variances(X, data)
    n = data.n_double
    X = data.leading_rows @ xp.matrix_transpose(P[:, :, :n])
    rest = data.trailing_rows @ xp.matrix_transpose(P[:, :, n:].astype(np.float32))
    return X, frame_rows.add_single(X, rest, data.largest_entry, data.starts, data.counts)


def weighted_sums(P: Array, X: Array, weights: Array, data: Any, eps0: float) -> Array:
    """Return twice the sums of rows, each times its weighted coordinates."""
    xp = array_namespace(X)
    in_range = _splits(data, P) and data.largest_entry <= LARGEST_SINGLE * min(1.0, eps0)
    if not (in_range and frame_rows.serves(X) and frame_rows.serves(weights)):
        return xp.matrix_transpose(weighted_rows(X, weights, 2.0, data)) @ data.rows
    weighted, single = frame_rows.weighted_rows_twice(X, weights, data.starts, data.counts)
    leading = xp.matrix_transpose(weighted) @ data.leading_rows
    trailing = xp.matrix_transpose(single) @ data.trailing_rows
    found, n = np.empty_like(P), data.n_double
    np.multiply(leading, 2.0, out=found[:, :, :n])
    np.multiply(trailing, 2.0 * data.largest_entry, out=found[:, :, n:], dtype=np.float64)
    return found


def _splits(data: Any, P: Array) -> bool:
    """Tell whether products are made in two parts."""
    return (
        hasattr(data, "starts")
        and isinstance(P, np.ndarray)
        and P.dtype == np.float64
        and P.shape[0] == 1
        and len(data.rows) * P.shape[1] * P.shape[2] >= LEAST_WORK
        and data.n_double < P.shape[2]
    )
