"""Huber's loss by reweighting: entries or rows far from the model count by distance instead of its square."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nonneg._arrays import row_major, to_numpy
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.certificates.certificate import Certificate
from nonneg.data import DataMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.data.observed import ArrayObserved
from nonneg.exceptions import InvalidParameterError, UnknownNameError, UnsupportedInputError
from nonneg.iteration import Progress, SlowDecrease, iterate
from nonneg.iteration.progress import Reporter
from nonneg.losses.penalties import Penalties
from nonneg.solvers.certificate import certify
from nonneg.solvers.encoding import encode
from nonneg.solvers.hals import hals
from nonneg.solvers.registry import loss_name
from nonneg.solvers.result import FactorizationResult

NAMES = ("huber", "huber-rows")
# Iterations with the same weights: new ones cost a product, and momentum is lost.
PER_ROUND = 10
# Reweightings of a row of `transform`; its loss is convex, and they end when they change nothing.
MOST_ROUNDS, SMALL = 500, 1e-10


@dataclass(frozen=True)
class Huber:
    """Half the square up to a threshold, in standard deviations, and its tangent beyond.

    Of every entry, or of every row by the root mean square of its entries: the L2,1 norm if it is small.
    """

    threshold: float
    of_rows: bool = False

    @classmethod
    def of(cls, name: Any, threshold: Any, beta: float) -> Huber | None:
        """Return the loss that a user asks for by name, or None."""
        if name is None:
            return None
        UnknownNameError.check("robust", name, NAMES, other="None")
        if beta != 2.0:
            raise InvalidParameterError(
                f"robust={name!r} replaces the Frobenius loss, but beta_loss={loss_name(beta)!r} was "
                "asked for. Use beta_loss='frobenius', or leave robust out."
            )
        if not (isinstance(threshold, int | float | np.number) and 0 < threshold < np.inf):
            raise InvalidParameterError(
                f"robust_threshold must be a positive number of standard deviations, got {threshold!r}."
            )
        return cls(float(threshold), of_rows=name != "huber")

    def residuals(self, data: DenseMatrix, W: Array, Ht: Array) -> tuple[Array, Array]:
        """Return the residuals in standard deviations, and the weights of the entries."""
        xp = data.xp
        weights = xp.ones_like(data.array)
        if data.observed is not None:
            weights = xp.astype(xp.asarray(data.observed.dense_rows(0, data.shape[0])), data.array.dtype)
        return xp.sqrt(weights) * (data.array - W @ Ht.T), weights

    def sizes(self, data: DenseMatrix, residuals: Array) -> Array:
        """Return what is compared with the threshold: of every entry, or in a single column of every row."""
        if not self.of_rows:
            return data.xp.abs(residuals)
        return data.xp.linalg.vector_norm(residuals, axis=1, keepdims=True) / data.shape[1] ** 0.5

    def reweighted(self, data: DenseMatrix, W: Array, Ht: Array) -> tuple[DenseMatrix, float]:
        """Return data whose squared loss majorizes this one and touches it at W and H, and the loss there."""
        xp = data.xp
        residuals, weights = self.residuals(data, W, Ht)
        size = self.sizes(data, residuals)
        far = size > self.threshold
        share = xp.where(far, self.threshold / xp.where(far, size, xp.ones_like(size)), xp.ones_like(size))
        # c |z| - c^2 / 2 = c / |z| z^2 - c^2 / 2
        wide = xp.astype(size, xp.float64)
        losses = xp.where(far, self.threshold * (wide - 0.5 * self.threshold), 0.5 * wide * wide)
        rows = xp.sum(losses, axis=1) * (data.shape[1] if self.of_rows else 1)
        rows = rows if data.weights is None else rows * xp.astype(data.weights, xp.float64)
        observed, of_rows = data.observed, data.weights
        if self.of_rows:
            of_rows = share[:, 0] if of_rows is None else of_rows * share[:, 0]
        else:
            observed = ArrayObserved(weights * share, xp)
        return DenseMatrix(data.array, xp, weights=of_rows, observed=observed), float(xp.sum(rows))

    def encode(self, data: DenseMatrix, Ht: Array, penalties: Penalties) -> tuple[SampleArray, float]:
        """Minimize the penalized loss of every row over W >= 0, with Ht fixed; return W and the loss."""
        xp = data.xp
        W, _ = encode(data, Ht, beta=2.0, penalties=penalties)
        # Rows without outliers are done: near their minimum the loss is the square.
        sizes = self.sizes(data, self.residuals(data, W, Ht)[0])
        todo = np.flatnonzero(to_numpy(xp.any(sizes > self.threshold, axis=1)))
        for _ in range(MOST_ROUNDS):
            if not todo.size:
                break
            rows = xp.asarray(todo, device=W.device)
            part, before = data.select(rows), xp.take(W, rows, axis=0)
            after, _ = encode(self.reweighted(part, before, Ht)[0], Ht, beta=2.0, penalties=penalties)
            W[rows, :] = after
            change = xp.max(xp.abs(after - before), axis=1) > SMALL * xp.max(after, axis=1)
            todo = todo[to_numpy(change)]
        return W, self.reweighted(data, W, Ht)[1] + float(penalties.of_W(W, data.weights))

    def outliers(self, data: DenseMatrix, W: Array, Ht: Array) -> IntArray:
        """Return row and column of the entries beyond the threshold, or the rows, the farthest first."""
        size = to_numpy(self.sizes(data, self.residuals(data, W, Ht)[0]))
        places = np.argwhere(size > self.threshold)
        places = places[np.argsort(-size[tuple(places.T)], kind="stable")]
        return places[:, :1] if self.of_rows else places


def reweighted_fit(
    first: FactorizationResult,
    data: DenseMatrix,
    huber: Huber,
    *,
    penalties: Penalties,
    tol: float,
    max_iter: int,
    free: IntArray | None = None,
    final_encoding: bool = False,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: Reporter | None = None,
) -> FactorizationResult:
    """Minimize Huber's loss by rounds of reweighting, from a fit of the squared loss."""
    # Each round decreases the loss: the weighted squares majorize it (Huber 1981, Section 7.8).
    start, left = (first.W, data.to_device(first.H.T)), max_iter - first.n_iter
    rounds = -(-left // PER_ROUND) if left < np.inf else left

    def step(state: tuple[Array, Array]) -> tuple[tuple[Array, Array], dict[str, float]]:
        nonlocal left
        weighted, _ = huber.reweighted(data, *state)
        run = hals(weighted, *state, penalties=penalties, max_iter=min(PER_ROUND, left), tol=0.0, free=free)
        left -= PER_ROUND
        state = run.state.W, run.state.Ht
        loss = huber.reweighted(data, *state)[1] + penalties.of_W(state[0], data.weights)
        return state, {"loss": float(loss + penalties.of_H(state[1]))}

    shown: dict[str, Any] = {"callback": callback, "progress": progress}
    run = iterate(step, start, max_iter=rounds, stop=SlowDecrease(tol), **shown)
    W, Ht = run.state
    if final_encoding:
        W, _ = huber.encode(data, Ht, penalties)
    weighted, loss = huber.reweighted(data, W, Ht)
    loss += float(penalties.of_W(W, data.weights) + penalties.of_H(Ht))
    statements = certify(weighted, W, Ht, beta=2.0, penalties=penalties, free=free, loss="huber")
    return replace(
        first, W=row_major(W), H=row_major(Ht.T), loss=loss, stop_reason=run.stop_reason,
        n_iter=min(max_iter, first.n_iter + PER_ROUND * run.n_iter), history=run.history, loss_name="huber",
        certificate=Certificate(tuple(statements)), outliers=huber.outliers(data, W, Ht),
    )  # fmt: skip


def checked_dense(data: DataMatrix) -> DenseMatrix:
    """Return the data, or say that residuals of all entries must fit in memory."""
    if not isinstance(data, DenseMatrix):
        raise UnsupportedInputError(
            f"robust needs X as a dense array in memory, got {data.container} data. Convert it, or "
            "leave robust out."
        )
    return data
