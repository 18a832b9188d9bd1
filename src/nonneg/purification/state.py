"""What a run carries from iteration to iteration, and the thresholds that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.purification.decode import (
    HIGHEST,
    LOWEST,
    LOWEST_BEGIN,
    NOISE_FACTOR,
    Decoder,
    first_threshold,
    weight_scales,
)
from nonneg.purification.options import Options
from nonneg.purification.pseudo_inverse import PseudoInverse, pseudo_inverse


@dataclass(frozen=True)
class PurificationState:
    """Where a run stands."""

    features: FloatArray  # the present features
    threshold: FloatArray  # the present threshold, noise left out
    noise: FloatArray  # size of the negative values in the last decoding
    units: FloatArray  # size of a typical weight in the first one
    reference: FloatArray  # mean of the last decoded weights
    eta: float  # the step size
    change: float = float("inf")  # largest relative change of a feature in the last iteration
    supports: IntArray | None = None  # where the next linear programs begin
    iteration: int = 0  # iterations done

    def rescaled(self, factors: FloatArray) -> PurificationState:
        """Return the same state for features of another size."""
        return replace(
            self,
            features=self.features * factors[:, None],
            threshold=self.threshold / factors,
            noise=self.noise / factors,
            units=self.units / factors,
            reference=self.reference / factors,
        )


def noise_floor(noise: FloatArray, units: FloatArray) -> FloatArray:
    """Return what a value must exceed to be told from noise."""
    worst = float(np.max(noise / np.where(units > 0, units, np.inf), initial=0.0))
    return np.maximum(NOISE_FACTOR * noise, min(NOISE_FACTOR * worst, HIGHEST) * units)


def effective_threshold(state: PurificationState, rule: str) -> FloatArray:
    """Return what a value must exceed now."""
    if rule != "unshifted":
        return state.threshold
    return np.maximum(state.threshold, noise_floor(state.noise, state.units))


def first_state(
    samples: FloatArray, features: FloatArray, inverse: PseudoInverse, options: Options
) -> PurificationState:
    """Return the state before the first iteration, with what is chosen from decoded values."""
    values = samples @ inverse.inverse.T
    threshold = first_threshold(values, LOWEST if options.anneal == 1 else LOWEST_BEGIN)
    if options.alpha is not None:
        threshold = np.broadcast_to(np.asarray(options.alpha, dtype=np.float64), threshold.shape).copy()
    below = np.minimum(values, 0.0)
    noise = np.sqrt((below**2).sum(axis=0) / np.maximum((below < 0).sum(axis=0), 1))
    reference = np.where(values > threshold, values, 0.0).mean(axis=0)
    return PurificationState(
        features,
        threshold,
        noise,
        weight_scales(values),
        reference,
        options.eta,
        supports=inverse.supports,
    )


def final_decoder(state: PurificationState, options: Options, method: str) -> Decoder:
    """Return how samples are decoded once the features are found."""
    inverse = pseudo_inverse(state.features, method, state.supports).inverse
    unshifted = options.decode == "unshifted"
    threshold = noise_floor(state.noise, state.units) if unshifted else state.threshold
    return Decoder(inverse, threshold, options.decode)
