"""The result of a selection of anchors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nonneg._typing import Array, FloatArray, IntArray, SparseMatrix
from nonneg.certificates.certificate import Certificate
from nonneg.iteration import History, StopReason


@dataclass(frozen=True)
class SelectionResult:
    """Anchors of the data and the method that selected them.

    Attributes
    ----------
    anchors : array of int of shape (n_components,)
        Indices of the selected rows of X, the best first: in the order of selection for greedy methods, by
        decreasing row maximum for convex ones. For a method that averages samples, one of the samples in each
        average: the most extreme one for greedy methods, the nearest one for convex ones.
    method : str
        The method that ran, as in `nonneg.separable.METHODS`.
    coefficients : sparse array of shape (n_samples, n_samples) or None
        The C of X' ~ X' C of the convex methods, in the orientation of the paper: column l writes sample l as
        a combination of samples. None where the method has none.
    gap : float or None
        Duality gap at `coefficients`, a bound on the distance of the objective from its minimum. None where
        the method has none.
    history : History
        The measures after each iteration, or after each anchor of a greedy method.
    certificate : Certificate
        What is known about the result.
    scores : array of float of shape (n_components,) or None
        The score of each anchor when it was selected.
    row_maxima : array of float of shape (n_samples,) or None
        The largest coefficient of every sample, by which convex methods select (FastGradient: its diagonal
        entry, which bounds the row).
    lam : float or None
        Weight of the row sparsity, as in (18) of the paper.
    mu : float or None
        Smoothing of the row sparsity.
    objective : float or None
        The objective at `coefficients`.
    n_iter : int
        Number of iterations, or of anchors of a greedy method.
    stop_reason : StopReason
        Why the search ended.
    stop_sentence : str
        The same in words, with the stopping rule that applied.
    components : array of shape (n_components, n_features) or None
        The vertices of a method that averages samples, in the features of X. None where the anchors
        themselves are the vertices.
    members : tuple of arrays of int or None
        The samples that each vertex is the average of, as row indices of X. None where `components` is.
    best_left : float or None
        The largest score among the other samples, where a greedy method measured it.
    n_passes : int or None
        Number of passes of a greedy method over the samples, preprocessing not counted. None for convex
        methods.
    details : mapping
        Further quantities that the method reports, by name.
    """

    anchors: IntArray
    method: str
    coefficients: SparseMatrix | None = None
    gap: float | None = None
    history: History = field(default_factory=History)
    certificate: Certificate = field(default_factory=Certificate)
    scores: FloatArray | None = None
    row_maxima: Array | None = None
    lam: float | None = None
    mu: float | None = None
    objective: float | None = None
    n_iter: int = 0
    stop_reason: StopReason = StopReason.CONVERGED
    stop_sentence: str = ""
    components: Array | None = None
    members: tuple[IntArray, ...] | None = None
    best_left: float | None = None
    n_passes: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.stop_sentence:
            object.__setattr__(self, "stop_sentence", self.stop_reason.value)

    @property
    def n_components(self) -> int:
        """The number of anchors."""
        return len(self.anchors)

    @property
    def curve(self) -> FloatArray | None:
        """The row maxima, largest first: their largest drop shows the number of anchors."""
        return None if self.row_maxima is None else np.sort(np.asarray(self.row_maxima))[::-1]

    @property
    def margin(self) -> float | None:
        """The smallest row maximum, or score, of an anchor minus the largest of the other samples."""
        if self.row_maxima is not None:
            others = np.delete(np.asarray(self.row_maxima), self.anchors)
            lowest = float(np.min(np.asarray(self.row_maxima)[self.anchors]))
            return lowest - (float(others.max()) if others.size else 0.0)
        if self.best_left is None or self.scores is None or not len(self.scores):
            return None
        return float(self.scores[-1]) - self.best_left

    def __repr__(self) -> str:
        gap = "" if self.gap is None else f", gap={self.gap:.4g}"
        return (
            f"SelectionResult({self.n_components} anchors by {self.method!r}, n_iter={self.n_iter}{gap}, "
            f"stopped because {self.stop_sentence})"
        )
