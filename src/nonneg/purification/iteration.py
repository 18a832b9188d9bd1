"""One iteration (pseudo-inverse, decoding, update) and the state that it passes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.iteration.history import History
from nonneg.iteration.loop import Stalled
from nonneg.purification.decode import (
    HIGHEST,
    LOWEST,
    LOWEST_WITH_DECAY,
    NOISE_FACTOR,
    Decoder,
    initial_threshold,
    weight_scales,
)
from nonneg.purification.moments import Moments
from nonneg.purification.options import Options
from nonneg.purification.pseudo_inverse import PseudoInverse, pseudo_inverse
from nonneg.purification.samples import Samples, SamplesExhausted
from nonneg.purification.update import covariance_target, regression_target

# The step size is halved when the change grows by GROWTH and exceeds LARGE_CHANGE (relative, l1), and never
# below SMALLEST_STEP. A safeguard for random inits: warm ones are recovered with any growth from 1.1 on.
GROWTH, LARGE_CHANGE, SMALLEST_STEP = 1.5, 0.01, 1.0 / 64
# A feature that shrinks below this share of its l1 norm is lost to rounding.
VANISHED = 1e-12


@dataclass(frozen=True)
class PurificationState:
    """What a run passes from iteration to iteration."""

    H: FloatArray  # the current features, one per row
    threshold: FloatArray  # the current threshold, noise aside
    noise: FloatArray  # root mean square of the negative values in the last decoding
    weight_scale: FloatArray  # size of a typical large weight in the first decoding
    reference: FloatArray  # mean of the last decoded weights
    step_size: float
    change: float = float("inf")  # largest relative l1 change of a feature in the last iteration
    bases: IntArray | None = None  # where the next linear programs begin
    iteration: int = 0  # iterations done
    balancing: FloatArray | None = None  # the diagonal D by which H is scaled, where it is

    def rescaled(self, factors: FloatArray) -> PurificationState:
        """Return the same state for features multiplied by `factors`, without balancing."""
        return replace(
            self,
            H=self.H * factors[:, None],
            threshold=self.threshold / factors,
            noise=self.noise / factors,
            weight_scale=self.weight_scale / factors,
            reference=self.reference / factors,
            balancing=None,
        )


def noise_level(state: PurificationState) -> FloatArray:
    """Return what a value must exceed to be told from noise."""
    scale = state.weight_scale
    worst = float(np.max(state.noise / np.where(scale > 0, scale, np.inf), initial=0.0))
    return np.maximum(NOISE_FACTOR * state.noise, min(NOISE_FACTOR * worst, HIGHEST) * scale)


def effective_threshold(state: PurificationState, rule: str) -> FloatArray:
    """Return what a value must exceed in the next decoding."""
    return np.maximum(state.threshold, noise_level(state)) if rule == "unshifted" else state.threshold


def initial_state(
    samples: FloatArray, H: FloatArray, inverse: PseudoInverse, options: Options
) -> PurificationState:
    """Return the state before the first iteration, with what is chosen from decoded values."""
    values = samples @ inverse.inverse.T
    threshold = initial_threshold(values, LOWEST if options.threshold_decay == 1 else LOWEST_WITH_DECAY)
    if options.threshold is not None:
        threshold = np.broadcast_to(np.asarray(options.threshold, dtype=np.float64), threshold.shape).copy()
    below = np.minimum(values, 0.0)
    noise = np.sqrt((below**2).sum(axis=0) / np.maximum((below < 0).sum(axis=0), 1))
    reference = np.where(values > threshold, values, 0.0).mean(axis=0)
    return PurificationState(
        H, threshold, noise, weight_scales(values), reference, options.step_size, bases=inverse.bases
    )


def balancing_scales(weights: FloatArray) -> FloatArray:
    """Return the diagonal D for which x / D has equal second moments (Section 6 of the paper)."""
    squares = (weights**2).mean(axis=0)
    largest = float(squares.max(initial=0.0))
    return np.where(squares > 0, np.sqrt(squares / (largest or 1.0)), 1.0)


def final_decoder(state: PurificationState, options: Options, method: str) -> Decoder:
    """Return how samples are decoded once the features are found."""
    inverse = pseudo_inverse(state.H, method, state.bases).inverse
    threshold = noise_level(state) if options.decode == "unshifted" else state.threshold
    return Decoder(inverse, threshold, options.decode)


@dataclass(frozen=True)
class FeaturesConverged:
    """Stop when no feature changed by more than `tol` in two iterations."""

    tol: float  # relative change in the l1 norm

    def __call__(self, history: History) -> bool:
        changes = history["change"][-2:]
        return self.tol > 0 and len(changes) == 2 and max(changes) <= self.tol


def updated_features(
    H: FloatArray, moments: Moments, inverse: FloatArray, options: Options, step_size: float
) -> tuple[FloatArray, float]:
    """Return the features after one update, and their largest relative change."""
    if options.update == "regression":
        target = regression_target(H, moments, inverse)
    else:
        target = covariance_target(H, moments, inverse, options.scale)
    new = H + step_size * (target - H)
    sizes = np.abs(H).sum(axis=1)
    if not np.isfinite(new).all() or not (np.abs(new).sum(axis=1) > VANISHED * sizes).all():
        raise Stalled
    return new, float((np.abs(new - H).sum(axis=1) / sizes).max())


class Iteration:
    """The step of the loop."""

    def __init__(self, samples: Samples, options: Options, method: str, *, converged: float = 1e-10) -> None:
        self.samples = samples
        self.options = options
        self.method = method
        self.converged = converged  # a smaller change ends the threshold decay
        self.exhausted = False  # whether the stream ended

    def __call__(self, state: PurificationState) -> tuple[PurificationState, Mapping[str, Any]]:
        rule = self.options.decode
        threshold = effective_threshold(state, rule)
        try:
            found = pseudo_inverse(state.H, self.method, state.bases)
            decoder = Decoder(found.inverse, threshold, rule)
            moments = self.samples.moments(decoder, state.reference, state.iteration)
        except SamplesExhausted:
            self.exhausted = True
            raise Stalled from None
        except np.linalg.LinAlgError:
            raise Stalled from None
        H, change = updated_features(state.H, moments, found.inverse, self.options, state.step_size)
        step_size, decay = state.step_size, self.options.threshold_decay
        if self.options.adaptive and change > max(GROWTH * state.change, LARGE_CHANGE):
            step_size = max(step_size / 2, SMALLEST_STEP)
        if decay < 1 and change <= self.converged:
            # Weights below the threshold are all that is left to be found.
            decay = 0.0
        new = replace(
            state,
            H=H,
            threshold=state.threshold * decay,
            noise=moments.noise,
            reference=moments.mean_weights,
            step_size=step_size,
            change=change,
            bases=found.bases,
            iteration=state.iteration + 1,
        )
        return new, {
            "change": change,
            "threshold": float(threshold.max()),
            "noise": float(moments.noise.max()),
            "step_size": state.step_size,
        }
