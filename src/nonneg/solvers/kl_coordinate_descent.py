"""Coordinate descent for the Kullback-Leibler divergence over the nonzeros, extrapolated with restarts.

Rows of W and then rows of B are improved by a few sweeps of safe Newton steps on single entries. The
accepted pair is the extrapolated W with the B that answers it: its loss comes out of the sweeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import Array, FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.iteration import Checkpoint, RelativeDecrease, Run, iterate
from nonneg.iteration.progress import Progress, Reporter
from nonneg.kernels.beta import kl_passes
from nonneg.losses.penalties import Penalties

# Sweeps over a row at a visit, and the share of the first sweep's change that ends them.
SWEEPS, SHRINK = 2, 0.1
MOMENTUM, GROWTH, CEILING_GROWTH, DECAY = 0.3, 1.1, 1.02, 2.0


@dataclass(frozen=True)
class CoordinateState:
    """The accepted pair, and what extrapolation remembers.

    Parameters
    ----------
    W, B : array
        The accepted factors; X is about W B'.
    loss : float
        Of the accepted pair, penalties included.
    W_plain, B_plain : array or None
        The last factors before extrapolation.
    B_next : array or None
        The extrapolated right factor with which the next iteration begins.
    momentum, ceiling : float
        Share of the last change that is added again, and its present limit.
    """

    W: FloatArray
    B: FloatArray
    loss: float = float("inf")
    W_plain: FloatArray | None = None
    B_plain: FloatArray | None = None
    B_next: FloatArray | None = None
    momentum: float = 0.0
    ceiling: float = 1.0


@dataclass(frozen=True)
class CoordinateProblem:
    """Nonzeros by rows and by columns, penalties and sweeps: all that a step needs beside its state.

    Parameters
    ----------
    rows, columns : tuple of array
        The nonzeros in CSR, and those of the transpose, times the row weights.
    weights : array or None
        The row weights.
    constant : float
        Weighted sum of x log x - x.
    penalties : Penalties
        L1 and L2.
    order : array of int or None
        The components of B that may change.
    sweeps : int
        At most so many sweeps over a row at a visit.
    extrapolate : bool
        Whether iterations are extrapolated.
    """

    rows: Any
    columns: Any
    weights: Array | None
    constant: float
    penalties: Penalties
    order: IntArray | None
    sweeps: int
    extrapolate: bool

    def advance(self, state: CoordinateState, momentum: float) -> CoordinateState:
        """Improve W, then B.

        Parameters
        ----------
        state : CoordinateState
            Where it begins.
        momentum : float
            0 makes it a plain step from the accepted pair.

        Returns
        -------
        CoordinateState
            The new pair, whatever its loss.
        """
        penalties = self.penalties
        B = state.B_next if momentum and state.B_next is not None else state.B
        options: dict[str, Any] = {"max_sweeps": self.sweeps, "shrink": SHRINK}
        new_W, _, _ = kl_passes(
            self.rows, state.W, B, B.sum(axis=0), l1=penalties.l1_W, l2=penalties.l2_W, **options
        )
        W = _extrapolated(new_W, state.W_plain, momentum)
        sums = W.sum(axis=0) if self.weights is None else self.weights @ W
        new_B, logs, _ = kl_passes(
            self.columns, B, W, sums, order=self.order, l1=penalties.l1_H, l2=penalties.l2_H, **options
        )
        loss = self.constant - float(logs.sum())
        loss += float(sums.astype(np.float64) @ new_B.sum(axis=0, dtype=np.float64))
        loss += penalties.left(W, self.weights) + penalties.right(new_B)
        B_next = _extrapolated(new_B, state.B_plain, momentum) if momentum else None
        if B_next is not None and self.order is not None:
            held = np.setdiff1d(np.arange(B.shape[1]), self.order)
            B_next[:, held] = B[:, held]
        return replace(state, W=W, B=new_B, loss=loss, W_plain=new_W, B_plain=new_B, B_next=B_next)

    def step(self, state: CoordinateState) -> tuple[CoordinateState, dict[str, float]]:
        """Do one iteration that does not raise the loss.

        Parameters
        ----------
        state : CoordinateState
            The accepted pair.

        Returns
        -------
        state : CoordinateState
            The next accepted pair.
        measures : dict
            Its loss.
        """
        momentum = state.momentum
        after = self.advance(state, momentum)
        if momentum and not after.loss <= state.loss:
            plain = replace(state, momentum=momentum / DECAY, ceiling=momentum)
            after = self.advance(plain, 0.0)
        elif self.extrapolate:
            ceiling = min(1.0, CEILING_GROWTH * state.ceiling)
            faster = min(ceiling, GROWTH * momentum) if momentum else MOMENTUM
            after = replace(after, momentum=faster, ceiling=ceiling)
        if not after.loss <= state.loss:
            # Rounding only: keep the better pair and let the stopping rule end the run.
            after = replace(state, momentum=0.0)
        return after, {"loss": after.loss}


def _extrapolated(new: FloatArray, old: FloatArray | None, momentum: float) -> FloatArray:
    if not momentum or old is None:
        return new
    out: FloatArray = new + new.dtype.type(momentum) * (new - old)
    # A zero would make the model zero where the data are not; a tenth is far enough.
    return np.maximum(out, new.dtype.type(0.1) * new, out=out)


def kl_coordinate_descent(
    data: DataMatrix,
    W: Array,
    B: Array,
    *,
    penalties: Penalties,
    beta: float = 1.0,
    max_iter: int = 200,
    tol: float = 1e-4,
    free: IntArray | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: Reporter | None = None,
    checkpoint: Checkpoint | None = None,
    **options: Any,
) -> Run[CoordinateState]:
    """Minimise the Kullback-Leibler divergence plus penalties, one entry of a factor at a time.

    Parameters
    ----------
    data : DataMatrix
        The data X, sparse or dense NumPy; of dense data a list of the nonzeros is made.
    W, B : array
        The start; not changed. Zeros may become positive.
    penalties : Penalties
        L1 and L2, already scaled.
    beta : float
        Always 1; here so that all solvers take the same arguments.
    max_iter : int
        At most so many iterations.
    tol : float
        Stop when 10 iterations took less than this share of the first error off the error.
    free : array of int, optional
        The components of B that may change; all by default.
    callback, progress, checkpoint : optional
        As in `iterate`.
    **options : Any
        `sweeps` over a row at a visit, `extrapolate` (on by default).

    Returns
    -------
    Run
        Its state has the factors `W` and `B`.

    Notes
    -----
    A sweep costs about 8 nnz k operations; the model is never formed beside the nonzeros. With t the
    entry and g its slope, concave in t, the step is Newton's for g where g < 0 and Newton's for t g(t)
    where g > 0: neither passes the root, so that no step raises the loss and none is evaluated.

    References
    ----------
    .. [1] Hsieh & Dhillon (2011), KDD, Section 3.2 (one-variable Newton steps for this divergence).
    .. [2] Hien & Gillis (2021), J. Sci. Comput. 87(3), Section 3.
    """
    csr: Any = data.csr if data.kind == "sparse" else sp.csr_array(data.array)  # type: ignore[attr-defined]
    turned: Any = data.transposed if data.kind == "sparse" else sp.csr_array(csr.T.tocsr())  # type: ignore[attr-defined]
    weights = data.weights
    values = csr.data.astype(np.float64)
    terms = values * (np.log(np.where(values > 0, values, 1.0)) - 1.0)
    column_values = turned.data
    if weights is not None:
        terms *= np.repeat(weights, np.diff(csr.indptr))
        column_values = column_values * weights[turned.indices]
    problem = CoordinateProblem(
        (csr.indptr, csr.indices, csr.data),
        (turned.indptr, turned.indices, column_values),
        weights,
        float(terms.sum()),
        penalties,
        free,
        int(options.get("sweeps", SWEEPS)),
        bool(options.get("extrapolate", True)),
    )
    return iterate(
        problem.step,
        CoordinateState(W, B),
        max_iter=max_iter,
        stop=RelativeDecrease(tol),
        callback=callback,
        progress=progress,
        checkpoint=checkpoint,
    )
