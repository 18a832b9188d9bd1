"""Starts of MERIT: from nothing, from anchors, or from coefficients; and Proposition 1's check of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError
from nonneg.kernels.sparse_columns import SparseColumns, columns_of, no_entries
from nonneg.separable.weights import anchor_weights

T_RULES = ("paper", "authors")
SUM_TOL = 1e-6
# A point with such a weight on one anchor may be equal to it; so many entries are compared at a time.
NEAR_ONE, ENTRIES = 1e-3, 1 << 20
# Whole weights are kept in 32 bits up to here.
LONGEST_EXACT = 60_000


@dataclass(frozen=True)
class WarmStart:
    """Coefficients to start from."""

    coefficients: Any = None  # the paper's C; None is a cold start
    anchors: IntArray | None = None  # the points they were made of


def given_init(data: DataMatrix, init: Any, n_components: int | None) -> WarmStart:
    """Read what a user gave as `init`."""
    if init is None:
        return WarmStart()
    if isinstance(init, str):
        from nonneg.separable.registry import METHODS

        greedy = [name for name, method in METHODS.items() if method.kind == "greedy"]
        if init not in METHODS or METHODS.find(init).kind != "greedy":
            raise UnknownNameError.of("init", init, greedy)
        if n_components is None:
            raise InvalidParameterError(
                f"init={init!r} needs n_components, the number of points to pick. Pass it, or the anchors "
                "themselves as init."
            )
        return from_anchors(data, METHODS.find(init).run(data, n_components).anchors)
    if hasattr(init, "anchors"):
        init = init.anchors
    if sp.issparse(init) or np.ndim(init) == 2:
        return WarmStart(checked_coefficients(init, data.shape[0]))
    return from_anchors(data, checked_anchors(init, data.shape[0]))


def from_anchors(data: DataMatrix, anchors: IntArray) -> WarmStart:
    """Return the coefficients that write every point as its best mixture of some of them."""
    # Where a residual is zero, every direction is as good as another, and the lowest index wins. A rounding
    # error in its place would decide instead, otherwise on every machine, and the rows of the anchors would
    # differ from there on.
    corners = to_float64(data.take_rows(anchors))
    mixtures = to_float64(anchor_weights(data, corners, sum_to_one=True))
    mixtures = mixtures.astype(np.float64) / mixtures.sum(axis=1, keepdims=True, dtype=np.float64)
    # The anchors last: of two equal ones each is itself.
    for rows, which in (_equal_points(data, mixtures, corners), (anchors, np.arange(len(corners)))):
        mixtures[rows] = 0.0
        mixtures[rows, which] = 1.0
    kept = sp.csr_array(mixtures)
    n = data.shape[0]
    rows = np.asarray(anchors)[kept.indices]
    return WarmStart(sp.csc_array((kept.data, rows, kept.indptr), shape=(n, n)), np.asarray(anchors))


def _equal_points(data: DataMatrix, mixtures: FloatArray, corners: FloatArray) -> tuple[IntArray, IntArray]:
    # Among the points that are one anchor but for rounding: those with the same entries, and which anchor.
    near = np.flatnonzero(mixtures.max(axis=1) > 1.0 - NEAR_ONE)
    which = np.argmax(mixtures[near], axis=1)
    equal = np.zeros(len(near), dtype=bool)
    step = max(1, ENTRIES // corners.shape[1])
    for start in range(0, len(near), step):
        part = slice(start, start + step)
        equal[part] = (to_float64(data.take_rows(near[part])) == corners[which[part]]).all(axis=1)
    return near[equal], which[equal]


def checked_anchors(init: Any, n_points: int) -> IntArray:
    """Return anchors that a user named, or refuse them."""
    anchors = np.asarray(init)
    if anchors.ndim != 1 or anchors.size == 0 or anchors.dtype.kind not in "iu":
        raise InvalidParameterError(
            f"init must be None, the name of a greedy method, indices of points, or a matrix of coefficients "
            f"({n_points} x {n_points}, columns that sum to one). Got {type(init).__name__} of shape "
            f"{np.shape(init)}."
        )
    bad = anchors[(anchors < 0) | (anchors >= n_points)]
    if bad.size:
        raise InvalidParameterError(f"init contains {bad[0]}, but points are 0 to {n_points - 1}.")
    if len(np.unique(anchors)) < len(anchors):
        raise InvalidParameterError("init names a point twice. Name every anchor once.")
    return anchors.astype(np.intp)


def checked_coefficients(init: Any, n_points: int, kept: IntArray | None = None) -> Any:
    """Return coefficients that a user gave, or refuse them."""
    if tuple(init.shape) != (n_points, n_points):
        raise ShapeError(
            f"Coefficients to start from must be {n_points} x {n_points}, one column a point; got "
            f"{tuple(init.shape)}."
        )
    csc = sp.csc_array(init).astype(np.float64)
    if kept is not None:
        csc = csc[:, kept][kept].tocsc()
    if csc.nnz and not (np.isfinite(csc.data).all() and csc.data.min() >= 0):
        raise InvalidParameterError("Coefficients to start from must be finite and not negative.")
    sums = np.asarray(csc.sum(axis=0)).reshape(-1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > SUM_TOL:
        raise InvalidParameterError(
            "Columns of the coefficients to start from must sum to one; column "
            f"{worst if kept is None else kept[worst]} sums to {sums[worst]:.6g}"
            f"{'' if kept is None else ' over the samples that are searched'}. "
            "Divide every column by its sum."
        )
    return csc


def first_iteration(rule: str | int, residual: Any, xp: Any) -> int:
    """Return the iteration t from which a warm start goes on."""
    n = residual.shape[0]
    # The residuals of tensors on the host are NumPy's.
    xp = np if isinstance(residual, np.ndarray) else xp
    if isinstance(rule, str):
        if rule not in T_RULES:
            raise UnknownNameError.of("t_init", rule, T_RULES)
        if rule == "paper":
            size = float(xp.sqrt(xp.sum(residual * residual) / n))
            return max(1, min(LONGEST_EXACT, round(1.0 / size))) if size > 0 else LONGEST_EXACT
        gram = residual.T @ residual if residual.shape[1] <= n else residual @ residual.T
        size = float(xp.sqrt(xp.max(xp.linalg.eigvalsh(gram)) / n))
        return max(1, min(LONGEST_EXACT, int(1.0 / size))) if size > 0 else LONGEST_EXACT
    if isinstance(rule, bool) or not isinstance(rule, int | np.integer) or rule < 1:
        raise InvalidParameterError(
            f"t_init must be one of {T_RULES} or an integer of at least 1, got {rule!r}."
        )
    return int(rule)


def start_columns(start: WarmStart, n_points: int, *, exact: bool) -> SparseColumns:
    """Return the first coefficients as lists."""
    if start.coefficients is None:
        return no_entries(n_points, exact=exact)
    return columns_of(start.coefficients)


@dataclass(frozen=True)
class StartCondition:
    """Whether Proposition 1's condition (23) holds of a start."""

    # Whether some row of an anchor has two entries whose difference, times t(t+1)/2, is not whole.
    holds: bool
    row: int | None  # such a row
    # The smallest distance of such a difference from a whole number, over the rows of the anchors.
    xi: float | None


def start_condition(columns: SparseColumns, t: int, anchors: IntArray) -> StartCondition:
    """Check (23) of Proposition 1: then the rows stay different from constants for all iterations."""
    rows = columns.as_csc().tocsr()
    scale, n = t * (t + 1) / 2, columns.n_columns
    found, xi = None, None
    for anchor in np.sort(np.asarray(anchors)):
        values = rows.data[rows.indptr[anchor] : rows.indptr[anchor + 1]] * scale
        if len(values) < n:
            values = np.append(values, 0.0)
        gap = _closest_fractions(values)
        if gap is not None:
            found = int(anchor) if found is None else found
            xi = gap if xi is None else min(xi, gap)
    return StartCondition(found is not None, found, xi)


def _closest_fractions(values: FloatArray) -> float | None:
    # Two values differ by a whole number just where their fractions are equal, on a circle.
    fractions = np.sort(values - np.floor(values))
    steps = np.diff(np.append(fractions, fractions[:1] + 1.0))
    steps = steps[steps > 1e-9]
    # One step all the way around means that all fractions are equal.
    return float(steps.min()) if len(steps) > 1 else None
