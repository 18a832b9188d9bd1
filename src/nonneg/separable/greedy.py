"""Loop of the greedy methods, with the scoring rule as an argument, and accurate residuals."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nonneg._arrays import numpy_dtype, to_float64
from nonneg._typing import Array, Namespace, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.candidates import Candidate, best_candidate, block_candidates
from nonneg.iteration import History, StopReason
from nonneg.separable.result import SelectionResult

BlockScore: TypeAlias = Callable[..., tuple[tuple[Any, ...], Array]]


@dataclass(frozen=True)
class GreedyRule:
    """The scoring rule of a greedy method."""

    # ``begin(block)`` returns the state of the rows of a block (arrays of two dimensions with
    # one row per sample) and the scores of the rows, a vector; ``advance(block, *state, **shared)`` does so
    # after a selection. A score may be an upper bound where it is below the best one. Both are called on the
    # workers that hold the data: they are functions of a module, not closures.
    begin: BlockScore
    advance: BlockScore
    # ``shared(row, n_picks)`` is called in this process with the selected sample and the number of selections
    # so far, and returns the keywords of the next `advance`.
    shared: Callable[[Array, int], Mapping[str, Any]]
    n_kept: int  # number of arrays that the rule keeps
    # ``refine(data, index, row)`` returns the index to select in place of the best score's, and that sample.
    refine: Callable[[DataMatrix, int, Array], tuple[int, Array]] | None = None
    # Tie-breaking: the second kept array decides among rows whose scores are within this fraction of the best
    # one. The largest entry of its first column wins; of those equal up to rounding, the lowest index.
    tie_tol: float | None = None


def select_greedily(
    data: DataMatrix,
    n_components: int,
    rule: GreedyRule,
    *,
    method: str,
    squared: bool = True,
    finish: bool = True,
    details: Mapping[str, Any] | None = None,
) -> SelectionResult:
    """Select samples one after another, each with the best score given those before, until none is left."""
    history, started, n_passes = History(), time.perf_counter(), 0
    state: tuple[SampleArray, ...] = ()
    indices: list[int] = []
    scores: list[float] = []

    def passed(score: BlockScore, shared: Mapping[str, Any]) -> tuple[int, float, Array]:
        nonlocal state, n_passes
        options = {"score": score, "shared": shared, "tie_tol": rule.tie_tol}
        state, (candidates,) = data.map_reduce_rows(_scored, *state, n_out=rule.n_kept, **options)
        n_passes += 1
        return best_candidate(candidates, rule.tie_tol or 0.0)

    index, score, row = passed(rule.begin, {})
    # A residual is a sum of products: some tens of rounding errors.
    rounding = 64.0 * float(np.finfo(numpy_dtype(data.dtype)).eps)
    floor = (rounding**2 if squared else rounding) * score
    for n_picks in range(1, n_components + 1):
        if not score > floor:
            break
        if rule.refine is not None:
            index, row = rule.refine(data, index, row)
        indices.append(index)
        scores.append(float(np.sqrt(max(score, 0.0))) if squared else score)
        history.record(n_picks, time.perf_counter() - started, {"score": scores[-1]})
        score = float("nan")  # unknown without another pass
        if finish or n_picks < n_components:
            index, score, row = passed(rule.advance, rule.shared(row, n_picks))
    complete = len(indices) == n_components
    best_left = float(np.sqrt(max(score, 0.0))) if squared else score
    return SelectionResult(
        anchors=np.asarray(indices, dtype=np.intp),
        method=method,
        history=history,
        scores=np.asarray(scores),
        n_iter=len(indices),
        stop_reason=StopReason.FOUND if complete else StopReason.EXHAUSTED,
        best_left=None if np.isnan(score) else best_left,
        n_passes=n_passes,
        details=dict(details or {}),
    )


def _scored(
    block: LocalMatrix,
    *state: Array,
    score: BlockScore,
    shared: Mapping[str, Any],
    tie_tol: float | None,
) -> tuple[tuple[Array, ...], tuple[list[Candidate]]]:
    rows, scores = score(block, *state, **shared)
    second = None if tie_tol is None else rows[1][:, 0]
    return rows, (block_candidates(block, scores, second, tie_tol or 0.0),)


class GrowingBasis:
    """Orthonormal directions of the anchors so far, in float64, on the device of the blocks."""

    def __init__(self) -> None:
        self.matrix: Array | None = None

    def extended(self, xp: Namespace, row: Array) -> Array | None:
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
    values: Array,
    original: Array,
    tie_tol: float,
    squares_of: Callable[[Array], Array],
) -> Array:
    """Return squared residuals accurate enough to select by: those in doubt are recomputed."""
    # A difference of squares has an error of some roundings of the minuend. Few rows are in doubt until the
    # residuals are nearly zero.
    xp = block.xp
    doubt = 8.0 * float(xp.finfo(block.dtype).eps) * original
    lowest = xp.max(values - doubt)
    unsure = xp.logical_and(values + doubt >= lowest, doubt > 0.25 * tie_tol * values)
    places = xp.nonzero(unsure)[0]
    n_places = int(places.shape[0])
    if n_places == 0:
        return values
    step = max(1, (1 << 20) // block.shape[1])
    squares = []
    for start in range(0, n_places, step):
        part = places[start : min(start + step, n_places)]
        rows = xp.astype(block.take_rows(to_float64(part).astype(np.int64)), xp.float64)
        squares.append(squares_of(rows))
    turn = xp.clip(xp.cumulative_sum(xp.astype(unsure, xp.int64)) - 1, min=0)
    return xp.where(unsure, xp.take(xp.concat(squares, axis=0), turn), values)
