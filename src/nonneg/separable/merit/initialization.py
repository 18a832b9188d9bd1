"""Initialization of MERIT: cold, from anchors, or from coefficients; and the condition of Proposition 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.exceptions import InvalidParameterError, UnknownNameError
from nonneg.kernels.sparse_columns import SparseColumns, columns_of, no_entries
from nonneg.separable.weights import anchor_weights

T_RULES = ("auto", "paper", "authors")
# A point whose weight of one anchor is within this of 1 may be equal to the anchor: the least-squares weights
# of equal points are far closer to 1. The entries are then compared, this number at a time (8 MB).
NEAR_ONE, ENTRIES = 1e-3, 1 << 20
# Integer weights of iteration t reach t (t + 1) / 2, which fits into 32 bits up to about here.
LONGEST_EXACT = 60_000


@dataclass(frozen=True)
class WarmStart:
    """Initial coefficients."""

    coefficients: Any = None  # the C of the paper; None is a cold start
    anchors: IntArray | None = None  # the vertices of the mixtures, where anchors were given


def warm_start(data: DataMatrix, init: Any) -> WarmStart:
    """Return the warm start that checked anchors or coefficients give; None is a cold start."""
    if init is None:
        return WarmStart()
    given = sp.issparse(init) or np.ndim(init) == 2
    return WarmStart(init) if given else from_anchors(data, init)


def from_anchors(data: DataMatrix, anchors: IntArray) -> WarmStart:
    """Return the coefficients of every point's best mixture of the anchors."""
    # Where a residual is zero, all vertices tie, and the lowest index wins. With a rounding error in its
    # place, the vertex would differ from machine to machine, and so would the rows of the anchors.
    vertices = to_float64(data.take_rows(anchors))
    mixtures = to_float64(anchor_weights(data, vertices, sum_to_one=True))
    mixtures = mixtures.astype(np.float64) / mixtures.sum(axis=1, keepdims=True, dtype=np.float64)
    # The anchors last: each of two equal ones is itself.
    for rows, which in (_equal_points(data, mixtures, vertices), (anchors, np.arange(len(vertices)))):
        mixtures[rows] = 0.0
        mixtures[rows, which] = 1.0
    kept = sp.csr_array(mixtures)
    n = data.shape[0]
    rows = np.asarray(anchors)[kept.indices]
    return WarmStart(sp.csc_array((kept.data, rows, kept.indptr), shape=(n, n)), np.asarray(anchors))


def _equal_points(data: DataMatrix, mixtures: FloatArray, vertices: FloatArray) -> tuple[IntArray, IntArray]:
    # Among the points that equal an anchor up to rounding: those with the same entries, and which anchor.
    near = np.flatnonzero(mixtures.max(axis=1) > 1.0 - NEAR_ONE)
    which = np.argmax(mixtures[near], axis=1)
    equal = np.zeros(len(near), dtype=bool)
    step = max(1, ENTRIES // vertices.shape[1])
    for start in range(0, len(near), step):
        part = slice(start, start + step)
        equal[part] = (to_float64(data.take_rows(near[part])) == vertices[which[part]]).all(axis=1)
    return near[equal], which[equal]


def first_iteration(rule: str | int, residual: Any, xp: Any, *, scale: float = 1.0) -> int:
    """Return the iteration t at which a warm start continues; `scale` is the norm of a typical point."""
    n = residual.shape[0]
    # Residuals of CPU tensors are NumPy arrays.
    xp = np if isinstance(residual, np.ndarray) else xp
    if isinstance(rule, str):
        if rule not in T_RULES:
            raise UnknownNameError.of("t_init", rule, T_RULES)
        if rule in ("auto", "paper"):
            # The paper's depends on the unit of the data; relative to their norms, it does not.
            size = float(xp.sqrt(xp.sum(residual * residual) / n)) / (scale if rule == "auto" else 1.0)
            return max(1, min(LONGEST_EXACT, round(1.0 / size))) if size > 0 else LONGEST_EXACT
        gram = residual.T @ residual if residual.shape[1] <= n else residual @ residual.T
        size = float(xp.sqrt(xp.max(xp.linalg.eigvalsh(gram)) / n))
        return max(1, min(LONGEST_EXACT, int(1.0 / size))) if size > 0 else LONGEST_EXACT
    if isinstance(rule, bool) or not isinstance(rule, int | np.integer) or rule < 1:
        raise InvalidParameterError(
            f"t_init must be one of {T_RULES} or an integer of at least 1, got {rule!r}."
        )
    return int(rule)


def initial_columns(warm: WarmStart, n_points: int, *, exact: bool) -> SparseColumns:
    """Return the initial coefficients as lists."""
    return no_entries(n_points, exact=exact) if warm.coefficients is None else columns_of(warm.coefficients)


@dataclass(frozen=True)
class WarmStartCondition:
    """Whether condition (23) of Proposition 1 holds for a warm start."""

    # Whether some row of an anchor has two entries whose difference, times t(t+1)/2, is not an integer.
    holds: bool
    row: int | None  # such a row
    # The smallest distance of such a difference from an integer, over the rows of the anchors.
    xi: float | None


def warm_start_condition(columns: SparseColumns, t: int, anchors: IntArray) -> WarmStartCondition:
    """Check (23) of Proposition 1, which keeps the rows from becoming constant in any iteration."""
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
    return WarmStartCondition(found is not None, found, xi)


def _closest_fractions(values: FloatArray) -> float | None:
    # Two values differ by an integer just where their fractional parts are equal, on a circle.
    fractions = np.sort(values - np.floor(values))
    steps = np.diff(np.append(fractions, fractions[:1] + 1.0))
    steps = steps[steps > 1e-9]
    # One step all the way around means that all fractional parts are equal.
    return float(steps.min()) if len(steps) > 1 else None
