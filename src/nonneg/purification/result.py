"""The outcome of a purification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.certificates.certificate import Certificate
from nonneg.iteration import History, StopReason
from nonneg.purification.decode import Decoder
from nonneg.purification.state import PurificationState
from nonneg.purification.warm_start import StartQuality


@dataclass(frozen=True)
class PurificationResult:
    """Features, weights, and how they were found.

    Attributes
    ----------
    features : array of shape (n, m)
        The features in rows, in the order of the start; entries may be negative. The paper's A, transposed.
    W : array of shape (n_samples, n) or None
        The weights decoded with them, not negative, where the data are; None for a stream.
    history : History
        After each iteration: `change` (largest relative l1 change of a feature), `threshold`, `noise` (size
        of negative decoded values), `eta`, and, where the truth is known, `e_norm`, `n_norm`, `potential` and
        `normalized_error`.
    certificate : Certificate
        What is known about the answer.
    parameters : mapping
        What was chosen: update, decode, pseudo_inverse, alpha (the first threshold, largest feature), eta, r,
        anneal, balance, samples an iteration.
    n_iter : int
        Iterations done.
    stop_reason : StopReason
        Why it ended.
    decoder : Decoder
        Pseudo-inverse, threshold and rule that gave W.
    state : PurificationState
        The last state, from which a stream may go on.
    start : StartQuality
        What the data say about the start.
    scales : array of shape (n,) or None
        The diagonal D of the balancing; features and weights are given without it.
    """

    features: Array
    W: SampleArray | None
    history: History
    certificate: Certificate
    parameters: Mapping[str, Any]
    n_iter: int
    stop_reason: StopReason
    decoder: Decoder
    state: PurificationState
    start: StartQuality
    scales: FloatArray | None = field(default=None)

    def __repr__(self) -> str:
        n, m = self.features.shape
        return (
            f"PurificationResult({n} features of length {m}, n_iter={self.n_iter}, "
            f"stopped because {self.stop_reason.value})"
        )
