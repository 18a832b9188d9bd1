"""The result of a purification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nonneg._html import view_of_result
from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.certificates.certificate import Certificate
from nonneg.iteration import History, StopReason
from nonneg.purification.decode import Decoder
from nonneg.purification.initialization import InitQuality
from nonneg.purification.iteration import PurificationState


@dataclass(frozen=True)
class PurificationResult:
    """Features, weights, and how they were found.

    Attributes
    ----------
    H : array of shape (n_components, n_features)
        The features, one per row, in the order of `init`; entries may be negative. The paper's A, transposed.
    W : array of shape (n_samples, n_components) or None
        The nonnegative weights decoded with them, same array type as X; None for a stream.
    history : History
        After each iteration: `change` (largest relative l1 change of a feature), `threshold`, `noise` (root
        mean square of the negative decoded values) and `step_size`.
    certificate : Certificate
        What is known about the solution.
    parameters : mapping
        What was chosen: update, decode, pseudo_inverse, threshold (the initial one, largest feature),
        step_size, scale, threshold_decay, balance, batch_size (samples per iteration).
    n_iter : int
        Number of iterations.
    stop_reason : StopReason
        Why the run ended.
    decoder : Decoder
        The pseudo-inverse, threshold and rule that gave W.
    state : PurificationState
        The last state, from which a stream can continue.
    init_quality : InitQuality
        What the data say about `init`.
    balancing : array of shape (n_components,) or None
        The diagonal D of the balancing; H and W are given without it.
    fallback : {"nmf", "init"} or None
        Whose features these are where `nonneg.PurificationNMF` found them more plausible than those of
        purification: NMF's, or the initial ones; None for purification.
    """

    H: Array
    W: SampleArray | None
    history: History
    certificate: Certificate
    parameters: Mapping[str, Any]
    n_iter: int
    stop_reason: StopReason
    decoder: Decoder
    state: PurificationState
    init_quality: InitQuality
    balancing: FloatArray | None = None
    fallback: str | None = None

    def __repr__(self) -> str:
        n, m = self.H.shape
        return (
            f"PurificationResult({n} features of length {m}, n_iter={self.n_iter}, "
            f"stopped because {self.stop_reason.value})"
        )

    def _repr_html_(self) -> str:
        return view_of_result(self)
