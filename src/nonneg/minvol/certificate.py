"""What is known about a minimum-volume fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.minvol.noise import NoiseLevel

# The gradient of the fit and that of the volume cancel up to a hundredth: the volume is then within a few
# hundredths of a percent of that of the stationary point on generated scenes.
STATIONARY = 1e-2
# Noise alone leaves a root mean square residual of one noise level; 10% more is a worse fit.
FITS = 1.1
# A weight below this counts as zero: rounding in single precision.
ZERO = 1e-6


@dataclass(frozen=True)
class Scatter:
    """How the rows of W spread over the simplex."""

    purity: FloatArray  # the largest weight of each component, relative to the sum of its row
    facets: Any  # the number of samples without each component


def scatter(data: DataMatrix, W: SampleArray) -> Scatter:
    """Measure how the samples spread over the simplex."""
    _, (largest, empty) = data.map_reduce_rows(_scatter, W, n_out=0)
    return Scatter(np.max(largest, axis=0), empty)


def _scatter(block: LocalMatrix, W: Array) -> tuple[tuple[()], tuple[list[Any], Any]]:
    W = to_float64(W)
    sums = W.sum(axis=1, keepdims=True)
    shares = W / np.where(sums > 0, sums, 1.0)
    return (), ([shares.max(axis=0)], (shares <= ZERO).sum(axis=0))


def stationarity(residual: float) -> Statement:
    """Return the statement that fit and volume balance."""
    good = residual <= STATIONARY
    sentence = (
        f"The projected gradient of the objective is {residual:.2e} times that of its volume term, "
        + (
            f"at most {STATIONARY:g}: fit and volume balance."
            if good
            else f"above {STATIONARY:g}: more iterations would lower the objective further."
        )
    )
    verdict = Verdict.HOLDS if good else Verdict.FAILS
    return Statement("stationarity", sentence, residual, STATIONARY, verdict)


def noise_fit(data: DataMatrix, error: float, k: int, noise: NoiseLevel) -> Statement:
    """Return the statement that the residual is not larger than noise."""
    n, m = data.shape
    quantities = {"noise_level": noise.sigma, "error": error}
    if not noise.estimated:
        sentence = (
            "The noise level was not estimated: it was given, or nothing is left of the data beyond "
            f"{k} components."
        )
        return Statement("noise-fit", sentence, None, FITS, Verdict.NOT_VERIFIABLE, quantities)
    # Each sample has k - 1 weights that were fitted to it.
    expected = noise.sigma * math.sqrt(n * max(m - k + 1, 1))
    ratio = error / expected
    good = ratio <= FITS
    sentence = (
        f"The residual is {ratio:.3g} times what noise of the estimated level {noise.sigma:.3g} leaves: "
        + (
            "the volume term costs no more than noise."
            if good
            else "lam is too large, or the model is wrong."
        )
    )
    verdict = Verdict.HOLDS if good else Verdict.FAILS
    return Statement("noise-fit", sentence, ratio, FITS, verdict, quantities)


def scattering(found: Scatter, k: int) -> Statement:
    """Return the statement about the condition under which the components are identified."""
    # Sufficiently scattered samples hold the cone sum(w) >= sqrt(k - 1) ||w||, whose points reach a largest
    # weight of 2 / k, and touch every facet in k - 1 directions (Huang, Sidiropoulos & Swami 2014, IEEE
    # Trans. Signal Processing 62(1)). Deciding the rest is NP-hard.
    purity, fewest = float(found.purity.min()), int(found.facets.min())
    needed = 2.0 / k
    quantities = {
        "smallest_purity": purity,
        "fewest_samples_on_a_facet": fewest,
        "needed_purity": needed,
        "needed_samples_on_a_facet": k - 1,
    }
    if k <= 1:
        sentence = "One component is the mean of the samples; there is nothing to identify."
        return Statement("sufficiently-scattered", sentence, purity, None, Verdict.HOLDS, quantities)
    facts = (
        f"the largest weight of every component is at least {purity:.3g} (needed: {needed:.3g}), and every "
        f"component is absent from at least {fewest} samples (needed: {k - 1})"
    )
    if purity < needed - ZERO or fewest < k - 1:
        sentence = (
            f"The fitted weights are not sufficiently scattered: {facts}. The condition under which the "
            "components are known to be unique is not met."
        )
        return Statement("sufficiently-scattered", sentence, purity, needed, Verdict.FAILS, quantities)
    sentence = (
        f"Two necessary conditions hold: {facts}. That the weights are sufficiently scattered, so that the "
        "components are unique, cannot be verified in general."
    )
    return Statement("sufficiently-scattered", sentence, purity, needed, Verdict.NOT_VERIFIABLE, quantities)
