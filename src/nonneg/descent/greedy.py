"""Greedy selection of data points: one pass over the data a pick, with the scoring rule as an argument.

Farthest-first centroids, successive projections and their kin share this loop and differ in what they keep
beside each data point and how they score it. What a rule keeps stays where the data are; a pass brings home
the best candidate of every block, so that a pick on chunked data is one computation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nonneg._typing import Array, IntArray, LeftArray
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.data.spectral import to_numpy

BlockScore: TypeAlias = Callable[..., tuple[tuple[Array, ...], Array]]


@dataclass(frozen=True)
class GreedyRule:
    """What tells one greedy method from another.

    Attributes
    ----------
    begin : callable
        ``begin(block, *beside, **facts)`` returns what the rule keeps beside a block's rows (a tuple of
        arrays with one row a data point, two-dimensional) and the scores of the rows, a vector. Functions of
        a rule are called where the data are: they are functions of a module, not closures.
    advance : callable
        ``advance(block, *kept, *beside, **facts)`` returns the same after a pick. A score may be an upper
        bound where it is below the best one.
    facts : callable
        ``facts(row, n_picks)`` is called at home with the picked data point (a vector) and the count of picks
        so far, this one included, and returns the keywords of the next `advance`.
    n_kept : int
        How many arrays the rule keeps.
    refine : callable, optional
        ``refine(data, kept, index)`` returns the index to pick instead of the best-scored one.
    first_facts : mapping
        The keywords of `begin`.
    tie_break : tuple of (int, float), optional
        Which of the kept arrays decides among rows whose scores are within a share of the best one: the row
        with the largest entry of its first column wins, of equal ones the lowest index.
    beside : callable, optional
        ``beside(n_picks)`` is called at home before every pass, first with 0, and returns a tuple of further
        left-like arrays for that pass, such as numbers drawn for the rows. None by default.
    """

    begin: BlockScore
    advance: BlockScore
    facts: Callable[[Array, int], Mapping[str, Any]]
    n_kept: int
    refine: Callable[[DataMatrix, tuple[LeftArray, ...], int], int] | None = None
    first_facts: Mapping[str, Any] | None = None
    tie_break: tuple[int, float] | None = None
    beside: Callable[[int], tuple[LeftArray, ...]] | None = None


@dataclass(frozen=True)
class GreedySelection:
    """What a greedy search found.

    Attributes
    ----------
    indices : array of int
        The picked data points in the order of picking.
    scores : array of float
        The score of each when it was picked; NaN for a first one that was given.
    kept : tuple of arrays
        What the rule keeps beside the data points, after the last pick.
    best_left : float
        The largest score after the last pick; NaN where the last pick was not followed by a pass.
    rows : tuple of arrays
        The picked data points themselves, vectors; missing entries are zeros.
    """

    indices: IntArray
    scores: Any
    kept: tuple[LeftArray, ...]
    best_left: float
    rows: tuple[Array, ...]


def greedy_selection(
    data: DataMatrix,
    n_picks: int,
    rule: GreedyRule,
    *,
    first: int | None = None,
    floor: float = 0.0,
    relative_floor: float = 0.0,
    finish: bool = True,
    on_pick: Callable[[int, float], bool] | None = None,
) -> GreedySelection:
    """Pick data points one after another, each with the best score given those before.

    Parameters
    ----------
    data : DataMatrix
        The data, one point a row.
    n_picks : int
        How many to pick, at least 1.
    rule : GreedyRule
        The scores.
    first : int, optional
        The first pick; by default the one that `rule.begin` scores best.
    floor : float
        The search ends early when no score is above it: nothing is left that the picks do not explain.
    relative_floor : float
        The same as a share of the best score before the first pick.
    finish : bool
        Whether the last pick is followed by a pass, so that what is kept takes it into account.
    on_pick : callable, optional
        ``on_pick(index, score)`` is called after every pick; True ends the search.

    Returns
    -------
    GreedySelection
        At most `n_picks` points. Of equal scores the lowest index wins.
    """
    facts: Mapping[str, Any] = dict(rule.first_facts or {})
    beside = rule.beside or _nothing
    kept, (candidates,) = data.row_pass(
        _first, *beside(0), n_out=rule.n_kept, begin=rule.begin, facts=facts, tie=rule.tie_break
    )
    if relative_floor > 0:
        floor = max(floor, relative_floor * _best(candidates, None)[1])
    indices: list[int] = []
    scores: list[float] = []
    rows: list[Array] = []
    best_left = float("nan")
    for n_pick in range(1, n_picks + 1):
        if n_pick == 1 and first is not None:
            index, score, row = int(first), float("nan"), data.take_rows([int(first)])[0, :]
        else:
            index, score, row = _best(candidates, rule.tie_break)
            if not score > floor:
                best_left = score
                break
            if rule.refine is not None:
                refined = int(rule.refine(data, kept, index))
                if refined != index:
                    index, row = refined, data.take_rows([refined])[0, :]
        indices.append(index)
        scores.append(score)
        rows.append(row)
        best_left = float("nan")
        ended = on_pick is not None and on_pick(index, score)
        if finish or (n_pick < n_picks and not ended):
            kept, (candidates,) = data.row_pass(
                _next,
                *kept,
                *beside(n_pick),
                n_out=rule.n_kept,
                advance=rule.advance,
                facts=rule.facts(row, n_pick),
                tie=rule.tie_break,
            )
            best_left = _best(candidates, rule.tie_break)[1]
        if ended:
            break
    return GreedySelection(
        np.asarray(indices, dtype=np.intp), np.asarray(scores), kept, best_left, tuple(rows)
    )


def _nothing(n_picks: int) -> tuple[LeftArray, ...]:
    return ()


def _first(
    block: LocalMatrix,
    *beside: Array,
    begin: BlockScore,
    facts: Mapping[str, Any],
    tie: tuple[int, float] | None,
) -> tuple[tuple[Array, ...], tuple[list[tuple[Any, ...]]]]:
    kept, scores = begin(block, *beside, **facts)
    return kept, (_candidates(block, kept, scores, tie),)


def _next(
    block: LocalMatrix,
    *kept: Array,
    advance: BlockScore,
    facts: Mapping[str, Any],
    tie: tuple[int, float] | None,
) -> tuple[tuple[Array, ...], tuple[list[tuple[Any, ...]]]]:
    kept, scores = advance(block, *kept, **facts)
    return kept, (_candidates(block, kept, scores, tie),)


def _candidates(
    block: LocalMatrix, kept: tuple[Array, ...], scores: Array, tie: tuple[int, float] | None
) -> list[tuple[Any, ...]]:
    # A list: the lists of the blocks are joined where small results are summed. The rows come along, so that
    # the pick of a chunked matrix needs no second computation. Each entry also tells the size of its block,
    # all but the last one zero, from which the place in the whole follows.
    if tie is None:
        places = [int(block.xp.argmax(scores))]
        seconds = [0.0]
    else:
        places, seconds = _front(block, scores, kept[tie[0]], tie[1])
    rows = block.take_rows(places)
    sizes = [0] * (len(places) - 1) + [block.shape[0]]
    return [(float(scores[place]), place, sizes[i], rows[i, :], seconds[i]) for i, place in enumerate(places)]


def _front(block: LocalMatrix, scores: Array, second: Array, share: float) -> tuple[list[int], list[float]]:
    # Which of a block's near ties is the best depends on the best score of all blocks: kept are those that no
    # other one of the block beats in both respects.
    xp = block.xp
    best = xp.max(scores)
    near = xp.nonzero(scores >= best - share * xp.abs(best))[0]
    places = to_numpy(near).astype(np.int64)
    by_score = to_numpy(xp.take(scores, near))
    by_second = to_numpy(xp.take(second[:, 0], near))
    order = np.lexsort((places, -by_second, -by_score))
    reached = np.maximum.accumulate(by_second[order])
    ahead = np.concatenate([[True], by_second[order][1:] > reached[:-1]])
    chosen = order[ahead]
    return [int(place) for place in places[chosen]], [float(value) for value in by_second[chosen]]


def _best(candidates: list[tuple[Any, ...]], tie: tuple[int, float] | None) -> tuple[int, float, Array]:
    starts, start = [], 0
    for candidate in candidates:
        starts.append(start)
        start += candidate[2]
    best = max(candidate[0] for candidate in candidates)
    level = best if tie is None else best - tie[1] * abs(best)
    # Sorted by the second respect, then by place. NaN, which beats nothing, leaves the first candidate.
    fit = [i for i, candidate in enumerate(candidates) if candidate[0] >= level] or [0]
    winner = min(fit, key=lambda i: (-candidates[i][4], starts[i] + candidates[i][1]))
    score, place, _, row, _ = candidates[winner]
    return starts[winner] + place, score, row
