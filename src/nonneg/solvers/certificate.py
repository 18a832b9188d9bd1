"""The certificate of every factorization, at the cost of one pass over the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import Array, IntArray, Namespace, SampleArray
from nonneg.certificates.certificate import Statement
from nonneg.certificates.stationarity import (
    frobenius_kkt_residuals,
    normalized,
    ratio_residual,
    stationarity_statement,
)
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.matrix import rows_only
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers.registry import loss_name


def certify(
    data: DataMatrix,
    W: SampleArray,
    Ht: Array,
    *,
    beta: float,
    penalties: Penalties,
    free: IntArray | None,
    loss: str | None = None,
    signed_H: bool = False,
) -> list[Statement]:
    """Return the statements that every fit carries; `loss` is the name if it is not that of beta."""
    of_W, sums = data.reduce_rows(_infeasible_and_sums, W)
    n_infeasible = int(of_W) + int(_infeasible(data.xp, abs(Ht) if signed_H else Ht))
    frozen: Any = None
    if free is not None:
        held = np.ones(Ht.shape[1], dtype=bool)
        held[free] = False
        frozen = data.xp.asarray(held, device=Ht.device)
    if beta == 2.0 and not data.has_missing:
        residuals = frobenius_kkt_residuals(data, W, Ht, penalties, frozen=frozen, signed_H=signed_H)
    else:
        means = sums / data.shape[0]
        residuals = _ratio_residuals(data, W, Ht, means, beta=beta, penalties=penalties, frozen=frozen)
    return [stationarity_statement(*residuals, n_infeasible=n_infeasible, loss=loss or loss_name(beta))]


def _ratio_residuals(
    data: DataMatrix, W: SampleArray, Ht: Array, means: Array, *, beta: float, penalties: Penalties,
    frozen: Array | None,
) -> tuple[float, float]:  # fmt: skip
    loss = BetaLoss.of(data, beta)
    energy, scale, ratio, power = data.reduce_rows(
        _residual_of_W, W, Ht=Ht, loss=loss, penalties=penalties, means=means
    )
    positive = power + penalties.l1_H + penalties.l2_H * Ht
    energy_H, scale_H = ratio_residual(data.xp, Ht, ratio, positive, frozen=frozen)
    return normalized(energy, scale), normalized(float(energy_H), float(scale_H))


def _infeasible(xp: Namespace, factor: Array) -> Array:
    """Return the number of entries that are not finite and nonnegative numbers."""
    return xp.count_nonzero(~(xp.isfinite(factor) & (factor >= 0)))


@rows_only
def _infeasible_and_sums(block: LocalMatrix, W: Array) -> tuple[Array, Array]:
    return _infeasible(block.xp, W), block.xp.sum(W, axis=0)


def _residual_of_W(
    block: LocalMatrix, W: Array, *, Ht: Array, loss: BetaLoss, penalties: Penalties, means: Array
) -> tuple[float, float, Array, Array]:
    of_W, of_H = loss.terms_of_W(block, W, Ht), loss.terms_of_H(block, W, Ht)
    positive = of_W.power + penalties.l1_W + penalties.l2_W * W
    energy, scale = ratio_residual(
        block.xp, W, of_W.ratio, positive, weights=block.weights, column_means=means
    )
    return float(energy), float(scale), of_H.ratio, of_H.power
