"""The automatic weight of the row sparsity: from the noise that the anchors of SPA leave.

A sample can represent itself. Its own row of C then costs lam times its weight there, and it saves half the
square of what the sample lies outside the hull of the others. At the minimum over one sample, its weight in
its own row is ``1 - lam / d^2`` with d that distance, or 0. So the rows of noise vanish and those of anchors
stay where lam is

- above the squared distance that noise alone moves a sample out of the hull, and
- below the squared distance of an anchor from the hull of the other anchors.

The first is about the mean squared residual of a sample, which the anchors of SPA give well enough even where
some of them are wrong. Both are squares of distances: the rule does not depend on the unit of X, nor on N.

That is the weight for the published run, 100 steps from zero, which ends long before rows are traded between
samples. At the minimum of the whole problem all N samples share the K rows, and the same balance holds
for all of them together: the weight is a share of the squared residual of all samples over the number of
anchors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import IntArray
from nonneg.data import DataMatrix
from nonneg.separable.arguments import PUBLISHED_WEIGHTS
from nonneg.separable.merit.residuals import (
    MOST_POINTS,
    evenly_spaced,
    number_above_noise,
    squared_residuals,
    successive_squares,
)
from nonneg.separable.snpa import snpa
from nonneg.separable.spa import spa

# The number of anchors is estimated as that of the anchors of SPA with a residual above this fraction of the
# second one; the first is the distance from the origin, which says nothing about the spread. For 5 to 60
# anchors, at 9 to 40 dB, the estimate was between 60% and 100% of the number (more where noise hides the
# anchors from any method).
RESIDUAL_SHARE = 0.5
FIRST_ANCHORS = 16  # doubled until the residuals have fallen
# The published rule looks at more points, as it always did.
MOST_POINTS_PUBLISHED = 100_000
# Half of the mean squared residual, in the middle of the window on planted anchors of 100 to 1000 samples, 5
# to 25 dB: above 1 anchors are lost, below 0.1 the rows of noise stay.
NOISE_SHARE = 0.5
# For converged runs: a few hundred samples want 0.2 to 0.5 (choosing draws again); for thousands, 0.1 to 3
# find the same anchors, and 1 takes half the time or less. In between, the share grows with their number.
CONVERGED_SHARES, MANY_SAMPLES = (0.3, 1.0), 10_000
# Where there is hardly any noise, a share of the variance of the samples instead: smaller weights take long,
# and from 0.01 to 0.1 of it the anchors are the same.
VARIANCE_SHARE = 0.05
VARIANCE_POINTS = 2000  # from which that variance is estimated


@dataclass(frozen=True)
class PenaltyWeight:
    """A weight and the quantities it is computed from."""

    lam: float  # the weight in the objective (18) of the paper, with the 1/2
    anchors: IntArray  # of successive projections
    residual_norm: float  # Frobenius norm of the data minus their best mixtures of these anchors


def penalty_weight(
    data: DataMatrix,
    n_components: int | None,
    rule: str = "auto",
    *,
    converges: bool = False,
    anchors: IntArray | None = None,
    mu: float = 1e-5,
) -> PenaltyWeight:
    """Return the weight by a rule: "auto" from the noise of a sample, "paper" or "printed"."""
    k = estimated_number(data).number if n_components is None else n_components
    if anchors is None:
        anchors = greedy_anchors(data, min(2 * k, *data.shape) if n_components is None else k)
    n = data.shape[0]
    rows = evenly_spaced(n, MOST_POINTS_PUBLISHED if rule in PUBLISHED_WEIGHTS else MOST_POINTS)
    mean = float(np.mean(squared_residuals(data, anchors, rows)))
    norm = math.sqrt(n * mean)
    if rule == "paper":
        # The authors' code sets twice this weight in an objective without the 1/2, which is the same problem.
        return PenaltyWeight(norm / (2.0 * k), anchors, norm)
    if rule == "printed":
        # ``||X - X C0|| / Phi(C0)``. Every anchor represents itself: the rows of C0 have the maximum one, of
        # which the smoothing leaves 1 - mu log N.
        return PenaltyWeight(norm / (k * (1.0 - mu * math.log(n))), anchors, norm)
    if not converges:
        return PenaltyWeight(NOISE_SHARE * mean, anchors, norm)
    some = to_float64(data.take_rows(evenly_spaced(n, VARIANCE_POINTS))).astype(np.float64)
    variance = float(np.sum(np.var(some, axis=0)))
    share = float(np.clip(n / MANY_SAMPLES, *CONVERGED_SHARES))
    return PenaltyWeight(max(share * mean, VARIANCE_SHARE * variance) * n / k, anchors, norm)


def greedy_anchors(data: DataMatrix, n_components: int) -> IntArray:
    """Return the anchors of SPA, or of SNPA where there are more anchors than dimensions."""
    found = spa(data, min(n_components, *data.shape)).anchors
    return found if len(found) == n_components else snpa(data, n_components).anchors


@dataclass(frozen=True)
class NumberEstimate:
    """The number of anchors, accurately enough for a weight, and the largest number that is looked at."""

    number: int
    most: int


def estimated_number(data: DataMatrix) -> NumberEstimate:
    """Estimate the number of anchors from those of SPA."""
    most, n_anchors = min(data.shape), FIRST_ANCHORS
    while True:
        found = spa(data, min(n_anchors, most))
        scores = np.asarray(found.scores)
        if len(scores) < 2:
            return NumberEstimate(1, 2)
        long = scores > RESIDUAL_SHARE * scores[1]
        if n_anchors >= most or len(scores) < n_anchors or not long[-1]:
            break
        n_anchors *= 2
    number = max(1, int(np.sum(long)))
    # The number is too low where anchors differ in length: up to four times as many are looked at, where they
    # can be affinely independent.
    most = max(2 * number, min(4 * number, data.shape[1]))
    # It is too high for a few anchors and many features, whose noise lengthens all residuals alike.
    points = to_float64(data.take_rows(found.anchors)).astype(np.float64)
    above = number_above_noise(data, found.anchors, successive_squares(points))
    return NumberEstimate(number if above is None else above, most)
