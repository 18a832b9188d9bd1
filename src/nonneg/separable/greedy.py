"""What the greedy methods share: the loop, its history, the result, and accurate residuals."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nonneg._arrays import numpy_dtype, to_float64
from nonneg._typing import Array
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.greedy import GreedyRule, GreedySelection, greedy_selection
from nonneg.iteration import History, StopReason
from nonneg.separable.result import SelectionResult


def relative_floor(data: DataMatrix) -> float:
    """Return the fraction of the largest squared norm below which a squared residual is rounding error."""
    eps = float(np.finfo(numpy_dtype(data.dtype)).eps)
    # A residual is a sum of products: some tens of rounding errors.
    return (64.0 * eps) ** 2


def select_greedily(
    data: DataMatrix,
    n_components: int,
    rule: GreedyRule,
    *,
    method: str,
    squared: bool = True,
    facts: Mapping[str, Any] | None = None,
    **options: Any,
) -> SelectionResult:
    """Run the greedy loop with a scoring rule and return the result."""
    history, started = History(), time.perf_counter()

    def plain(score: float) -> float:
        return float(np.sqrt(max(score, 0.0))) if squared else float(score)

    def on_pick(index: int, score: float) -> bool:
        history.record(len(history) + 1, time.perf_counter() - started, {"score": plain(score)})
        return False

    found: GreedySelection = greedy_selection(data, n_components, rule, on_pick=on_pick, **options)
    complete = len(found.indices) == n_components
    return SelectionResult(
        anchors=found.indices,
        method=method,
        history=history,
        scores=np.asarray([plain(score) for score in found.scores]),
        n_iter=len(found.indices),
        stop_reason=StopReason.FOUND if complete else StopReason.EXHAUSTED,
        best_left=None if np.isnan(found.best_left) else plain(found.best_left),
        n_passes=found.n_passes,
        facts=dict(facts or {}),
    )


class GrowingBasis:
    """Orthonormal directions of the anchors so far, in float64, on the device of the blocks."""

    def __init__(self) -> None:
        self.matrix: Array | None = None

    def extended(self, xp: Any, row: Array) -> Array | None:
        """Add a sample and return its new direction; None if it lies in the span."""
        direction = xp.astype(row, xp.float64)[:, None]
        before = float(xp.linalg.vector_norm(direction))
        if self.matrix is not None:
            # Re-orthogonalization: twice is enough (Kahan and Parlett).
            for _ in range(2):
                direction = direction - self.matrix @ (self.matrix.T @ direction)
        length = float(xp.linalg.vector_norm(direction))
        if not length > 1e-15 * before:
            return None
        direction = direction / length
        self.matrix = direction if self.matrix is None else xp.concat([self.matrix, direction], axis=1)
        return direction


def accurate_squares(
    block: LocalMatrix,
    left: Array,
    original: Array,
    tie_tol: float,
    squares_of: Callable[[Array, Array], Array],
) -> Array:
    """Return squared residuals accurate enough to select by: those in doubt are recomputed."""
    # A difference of squares has an error of some roundings of the minuend. Few rows are in doubt until the
    # residuals are nearly zero.
    xp = block.xp
    doubt = 8.0 * float(xp.finfo(block.dtype).eps) * original
    lowest = xp.max(left - doubt)
    unsure = xp.logical_and(left + doubt >= lowest, doubt > 0.25 * tie_tol * left)
    places = xp.nonzero(unsure)[0]
    n_places = int(places.shape[0])
    if n_places == 0:
        return left
    step = max(1, (1 << 20) // block.shape[1])
    squares = []
    for start in range(0, n_places, step):
        some = places[start : min(start + step, n_places)]
        rows = xp.astype(block.take_rows(to_float64(some).astype(np.int64)), xp.float64)
        squares.append(squares_of(rows, some))
    turn = xp.clip(xp.cumulative_sum(xp.astype(unsure, xp.int64)) - 1, min=0)
    return xp.where(unsure, xp.take(xp.concat(squares, axis=0), turn), left)
