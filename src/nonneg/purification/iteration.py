"""One iteration (pseudo-inverse, decoding, update) and the state that it passes on.

Online, moments of mini-batches are kept with a decaying memory, and each mini-batch makes one update.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.iteration.history import History
from nonneg.iteration.loop import Stalled
from nonneg.purification.decode import MIDPOINT, NOISE_FACTOR, Decoder, weight_scales
from nonneg.purification.moments import Moments, covariance_target, moments_of, regression_target
from nonneg.purification.options import Options
from nonneg.purification.pseudo_inverse import PseudoInverse, pseudo_inverse
from nonneg.purification.samples import Samples, SamplesExhausted, spread_rows

# Samples per update where no mini-batch size is given; MiniBatchNMF of scikit-learn has the same default.
BATCH_SIZE = 1024
# A feature that shrinks below this share of its l1 norm is lost to rounding.
VANISHED = 1e-12


@dataclass(frozen=True)
class PurificationState:
    """State of a run between iterations."""

    H: FloatArray  # the current features, one per row
    threshold: FloatArray  # the current threshold, noise aside
    noise: FloatArray  # root mean square of the negative values in the last decoding
    weight_scale: FloatArray  # size of a typical large weight in the first decoding
    reference: FloatArray  # mean of the last decoded weights
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
    return np.maximum(NOISE_FACTOR * state.noise, min(NOISE_FACTOR * worst, MIDPOINT) * scale)


def effective_threshold(state: PurificationState, rule: str) -> FloatArray:
    """Return what a value must exceed in the next decoding."""
    return np.maximum(state.threshold, noise_level(state)) if rule == "unshifted" else state.threshold


def initial_state(samples: FloatArray, H: FloatArray, options: Options) -> PurificationState:
    """Return the state before the first iteration, with what is chosen from decoded values."""
    inverse = pseudo_inverse(H, options.pseudo_inverse)
    values = samples @ inverse.inverse.T
    scales = weight_scales(values)
    threshold = MIDPOINT * scales
    if options.threshold is not None:
        threshold = np.full(len(scales), options.threshold)
    below = np.minimum(values, 0.0)
    noise = np.sqrt((below**2).sum(axis=0) / np.maximum((below < 0).sum(axis=0), 1))
    reference = np.where(values > threshold, values, 0.0).mean(axis=0)
    return PurificationState(H, threshold, noise, scales, reference, bases=inverse.bases)


def balancing_scales(weights: FloatArray) -> FloatArray:
    """Return the diagonal D for which x / D has equal second moments (Section 6 of the paper)."""
    squares = (weights**2).mean(axis=0)
    largest = float(squares.max(initial=0.0))
    return np.where(squares > 0, np.sqrt(squares / (largest or 1.0)), 1.0)


def final_decoder(state: PurificationState, options: Options) -> Decoder:
    """Return how samples are decoded once the features are found."""
    inverse = pseudo_inverse(state.H, options.pseudo_inverse, state.bases).inverse
    threshold = noise_level(state) if options.decode == "unshifted" else state.threshold
    return Decoder(inverse, threshold, options.decode)


@dataclass(frozen=True)
class FeaturesConverged:
    """Stop when no feature changed by more than `tol` in two iterations."""

    tol: float  # relative change in the l1 norm

    def __call__(self, history: History) -> bool:
        changes = history["change"][-2:]
        return self.tol > 0 and len(changes) == 2 and max(changes) <= self.tol


def updated_state(
    state: PurificationState, moments: Moments, inverse: PseudoInverse, options: Options
) -> PurificationState:
    """Return the state after one update from the moments of decoded samples."""
    H = state.H
    if options.update == "regression":
        target = regression_target(H, moments, inverse.inverse)
    else:
        target = covariance_target(H, moments, inverse.inverse, options.scale)
    new = H + options.step_size * (target - H)
    sizes = np.abs(H).sum(axis=1)
    if not np.isfinite(new).all() or not (np.abs(new).sum(axis=1) > VANISHED * sizes).all():
        raise Stalled
    return replace(
        state,
        H=new,
        threshold=state.threshold * options.threshold_decay,
        noise=moments.noise,
        reference=moments.mean_weights,
        change=float((np.abs(new - H).sum(axis=1) / sizes).max()),
        bases=inverse.bases,
        iteration=state.iteration + 1,
    )


class Iteration:
    """The step of the loop."""

    def __init__(self, samples: Samples, options: Options, *, converged: float = 1e-10) -> None:
        self.samples = samples
        self.options = options
        self.converged = converged  # a smaller change ends the threshold decay
        self.exhausted = False  # whether the stream ended

    def __call__(self, state: PurificationState) -> tuple[PurificationState, Mapping[str, Any]]:
        rule = self.options.decode
        threshold = effective_threshold(state, rule)
        try:
            inverse = pseudo_inverse(state.H, self.options.pseudo_inverse, state.bases)
            decoder = Decoder(inverse.inverse, threshold, rule)
            moments = self.samples.moments(decoder, state.reference, state.iteration)
        except SamplesExhausted:
            self.exhausted = True
            raise Stalled from None
        except np.linalg.LinAlgError:
            raise Stalled from None
        new = updated_state(state, moments, inverse, self.options)
        if self.options.threshold_decay < 1 and new.change <= self.converged:
            # Weights below the threshold are all that is left to be found.
            new = replace(new, threshold=0.0 * new.threshold)
        noise = float(moments.noise.max())
        return new, {"change": new.change, "threshold": float(threshold.max()), "noise": noise}


@dataclass(frozen=True)
class OnlineState:
    """Summary that online purification keeps of the samples so far."""

    state: PurificationState  # features, threshold and noise
    past: Moments | None = None  # decayed moments of the mini-batches that made the features
    pending: Moments | None = None  # moments of samples that have not yet led to an update


def begin_online(data: DataMatrix, init: FloatArray, options: Options) -> OnlineState:
    """Return the state before the first batch."""
    return OnlineState(initial_state(spread_rows(data), init, options))


def take_in(
    online: OnlineState, data: DataMatrix, options: Options, *, batch_size: int, forget_factor: float
) -> OnlineState:
    """Decode a batch and add its moments; update the features when `batch_size` samples are pending."""
    state = online.state
    inverse = pseudo_inverse(state.H, options.pseudo_inverse, state.bases)
    decoder = Decoder(inverse.inverse, effective_threshold(state, options.decode), options.decode)
    batch = moments_of(data, decoder, state.reference)
    pending = batch if online.pending is None else online.pending + batch
    online = OnlineState(replace(state, bases=inverse.bases), online.past, pending)
    if pending.total < batch_size:
        return online
    past = pending if online.past is None else online.past.scaled(forget_factor) + pending
    try:
        # The noise is that of the last samples: it shrinks while features improve.
        return OnlineState(replace(updated_state(state, past, inverse, options), noise=pending.noise), past)
    except Stalled:
        # A batch that says nothing leaves the features as they are.
        return replace(online, pending=None)
