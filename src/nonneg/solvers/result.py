"""Result of a factorization, and how well it reproduces the data: reconstruction error and mean deviance."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from nonneg._typing import Array, IntArray, SampleArray
from nonneg.certificates.certificate import Certificate
from nonneg.certificates.svd_lower_bound import relative_error_from_square, squared_residual
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.matrix import rows_only
from nonneg.iteration import History, StopReason
from nonneg.losses.beta import objective
from nonneg.losses.penalties import Penalties


@dataclass(frozen=True)
class FactorizationResult:
    """Result of `factorize`; unpacks as ``W, H = result.factors``.

    Attributes
    ----------
    W : array of shape (n_samples, n_components)
        The coefficients, of the same array type as X.
    H : array of shape (n_components, n_features)
        The components.
    loss : float
        The objective at W and H, penalties included.
    n_iter : int
        Number of iterations.
    stop_reason : StopReason
        Why the run ended.
    history : History
        What was measured after each iteration.
    certificate : Certificate
        What can be verified about the result.
    solver : str
        The solver that ran.
    loss_name : str
        The beta-divergence that was minimized, or "huber".
    outliers : array of shape (n_outliers, 2) or (n_outliers, 1), or None
        With `robust`, row and column of the entries, or the rows, farther from W H than the threshold, the
        farthest first.
    """

    W: SampleArray
    H: Array
    loss: float
    n_iter: int
    stop_reason: StopReason
    history: History
    certificate: Certificate
    solver: str
    loss_name: str
    outliers: IntArray | None = None

    @property
    def factors(self) -> tuple[SampleArray, Array]:
        """W and H."""
        return self.W, self.H

    def __repr__(self) -> str:
        shapes = f"W={tuple(self.W.shape)}, H={tuple(self.H.shape)}"
        return (
            f"FactorizationResult(loss={self.loss:.6g}, n_iter={self.n_iter}, {shapes}, "
            f"solver={self.solver!r}, stopped because {self.stop_reason.value})"
        )


def returned(result: FactorizationResult, data: DataMatrix) -> FactorizationResult:
    """Return a result in the array type of the X that was given."""
    if not data.numpy_out:
        return result
    return replace(result, W=data.to_caller(result.W), H=data.to_caller(result.H))


def mean_deviance(data: DataMatrix, W: SampleArray, Ht: Array, beta: float) -> float:
    """Return twice the mean beta-divergence per entry."""
    n_entries = data.observed_weight()
    if n_entries == 0:
        return 0.0
    total = squared_residual(data, W, Ht) if beta == 2.0 else 2.0 * objective(data, W, Ht, beta=beta)
    return total / n_entries


@rows_only
def _penalty_rows(block: LocalMatrix, W: Array, *, penalties: Penalties) -> float:
    return penalties.of_W(W, block.weights)


def reconstruction_error(
    data: DataMatrix, W: SampleArray, Ht: Array, *, beta: float, penalties: Penalties, value: float
) -> float:
    """Return the square root of twice the loss without penalties: the Frobenius norm if beta is 2."""
    loss = value
    if penalties.any:
        of_W = data.reduce_rows(_penalty_rows, W, penalties=penalties.given_H(Ht))
        loss -= of_W + penalties.given_W(W).of_H(Ht)
    if beta == 2.0:
        squared_norm = data.squared_norm()
        if squared_norm > 0:
            return relative_error_from_square(data, W, Ht, 2 * loss / squared_norm) * math.sqrt(squared_norm)
    return math.sqrt(2 * max(loss, 0.0))
