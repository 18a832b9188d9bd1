"""Majorization-equalization for the Itakura-Saito divergence: multiplicative updates with exponent 1."""

from __future__ import annotations

from typing import Any

from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix
from nonneg.iteration import Run
from nonneg.losses.penalties import Penalties
from nonneg.solvers.mu import MultiplicativeState, multiplicative


def majorization_equalization(
    data: DataMatrix, W: SampleArray, Ht: Array, *, penalties: Penalties, beta: float = 0.0, **options: Any
) -> Run[MultiplicativeState]:
    """Minimize a beta-divergence with beta < 1 by majorization-equalization."""
    # The majorizer has the same value at both ends of a step. For Itakura-Saito that is the multiplicative
    # update with exponent 1 instead of 1/2. A step that increases the loss is replaced by one with exponent
    # 1/2 from the last accepted pair.
    # Fevotte & Idier (2011), Neural Computation 23(9), Section 4.3.
    return multiplicative(
        data,
        W,
        Ht,
        penalties=penalties,
        beta=beta,
        **({"extrapolate": True, "exponent_scale": 2.0 - beta} | options),
    )
