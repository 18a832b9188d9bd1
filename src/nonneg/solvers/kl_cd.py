"""Coordinate descent for the Kullback-Leibler divergence over the nonzeros, extrapolated with restarts.

Rows of W and then rows of Ht are improved by a few sweeps of safe Newton steps on single entries. The
accepted pair is the extrapolated W with the H fitted to it: its loss comes out of the update of H, so that
the safeguard costs nothing while extrapolation helps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import Array, FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.iteration import SlowDecrease
from nonneg.iteration.loop import Candidates, Descent, changed, solver, unchanged
from nonneg.kernels.beta_products import kl_passes
from nonneg.losses.penalties import Penalties
from nonneg.solvers.extrapolation import STEEP, extrapolate_bounded

# Maximum number of sweeps over a row per update; one that changes the row by at most this fraction of the
# first is the last.
SWEEPS, SHRINK = 2, 0.1


@dataclass(frozen=True)
class DescentState:
    """The accepted pair, and what extrapolation remembers."""

    W: Array  # the accepted factors; X is about W H
    Ht: Array
    loss: float = float("inf")  # of the accepted pair, penalties included
    W_plain: Array | None = None  # the last factors before extrapolation
    Ht_plain: Array | None = None
    Ht_next: Array | None = None  # the extrapolated H' with which the next iteration begins
    momentum: float = 0.0  # see `extrapolation.Momentum`
    ceiling: float = 1.0


@dataclass(frozen=True)
class Sweeps:
    """Nonzeros by rows and by columns, penalties and sweeps: what an iteration needs besides its state."""

    rows: Any  # the nonzeros in CSR, and those of the transpose, times the sample weights
    columns: Any
    weights: Array | None  # the sample weights
    unit: float  # about the mean of the nonzeros, in which logarithms are taken
    constant: float  # weighted sum of x log(x / unit) - x
    penalties: Penalties  # L1 and L2
    order: IntArray | None  # the components of Ht that may change

    def update_W(self, W: FloatArray, Ht: FloatArray) -> FloatArray:
        """Improve W."""
        l1, l2 = self.penalties.l1_W, self.penalties.l2_W
        sums = Ht.sum(axis=0)
        return kl_passes(self.rows, W, Ht, sums, l1=l1, l2=l2, max_sweeps=SWEEPS, shrink=SHRINK)[0]

    def update_H(self, W: FloatArray, Ht: FloatArray) -> tuple[FloatArray, float]:
        """Improve Ht and evaluate the pair."""
        penalties = self.penalties
        sums = W.sum(axis=0) if self.weights is None else self.weights @ W
        new, logs, _ = kl_passes(
            self.columns,
            Ht,
            W,
            sums,
            order=self.order,
            l1=penalties.l1_H,
            l2=penalties.l2_H,
            max_sweeps=SWEEPS,
            shrink=SHRINK,
            unit=self.unit,
        )
        loss = self.constant - float(logs.sum())
        loss += float(sums.astype(np.float64) @ new.sum(axis=0, dtype=np.float64))
        return new, loss + penalties.of_W(W, self.weights) + penalties.of_H(new)

    def advance(self, state: DescentState, momentum: float) -> dict[str, Any]:
        """Improve W, then Ht; return what changes."""
        Ht = state.Ht_next if momentum and state.Ht_next is not None else state.Ht
        new_W = self.update_W(state.W, Ht)
        W = extrapolate_bounded(new_W, state.W_plain, momentum)
        new_Ht, loss = self.update_H(W, Ht)
        Ht_next = extrapolate_bounded(new_Ht, state.Ht_plain, momentum) if momentum else None
        return {
            "W": W,
            "Ht": new_Ht,
            "loss": loss,
            "W_plain": new_W,
            "Ht_plain": new_Ht,
            "Ht_next": Ht_next,
        }

    def candidates(self, state: DescentState) -> Candidates:
        """Yield the extrapolated iteration, and in case its loss is higher, the plain one."""
        momentum = state.momentum
        faster, ceiling, _ = STEEP.accepted(momentum, state.ceiling)
        yield changed(state, momentum=faster, ceiling=ceiling), self.advance, momentum
        if momentum:
            slower, ceiling, _ = STEEP.rejected(momentum)
            yield changed(state, momentum=slower, ceiling=ceiling), self.advance, 0.0
        # Rounding only: keep the better pair and let the stopping rule end the run.
        yield changed(state, momentum=0.0), unchanged


@solver(SlowDecrease)
def kl_coordinate_descent(
    data: DataMatrix,
    W: Array,
    Ht: Array,
    *,
    penalties: Penalties,
    beta: float = 1.0,
    free: IntArray | None = None,
) -> tuple[Any, DescentState]:
    """Minimize the Kullback-Leibler divergence plus penalties, one entry of a factor at a time."""
    # A sweep costs about 8 nnz k operations; the model is only formed at the nonzeros. With t the entry
    # and g its derivative, concave in t, the step is Newton's for g where g < 0 and Newton's for t g(t) where
    # g > 0: neither overshoots, so that no step increases the loss and none is evaluated.
    # Hsieh & Dhillon (2011), KDD, Section 3.2 (one-variable Newton steps for this divergence). Hien & Gillis
    # (2021), J. Sci. Comput. 87(3), Section 3.
    csr: Any = data.csr if data.container == "sparse" else sp.csr_array(data.array)  # type: ignore[attr-defined]
    turned: Any = data.transposed if data.container == "sparse" else sp.csr_array(csr.T.tocsr())  # type: ignore[attr-defined]
    weights = data.weights
    values = csr.data.astype(np.float64)
    mean = float(values.mean()) if values.any() else 1.0
    unit = 2.0 ** round(math.log2(mean))  # a power of two, by which division is exact
    terms = values * (np.log(np.where(values > 0, values / unit, 1.0)) - 1.0)
    column_values = turned.data
    if weights is not None:
        terms *= np.repeat(weights, np.diff(csr.indptr))
        column_values = column_values * weights[turned.indices]
    sweeps = Sweeps(
        (csr.indptr, csr.indices, csr.data),
        (turned.indptr, turned.indices, column_values),
        weights,
        unit,
        float(terms.sum()),
        penalties,
        free,
    )
    return Descent(sweeps.candidates, data.container), DescentState(W, Ht)
