"""Whether other samples could be the anchors as well, given the noise: warnings that need no truth.

A wrong anchor is a sample that noise moved out of the hull of the others. It is then hardly farther out than
the farthest of the samples that are left, and the anchor that it replaces is among these. A mixture that is
taken for an anchor close to it is harder to see: along the direction in which an anchor stands out, the two
differ by no more than the noise.

Both limits were chosen on the choosing draws of studies/merit-weight, which reports on other draws and other
data how many wrong answers they find, and how many right ones they doubt.
"""

from __future__ import annotations

import math

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray, IntArray
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data import DataMatrix
from nonneg.leastsquares.simplex import simplex_least_squares
from nonneg.separable.merit.penalty_weight import MOST_POINTS, evenly_spaced
from nonneg.separable.merit.recovery_conditions import MOST_ANCHORS

# How much farther from the hull the nearest anchor must be than the farthest other sample, as a ratio of
# squares.
CLEAR_RATIO = 1.1
# Another sample may be the anchor if it comes within this many standard deviations of the noise, and one of
# them is more than this share of the distance of the anchor from the hull of the others.
DEVIATIONS, NOISE_SHARE = 3.0, 0.085
# Neither where anchors stand out by this ratio, nor among more anchors than this: a mixture that is nearly
# one of many anchors is rare, and near-duplicates of them would be taken for one.
CERTAIN_RATIO, FEW_ANCHORS = 2.0, 10
# Samples and features from which the directions of the mixtures and the noise are estimated: seconds.
SAMPLES, ENTRIES = 4000, 4_000_000


def alternatives_statement(kappa: float | None, outside: float, longest: float) -> Statement:
    """State whether another sample is as far outside as an anchor."""
    if kappa is None:
        sentence = f"Other anchors were not looked for: there are more than {MOST_ANCHORS} anchors."
        return Statement("alternatives", sentence, None, None, Verdict.NOT_VERIFIABLE)
    # Without noise all distances from the hull are rounding errors.
    ratio = math.inf if outside <= 1e-7 * longest else (kappa / outside) ** 2
    holds = kappa > 1e-7 * longest and ratio >= CLEAR_RATIO
    sentence = (
        f"The anchor that the others replace best is {kappa:.4g} away from their convex hull; the sample "
        f"farthest from the hull of all anchors is {outside:.4g} away: "
    )
    sentence += "no other sample stands out as much." if holds else "other anchors may fit as well."
    quantities = {"kappa": kappa, "outside": outside}
    verdict = Verdict.HOLDS if holds else Verdict.FAILS
    return Statement("alternatives", sentence, ratio, CLEAR_RATIO, verdict, quantities)


def uncertain_anchors_statement(
    data: DataMatrix, anchors: IntArray, candidates: IntArray, ratio: float | None
) -> Statement:
    """State how many anchors have a competitor within the noise; `ratio` is that of the alternatives."""
    k = len(anchors)
    if not 1 < k <= FEW_ANCHORS:
        sentence = (
            f"Competitors of single anchors within the noise are counted for 2 to {FEW_ANCHORS} anchors."
        )
        return Statement("uncertain-anchors", sentence, None, None, Verdict.NOT_VERIFIABLE)
    n, m = data.shape
    some = to_float64(data.take_rows(evenly_spaced(n, min(SAMPLES, max(k, ENTRIES // m))))).astype(np.float64)
    mean = some.mean(axis=0)
    directions, noise = leading_directions(some - mean, k - 1)
    rows = np.setdiff1d(np.union1d(evenly_spaced(n, MOST_POINTS), candidates), anchors)
    points = (to_float64(data.take_rows(rows)).astype(np.float64) - mean) @ directions
    vertices = (to_float64(data.take_rows(anchors)).astype(np.float64) - mean) @ directions
    distances, reached = competition(vertices, points)
    close = (1.0 - reached) * distances < DEVIATIONS * noise
    doubtful = ratio is not None and ratio < CERTAIN_RATIO
    uncertain = int(np.sum(close & (noise > NOISE_SHARE * distances))) if doubtful else 0
    sentence = (
        f"The noise has a standard deviation of {noise:.4g} in a direction; anchors stand out from the hull "
        f"of the others by {distances.min():.4g} or more. "
    )
    sentence += (
        f"For {uncertain} of {k} anchors another sample within {DEVIATIONS:g} deviations may be the anchor."
        if uncertain
        else "No other sample could be an anchor because of the noise."
    )
    verdict = Verdict.FAILS if uncertain else Verdict.HOLDS
    quantities = {"noise": noise, "smallest_distance": float(distances.min()), "k": k}
    return Statement("uncertain-anchors", sentence, uncertain, 0.0, verdict, quantities)


def leading_directions(centered: FloatArray, n_directions: int) -> tuple[FloatArray, float]:
    """Return the directions of largest variance, and the standard deviation in the others."""
    n, m = centered.shape
    q = min(n_directions, m, n)
    _, values, directions = np.linalg.svd(centered, full_matrices=False)
    if q < m and q < n - 1:
        noise = math.sqrt(float(np.sum(values[q:] ** 2)) / ((n - 1 - q) * (m - q)))
    else:
        # No direction is left over: the smallest one bounds the noise from above.
        noise = float(values[q - 1]) / math.sqrt(max(n - 1, 1))
    # Rounding errors are no noise.
    return directions[:q].T, noise if noise > 1e-7 * float(values[0]) / math.sqrt(n) else 0.0


def competition(vertices: FloatArray, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distances of vertices from the hull of the others, and how far points reach toward them."""
    # The second is 1 for a point as far along the direction from the hull to the vertex as the vertex.
    k = len(vertices)
    center = vertices.mean(axis=0)
    shifted, points = vertices - center, points - center
    gram = shifted @ shifted.T
    distances, reached = np.zeros(k), np.full(k, -np.inf)
    for i in range(k):
        others = np.delete(np.arange(k), i)
        weights = simplex_least_squares(gram[np.ix_(others, others)], gram[None, i, others])[0]
        foot = weights @ shifted[others]
        away = shifted[i] - foot
        square = float(away @ away)
        distances[i] = math.sqrt(square)
        # Duplicates of the vertex are no competitors.
        other = np.max(np.abs(points - shifted[i]), axis=1, initial=0.0) > 1e-9 * distances[i]
        if other.any() and square > 0:
            reached[i] = float(((points[other] - foot) @ away).max()) / square
    return distances, reached
