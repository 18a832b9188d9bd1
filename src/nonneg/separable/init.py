"""The `init` of the convex methods: anchors or coefficients, in terms of the samples that a method sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import to_numpy
from nonneg._random import Seed
from nonneg._typing import IntArray
from nonneg.data import DataMatrix
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError, UnsupportedError
from nonneg.separable.preprocessing import Prepared
from nonneg.separable.registry import METHODS, listed

# How far the sum of a column of given coefficients may be from one: rounding in single precision.
SUM_TOL = 1e-6


def init_among(init: Any, points: Prepared, data: DataMatrix, n_components: int | None, rng: Seed) -> Any:
    """Return row indices or coefficients (CSC) among the samples that preprocessing kept; None stays None."""
    if init is None:
        return None
    if isinstance(init, str):
        return _found_by(init, points, data, n_components, rng)
    n_samples = data.shape[0]
    if hasattr(init, "anchors"):
        init = init.anchors
    if sp.issparse(init) or np.ndim(init) == 2:
        return checked_coefficients(init if sp.issparse(init) else to_numpy(init), n_samples, points.kept)
    rows = checked_anchors(to_numpy(init) if hasattr(init, "device") else init, n_samples)
    return rows if points.kept is None else _positions(rows, points)


def _found_by(name: str, points: Prepared, data: DataMatrix, n_components: int | None, rng: Seed) -> IntArray:
    greedy = {key: method for key, method in METHODS.items() if method.kind == "greedy"}
    if name not in {alias for key, method in greedy.items() for alias in (key, *method.aliases)}:
        raise UnknownNameError.of("init", name, greedy)
    if n_components is None:
        raise InvalidParameterError(
            f"init={name!r} needs n_components, the number of anchors. Pass it, or the anchors themselves as "
            "init."
        )
    entry = METHODS.find(name)
    # Projections of nonnegative samples are accepted, as they are in a search.
    if not entry.signed and data.extremes()[0] < 0:
        able = listed(key for key, method in greedy.items() if method.signed)
        raise UnsupportedError(f"init={name!r} does not accept negative entries, but X has some; {able} do.")
    found: IntArray = entry.run(points.data, n_components, **({"rng": rng} if entry.seeded else {})).anchors
    return found


def _positions(rows: IntArray, points: Prepared) -> IntArray:
    kept = points.kept
    assert kept is not None
    places = np.minimum(np.searchsorted(kept, rows), len(kept) - 1)
    gone = rows[kept[places] != rows]
    if gone.size:
        steps = [name for name in points.facts if name != "reduce"]
        raise InvalidParameterError(
            f"init names sample {gone[0]}, which {listed(steps)} left out. Name another."
        )
    return places.astype(np.intp)


def checked_anchors(init: Any, n_points: int) -> IntArray:
    """Return the row indices that a user gave, or refuse them."""
    anchors = np.asarray(init)
    if anchors.ndim != 1 or anchors.size == 0 or anchors.dtype.kind not in "iu":
        raise InvalidParameterError(
            f"init must be None, the name of a greedy method, row indices, or a matrix of coefficients "
            f"({n_points} x {n_points}, columns that sum to one). Got {type(init).__name__} of shape "
            f"{np.shape(init)}."
        )
    bad = anchors[(anchors < 0) | (anchors >= n_points)]
    if bad.size:
        raise InvalidParameterError(f"init contains {bad[0]}, but samples are 0 to {n_points - 1}.")
    if len(np.unique(anchors)) < len(anchors):
        raise InvalidParameterError("init names a sample twice. Name every anchor once.")
    return anchors.astype(np.intp)


def checked_coefficients(init: Any, n_points: int, kept: IntArray | None = None) -> Any:
    """Return the coefficients that a user gave, or refuse them."""
    if tuple(init.shape) != (n_points, n_points):
        raise ShapeError(
            f"Initial coefficients must be {n_points} x {n_points}, one column per sample; got "
            f"{tuple(init.shape)}."
        )
    csc = sp.csc_array(init).astype(np.float64)
    if kept is not None:
        csc = csc[:, kept][kept].tocsc()
    if csc.nnz and not (np.isfinite(csc.data).all() and csc.data.min() >= 0):
        raise InvalidParameterError("Initial coefficients must be finite and nonnegative.")
    sums = np.asarray(csc.sum(axis=0)).reshape(-1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > SUM_TOL:
        raise InvalidParameterError(
            "Columns of the initial coefficients must sum to one; column "
            f"{worst if kept is None else kept[worst]} sums to {sums[worst]:.6g}"
            f"{'' if kept is None else ' over the samples that preprocessing kept'}. "
            "Divide every column by its sum."
        )
    return csc
