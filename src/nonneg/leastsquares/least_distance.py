"""Least-distance programming: the shortest vector that satisfies linear inequalities, by its dual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.descent.active_set import nonnegative_quadratic
from nonneg.exceptions import InvalidParameterError, ShapeError

# Inequalities that join the working set in a round.
_JOINING = 64
_MAX_ROUNDS = 1000
_INFEASIBLE = 1e-10


@dataclass(frozen=True)
class LeastDistance:
    """The shortest vector that satisfies inequalities.

    Attributes
    ----------
    u : array of shape (n_columns,)
        The vector.
    active : array of int
        The inequalities with a positive multiplier, which hold with equality.
    multipliers : array
        Theirs: u = rows[active]' multipliers.
    violation : float
        The largest amount by which an inequality is missed, in the scale of `lower`; rounding.
    squared_norm : float
        ||u||^2.
    dual_value : float
        No vector that satisfies the inequalities has a smaller squared norm.
    """

    u: FloatArray
    active: IntArray
    multipliers: FloatArray
    violation: float
    squared_norm: float
    dual_value: float


def least_distance(rows: Any, lower: Any = 1.0, *, tol: float = 1e-12) -> LeastDistance:
    """Minimise ||u||^2 subject to rows u >= lower.

    Parameters
    ----------
    rows : array of shape (n_inequalities, n_columns)
        The left sides, one inequality a row.
    lower : float or array of shape (n_inequalities,)
        The right sides.
    tol : float
        An inequality counts as satisfied when it is missed by at most this share of the largest right side.

    Returns
    -------
    LeastDistance
        The solution, unique, and its multipliers.

    Raises
    ------
    InvalidParameterError
        If no vector satisfies the inequalities.

    Notes
    -----
    With u = rows' m, the multipliers m >= 0 minimise 0.5 ||rows' m||^2 - lower' m. Lawson and Hanson solve an
    equivalent nonnegative least-squares problem with one more equation, which is bounded even where the
    inequalities contradict one another; that is what is done here, on a small working set of inequalities
    that grows by the most violated ones, one product with all rows a round.

    References
    ----------
    .. [1] Lawson & Hanson (1974), Solving Least Squares Problems, ch. 23, algorithm LDP.
    """
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2:
        raise ShapeError(f"Expected one inequality a row of a matrix, got an array of shape {rows.shape}.")
    lower = np.asarray(lower, dtype=np.float64)
    if lower.shape not in ((), (rows.shape[0],)):
        raise ShapeError(f"Expected a number or {rows.shape[0]} right sides, got shape {lower.shape}.")
    right = np.broadcast_to(lower, (rows.shape[0],))
    # The last equation is of size one: u is measured in units in which the answer is neither huge nor tiny.
    scale = _unit(rows, right)
    working: IntArray = np.zeros(0, dtype=np.intp)
    u, weights = _solve(rows[:0], right[:0], np.zeros(0))
    allowed = tol * float(np.abs(right).max(initial=0.0))
    for _ in range(_MAX_ROUNDS):
        missed = right - rows @ u
        missed[working[weights > 0]] = -np.inf
        worst = np.argsort(-missed, kind="stable")[:_JOINING]
        worst = worst[missed[worst] > allowed]
        if not len(worst):
            break
        fresh = worst[~np.isin(worst, working)]
        working = np.concatenate([working, fresh])
        longer, weights = _solve(rows[working], right[working] / scale, np.pad(weights, (0, len(fresh))))
        longer = longer * scale
        working, weights = working[weights > 0], weights[weights > 0]
        # Every round lengthens u, or what is missed is rounding.
        grown, u = float(longer @ longer) > float(u @ u), longer
        if not grown:
            break
    order = np.argsort(working)
    active, multipliers = working[order], weights[order] * scale
    squared = float(u @ u)
    combined = rows[active].T @ multipliers
    dual = 2.0 * float(right[active] @ multipliers) - float(combined @ combined)
    violation = float(np.max(right - rows @ u, initial=0.0))
    return LeastDistance(u, active, multipliers, violation, squared, dual)


def _unit(rows: FloatArray, right: FloatArray) -> float:
    lengths = np.linalg.norm(rows, axis=1)
    positive = (right > 0) & (lengths > 0)
    return float(np.max(right[positive] / lengths[positive])) if positive.any() else 1.0


def _solve(rows: FloatArray, right: FloatArray, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return u and its multipliers for a few inequalities: Lawson & Hanson's algorithm LDP in Gram form."""
    gram = rows @ rows.T + np.outer(right, right)
    share = nonnegative_quadratic(gram, right, start=start if start.any() else None)
    # The residual of the last equation: 0 where the others contradict one another.
    left = 1.0 - float(right @ share)
    if left <= _INFEASIBLE:
        raise InvalidParameterError(
            "No vector satisfies the inequalities: nonnegative multiples of the rows add up to zero while "
            "their right sides add up to something positive."
        )
    return rows.T @ share / left, share / left
