"""Which rows of C become anchors: large row maxima that lie apart, or SPA's where those fit better.

The paper selects the K largest row maxima. Samples that are close to one anchor share its weight, and the two
largest of them are then selected while another anchor is left out, whatever the weight of the penalty. Here
the fourth root of a maximum is multiplied by the distance of its sample from the hull of the anchors selected
so far, which is as small as the noise for the second of two near-duplicates. Distances are standardized: that
of two samples has twice the variance of that of a sample from a mixture of many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.separable.merit.penalty_weight import NumberEstimate, greedy_anchors
from nonneg.separable.merit.residuals import (
    MOST_POINTS,
    evenly_spaced,
    hull_distances,
    number_above_noise,
    squared_residuals,
)
from nonneg.separable.merit.tie_breaking import NO_DISTANCE, SAME_DISTANCE, break_ties
from nonneg.separable.row_maxima import distinct_rows, leading_rows

CHOICES = ("auto", "spread", "row-maxima")
# Rows among which anchors are looked for, those with the largest maxima: this many per anchor, but not fewer
# than the second number. With 250 near-duplicates of each of 40 anchors among 100,000 samples, fewer left
# anchors out; more are never selected.
ROWS_PER_ANCHOR, FEWEST_ROWS = 20, 500
# The power of a row maximum beside the distance. On planted near-duplicates 1 loses anchors whose weight is
# shared by many samples; from 1/10 to 1/2 the same anchors are found.
POWER = 0.25
# Distances are updated for this many candidates at a time, those with the largest scores.
BATCH = 32
# Of the candidates that stand out from the noise, the last fifth may be no anchors: where the drop of scores
# before them is this much larger than that after them. Of a few values, the best ones on choosing draws.
SURELY, CLEAR_DROP = 0.8, math.sqrt(1.5)
# Two sets of anchors whose scores agree to this fraction fit equally well.
SAME_FIT = 1e-9


@dataclass(frozen=True)
class Fit:
    """How well anchors fit: squared distances of samples from their hull, standardized."""

    # Of two sets of anchors, that with the smaller largest distance is better. The mean prefers wrong anchors
    # that noise moved outward, because they span more; the anchor that is missing shows in the largest.
    mean: float
    largest: float
    median: float = 0.0  # that of noise


@dataclass(frozen=True)
class Selection:
    """Anchors, and how they were chosen."""

    anchors: IntArray  # by decreasing row maximum
    candidates: IntArray  # the samples among which they were chosen
    fit: Fit
    apart: bool = True  # whether distances counted, not row maxima alone
    n_tied: int = 0  # rows that share the last row maximum ("row-maxima")
    drop: float | None = None  # where the number was not given: the last score over the next
    # Where the anchors of MERIT and SPA were compared: the fits of both, and whether those of SPA fit better.
    merit_fit: Fit | None = None
    spa_fit: Fit | None = None
    from_spa: bool = False


def choose_anchors(
    data: DataMatrix,
    maxima: FloatArray,
    n_components: int | None,
    estimate: NumberEstimate,
    *,
    choice: str,
    ties: str,
    greedy: IntArray | None,
) -> Selection:
    """Select anchors by their row maxima; `estimate` is the number where none is given."""
    if choice == "row-maxima":
        return _by_row_maxima(data, maxima, n_components, estimate.number, ties)
    wanted = n_components or min(estimate.most + 1, len(maxima))
    order = leading_rows(maxima, max(ROWS_PER_ANCHOR * wanted, FEWEST_ROWS))[0]
    candidates = order[maxima[order] > 0]
    if n_components is None:
        candidates = _without_zeros(data, candidates)
    weights = maxima[candidates] ** POWER
    if 0 < len(candidates) < wanted:
        # Fewer rows are in use than anchors are wanted: those of SPA come after them.
        more = np.setdiff1d(_greedy(data, wanted, greedy), candidates)
        candidates = np.concatenate([candidates, more])
        weights = np.concatenate([weights, np.full(len(more), weights.min())])
    anchors, scores, squares = apart(data, candidates, weights, wanted)
    drop = None
    if n_components is None:
        above = number_above_noise(data, anchors, squares) if len(anchors) == wanted else None
        # Where distances ended at zero, the next score is zero.
        scores = np.append(scores, np.zeros(int(len(scores) < wanted)))
        number = number_of_anchors(scores, estimate.most) if above is None else last_drop(scores, above)
        anchors = anchors[:number]
        drop = float(scores[number - 1] / max(scores[number], 1e-300)) if 0 < number < len(scores) else None
    elif len(anchors) < n_components:
        # All other candidates are mixtures of the anchors: the rest of the places go by row maxima.
        anchors = distinct_rows(data, np.concatenate([anchors, candidates]), n_components)
    anchors = _by_maxima(anchors, maxima)
    if not len(anchors):
        return Selection(anchors, candidates, Fit(0.0, 0.0))
    if choice == "spread":
        return Selection(anchors, candidates, fit_of(data, anchors, candidates), drop=drop)
    greedy = _greedy(data, len(anchors), greedy)
    candidates = np.union1d(candidates, greedy)
    fit = fit_of(data, anchors, candidates)
    if len(greedy) < len(anchors):
        return Selection(anchors, candidates, fit, drop=drop)
    spa_fit = fit_of(data, greedy, candidates)
    if spa_fit.largest < (1.0 - SAME_FIT) * fit.largest:
        anchors = _by_maxima(greedy, maxima)
        return Selection(
            anchors, candidates, spa_fit, drop=drop, merit_fit=fit, spa_fit=spa_fit, from_spa=True
        )
    return Selection(anchors, candidates, fit, drop=drop, merit_fit=fit, spa_fit=spa_fit)


def fit_of(data: DataMatrix, anchors: IntArray, candidates: IntArray) -> Fit:
    """Measure the distances of samples from the hull of the anchors."""
    # Where there are very many samples: of those that stand out as candidates, and some of the others.
    some = evenly_spaced(data.shape[0], MOST_POINTS)
    rows = np.union1d(some, candidates)
    squares = squared_residuals(data, anchors, rows, standardized=True)
    typical = squares[np.isin(rows, some) & ~np.isin(rows, anchors)]
    if not len(typical):
        return Fit(0.0, float(squares.max()))
    return Fit(float(np.mean(typical)), float(squares.max()), float(np.median(typical)))


def apart(
    data: DataMatrix, rows: IntArray, weights: FloatArray, n_wanted: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Select rows one after another by weight times standardized distance from the hull of those before.

    Returns the rows, these products, and the squares of the distances.
    """
    if not len(rows):
        return rows, np.empty(0), np.empty(0)
    places = np.argsort(rows)  # of equal scores, the lowest index
    rows, weights = rows[places], weights[places]
    points = to_float64(data.take_rows(rows)).astype(np.float64)
    longest = float(np.linalg.norm(points, axis=1).max(initial=0.0))
    distances = np.linalg.norm(points - points.mean(axis=0), axis=1)
    current = np.ones(len(rows), dtype=bool)
    taken: list[int] = []
    scores: list[float] = []
    squares: list[float] = []
    while len(taken) < min(n_wanted, len(rows)):
        bounds = weights * distances
        while not current[lead := _leading(bounds)]:
            old = np.flatnonzero(~current)
            update = old[np.argsort(-bounds[old], kind="stable")[:BATCH]]
            distances[update], standardized = hull_distances(points[update], points[taken])
            bounds[update] = weights[update] * standardized
            current[update] = True
        if taken and distances[lead] <= NO_DISTANCE * longest:
            break
        scores.append(float(bounds[lead]))
        squares.append(float(bounds[lead] / weights[lead]) ** 2 if taken else np.inf)
        if not taken:
            distances[:] = np.inf
        taken.append(lead)
        distances[lead] = 0.0
        # A hull that grows only comes closer: the old distances are upper bounds, and most need no update.
        current[:] = False
        current[taken] = True
    return rows[taken], np.asarray(scores), np.asarray(squares)


