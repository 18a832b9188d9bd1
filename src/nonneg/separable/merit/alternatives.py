"""Whether other samples could be the anchors: what the certificate of MERIT says about wrong results.

Anchors are wrong in two ways. A sample that noise moved out of the hull takes the place of an anchor: it
stands out no more than the farthest of the samples that are left, and the anchor that it replaces is among
these. Or a mixture is taken for the anchor that it is close to: along the direction in which an anchor stands
out, noise hides which of two samples is purer.

Both limits were chosen on the tuning draws of studies/merit-certificate, which reports on other draws and
other data how many wrong results they detect, and how many correct ones they flag.
"""

from __future__ import annotations

import math

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray, IntArray
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data import DataMatrix
from nonneg.leastsquares.simplex import simplex_least_squares
from nonneg.separable.merit.choice import Fit
from nonneg.separable.merit.recovery_conditions import MOST_ANCHORS
from nonneg.separable.merit.residuals import MOST_POINTS, evenly_spaced, hull_distances

# How much more the nearest anchor must stand out from the noise than the farthest other sample: a ratio of
# squared distances, the typical square of noise subtracted.
CLEAR_RATIO = 1.3
# An anchor is a mixture where it is less pure than this share of the purest sample beside it, and doubtful
# where the probability of that is above the second number.
PURE, DOUBTFUL = 0.85, 0.01
# Samples and features from which the directions of the mixtures and the noise are estimated: seconds.
SAMPLES, ENTRIES = 4000, 4_000_000
# Weights of an anchor in samples, on a grid: smaller ones do not compete.
GRID = np.arange(0.3, 1.4, 0.025)
BINS = np.arange(0.3, 1.5, 0.01)
EM_STEPS = 40


def alternatives_statement(W: FloatArray, fit: Fit) -> Statement:
    """State whether another sample stands out as much as an anchor."""
    if len(W) > MOST_ANCHORS:
        sentence = f"Other anchors were not looked for: there are more than {MOST_ANCHORS} anchors."
        return Statement("alternatives", sentence, None, None, Verdict.NOT_VERIFIABLE)
    kappa = nearest_anchor(W)
    outside = math.sqrt(fit.largest)
    rounding = 1e-7 * float(np.linalg.norm(W, axis=1).max())
    # Without noise all distances from the hull are rounding errors.
    excess = max(kappa**2 - fit.median, 0.0)
    ratio = math.inf if outside <= rounding else excess / max(fit.largest - fit.median, 1e-300)
    holds = kappa > rounding and ratio >= CLEAR_RATIO
    sentence = (
        f"The anchor that the others replace best is {kappa:.4g} away from their convex hull, the sample "
        f"farthest from the hull of all anchors {outside:.4g}, a typical one {math.sqrt(fit.median):.4g} (in "
        "units of the same noise): "
    )
    sentence += "no other sample stands out as much." if holds else "other anchors may fit as well."
    quantities = {"kappa": kappa, "outside": outside, "noise": math.sqrt(fit.median)}
    verdict = Verdict.HOLDS if holds else Verdict.FAILS
    return Statement("alternatives", sentence, ratio, CLEAR_RATIO, verdict, quantities)


def nearest_anchor(W: FloatArray) -> float:
    """Return the smallest standardized distance of an anchor from the hull of the others."""
    if len(W) == 1:
        return float(np.linalg.norm(W[0]))
    shifted = W - W.mean(axis=0)
    everyone = np.arange(len(W))
    return min(float(hull_distances(shifted[i : i + 1], shifted[everyone != i])[1][0]) for i in everyone)


