"""Newton steps for the Kullback-Leibler divergence on a batch of restarts: `solvers.newton`, one axis more.

Factors are arrays (batch, k, rows), a thread's row beside its neighbor's. Momentum, losses and decisions of a
restart are its own; one that has to try again does so in the next turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_device
from nonneg._typing import Array
from nonneg.kernels import batched_kl
from nonneg.kernels.batched_kl import batched_targets
from nonneg.losses.beta import BetaLoss
from nonneg.solvers.batch import CONVERGED, FINISHED, LOSS, MAX_ITER, MOMENTUM, WINDOW, Batch, first_batch
from nonneg.solvers.extrapolation import LOWEST_FRACTION
from nonneg.solvers.majorizer import update_ratio
from nonneg.solvers.newton import NOTHING, SCHEDULE, SHORTEST, TRIES, _factor
from nonneg.solvers.row_newton import DAMPING, SHORTEST_STEP

# What a turn finds besides W_before, and the loss.
FOUND = ("W", "Ht", "Ht_plain", "gradient", "diagonal", "gram", "total", "columns", "steps")


@dataclass(frozen=True)
class BatchedNewton:
    """The problem of all restarts."""

    X: Array | None  # of all restarts; None if each has its own
    n_rows: int
    max_iter: int
    tol: float

    @classmethod
    def of(cls, data: Sequence[Any], max_iter: int, tol: float) -> BatchedNewton:
        """Take what an iteration needs of the data of every restart."""
        shared = all(each is data[0] for each in data)
        return cls(data[0].array if shared else None, data[0].shape[0], max_iter, tol)

    def begin(self, data: Sequence[Any], W: Array, Ht: Array) -> Batch:
        """Return the first state: the rows of W alone have moved."""
        import torch

        different = {id(each): each for each in data}
        facts = {
            name: (BetaLoss.of(each, 1.0).lower_bound, each.shape[1] * (each.mean() or 1.0))
            for name, each in different.items()
        }
        bounds, units = (to_device(part, W) for part in np.array([facts[id(each)] for each in data]).T)
        own = {} if self.X is not None else {"X": torch.stack([each.array for each in data])}
        arrays = own | {"bounds": bounds, "units": units}
        W, Ht = (factor.mT.contiguous() for factor in (W, Ht))
        found = self.evaluate(arrays, W, Ht, torch.sum(Ht, dim=1))
        # Numbers: those that all batches have, the loss at the last look of the rule, and tries so far. A
        # momentum is that of the next try.
        numbers = torch.zeros((8, W.shape[0]), dtype=torch.float64, device=W.device)
        numbers[0], numbers[2] = found.pop("loss"), 1.0
        steps = torch.ones_like(found["columns"])
        arrays |= found | {
            "W_before": found["W"].clone(), "Ht": Ht, "Ht_plain": Ht.clone(), "steps": steps,
            "tried": steps.clone(),
        }  # fmt: skip
        return first_batch(arrays, numbers, 1)

    def evaluate(self, arrays: dict[str, Array], W: Array, H: Array, means: Array) -> dict[str, Any]:
        """Move the rows of W; return them, the loss and the sums that the next step of H needs."""
        new = self.move_W(arrays, W, H, means, None)[0]
        return self.sums(arrays, new, H)

    def move_W(
        self, arrays: dict[str, Array], start: Array, H: Array, means: Array, plain: Array | None
    ) -> tuple[Array, Array | None]:
        """Return W after a Newton step, and before it the losses of the columns of restarts in `plain`."""
        import torch

        X, bounds = self.data_of(arrays), arrays["bounds"]
        v = start.mT @ H
        # What the columns gain by extrapolated rows would say nothing about their own steps.
        at_start = None if plain is None else batched_kl.column_losses(X, v, bounds)
        slope, curvature = batched_kl.newton_terms(X, v, bounds)
        squares = H * H + DAMPING * torch.mean(H, dim=2, keepdim=True) ** 2
        gradient, diagonal = H @ slope.mT, squares @ curvature.mT
        direction, slopes = batched_targets(start.mT, gradient.mT, diagonal.mT, shared_correlations(H, means))
        del slope, curvature
        steps = batched_kl.line_search(X, v, direction @ H, slopes, bounds)[:, None, :]
        sums = torch.sum(H, dim=2, keepdim=True)
        # (x / v) Ht is what the gradient leaves of the sums.
        ratio = update_ratio(start, sums - gradient, sums, l1=0.0, l2=0.0, beta=1.0)
        moved = (start + steps * direction.mT).clip(0.0)
        return torch.where(steps < SHORTEST_STEP, start * ratio, moved), at_start

    def sums(self, arrays: dict[str, Array], W: Array, H: Array) -> dict[str, Any]:
        """Return what the next step of H needs at a pair, and its loss."""
        import torch

        X, bounds = self.data_of(arrays), arrays["bounds"]
        v = W.mT @ H
        columns = batched_kl.column_losses(X, v, bounds)
        slope, curvature = batched_kl.newton_terms(X, v, bounds)
        squares = torch.cat([W * W, torch.ones_like(W[:, :1])], dim=1)
        sums = torch.sum(H, dim=2, keepdim=True) / arrays["units"].to(H.dtype)[:, None, None]
        scale = (sums.mT @ W).clip(1e-6)
        return {
            "W": W,
            "loss": torch.sum(columns, dim=1),
            "gradient": W @ slope,
            "diagonal": squares @ curvature,
            "gram": (W / scale) @ W.mT,
            "total": torch.sum(W, dim=2),
            "columns": columns,
        }

    def data_of(self, arrays: dict[str, Array]) -> Any:
        """Return the data of all restarts, or of each."""
        return arrays["X"] if self.X is None else self.X

    def direction(self, now: dict[str, Any]) -> tuple[Any, Any]:
        """Return the step of every column of H, and the derivatives of their losses along it."""
        import torch

        damping = DAMPING * (now["total"] / self.n_rows) ** 2
        diagonal = now["diagonal"][:, :-1] + now["diagonal"][:, -1:] * damping[:, :, None]
        direction, slopes = batched_targets(
            now["Ht"].mT, now["gradient"].mT, diagonal.mT, correlations_of(now["gram"])
        )
        # A column whose model misleads stays.
        down = slopes < 0
        return torch.where(down[:, None, :], direction.mT, 0.0), torch.where(down, slopes, 0.0).double()

    def turn(self, batch: Batch) -> None:
        """Try one iteration of every restart; see `newton.NewtonProblem.candidates`."""
        import torch

        now = batch.arrays
        loss, momentum, tries = batch.numbers[LOSS], batch.numbers[MOMENTUM], batch.numbers[-1]
        direction, slopes = self.direction(now)
        steps, rests = now["tried"], momentum == 0
        plain = now["Ht"] + steps.to(direction.dtype)[:, None, :] * direction
        amount = momentum.to(direction.dtype)[:, None, None]
        H = bounded(plain, now["Ht_plain"], amount)
        means = (now["total"][:, None, :] @ H)[:, 0]
        W, at_start = self.move_W(now, bounded(now["W"], now["W_before"], amount), H, means, rests)
        found = self.sums(now, W, H)
        new_loss = found.pop("loss")
        doubled = (2.0 * steps).clip(max=1.0)
        gained, change = steps * slopes, at_start - now["columns"]
        unclear = -gained < 1e-12 * found["columns"]
        best = _factor(torch, gained, change, most=2.0)
        after = torch.where(unclear, 2.0 * steps, steps * best).clip(SHORTEST, 1.0)
        found |= {"Ht": H, "Ht_plain": plain, "steps": torch.where(rests[:, None], after, doubled)}
        # Restarts with momentum try again without it first, with the same steps.
        worse = rests[:, None] & (change > 0)
        shorter = torch.where(worse, steps * _factor(torch, gained, change, most=0.5), steps)

        active = batch.numbers[FINISHED] == 0
        good = new_loss <= loss
        nothing = NOTHING["float64" if H.dtype == torch.float64 else "float32"]
        hopeless = rests & (torch.sum(gained, dim=1) > -nothing * torch.abs(loss))
        # Rounding only: the better pair is kept, and the stopping rule ends the run.
        stuck = ~good & (hopeless | (tries + 1 >= TRIES))
        loss = torch.where(good, new_loss, loss)
        numbers = self.rules(batch.numbers, loss, good, stuck)

        good, stuck = good & active, stuck & active

        def chosen(name: str, at_rest: Any = None) -> Any:
            old = now[name] if at_rest is None else choose(stuck, now[at_rest], now[name])
            return choose(good, found[name], old)

        arrays = {name: chosen(name, "Ht" if name == "Ht_plain" else None) for name in FOUND}
        arrays["W_before"] = choose(good | stuck, now["W"], now["W_before"])
        arrays["tried"] = choose(good, found["steps"], choose(stuck, now["steps"], shorter))
        batch.commit(arrays, numbers, (loss,))

    def rules(self, numbers: Any, loss: Any, good: Any, stuck: Any) -> Any:
        """Return the numbers after a turn: the next momentum, and whether a restart has ended."""
        import torch

        _, momentum, ceiling, n_iter, _, first, mark, tries = numbers.unbind()
        # A momentum of zero may have been a rejected one: the schedule goes on below it.
        rests = momentum == 0
        below = rests & (ceiling < 1.0)
        raised = (SCHEDULE.ceiling_growth * ceiling).clip(max=1.0)
        grown = torch.where(rests, SCHEDULE.initial, torch.minimum(raised, SCHEDULE.growth * momentum))
        grown = torch.where(below, ceiling / SCHEDULE.decay, grown)
        rejected = torch.where(rests, ceiling, momentum)
        ceiling = torch.where(good, torch.where(below, ceiling, raised), torch.where(stuck, 1.0, rejected))
        momentum = torch.where(good, grown, 0.0)
        done = good | stuck
        # After an iteration that kept its pair the same tries would fail: one is enough.
        tries = torch.where(good, 0.0, torch.where(stuck, TRIES - 1.0, tries + 1))
        n_iter = torch.where(done, n_iter + 1, n_iter)
        first = torch.where(done & (n_iter == 1), loss, first)
        looks = done & ((n_iter - 1) % WINDOW == 0)
        ended = torch.where(done & (n_iter >= self.max_iter), MAX_ITER, torch.zeros_like(loss))
        if self.tol > 0:
            error, before, start = (torch.sqrt(2.0 * each.clip(0.0)) for each in (loss, mark, first))
            small = looks & (n_iter > WINDOW) & (before - error <= WINDOW * self.tol * start)
            ended = torch.where(small, CONVERGED, ended)
        mark = torch.where(looks, loss, mark)
        return torch.stack([loss, momentum, ceiling, n_iter, ended, first, mark, tries])


def choose(chosen: Any, new: Any, old: Any) -> Any:
    """Return the arrays of chosen restarts, and the old ones of the others."""
    import torch

    return torch.where(chosen.reshape(-1, *(1,) * (old.ndim - 1)), new, old)


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


def shared_correlations(H: Array, means: Array) -> Array:
    """Return the correlations of H diag(1 / means) H' of every restart."""
    xp = array_namespace(H)
    top = xp.max(means, axis=1, keepdims=True)
    scale = 1 / xp.clip(means / xp.where(top > 0, top, xp.ones_like(top)), min=1e-6)
    rows = H * xp.sqrt(scale / xp.max(scale, axis=1, keepdims=True))[:, None, :]
    return correlations_of(rows @ rows.mT)
