"""Candidates of a greedy selection: what each block of a pass returns, so that one pass selects one row."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np

from nonneg._arrays import to_float64
from nonneg._ties import rounded
from nonneg._typing import Array
from nonneg.data.matrix import LocalMatrix

Candidate: TypeAlias = tuple[float, int, int, Any, float]


def block_candidates(
    block: LocalMatrix, scores: Array, second: Array | None = None, share: float = 0.0, *, rows: bool = True
) -> list[Candidate]:
    """Return the candidates of a block for the best row."""
    # A list: small results are summed, which concatenates the lists of the blocks. The rows are included, so
    # that a selection on a chunked matrix needs no second computation. The last entry of a block also has the
    # size of the block, from which the index in the whole matrix follows.
    first = [int(block.xp.argmax(scores))], [0.0]
    places, seconds = first if second is None else _front(block, scores, second, share)
    points = block.take_rows(places) if rows else None
    sizes = [0] * (len(places) - 1) + [block.shape[0]]
    return [
        (float(scores[place]), place, sizes[i], None if points is None else points[i, :], seconds[i])
        for i, place in enumerate(places)
    ]


def _front(block: LocalMatrix, scores: Array, second: Array, share: float) -> tuple[list[int], list[float]]:
    # Which of the near ties of a block is the best depends on the best score of all blocks: kept are those
    # for which no other one of the block with as large a score has a larger second score or, if equal, a
    # lower index.
    xp = block.xp
    best = xp.max(scores)
    near = xp.nonzero(scores >= best - share * xp.abs(best))[0]
    places = to_float64(near).astype(np.int64)
    by_score = to_float64(xp.take(scores, near))
    by_second = rounded(to_float64(xp.take(second, near)))
    order = np.lexsort((places, -by_second, -by_score))
    order = order[by_second[order] == np.maximum.accumulate(by_second[order])]
    # A larger second score is a level of its own, below all indices of the level before.
    level = np.cumsum(np.diff(by_second[order], prepend=by_second[order[:1]]) > 0)
    ranks = places[order] - level * block.shape[0]
    front = order[np.diff(np.minimum.accumulate(ranks), prepend=block.shape[0]) < 0]
    return [int(place) for place in places[front]], [float(value) for value in by_second[front]]


def best_candidate(candidates: list[Candidate], share: float = 0.0) -> tuple[int, float, Any]:
    """Return the best of the candidates of all blocks."""
    starts = [0, *accumulate(candidate[2] for candidate in candidates)]
    best = max(candidate[0] for candidate in candidates)
    level = best - share * abs(best) if share > 0 else best
    # Sorted by the second score, then by index. NaN, which exceeds nothing, leaves the first candidate.
    fit = [i for i, candidate in enumerate(candidates) if candidate[0] >= level] or [0]
    winner = min(fit, key=lambda i: (-candidates[i][4], starts[i] + candidates[i][1]))
    score, place, _, row, _ = candidates[winner]
    return starts[winner] + place, score, row
