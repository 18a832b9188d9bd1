"""One iteration: pseudo-inverse, decoding, update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.iteration.history import History
from nonneg.iteration.loop import Stalled
from nonneg.metrics.mixing import Mixing, mixing
from nonneg.purification.decode import Decoder
from nonneg.purification.moments import Moments
from nonneg.purification.options import Options
from nonneg.purification.pseudo_inverse import PseudoInverse, pseudo_inverse
from nonneg.purification.samples import Samples, SamplesEnded
from nonneg.purification.state import PurificationState, effective_threshold
from nonneg.purification.update import covariance_target, regression_target

# A step size is halved when features move by this much more than before, and by more than that share.
GROWTH, LARGE_CHANGE, SMALLEST_ETA = 1.5, 0.01, 1.0 / 64


@dataclass(frozen=True)
class FeaturesSettled:
    """Stop when no feature moved by more than `tol` in two iterations."""

    tol: float  # relative change in the l1 norm

    def __call__(self, history: History) -> bool:
        changes = history["change"][-2:]
        return self.tol > 0 and len(changes) == 2 and max(changes) <= self.tol


def updated_features(
    features: FloatArray, moments: Moments, inverse: FloatArray, options: Options, eta: float
) -> tuple[FloatArray, float]:
    """Return the features after one update, and by how much they moved."""
    if options.update == "regression":
        target = regression_target(features, moments, inverse)
    else:
        target = covariance_target(features, moments, inverse, options.r)
    new = features + eta * (target - features)
    sizes = np.abs(features).sum(axis=1)
    if not np.isfinite(new).all() or not (np.abs(new).sum(axis=1) > 1e-12 * sizes).all():
        raise Stalled
    return new, float((np.abs(new - features).sum(axis=1) / sizes).max())


class Iteration:
    """The step of the loop."""

    def __init__(
        self,
        samples: Samples,
        options: Options,
        method: str,
        *,
        truth: FloatArray | None,
        beta: float,
        scales: FloatArray | None,
        settled: float = 1e-10,
    ) -> None:
        self.samples = samples
        self.options = options
        self.method = method
        self.truth = truth
        self.beta = beta
        self.scales = scales
        self.settled = settled
        self.ended = False

    def inverse_of(self, state: PurificationState) -> PseudoInverse:
        """Return the pseudo-inverse of the present features."""
        return pseudo_inverse(state.features, self.method, state.supports)

    def __call__(self, state: PurificationState) -> tuple[PurificationState, Mapping[str, Any]]:
        rule = self.options.decode
        threshold = effective_threshold(state, rule)
        try:
            found = self.inverse_of(state)
            decoder = Decoder(found.inverse, threshold, rule)
            moments = self.samples.moments(decoder, state.reference, state.iteration)
        except SamplesEnded:
            self.ended = True
            raise Stalled from None
        except np.linalg.LinAlgError:
            raise Stalled from None
        features, change = updated_features(state.features, moments, found.inverse, self.options, state.eta)
        eta = state.eta
        if self.options.adaptive and change > max(GROWTH * state.change, LARGE_CHANGE):
            eta = max(eta / 2, SMALLEST_ETA)
        still = self.options.anneal < 1 and change <= self.settled
        new = replace(
            state,
            features=features,
            threshold=state.threshold * (0.0 if still else self.options.anneal),
            noise=moments.noise,
            reference=moments.mean_weights,
            eta=eta,
            change=change,
            supports=found.supports,
            iteration=state.iteration + 1,
        )
        measures: dict[str, Any] = {
            "change": change,
            "threshold": float(threshold.max()),
            "noise": float(moments.noise.max()),
            "eta": state.eta,
        }
        if self.truth is not None:
            measures |= self._against_truth(new)
        return new, measures

    def _against_truth(self, state: PurificationState) -> dict[str, Any]:
        # Evaluated off the clock, once for all four.
        known: list[Mixing] = []

        def of(read: Any) -> float:
            if not known:
                features = state.features if self.scales is None else state.features / self.scales[:, None]
                known.append(mixing(self.truth, features))
            return float(read(known[0]))

        reads = {
            "e_norm": lambda found: found.e_norm,
            "n_norm": lambda found: found.n_norm,
            "potential": lambda found: found.potential(self.beta),
            "normalized_error": lambda found: found.normalized_error,
        }
        return {name: partial(of, read) for name, read in reads.items()}
