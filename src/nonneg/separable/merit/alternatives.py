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
# squared distances, the typical square of noise subtracted. The second limit is for anchors whose row maxima
# exceed those of all other samples: few wrong ones do.
CLEAR_RATIO, MARGIN_RATIO = 1.35, 1.1
# Rounding: of the data, of distances from weights that a Gram matrix gives, and of squares that are equal.
DOUBLE, COARSE, TIED = float(np.finfo(np.float64).eps), 1e-7, 1e-9
# An anchor is a mixture where it is less pure than this share of the purest sample beside it, and doubtful
# where the probability of that is above the second number times the number of anchors: with many of them,
# the directions in which they stand out are known less well, and the probabilities are too large.
PURE, DOUBTFUL = 0.85, 0.005
# Smaller probabilities are not told apart by the grid and the steps below.
SMALL = 1e-4
# Samples and features from which the directions of the mixtures and the noise are estimated: seconds.
SAMPLES, ENTRIES = 4000, 4_000_000
# Weights of an anchor in samples, on a grid: smaller ones do not compete.
GRID = np.arange(0.3, 1.4, 0.025)
BINS = np.arange(0.3, 1.5, 0.01)
EM_STEPS = 40


def alternatives_statement(
    W: FloatArray, fit: Fit, *, margin: float = 0.0, n_samples: int = 0, eps: float = DOUBLE
) -> Statement:
    """State whether another sample stands out as much as an anchor.

    `margin` is that of the row maxima, and `eps` the rounding of the data.
    """
    if not 1 < len(W) <= MOST_ANCHORS:
        sentence = f"Other anchors were not looked for: there are more than {MOST_ANCHORS} anchors."
        if len(W) == 1:
            sentence = "A single anchor has no others that could replace it."
        return Statement("alternatives", sentence, None, None, Verdict.NOT_VERIFIABLE)
    kappa = nearest_anchor(W)
    outside, typical = math.sqrt(fit.largest), math.sqrt(fit.median)
    longest = float(np.linalg.norm(W, axis=1).max())
    rounding = 10.0 * eps * longest
    # Without noise all distances from the hull are rounding errors.
    if outside <= rounding or outside <= COARSE * longest < kappa:
        ratio = math.inf if kappa > rounding else 0.0
    else:
        ratio = excess_ratio(kappa, outside, typical)
    limit = MARGIN_RATIO if margin > 0 else CLEAR_RATIO
    holds = kappa > rounding and ratio >= limit
    sentence = (
        f"The anchor that the others replace best is {kappa:.4g} away from their convex hull, the sample "
        f"farthest from the hull of all anchors {outside:.4g}, a typical one {typical:.4g} (divided by "
        "sqrt(1 + ||w||^2) for the weights w of the mixture, the noise of such a difference): "
    )
    sentence += "no other sample stands out as much." if holds else "other anchors may fit as well."
    sentence += _compared(n_samples)
    quantities = {"kappa": kappa, "outside": outside, "noise": typical}
    verdict = Verdict.HOLDS if holds else Verdict.FAILS
    return Statement("alternatives", sentence, ratio, limit, verdict, quantities)


def excess_ratio(kappa: float, outside: float, typical: float) -> float:
    """Return by how many times as much a distance exceeds noise as another one: a ratio of squares."""
    # In units of the larger one: in their own, squares may vanish.
    unit = max(kappa, outside)
    near, far, noise = ((distance / unit) ** 2 for distance in (kappa, outside, typical))
    excess, other = max(near - noise, 0.0), max(far - noise, 0.0)
    ratio = excess / other if other > 0 else math.inf if excess > 0 else 0.0
    # Where all samples are as far away, rounding decides which of them is farther.
    return ratio if near > (1.0 + TIED) * far else min(ratio, 1.0)


def _compared(n_samples: int) -> str:
    if n_samples <= MOST_POINTS:
        return ""
    return (
        f" Of {n_samples} samples, the candidates and one in {-(-n_samples // MOST_POINTS)} of the others "
        "were compared."
    )


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
    directions, noise, known = leading_directions(some - mean, k - 1)
    if not known:
        sentence = (
            f"{n} samples of {m} features leave no direction beside those of {k} anchors to estimate the "
            "noise from, or do not tell them apart: which samples are purer is not known."
        )
        return Statement("uncertain-anchors", sentence, None, DOUBTFUL * k, Verdict.NOT_VERIFIABLE)
    rows = np.setdiff1d(np.union1d(evenly_spaced(n, MOST_POINTS), candidates), anchors)
    points = (to_float64(data.take_rows(rows)).astype(np.float64) - mean) @ directions
    vertices = (to_float64(data.take_rows(anchors)).astype(np.float64) - mean) @ directions
    distances, weights = competition(vertices, points)
    doubts = np.array([mixture_probability(w, noise, d) for w, d in zip(weights, distances, strict=True)])
    n_doubtful = int(np.sum(doubts > DOUBTFUL * k))
    sentence = (
        f"The noise has a standard deviation of {noise:.4g} in a direction (if it is alike in all); anchors "
        f"stand out from the hull of the others by {distances.min():.4g} or more. "
    )
    chance = f"{doubts.max():.2g}" if doubts.max() >= SMALL else f"less than {SMALL:g}"
    sentence += (
        f"For {n_doubtful} of {k} anchors, another sample may be the true anchor: that an anchor is less "
        f"than {PURE:.0%} as pure as another sample has a probability of up to {chance}."
        if n_doubtful
        else f"No anchor is less than {PURE:.0%} as pure as another sample, except with a probability of "
        f"{chance}."
    )
    sentence += _compared(n)
    quantities = {"noise": noise, "smallest_distance": float(distances.min()), "k": k}
    quantities |= {"uncertain": n_doubtful, "expected": float(doubts.sum())}
    verdict = Verdict.FAILS if n_doubtful else Verdict.HOLDS
    return Statement("uncertain-anchors", sentence, float(doubts.max()), DOUBTFUL * k, verdict, quantities)


def leading_directions(centered: FloatArray, n_directions: int) -> tuple[FloatArray, float, bool]:
    """Return the directions of largest variance, the deviation in the others, and whether both are known."""
    n, m = centered.shape
    q = min(n_directions, m, n)
    _, values, directions = np.linalg.svd(centered, full_matrices=False)
    if q < m and q < n - 1:
        noise = float(np.linalg.norm(values[q:])) / math.sqrt((n - 1 - q) * (m - q))
        # Of equal values, which ones lead is a matter of rounding.
        rounding = COARSE * float(values[0])
        known = not values[q] > max((1.0 - TIED) * float(values[q - 1]), rounding)
    else:
        # No direction is left over: the smallest one bounds the noise from above.
        noise, known = float(values[q - 1]) / math.sqrt(max(n - 1, 1)), False
    # Rounding errors are no noise.
    return directions[:q].T, noise if noise > 1e-7 * float(values[0]) / math.sqrt(n) else 0.0, known


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
