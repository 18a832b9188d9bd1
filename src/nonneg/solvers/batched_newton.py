"""Newton steps for the Kullback-Leibler divergence on a batch of restarts: `solvers.newton`, one axis more.

Factors of all restarts are arrays (batch, rows, k). Momentum, losses and decisions of a restart are its own;
restarts that have to try again do so together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_device, to_float64
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.kernels import batched_kl
from nonneg.kernels.batched_targets import batched_targets
from nonneg.losses.beta import BetaLoss
from nonneg.solvers.extrapolation import LOWEST_FRACTION
from nonneg.solvers.majorizer import update_ratio
from nonneg.solvers.newton import NOTHING, SCHEDULE, SHORTEST, TRIES, _factor
from nonneg.solvers.row_newton import DAMPING, SHORTEST_STEP


def turned(array: Array) -> Array:
    """Exchange the last two axes."""
    return array_namespace(array).permute_dims(array, (0, 2, 1))


@dataclass(frozen=True)
class RestartBatch:
    """Arrays of several restarts, their number the first axis."""

    W: Array
    Ht: Array
    loss: FloatArray
    numbers: IntArray  # which restarts they are

    def take(self, chosen: IntArray) -> Any:
        """Return some of the restarts."""
        if len(chosen) == len(self.loss):
            return self
        xp = array_namespace(self.W)
        index = to_device(chosen, self.W)

        def part(array: Any) -> Any:
            if array is None:
                return None
            return array[chosen] if isinstance(array, np.ndarray) else xp.take(array, index, axis=0)

        return replace(self, **{field.name: part(getattr(self, field.name)) for field in fields(self)})

    def put(self, chosen: IntArray, other: Any) -> Any:
        """Return the batch with some restarts replaced by those of another batch."""
        if len(chosen) == len(self.loss):
            return other
        index = to_device(chosen, self.W)

        def merged(old: Any, new: Any) -> Any:
            if old is None or new is None:
                return new
            old = old.copy() if isinstance(old, np.ndarray) else array_namespace(old).asarray(old, copy=True)
            old[chosen if isinstance(old, np.ndarray) else index] = new
            return old

        names = [field.name for field in fields(self)]
        return replace(self, **{name: merged(getattr(self, name), getattr(other, name)) for name in names})


@dataclass(frozen=True)
class NewtonBatch(RestartBatch):
    """The fields of `newton.NewtonState`, of every restart."""

    W_before: Array
    Ht_plain: Array
    gradient: Array
    diagonal: Array
    gram: Array
    total: Array
    columns: Array
    steps: Array
    momentum: FloatArray
    ceiling: FloatArray


# The arrays that an iteration begins with, and those that it returns.
ARRAYS = ("W", "Ht", "W_before", "Ht_plain", "gradient", "diagonal", "gram", "total", "columns", "steps")
FOUND = ("W", "Ht", "Ht_plain", "gradient", "diagonal", "gram", "total", "columns", "steps", "loss")


@dataclass(frozen=True)
class BatchedNewton:
    """The problem of all restarts."""

    X: Array  # of all restarts, or of each of them
    bounds: Array  # lower bounds of the models
    units: Array  # about the sum of a row of the data

    @classmethod
    def of(cls, data: Sequence[Any]) -> BatchedNewton:
        """Take what an iteration needs of the data of every restart."""
        different = {id(each): each for each in data}
        facts = {
            name: (BetaLoss.of(each, 1.0).lower_bound, each.shape[1] * (each.mean() or 1.0))
            for name, each in different.items()
        }
        xp, X = data[0].xp, data[0].array
        if len(different) > 1:
            X = xp.stack([each.array for each in data])
        bounds, units = (to_device(part, X) for part in np.array([facts[id(each)] for each in data]).T)
        return cls(X, bounds, units)

    @property
    def xp(self) -> Any:
        """The namespace."""
        return array_namespace(self.X)

    def facts(self, numbers: IntArray) -> tuple[Array, Array, Array]:
        """Return data, lower bounds and units of some restarts."""
        X = self.X if self.X.ndim == 2 else _some(self.X, numbers)
        return X, _some(self.bounds, numbers), _some(self.units, numbers)

    def begin(self, W: Array, Ht: Array) -> NewtonBatch:
        """Return the first state: the rows of W alone have moved."""
        zeros, numbers = np.zeros(W.shape[0]), np.arange(W.shape[0])
        found, _ = self.evaluate(self.facts(numbers), W, W, Ht, None, None, plain=False)
        found["loss"] = to_float64(found["loss"])
        ones = self.xp.ones_like(found["columns"])
        return NewtonBatch(
            **found, numbers=numbers, Ht=Ht, W_before=found["W"], Ht_plain=Ht, steps=ones, momentum=zeros,
            ceiling=zeros + 1.0,
        )  # fmt: skip

    def evaluate(
        self,
        facts: tuple[Array, Array, Array],
        W: Array,
        W_before: Array,
        Ht: Array,
        total: Array | None,
        momentum: Array | None,
        *,
        plain: bool,
    ) -> tuple[dict[str, Any], Array | None]:
        """Move the rows of W; return them and sums, and the losses of the columns before it if `plain`."""
        xp, (X, bounds, units) = self.xp, facts
        means = xp.sum(Ht, axis=2) if total is None else (Ht @ total[:, :, None])[:, :, 0]
        correlations = shared_correlations(Ht, means)
        H = turned(Ht)
        start = W if momentum is None else bounded(W, W_before, momentum)
        v = start @ H
        # What the columns gain by extrapolated rows would say nothing about their own steps.
        at_start = batched_kl.column_losses(X, v, bounds) if plain else None
        slope, curvature = batched_kl.newton_terms(X, v, bounds)
        squares = Ht * Ht + DAMPING * xp.mean(Ht, axis=1, keepdims=True) ** 2
        gradient, diagonal = slope @ Ht, curvature @ squares
        direction, slopes = batched_targets(start, gradient, diagonal, correlations)
        del slope, curvature
        steps = batched_kl.line_search(X, v, direction @ H, slopes, bounds)[:, :, None]
        sums = xp.sum(Ht, axis=1, keepdims=True)
        # (x / v) Ht is what the gradient leaves of the sums.
        ratio = update_ratio(start, sums - gradient, sums, l1=0.0, l2=0.0, beta=1.0)
        new = xp.where(steps < SHORTEST_STEP, start * ratio, xp.clip(start + steps * direction, min=0.0))
        v = new @ H
        columns = batched_kl.column_losses(X, v, bounds)
        slope, curvature = batched_kl.newton_terms(X, v, bounds)
        squares = xp.concat([new * new, xp.ones_like(new[:, :, :1])], axis=2)
        sums = sums / xp.astype(units, Ht.dtype)[:, None, None]
        scale = xp.clip((new @ turned(sums))[:, :, 0], min=1e-6)
        found = {
            "W": new,
            "loss": xp.sum(columns, axis=1),
            "gradient": turned(slope) @ new,
            "diagonal": turned(curvature) @ squares,
            "gram": turned(new / scale[:, :, None]) @ new,
            "total": xp.sum(new, axis=1),
            "columns": columns,
        }
        return found, at_start

    def direction(
        self, Ht: Array, gradient: Array, diagonal: Array, gram: Array, total: Array
    ) -> tuple[Array, Array]:
        """Return the step of every column of H, and the derivatives of their losses along it."""
        xp = self.xp
        damping = DAMPING * (total / self.X.shape[-2]) ** 2
        diagonal = diagonal[:, :, :-1] + diagonal[:, :, -1:] * damping[:, None, :]
        direction, slopes = batched_targets(Ht, gradient, diagonal, correlations_of(gram))
        slopes = xp.astype(slopes, xp.float64)
        down = slopes < 0
        kept = xp.where(down[:, :, None], direction, xp.zeros_like(direction))
        return kept, xp.where(down, slopes, xp.zeros_like(slopes))

    def attempt(self, moves: bool, plain: bool, arrays: Any) -> list[Array]:
        """Move both factors of all restarts by their steps; see `newton.NewtonProblem.attempt`.

        Returns the arrays of `FOUND`, and if some restarts have no momentum, shorter steps for their columns
        that became worse, and what their steps were to gain.
        """
        xp = self.xp
        X, bounds, units, momentum, *fields_ = arrays
        now = dict(zip(ARRAYS, fields_, strict=True))
        direction, slopes = self.direction(
            **{name: now[name] for name in ("Ht", "gradient", "diagonal", "gram", "total")}
        )
        steps = now["steps"]
        Ht = now["Ht"] + xp.astype(steps, direction.dtype)[:, :, None] * direction
        column = xp.astype(momentum, Ht.dtype)[:, None, None] if moves else None
        chosen = bounded(Ht, now["Ht_plain"], column) if moves else Ht
        found, at_start = self.evaluate(
            (X, bounds, units), now["W"], now["W_before"], chosen, now["total"], column, plain=plain
        )
        doubled = xp.clip(2.0 * steps, max=1.0)
        found |= {"Ht": chosen, "Ht_plain": Ht, "steps": doubled}
        if not plain:
            return [found[name] for name in FOUND]
        gained, change = steps * slopes, at_start - now["columns"]
        unclear = -gained < 1e-12 * found["columns"]
        best = _factor(xp, gained, change, most=2.0)
        own = xp.clip(xp.where(unclear, 2.0 * steps, steps * best), min=SHORTEST, max=1.0)
        rests = (momentum == 0)[:, None]
        found["steps"] = xp.where(rests, own, doubled)
        # Restarts with momentum try again without it first, with the same steps.
        worse = xp.logical_and(rests, change > 0)
        shorter = xp.where(worse, steps * _factor(xp, gained, change, most=0.5), steps)
        return [*(found[name] for name in FOUND), shorter, xp.sum(gained, axis=1)]

    def tried(self, now: NewtonBatch) -> tuple[NewtonBatch, Any, Any]:
        """Call `attempt`; return the states after it, shorter steps, and what the steps were to gain."""
        momentum = now.momentum
        kind = bool(momentum.any()), not momentum.all()
        arrays = [
            *self.facts(now.numbers),
            to_device(momentum, self.X),
            *(getattr(now, name) for name in ARRAYS),
        ]
        out = self.attempt(*kind, arrays)
        found = dict(zip(FOUND, out, strict=False))
        found["loss"] = to_float64(found["loss"])
        after = replace(now, **found, W_before=now.W)
        return (after, *out[len(FOUND) :]) if kind[1] else (after, None, None)

    def step(self, state: NewtonBatch) -> tuple[NewtonBatch, dict[str, Any]]:
        """Do one iteration of every restart that does not increase its loss."""
        after = state  # restarts that find nothing better stay
        n = len(state.loss)
        now, places = state, np.arange(n)  # what is tried, and which restarts they are
        pending, stuck = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        nothing = NOTHING["float64" if "64" in str(self.X.dtype) else "float32"]
        for _ in range(TRIES):
            new, shorter, gained = self.tried(now)
            good = pending[places] & (new.loss <= now.loss)
            if good.all():
                after = scheduled(new) if len(places) == n else after.put(places, scheduled(new))
                pending[places] = False
                break
            if good.any():
                chosen = np.flatnonzero(good)
                after = after.put(places[chosen], scheduled(new).take(chosen))
                pending[places[chosen]] = False
            left = pending[places]
            if not left.any():
                break
            if (left & (now.momentum == 0)).any():
                now = replace(now, steps=shorter)
                hopeless = left & (now.momentum == 0) & (to_float64(gained) > -nothing * np.abs(now.loss))
                stuck[places[hopeless]], pending[places[hopeless]] = True, False
                left = pending[places]
                if not left.any():
                    break
            chosen = np.flatnonzero(left)
            now, places = now.take(chosen), places[chosen]
            ceiling = np.where(now.momentum > 0, now.momentum, now.ceiling)
            now = replace(now, ceiling=ceiling, momentum=np.zeros_like(ceiling))
        if (stuck := np.flatnonzero(stuck | pending)).size:
            same = state.take(stuck)
            zeros = np.zeros(len(stuck))
            rested = replace(same, momentum=zeros, ceiling=zeros + 1.0, W_before=same.W, Ht_plain=same.Ht)
            after = after.put(stuck, rested)
        return after, {"loss": after.loss}


def scheduled(after: NewtonBatch) -> NewtonBatch:
    """Return the accepted states with the momentum of the next iteration."""
    following = [
        SCHEDULE.rejected(ceiling) if not momentum and ceiling < 1.0 else SCHEDULE.accepted(momentum, ceiling)
        for momentum, ceiling in zip(after.momentum.tolist(), after.ceiling.tolist(), strict=True)
    ]
    momentum, ceiling = (
        np.array([getattr(each, name) for each in following]) for name in ("momentum", "ceiling")
    )
    return replace(after, momentum=momentum, ceiling=ceiling)


def _some(array: Array, chosen: IntArray) -> Array:
    if len(chosen) == array.shape[0]:
        return array
    return array_namespace(array).take(array, to_device(chosen, array), axis=0)


def bounded(new: Array, old: Array, momentum: Array) -> Array:
    """Return new + momentum (new - old), bounded below by a fraction of `new`; a momentum per restart."""
    out, lowest = new + momentum * (new - old), LOWEST_FRACTION * new
    return array_namespace(new).where(out < lowest, lowest, out)


def correlations_of(gram: Array) -> Array:
    """Return Gram matrices scaled to a unit diagonal."""
    xp = array_namespace(gram)
    eye = xp.eye(gram.shape[1], dtype=gram.dtype, device=gram.device)
    diagonal = xp.linalg.diagonal(gram)
    root = xp.sqrt(xp.where(diagonal > 0, diagonal, xp.ones_like(diagonal)))
    return gram / root[:, :, None] / root[:, None, :] * (1 - eye) + eye


def shared_correlations(Ht: Array, means: Array) -> Array:
    """Return the correlations of H diag(1 / means) H' of every restart."""
    xp = array_namespace(Ht)
    top = xp.max(means, axis=1, keepdims=True)
    scale = 1 / xp.clip(means / xp.where(top > 0, top, xp.ones_like(top)), min=1e-6)
    rows = Ht * xp.sqrt(scale / xp.max(scale, axis=1, keepdims=True))[:, :, None]
    return correlations_of(turned(rows) @ rows)
