"""Extrapolated HALS on a batch of restarts: `solvers.alternating`, one axis more.

The products with the data are those with the factors of all restarts side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_device, to_float64
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.kernels.batched_hals import batched_hals
from nonneg.solvers.alternating import SCHEDULE
from nonneg.solvers.batched_newton import RestartBatch, turned
from nonneg.solvers.hals import SHRINK, inner_passes


@dataclass(frozen=True)
class AlternatingBatch(RestartBatch):
    """The fields of `alternating.AlternatingState`, of every restart."""

    W_plain: Array
    Ht_plain: Array
    Ht_next: Array
    momentum: FloatArray
    ceiling: FloatArray
    restarts: IntArray


@dataclass(frozen=True)
class BatchedAlternating:
    """The problem of all restarts."""

    X: Array
    squared_norm: float
    passes: tuple[int, int]

    @classmethod
    def of(cls, data: Any, k: int) -> BatchedAlternating:
        """Take what an iteration needs of the data."""
        return cls(data.array, data.squared_norm(), inner_passes(data, k))

    @property
    def slack(self) -> float:
        """By how much rounding may increase the loss."""
        return (2e-13 if "64" in str(self.X.dtype) else 2e-6) * 0.5 * self.squared_norm

    def begin(self, W: Array, Ht: Array) -> AlternatingBatch:
        """Return the first state."""
        n = W.shape[0]
        return AlternatingBatch(
            W,
            Ht,
            np.full(n, np.inf),
            np.arange(n),
            W,
            Ht,
            Ht,
            np.full(n, SCHEDULE.initial),
            np.ones(n),
            np.full(n, -1),
        )

    def _product(self, X: Array, factors: Array) -> Array:
        """Return the products of a matrix with all factors, by one product."""
        xp = array_namespace(X)
        batch, rows, k = factors.shape
        beside = xp.reshape(xp.permute_dims(factors, (1, 0, 2)), (rows, batch * k))
        return xp.permute_dims(xp.reshape(X @ beside, (X.shape[0], batch, k)), (1, 0, 2))

    def _rounding(self, cross: Array) -> Array:
        xp = array_namespace(cross)
        return 8 * float(xp.finfo(cross.dtype).eps) * xp.sum(xp.abs(cross), axis=(1, 2))

    def advance(self, state: AlternatingBatch, momentum: FloatArray) -> tuple[AlternatingBatch, FloatArray]:
        """Do one iteration; return the violations as well."""
        xp, X = array_namespace(self.X), self.X
        moving = to_device(momentum > 0, X)[:, None, None]
        amount = to_device(momentum, X, X.dtype)[:, None, None]
        Ht = xp.where(moving, state.Ht_next, state.Ht)
        cross = self._product(X, Ht)
        W, violation = batched_hals(state.W, turned(Ht) @ Ht, cross, max_passes=self.passes[0], shrink=SHRINK)
        violation = xp.clip(violation - self._rounding(cross), min=0.0)
        chosen = xp.where(moving, xp.clip(W + amount * (W - state.W_plain), min=0.0), W)
        gram, cross = turned(chosen) @ chosen, self._product(X.T, chosen)
        new, of_H = batched_hals(Ht, gram, cross, max_passes=self.passes[1], shrink=SHRINK)
        violation = violation + xp.clip(of_H - self._rounding(cross), min=0.0)
        wide = xp.astype(new, xp.float64)
        products = xp.sum(xp.astype(cross, xp.float64) * wide, axis=(1, 2))
        own = xp.astype(turned(new) @ new, xp.float64) * xp.astype(gram, xp.float64)
        loss = 0.5 * self.squared_norm - products + 0.5 * xp.sum(own, axis=(1, 2))
        following = xp.clip(new + amount * (new - state.Ht_plain), min=0.0)
        measured = to_float64(xp.stack([loss, xp.astype(violation, xp.float64)]))
        after = replace(
            state,
            W=chosen,
            Ht=new,
            W_plain=W,
            Ht_plain=new,
            Ht_next=following,
            loss=np.maximum(measured[0], 0.0),
        )
        return after, measured[1]

    def step(self, before: AlternatingBatch) -> tuple[AlternatingBatch, dict[str, Any]]:
        """Do one iteration of every restart that does not increase its loss."""
        # The first iteration, which -1 rejected ones mark, has nothing to extrapolate from.
        momentum = np.where(before.restarts < 0, 0.0, before.momentum)
        before = replace(before, restarts=np.maximum(before.restarts, 0))
        after, violation = self.advance(before, momentum)
        worse = (momentum > 0) & (after.loss > before.loss)
        good = np.flatnonzero((momentum > 0) & ~worse)
        following = [SCHEDULE.accepted(momentum[i], before.ceiling[i]) for i in good]
        after = _scheduled(after, good, following)
        if worse.any():
            again = np.flatnonzero(worse)
            slower = [SCHEDULE.rejected(momentum[i], int(before.restarts[i])) for i in again]
            tried = _scheduled(before, again, slower).take(again)
            redone, again_violation = self.advance(tried, np.zeros(len(again)))
            after = after.put(again, redone)
            violation[again] = again_violation
        stuck = np.flatnonzero(after.loss > before.loss + self.slack)
        if len(stuck):
            # Rounding only: keep the better pair and let the stopping rule end the run.
            same = before.take(stuck)
            after = after.put(
                stuck, replace(same, momentum=np.zeros(len(stuck)), W_plain=same.W, Ht_plain=same.Ht)
            )
        return after, {"loss": after.loss, "violation": violation}


def _scheduled(state: AlternatingBatch, chosen: IntArray, following: list[Any]) -> AlternatingBatch:
    """Return the states with the momentum of some restarts changed."""
    new = {}
    for name in ("momentum", "ceiling", "restarts"):
        values = getattr(state, name).copy()
        values[chosen] = [getattr(each, name) for each in following]
        new[name] = values
    return replace(state, **new)
