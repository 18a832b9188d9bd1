"""Certificate of a minimum-volume fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.certificates.bounds import lower
from nonneg.certificates.certificate import Statement, Verdict, verdict_of
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.minvol.noise import NoiseLevel

# The gradient of the fit and that of the volume cancel up to a hundredth: the volume is then within a few
# hundredths of a percent of that of the stationary point on generated scenes.
STATIONARY = 1e-2
# Noise alone leaves a root mean square residual of one noise level; 10% more is a worse fit.
FITS = 1.1
# Two levels of the same noise, from its largest direction and from the mean of all, differ by less than this.
NOT_WHITE = 1.5
# A weight below this counts as zero: rounding in single precision.
ZERO = 1e-6


def scatter(data: DataMatrix, W: SampleArray) -> tuple[FloatArray, Any]:
    """Return the largest share of each component in a sample, and the number of samples without it."""
    largest, empty = data.reduce_rows(_scatter, W)
    return np.max(largest, axis=0), empty


def _scatter(block: LocalMatrix, W: Array) -> tuple[list[Any], Any]:
    W = to_float64(W)
    sums = W.sum(axis=1, keepdims=True)
    weights = W / np.where(sums > 0, sums, 1.0)
    return [weights.max(axis=0)], (weights <= ZERO).sum(axis=0)


def stationarity(residual: float, stalled: bool = False) -> Statement:
    """Return the statement that fit and volume balance."""
    good = residual <= STATIONARY
    sentence = f"The projected gradient of the objective is {residual:.2e} times that of its volume term, "
    verdict = verdict_of(good)
    if good:
        sentence += f"at most {STATIONARY:g}: fit and volume balance."
    elif stalled:
        # As for copies of one sample, whose simplex has no volume: gradients are differences of rounding.
        sentence += f"above {STATIONARY:g}, but no step lowered the objective any further in this precision."
        verdict = Verdict.NOT_VERIFIABLE
    else:
        sentence += f"above {STATIONARY:g}: fit and volume do not balance yet."
    return Statement("stationarity", sentence, residual, STATIONARY, verdict)


def noise_fit(data: DataMatrix, error: float, k: int, noise: NoiseLevel) -> Statement:
    """Return the statement that the residual is not larger than noise."""
    n, m = data.shape
    quantities = {"noise_level": noise.sigma, "error": error}
    components = "1 component" if k == 1 else f"{k} components"
    if not noise.estimated:
        sentence = (
            "The noise level was not estimated: it was given, or what is left of the data beyond "
            f"{components} is below the least level that is assumed."
        )
        return Statement("noise-fit", sentence, None, FITS, Verdict.NOT_VERIFIABLE, quantities)
    largest = noise.sigma * (math.sqrt(n) + math.sqrt(m))
    level, spread = white_level(largest, n - k, m - k)
    if 2.0 * spread > FITS - 1.0:
        sentence = (
            f"Beyond {components}, {n} samples of {m} features leave too little to know the noise to within "
            f"{FITS - 1.0:.0%}."
        )
        return Statement("noise-fit", sentence, None, FITS, Verdict.NOT_VERIFIABLE, quantities)
    # Each sample has k - 1 weights that were fitted to it.
    freedom = math.sqrt(n * (m - k + 1))
    ratio = error / (level * freedom)
    # The same with the mean of what is left in place of its largest direction: equal for white noise.
    mean_level = noise.rest / math.sqrt((n - k) * (m - k))
    spread_out = error / (mean_level * freedom)
    quantities |= {"white_level": level, "ratio_to_rest": spread_out}
    sentence = f"The residual is {ratio:.3g} times what white noise of the estimated level {level:.3g} leaves"
    if ratio > FITS:
        sentence += ": lam is too large, the iterations ended early, or the model is wrong."
        verdict = Verdict.FAILS
    elif spread_out > FITS:
        sentence += (
            f", but what is left beyond {components} is not white, and the residual is {spread_out:.3g} "
            "times what its mean level leaves: a component may be missing, or the volume term costs more "
            "than noise."
        )
        verdict = Verdict.NOT_VERIFIABLE
    else:
        sentence += ": the volume term costs no more than noise."
        if level > NOT_WHITE * mean_level:
            sentence += f" What is left beyond {components} is not white: another component may be missing."
        verdict = Verdict.HOLDS
    return Statement("noise-fit", sentence, ratio, FITS, verdict, quantities)


def white_level(largest: float, n: int, m: int) -> tuple[float, float]:
    """Return the level of white noise of an n x m matrix, by its largest singular value, and its spread."""
    # Mean and deviation of the Tracy-Widom law (Johnstone 2001, Annals of Statistics 29(2); centering of Ma
    # 2012, Bernoulli 18(1)). Without the corrections, small matrices seem to have too little noise.
    a, b = math.sqrt(n - 0.5), math.sqrt(m - 0.5)
    width = (a + b) * (1.0 / a + 1.0 / b) ** (1.0 / 3.0)
    mean = (a + b) ** 2 - 1.2065 * width
    if mean <= 0:
        return math.inf, math.inf
    return largest / math.sqrt(mean), 0.5 * 1.268 * width / mean


def scattering(shares: FloatArray, n_without: Any) -> Statement:
    """Return the statement about the condition under which the components are identified."""
    # Sufficiently scattered samples hold the cone sum(w) >= sqrt(k - 1) ||w||, whose points reach a largest
    # weight of 2 / k, and touch every facet in k - 1 directions (Huang, Sidiropoulos & Swami 2014, IEEE
    # Trans. Signal Processing 62(1)). Deciding the rest is NP-hard.
    k, purity, fewest = len(shares), float(shares.min()), int(n_without.min())
    needed = 2.0 / k
    quantities = {
        "smallest_purity": purity,
        "fewest_samples_on_a_facet": fewest,
        "needed_purity": needed,
        "needed_samples_on_a_facet": k - 1,
    }
    if k <= 1:
        sentence = "There is one component, and no other to confuse it with."
        return Statement("sufficiently-scattered", sentence, purity, None, Verdict.HOLDS, quantities)
    conditions = (
        f"the largest weight of every component is at least {lower(purity, 3)} (needed: {needed:.3g}), and "
        f"the number of samples without it is at least {fewest} (needed: {k - 1})"
    )
    if purity < needed - ZERO or fewest < k - 1:
        sentence = (
            f"The fitted weights are not sufficiently scattered: {conditions}. The condition under which the "
            "components are known to be unique is not met."
        )
        return Statement("sufficiently-scattered", sentence, purity, needed, Verdict.FAILS, quantities)
    sentence = (
        f"Two necessary conditions hold: {conditions}. That the weights are sufficiently scattered, so that "
        "the components are unique, cannot be verified in general."
    )
    return Statement("sufficiently-scattered", sentence, purity, needed, Verdict.NOT_VERIFIABLE, quantities)
