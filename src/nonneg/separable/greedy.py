"""What the greedy methods share: the run of the loop, its history, and the result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from nonneg._typing import Array
from nonneg.data import DataMatrix
from nonneg.descent.greedy import GreedyRule, GreedySelection, greedy_selection
from nonneg.iteration import History, StopReason
from nonneg.separable.result import SelectionResult


def relative_floor(data: DataMatrix) -> float:
    """Return the share of the largest squared norm below which a squared residual is rounding.

    Parameters
    ----------
    data : DataMatrix
        Its dtype counts.

    Returns
    -------
    float
        The square of some roundings.
    """
    eps = float(np.finfo(np.float32 if "32" in str(data.dtype) else np.float64).eps)
    return (64.0 * eps) ** 2


def pursue(
    data: DataMatrix,
    n_anchors: int,
    rule: GreedyRule,
    *,
    method: str,
    squared: bool = True,
    facts: Mapping[str, Any] | None = None,
    **options: Any,
) -> SelectionResult:
    """Run the greedy loop with a rule and say what came of it.

    Parameters
    ----------
    data : DataMatrix
        The data, one point a row.
    n_anchors : int
        How many to pick.
    rule : GreedyRule
        The scores.
    method : str
        The name of the method.
    squared : bool
        Whether the rule's scores are squares, of which the roots are reported.
    facts : mapping, optional
        Further quantities for the result.
    **options : Any
        For `greedy_selection`.

    Returns
    -------
    SelectionResult
        With fewer anchors where nothing was left to pick.
    """
    history, started = History(), time.perf_counter()

    def plain(score: float) -> float:
        return float(np.sqrt(max(score, 0.0))) if squared else float(score)

    def on_pick(index: int, score: float) -> bool:
        history.record(len(history) + 1, time.perf_counter() - started, {"score": plain(score)})
        return False

    found: GreedySelection = greedy_selection(data, n_anchors, rule, on_pick=on_pick, **options)
    complete = len(found.indices) == n_anchors
    return SelectionResult(
        anchors=found.indices,
        method=method,
        history=history,
        scores=np.asarray([plain(score) for score in found.scores]),
        n_iter=len(found.indices),
        stop_reason=StopReason.FOUND if complete else StopReason.EXHAUSTED,
        best_left=None if np.isnan(found.best_left) else plain(found.best_left),
        facts=dict(facts or {}),
    )


class GrowingBasis:
    """Orthonormal directions of the picks so far, in float64, where the local blocks are."""

    def __init__(self) -> None:
        self.matrix: Array | None = None

    def extended(self, xp: Any, row: Array) -> Array | None:
        """Add a data point and return its new direction.

        Parameters
        ----------
        xp : namespace
            Of the row.
        row : array of shape (n_features,)
            The data point.

        Returns
        -------
        array of shape (n_features, 1) or None
            Of length one and orthogonal to the ones before; None where the point lies in their span.
        """
        direction = xp.astype(row, xp.float64)[:, None]
        before = float(xp.linalg.vector_norm(direction))
        if self.matrix is not None:
            # Twice is enough (Kahan and Parlett): what rounding left of the old directions goes.
            for _ in range(2):
                direction = direction - self.matrix @ (self.matrix.T @ direction)
        length = float(xp.linalg.vector_norm(direction))
        if not length > 1e-15 * before:
            return None
        direction = direction / length
        self.matrix = direction if self.matrix is None else xp.concat([self.matrix, direction], axis=1)
        return direction
