"""The outcome of learning a transform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nonneg._typing import Array, FloatArray, IntArray
from nonneg.certificates.certificate import Certificate
from nonneg.iteration import History, StopReason


@dataclass(frozen=True)
class RestartSummary:
    """End of every restart.

    Attributes
    ----------
    objective, likelihood, divergence : array of shape (n_restarts,)
        C, L and I at the end of each restart; NaN where there is none. Restarts after the first `n_init` were
        initialized from the solutions of the other method.
    n_iter : array of int of shape (n_restarts,)
        Iterations of each restart.
    best : int
        The one whose solution was kept.
    n_init : int
        Restarts with random or given initializations.
    """

    objective: FloatArray
    likelihood: FloatArray
    divergence: FloatArray
    n_iter: IntArray
    best: int
    n_init: int


@dataclass(frozen=True)
class TransformResult:
    """A transform, the factorization that goes with it, and how they were found.

    Attributes
    ----------
    transform : array of shape (frame_length, frame_length)
        Orthogonal; rows are atoms, ``transform @ frame`` transforms a frame. The paper's Phi.
    W : array of shape (n_frames, n_components) or None
        Activations, the paper's H transposed; None for a joint diagonalization.
    H : array of shape (n_components, frame_length) or None
        Components with l1 norm one, the paper's W transposed.
    variances : array of shape (n_frames, frame_length)
        Mean squares of the transformed frames, which W H approximates; the paper's V transposed.
    objective : float
        C = L + I; L where there is no factorization.
    likelihood : float
        L, the criterion of joint diagonalization.
    divergence : float or None
        I, the Itakura-Saito divergence of the variances from W H, both raised by eps0.
    history : History
        After each iteration: `loss` (what was minimized), `C`, `L`, `I`, `gradient` (Frobenius norm of the
        skew gradient before its last rotation, over 2 n_frames), `step` (its length in units of the Newton
        direction) and `search_succeeded` (1 where the line search succeeded, or only rounding was left to
        gain).
    certificate : Certificate
        What is known about the solution.
    n_iter : int
        Iterations done.
    stop_reason : StopReason
        Why it ended.
    method : str
        "tl", "jd" or "dct".
    parameters : mapping
        What was chosen: eps0, line_search and numbers of updates.
    restarts : RestartSummary or None
        How every restart ended; None where there was one.
    factorization_history : History or None
        Of the second stage of JD+NMF.
    """

    transform: Array
    W: Array | None
    H: Array | None
    variances: Array
    objective: float
    likelihood: float
    divergence: float | None
    history: History
    certificate: Certificate
    n_iter: int
    stop_reason: StopReason
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    restarts: RestartSummary | None = None
    factorization_history: History | None = None

    def __repr__(self) -> str:
        part = "" if self.divergence is None else f", I={self.divergence:.6g}"
        return (
            f"TransformResult({self.method}, {self.transform.shape[0]} atoms, C={self.objective:.8g}, "
            f"L={self.likelihood:.8g}{part}, n_iter={self.n_iter}, stopped because {self.stop_reason.value})"
        )
