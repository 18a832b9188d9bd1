"""Coordinate descent for the Kullback-Leibler divergence over the nonzeros, extrapolated with restarts.

Rows of W and then rows of Ht are improved by a few sweeps of safe Newton steps on single entries.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import Array, IntArray
from nonneg.data import DataMatrix
from nonneg.iteration import SlowDecrease
from nonneg.iteration.loop import Descent, solver
from nonneg.kernels.beta_products import kl_passes
from nonneg.losses.penalties import Penalties
from nonneg.solvers.extrapolation import ExtrapolatedState, extrapolate_bounded, extrapolated_or_plain

# Maximum number of sweeps over a row per update; one that changes the row by at most this fraction of the
# first is the last.
SWEEPS, SHRINK = 2, 0.1


@solver(SlowDecrease)
def kl_coordinate_descent(
    data: DataMatrix,
    W: Array,
    Ht: Array,
    *,
    penalties: Penalties,
    beta: float = 1.0,
    free: IntArray | None = None,
) -> tuple[Any, ExtrapolatedState]:
    """Minimize the Kullback-Leibler divergence plus penalties, one entry of a factor at a time."""
    # A sweep costs about 8 nnz k operations; the model is only formed at the nonzeros. With t the entry
    # and g its derivative, concave in t, the step is Newton's for g where g < 0 and Newton's for t g(t) where
    # g > 0: neither overshoots, so that no step increases the loss and none is evaluated.
    # Hsieh & Dhillon (2011), KDD, Section 3.2 (one-variable Newton steps for this divergence). Hien & Gillis
    # (2021), J. Sci. Comput. 87(3), Section 3.
    csr: Any = data.csr if data.container == "sparse" else sp.csr_array(data.array)  # type: ignore[attr-defined]
    turned: Any = data.transposed if data.container == "sparse" else sp.csr_array(csr.T.tocsr())  # type: ignore[attr-defined]
    weights, values, column_values = data.weights, csr.data.astype(np.float64), turned.data
    mean = float(values.mean()) if values.any() else 1.0
    unit = 2.0 ** round(math.log2(mean))  # of the logarithms: a power of two, by which division is exact
    terms = values * (np.log(np.where(values > 0, values / unit, 1.0)) - 1.0)
    if weights is not None:
        terms *= np.repeat(weights, np.diff(csr.indptr))
        column_values = column_values * weights[turned.indices]
    constant = float(terms.sum())
    rows = csr.indptr, csr.indices, csr.data
    columns = turned.indptr, turned.indices, column_values
    of_W: dict[str, Any] = {
        "l1": penalties.l1_W,
        "l2": penalties.l2_W,
        "max_sweeps": SWEEPS,
        "shrink": SHRINK,
    }
    of_H = of_W | {"l1": penalties.l1_H, "l2": penalties.l2_H, "order": free, "unit": unit}

    def advance(state: ExtrapolatedState, momentum: float) -> dict[str, Any]:
        Ht = state.Ht_next if momentum and state.Ht_next is not None else state.Ht
        new_W = kl_passes(rows, state.W, Ht, Ht.sum(axis=0), **of_W)[0]
        W = extrapolate_bounded(new_W, state.W_plain, momentum)
        sums = W.sum(axis=0) if weights is None else weights @ W
        # The loss comes out of the update of H.
        new_Ht, logs, _ = kl_passes(columns, Ht, W, sums, **of_H)
        loss = constant - float(logs.sum())
        loss += float(sums.astype(np.float64) @ new_Ht.sum(axis=0, dtype=np.float64))
        return {
            "W": W,
            "Ht": new_Ht,
            "loss": loss + penalties.of_W(W, weights) + penalties.of_H(new_Ht),
            "W_plain": new_W,
            "Ht_plain": new_Ht,
            "Ht_next": extrapolate_bounded(new_Ht, state.Ht_plain, momentum) if momentum else None,
        }

    candidates = partial(extrapolated_or_plain, advance)
    return Descent(candidates, data.container), ExtrapolatedState(W, Ht)
