"""What can be said of a finished factorization at the price of one pass over the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import Array, IntArray, LeftArray
from nonneg.certificates.certificate import Statement
from nonneg.certificates.stationarity import frobenius_stationarity, stationarity_statement
from nonneg.data import DataMatrix
from nonneg.losses.penalties import Penalties
from nonneg.solvers.alternating import has_missing


def certify(
    data: DataMatrix, W: LeftArray, B: Array, *, beta: float, penalties: Penalties, free: IntArray | None
) -> list[Statement]:
    """Return the statements that every fit carries.

    Parameters
    ----------
    data : DataMatrix
        The data.
    W, B : array
        The factors.
    beta : float
        The loss.
    penalties : Penalties
        L1 and L2.
    free : array of int or None
        The components of B that could change.

    Returns
    -------
    list of Statement
        The normalised KKT residual.
    """
    frozen: Any = None
    if free is not None:
        held = np.ones(B.shape[1], dtype=bool)
        held[free] = False
        frozen = data.xp.asarray(held)
    if beta == 2.0 and not has_missing(data):
        residuals = frobenius_stationarity(
            data,
            W,
            B,
            l1=(penalties.l1_W, penalties.l1_H),
            l2=(penalties.l2_W, penalties.l2_H),
            frozen=frozen,
        )
        return [stationarity_statement(*residuals)]
    return []