def uncertain_anchors_statement(data: DataMatrix, anchors: IntArray, candidates: IntArray) -> Statement:
    """State how many anchors may be mixtures, given the noise."""
    k = len(anchors)
    if not 1 < k <= MOST_ANCHORS:
        sentence = f"The purity of anchors is compared for 2 to {MOST_ANCHORS} anchors."
        return Statement("uncertain-anchors", sentence, None, None, Verdict.NOT_VERIFIABLE)
    n, m = data.shape
    some = to_float64(data.take_rows(evenly_spaced(n, min(SAMPLES, max(k, ENTRIES // m))))).astype(np.float64)
    mean = some.mean(axis=0)
    directions, noise = leading_directions(some - mean, k - 1)
    rows = np.setdiff1d(np.union1d(evenly_spaced(n, MOST_POINTS), candidates), anchors)
    points = (to_float64(data.take_rows(rows)).astype(np.float64) - mean) @ directions
    vertices = (to_float64(data.take_rows(anchors)).astype(np.float64) - mean) @ directions
    distances, weights = competition(vertices, points)
    doubts = np.array([mixture_probability(w, noise, d) for w, d in zip(weights, distances, strict=True)])
    n_doubtful = int(np.sum(doubts > DOUBTFUL))
    sentence = (
        f"The noise has a standard deviation of {noise:.4g} in a direction; anchors stand out from the hull "
        f"of the others by {distances.min():.4g} or more. "
    )
    sentence += (
        f"For {n_doubtful} of {k} anchors, another sample may be the true anchor: that it is purer by "
        f"{1.0 - PURE:.0%} has a probability of up to {doubts.max():.2g}."
        if n_doubtful
        else f"No other sample is purer by {1.0 - PURE:.0%}, except with a probability of {doubts.max():.2g}."
    )
    quantities = {"noise": noise, "smallest_distance": float(distances.min()), "k": k}
    quantities |= {"uncertain": n_doubtful, "expected": float(doubts.sum())}
    verdict = Verdict.FAILS if n_doubtful else Verdict.HOLDS
    return Statement("uncertain-anchors", sentence, float(doubts.max()), DOUBTFUL, verdict, quantities)


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


def competition(vertices: FloatArray, points: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """Return the distances of vertices from the hull of the others, and how far points reach toward them."""
    # The second is 1 for a point as far along the direction from the hull to the vertex as the vertex.
    k = len(vertices)
    center = vertices.mean(axis=0)
    shifted, points = vertices - center, points - center
    gram = shifted @ shifted.T
    distances = np.zeros(k)
    reached: list[FloatArray] = []
    for i in range(k):
        others = np.delete(np.arange(k), i)
        weights = simplex_least_squares(gram[np.ix_(others, others)], gram[None, i, others])[0]
        foot = weights @ shifted[others]
        away = shifted[i] - foot
        square = float(away @ away)
        distances[i] = math.sqrt(square)
        # Duplicates of the vertex are no competitors.
        other = np.max(np.abs(points - shifted[i]), axis=1, initial=0.0) > 1e-9 * distances[i]
        reached.append((points[other] - foot) @ away / square if square > 0 else np.ones(1))
    return distances, reached


def mixture_probability(weights: FloatArray, noise: float, distance: float) -> float:
    """Return the probability that a vertex, of weight one, is a mixture beside a purer sample.

    The true weights have the distribution that makes the observed ones most likely (nonparametric maximum
    likelihood, Kiefer & Wolfowitz 1956, by expectation maximization on a grid). Given that, every sample has
    its own posterior distribution.
    """
    if distance <= 0.0:
        return 1.0
    # Where noise is finer than the grid, the grid decides.
    sigma = max(noise / distance, 0.5 * float(GRID[1] - GRID[0]))
    counts = np.bincount(np.digitize(weights[weights > BINS[0]], BINS) - 1, minlength=len(BINS))
    used = np.flatnonzero(counts)
    observed = np.append(BINS[used] + 0.5 * (BINS[1] - BINS[0]), 1.0)
    counts = np.append(counts[used], 1)
    logs = -0.5 * ((observed[:, None] - GRID) / sigma) ** 2
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    prior = np.full(len(GRID), 1.0 / len(GRID))
    for _ in range(EM_STEPS):
        posterior = likelihood * prior
        posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), 1e-300)
        prior = counts @ posterior / counts.sum()
    # The purest of the others is at most v where all of them are.
    below = np.log(np.maximum(np.cumsum(posterior[:-1], axis=1), 1e-12))
    none_purer = np.exp(np.interp(GRID / PURE, GRID, counts[:-1] @ below, right=0.0))
    return float(np.clip(posterior[-1] @ (1.0 - none_purer), 0.0, 1.0))