def number_of_anchors(scores: FloatArray, most: int) -> int:
    """Return the number of anchors: the largest ratio of successive scores, up to a largest number."""
    # Not below an eighth of it: the first distances fall for reasons of geometry, whatever the number (the
    # second is from one point, the third from a segment).
    if len(scores) < 2:
        return len(scores)
    first = max(1, min(most // 8, len(scores) - 1))
    return first + int(np.argmax(scores[first - 1 : -1] / np.maximum(scores[first:], 1e-300)))


def last_drop(scores: FloatArray, number: int) -> int:
    """Return the number of anchors, given that of the candidates that stand out from the noise."""
    # Near-duplicates of anchors stand out from weak noise, and noise itself in one of twenty sets of samples.
    drops = scores[:number] / np.maximum(scores[1 : number + 1], 1e-300)
    first = max(2, math.ceil(SURELY * number)) - 1
    earlier = drops[first:-1]
    clear = len(earlier) > 0 and float(earlier.max()) >= CLEAR_DROP * float(drops[-1])
    return first + 1 + int(np.argmax(earlier)) if clear else number


def _without_zeros(data: DataMatrix, rows: IntArray) -> IntArray:
    # The origin is a vertex of mixtures whose weights sum to one, but nobody asks for a component of zeros.
    useful = to_float64(data.take_rows(rows)).any(axis=1)
    return rows[useful] if useful.any() else rows


def _leading(bounds: FloatArray) -> int:
    return int(np.argmax(bounds >= (1.0 - SAME_DISTANCE) * bounds.max()))


def _greedy(data: DataMatrix, k: int, given: IntArray | None) -> IntArray:
    # SPA is greedy: the first k of more anchors are the anchors for k.
    return greedy_anchors(data, k) if given is None or len(given) < k else given[:k]


def _by_maxima(anchors: IntArray, maxima: FloatArray) -> IntArray:
    return anchors[np.lexsort((anchors, -maxima[anchors]))]


def _by_row_maxima(
    data: DataMatrix, maxima: FloatArray, n_components: int | None, estimate: int, ties: str
) -> Selection:
    candidates = row_maxima_anchors(maxima, None if n_components is None else len(maxima), 2 * estimate)
    wanted = len(candidates) if n_components is None else n_components
    anchors, n_tied = break_ties(data, candidates, maxima[candidates], wanted, ties)
    if not len(anchors):
        return Selection(anchors, candidates, Fit(0.0, 0.0), apart=False)
    candidates = candidates[: max(ROWS_PER_ANCHOR * wanted, FEWEST_ROWS)]
    fit = fit_of(data, anchors, candidates)
    return Selection(anchors, candidates, fit, apart=False, n_tied=n_tied)


def row_maxima_anchors(maxima: FloatArray, n_components: int | None, most: int) -> IntArray:
    """Return the rows with the largest maxima; without a number, up to their largest drop."""
    curve = leading_rows(maxima, len(maxima))[1]
    if n_components is None:
        # Far down the curve single rows drop to zero; the anchors are among the first.
        drops = curve[:most] - np.append(curve, 0.0)[1 : most + 1]
        n_components = int(np.argmax(drops)) + 1
    found = leading_rows(maxima, n_components)[0]
    # A row of zeros is no anchor, even if more were requested.
    return found[curve[: len(found)] > 0]
