"""Extrapolated HALS on a batch of restarts: `solvers.alternating`, one axis more.

The products with the data are those with the factors of all restarts side by side. What a restart does next,
and whether it has ended, is decided where the factors are: the host starts turns and looks at them now and
then. A turn is an iteration, or the first half of one whose extrapolation was rejected: the next turn repeats
it without. Restarts that have ended stay as they are until they leave the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from nonneg._typing import Array, IntArray
from nonneg.iteration import StopReason, iterate
from nonneg.iteration.captured import record
from nonneg.kernels.batched_hals import batched_hals
from nonneg.solvers.alternating import SCHEDULE
from nonneg.solvers.hals import SHRINK, inner_passes

# Turns between two looks: a look waits for the GPU, and restarts that have ended cost until the next one. To
# start a turn takes the host 2.5 ms, and a turn of 100 restarts of 10000 x 1925 entries, k = 8, takes an H200
# about as long: smaller batches wait for the host unless their turns are recorded.
TURNS = 8
# Restarts that have ended leave the batch once they are this part of it.
LEAVING = 0.125


@dataclass(frozen=True)
class AlternatingBatch:
    """The fields of `alternating.AlternatingState`, of every restart; all are on the device."""

    W: Array  # (batch, n_rows, k), stored component by component
    Ht: Array
    W_plain: Array
    Ht_next: Array  # with which the next turn begins
    loss: Array  # (batch,), as all that follow, in float64
    momentum: Array
    ceiling: Array
    restarts: Array
    used: Array  # the momentum of the next turn
    first: Array  # the violation of the first iteration
    n_iter: Array
    finished: Array

    def take(self, index: Array) -> AlternatingBatch:
        """Return some of the restarts."""
        arrays = {}
        for field in fields(self):
            array = getattr(self, field.name)
            chosen = array[index] if array.ndim == 1 else by_component(array)[:, index]
            arrays[field.name] = chosen if array.ndim == 1 else chosen.permute(1, 2, 0)
        return AlternatingBatch(**arrays)


@dataclass(frozen=True)
class EndedRestart:
    """A restart that has left the batch."""

    W: Array
    Ht: Array
    measures: Array  # (n_iter, 2): the loss and the violation of every iteration
    stop_reason: StopReason


def by_component(factor: Array) -> Array:
    """Return (batch, n, k) as it is stored: (k, batch, n)."""
    return factor.permute(2, 0, 1).contiguous()


@dataclass(frozen=True)
class BatchedAlternating:
    """The problem of all restarts."""

    X: Array
    squared_norm: float
    passes: tuple[int, int]
    max_iter: int
    tol: float

    @classmethod
    def of(cls, data: Any, k: int, max_iter: int, tol: float) -> BatchedAlternating:
        """Take what an iteration needs of the data."""
        return cls(data.array, data.squared_norm(), inner_passes(data, k), max_iter, tol)

    @property
    def slack(self) -> float:
        """By how much rounding may increase the loss."""
        return (2e-13 if "64" in str(self.X.dtype) else 2e-6) * 0.5 * self.squared_norm

    def begin(self, factors: Sequence[tuple[Array, Array]]) -> AlternatingBatch:
        """Return the first state."""
        import torch

        W, Ht = (by_component(torch.stack([pair[at] for pair in factors])).permute(1, 2, 0) for at in (0, 1))

        def numbers(value: float) -> Array:
            return torch.full((len(factors),), value, dtype=torch.float64, device=self.X.device)

        # The first iteration has nothing to extrapolate from.
        return AlternatingBatch(
            W, Ht, W, Ht, numbers(np.inf), numbers(SCHEDULE.initial), numbers(1.0), numbers(0.0),
            numbers(0.0), numbers(0.0), numbers(0.0), numbers(0.0) > 0,
        )  # fmt: skip

    def run(self, factors: Sequence[tuple[Array, Array]]) -> tuple[list[EndedRestart], float]:
        """Run all restarts to their ends; return the seconds of a turn as well."""
        ended: dict[int, EndedRestart] = {}
        rows: list[list[Array]] = [[] for _ in factors]

        turns = _Turns(self)

        def look(before: tuple[AlternatingBatch, IntArray]) -> tuple[Any, dict[str, float]]:
            state, numbers = before
            state, found = turns(state)
            done = _record(rows, found, numbers)
            if done.all() or done.sum() >= LEAVING * len(done):
                self._leave(state, numbers, np.flatnonzero(done), rows, ended)
                left = np.flatnonzero(~done)
                index = torch.asarray(left).to(self.X.device)
                state, numbers = state.take(index) if len(left) else state, numbers[left]
            return (state, numbers), {"live": float(len(numbers)), "iterations": TURNS}

        import torch

        run = iterate(
            look,
            (self.begin(factors), np.arange(len(factors))),
            max_iter=np.iinfo(np.int64).max,
            stop=lambda history: history["live"][-1] == 0,
        )
        state, numbers = run.state
        # Interrupted: what the restarts have until now.
        self._leave(state, numbers, np.arange(len(numbers)), rows, ended, StopReason.INTERRUPTED)
        seconds = run.history.seconds[-1] / run.n_iter if run.n_iter else 0.0
        return [ended[i] for i in range(len(factors))], seconds

    def _leave(
        self,
        state: AlternatingBatch,
        numbers: IntArray,
        places: IntArray,
        rows: list[list[Array]],
        ended: dict[int, EndedRestart],
        reason: StopReason | None = None,
    ) -> None:
        """Keep what restarts have found."""
        for place in places:
            number = int(numbers[place])
            measures = np.concatenate([np.empty((0, 2)), *rows[number]])
            met = len(measures) > 0 and self._meets(measures[-1, 1], measures[0, 1])
            why = reason or (StopReason.CONVERGED if met else StopReason.MAX_ITER)
            W, Ht = (factor[int(place)].T.contiguous().T for factor in (state.W, state.Ht))
            ended[number] = EndedRestart(W, Ht, measures, why)

    def _meets(self, violation: Any, first: Any) -> Any:
        """`iteration.RelativeMeasure` of the violation."""
        return (self.tol > 0) & ((first == 0) | (violation <= self.tol * first))

    def turn(self, before: AlternatingBatch) -> tuple[AlternatingBatch, Array]:
        """Do one turn of every restart; return losses, violations, who iterated and who has ended."""
        import torch

        where, live = torch.where, ~before.finished
        after, violation = self._advance(before)
        moving = before.used > 0
        worse = moving & (after.loss > before.loss)
        counts = live & ~worse
        # Rounding only: keep the better pair and let the stopping rule end the run.
        stuck = counts & (after.loss > before.loss + self.slack)
        moves = counts & ~stuck

        def chosen(new: Array, old: Array) -> Array:
            # As they are stored: `where` would choose an order of its own.
            new, old = (by_component(each) for each in (new, old))
            return where(moves[None, :, None], new, old).permute(1, 2, 0)

        good = counts & moving
        ceiling = torch.clamp(SCHEDULE.ceiling_growth * before.ceiling, max=1.0)
        given_up = before.restarts + 1 >= (SCHEDULE.max_restarts or np.inf)
        slower = where(given_up, torch.zeros_like(before.used), before.used / SCHEDULE.decay)
        rejected = live & worse
        momentum = where(
            good,
            torch.minimum(ceiling, SCHEDULE.growth * before.used),
            where(rejected, slower, before.momentum),
        )
        momentum = where(stuck, torch.zeros_like(momentum), momentum)
        first = where(counts & (before.n_iter == 0), violation, before.first)
        n_iter = before.n_iter + counts
        ends = counts & (self._meets(violation, first) | (n_iter >= self.max_iter))
        state = AlternatingBatch(
            W=chosen(after.W, before.W),
            Ht=chosen(after.Ht, before.Ht),
            W_plain=chosen(after.W_plain, where(stuck[:, None, None], before.W, before.W_plain)),
            Ht_next=chosen(after.Ht_next, before.Ht),
            loss=where(moves, after.loss, before.loss),
            momentum=momentum,
            ceiling=where(good, ceiling, where(rejected, before.used, before.ceiling)),
            restarts=where(good, torch.zeros_like(before.restarts), before.restarts + rejected),
            used=where(rejected, torch.zeros_like(momentum), momentum),
            first=first,
            n_iter=n_iter,
            finished=before.finished | ends,
        )
        return state, torch.stack(
            [state.loss, violation, *(flag.double() for flag in (counts, state.finished))]
        )

    def _advance(self, state: AlternatingBatch) -> tuple[AlternatingBatch, Array]:
        """Do one iteration; return the violations as well."""
        import torch

        amount = state.used.to(self.X.dtype)[:, None, None]
        Ht = state.Ht_next
        cross = self._product(Ht, self.X.T)
        W, violation = batched_hals(state.W, _gram(Ht), cross, max_passes=self.passes[0], shrink=SHRINK)
        violation = torch.clamp(violation.double() - _rounding(cross), min=0.0)
        chosen = torch.clamp(W + amount * (W - state.W_plain), min=0.0)
        gram, cross = _gram(chosen), self._product(chosen, self.X)
        new, of_H = batched_hals(Ht, gram, cross, max_passes=self.passes[1], shrink=SHRINK)
        violation = violation + torch.clamp(of_H.double() - _rounding(cross), min=0.0)
        products = (by_component(cross).double() * by_component(new).double()).sum(dim=(0, 2))
        own = (_gram(new).double() * gram.double()).sum(dim=(1, 2))
        loss = torch.clamp(0.5 * self.squared_norm - products + 0.5 * own, min=0.0)
        following = torch.clamp(new + amount * (new - state.Ht), min=0.0)
        return replace(state, W=chosen, Ht=new, W_plain=W, Ht_next=following, loss=loss), violation

    def _product(self, factor: Array, X: Array) -> Array:
        """Return the products of the transpose of a matrix with all factors, by one product."""
        stored = by_component(factor)
        k, batch, rows = stored.shape
        return (stored.view(k * batch, rows) @ X).view(k, batch, X.shape[1]).permute(1, 2, 0)


class _Turns:
    """The turns between two looks; a CUDA graph while the batch stays as it is."""

    def __init__(self, problem: BatchedAlternating) -> None:
        self.problem = problem
        self.state: AlternatingBatch | None = None  # the memory of the graph, or what the last turns returned
        self.measures: Any = None
        self.graph: Any = None

    def __call__(self, state: AlternatingBatch) -> tuple[AlternatingBatch, Array]:
        if state is not self.state:
            self.graph = None  # the batch is another one
        elif self.graph is None and self.problem.X.is_cuda:
            # The second look at a batch: kernels are compiled, and many restarts are far from their end.
            self.graph, self.measures = record(lambda: self._launch(state, in_place=True)[1])
        if self.graph:
            self.graph.replay()
            return state, self.measures
        self.state, measures = self._launch(state)
        return self.state, measures

    def _launch(self, state: AlternatingBatch, *, in_place: bool = False) -> tuple[AlternatingBatch, Array]:
        import torch

        after, measures = state, []
        for _ in range(TURNS):
            after, found = self.problem.turn(after)
            measures.append(found)
        if in_place:
            for field in fields(state):
                getattr(state, field.name).copy_(getattr(after, field.name))
        return after, torch.stack(measures)


def _gram(factors: Array) -> Array:
    return factors.transpose(1, 2) @ factors


def _rounding(cross: Array) -> Array:
    """Return what rounding alone adds to the violations, as `alternating.rounding` does."""
    import torch

    return 8 * float(torch.finfo(cross.dtype).eps) * by_component(cross).abs().sum(dim=(0, 2)).double()


def _record(rows: list[list[Array]], measures: Array, numbers: IntArray) -> Array:
    """Wait for turns, keep the measures of the iterations among them, and tell which restarts have ended."""
    found = measures.cpu().numpy()
    for place, number in enumerate(numbers):
        counted = found[:, 2, place] > 0
        rows[number].append(found[counted, :2, place])
    return found[-1, 3] > 0
