"""Greedy selection of samples: one pass over the data per selection, with the scoring rule as an argument.

Farthest-first centroids, successive projections and similar methods share this loop and differ in what they
keep for each sample and how they score it. What a rule keeps stays in the container of the data; a pass
returns the best candidate of every block, so that a selection on chunked data is one computation. A rule may
report other results of the same pass, which saves it a pass of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nonneg._arrays import to_float64
from nonneg._ties import rounded
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix

BlockScore: TypeAlias = Callable[..., tuple[Any, ...]]
Candidate: TypeAlias = tuple[float, int, int, Any, float]


@dataclass(frozen=True)
class GreedyRule:
    """The scoring rule of a greedy method."""

    # ``begin(block, *beside, **facts)`` returns what the rule keeps for the rows of a block (a tuple of
    # two-dimensional arrays with one row per sample) and the scores of the rows, a vector. Both functions are
    # called on the workers that hold the data: they are functions of a module, not closures.
    begin: BlockScore
    # ``advance(block, *kept, *beside, **facts)`` returns the same after a selection. A score may be an upper
    # bound where it is below the best one.
    advance: BlockScore
    # ``facts(row, n_picks)`` is called in this process with the selected sample (a vector) and the number of
    # selections so far, this one included, and returns the keywords of the next `advance`.
    facts: Callable[[Array, int], Mapping[str, Any]]
    n_kept: int  # number of arrays that the rule keeps
    # ``refine(data, kept, index, row)`` is called with the sample of the best score and returns the index to
    # select in its place and that sample.
    refine: Callable[[DataMatrix, tuple[SampleArray, ...], int, Array], tuple[int, Array]] | None = None
    # With it `begin` and `advance` return a third item, a list; ``listen(reports)`` is called in this process
    # after every pass with the lists of all blocks concatenated in their order.
    listen: Callable[[list[Any]], None] | None = None
    first_facts: Mapping[str, Any] | None = None  # the keywords of `begin`
    # Tie-breaking: which of the kept arrays decides among rows whose scores are within a fraction of the best
    # one. The largest entry of its first column wins; of those equal up to rounding, the lowest index.
    tie_break: tuple[int, float] | None = None
    # ``beside(n_picks)`` is called in this process before every pass, first with 0, and returns a tuple of
    # further arrays with one row per sample for that pass, such as random numbers. None by default.
    beside: Callable[[int], tuple[SampleArray, ...]] | None = None


@dataclass(frozen=True)
class GreedySelection:
    """The result of a greedy selection."""

    indices: IntArray  # the selected samples, in order
    scores: Any  # the score of each when it was selected
    kept: tuple[SampleArray, ...]  # what the rule keeps for the samples, after the last selection
    # The largest score after the last selection; NaN where no pass followed it.
    best_left: float
    rows: tuple[Array, ...]  # the selected samples themselves, vectors; missing entries are zeros
    n_passes: int  # number of passes over the data, those of `rule.refine` not counted


def greedy_selection(
    data: DataMatrix,
    n_picks: int,
    rule: GreedyRule,
    *,
    floor: float = 0.0,
    relative_floor: float = 0.0,
    finish: bool = True,
    on_pick: Callable[[int, float], bool] | None = None,
) -> GreedySelection:
    """Select samples one after another, each with the best score given those before."""
    facts: Mapping[str, Any] = dict(rule.first_facts or {})
    beside = rule.beside or _nothing
    listen = rule.listen or _nobody
    kept, (candidates, reports) = data.map_reduce_rows(
        _scored, *beside(0), n_out=rule.n_kept, score=rule.begin, facts=facts, tie=rule.tie_break
    )
    listen(reports)
    n_passes = 1
    if relative_floor > 0:
        floor = max(floor, relative_floor * best_candidate(candidates)[1])
    indices: list[int] = []
    scores: list[float] = []
    rows: list[Array] = []
    best_left = float("nan")
    for n_pick in range(1, n_picks + 1):
        index, score, row = best_candidate(candidates, _share(rule))
        if not score > floor:
            best_left = score
            break
        if rule.refine is not None:
            index, row = rule.refine(data, kept, index, row)
        indices.append(index)
        scores.append(score)
        rows.append(row)
        best_left = float("nan")
        ended = on_pick is not None and on_pick(index, score)
        if finish or (n_pick < n_picks and not ended):
            kept, (candidates, reports) = data.map_reduce_rows(
                _scored,
                *kept,
                *beside(n_pick),
                n_out=rule.n_kept,
                score=rule.advance,
                facts=rule.facts(row, n_pick),
                tie=rule.tie_break,
            )
            listen(reports)
            n_passes += 1
            best_left = best_candidate(candidates, _share(rule))[1]
        if ended:
            break
    return GreedySelection(
        np.asarray(indices, dtype=np.intp), np.asarray(scores), kept, best_left, tuple(rows), n_passes
    )


def _nothing(n_picks: int) -> tuple[SampleArray, ...]:
    return ()


def _nobody(reports: list[Any]) -> None:
    return None


def _share(rule: GreedyRule) -> float:
    return 0.0 if rule.tie_break is None else rule.tie_break[1]


def _scored(
    block: LocalMatrix,
    *kept: Array,
    score: BlockScore,
    facts: Mapping[str, Any],
    tie: tuple[int, float] | None,
) -> tuple[tuple[Array, ...], tuple[list[Candidate], list[Any]]]:
    rows, scores, *reports = score(block, *kept, **facts)
    second, share = (None, 0.0) if tie is None else (rows[tie[0]][:, 0], tie[1])
    return rows, (block_candidates(block, scores, second, share), reports[0] if reports else [])


def block_candidates(
    block: LocalMatrix, scores: Array, second: Array | None = None, share: float = 0.0, *, rows: bool = True
) -> list[Candidate]:
    """Return the candidates of a block for the best row."""
    # A list: small results are summed, which concatenates the lists of the blocks. The rows are included, so
    # that a selection on a chunked matrix needs no second computation. The last entry of a block also has the
    # size of the block, from which the index in the whole matrix follows.
    if second is None:
        places = [int(block.xp.argmax(scores))]
        seconds = [0.0]
    else:
        places, seconds = _front(block, scores, second, share)
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
    chosen = order[np.diff(np.minimum.accumulate(ranks), prepend=block.shape[0]) < 0]
    return [int(place) for place in places[chosen]], [float(value) for value in by_second[chosen]]


def best_candidate(candidates: list[Candidate], share: float = 0.0) -> tuple[int, float, Any]:
    """Return the best of the candidates of all blocks."""
    starts, start = [], 0
    for candidate in candidates:
        starts.append(start)
        start += candidate[2]
    best = max(candidate[0] for candidate in candidates)
    level = best - share * abs(best) if share > 0 else best
    # Sorted by the second score, then by index. NaN, which exceeds nothing, leaves the first candidate.
    fit = [i for i, candidate in enumerate(candidates) if candidate[0] >= level] or [0]
    winner = min(fit, key=lambda i: (-candidates[i][4], starts[i] + candidates[i][1]))
    score, place, _, row, _ = candidates[winner]
    return starts[winner] + place, score, row
