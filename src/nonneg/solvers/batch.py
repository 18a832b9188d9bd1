"""Batches of restarts on a GPU that decide there what becomes of a turn.

A turn tries one iteration of every restart. Whether a restart takes its result, and whether it has ended, is
decided on the GPU; a rejected one tries again in the next turn. All turns are therefore the same launches on
the same memory, recorded as a CUDA graph, and the host looks at the numbers now and then. Restarts that have
ended stay as they are; once half of them have ended, the others continue in a smaller batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nonneg._interruption import forget_interrupt
from nonneg.iteration import SlowDecrease
from nonneg.iteration.captured import WARM_UP, record

# Places of the numbers that every kind of batch has; more follow.
LOSS, MOMENTUM, CEILING, N_ITER, FINISHED, FIRST = range(6)
# Iterations between two looks at the decrease of the error.
WINDOW = SlowDecrease.window
# Why a restart has ended.
CONVERGED, MAX_ITER = 1.0, 2.0
# Rows of the history on the GPU: the host reads them before they are written again.
ROWS = 64
# Turns between two looks take about this many seconds: a look keeps the GPU waiting for a millisecond.
SECONDS = 4e-2
# Restarts leave the batch once this part of them has ended: a smaller batch is recorded anew, which takes
# tens of milliseconds.
LEAVING = 0.5
SMALLEST = 8


class Batch:
    """The memory of some restarts: arrays and numbers with one entry for each, and their measures."""

    def __init__(self, arrays: dict[str, Any], numbers: Any, history: Any, members: Any) -> None:
        self.arrays = arrays  # (batch, ...)
        self.numbers = numbers  # (places, batch), float64
        self.history = history  # (measures, ROWS, batch)
        self.members = members  # which restarts they are

    def take(self, chosen: Any) -> Batch:
        """Return some of the restarts in memory of their own."""
        import torch

        index = torch.tensor(chosen, device=self.numbers.device)
        return Batch(
            {name: array.index_select(0, index) for name, array in self.arrays.items()},
            self.numbers.index_select(1, index),
            self.history.index_select(2, index),
            self.members[chosen],
        )

    def commit(self, arrays: dict[str, Any], numbers: Any, measures: Sequence[Any]) -> None:
        """Write the outcome of a turn; restarts that have ended keep their numbers."""
        import torch

        row = (self.numbers[N_ITER] % ROWS).to(torch.int64)
        at = row.expand(len(measures), 1, row.shape[0])
        history = self.history.scatter(1, at, torch.stack(list(measures))[:, None, :])
        numbers = torch.where(self.numbers[FINISHED] == 0, numbers, self.numbers)
        # One call: whenever a run is interrupted, its state is that after some turn.
        torch._foreach_copy_(
            [*(self.arrays[name] for name in arrays), self.numbers, self.history],
            [*arrays.values(), numbers, history],
        )


def first_batch(arrays: dict[str, Any], numbers: Any, n_measures: int) -> Batch:
    """Return a batch of restarts that have done nothing yet."""
    n = numbers.shape[1]
    return Batch(arrays, numbers, numbers.new_zeros((n_measures, ROWS, n)), np.arange(n))


class Turns:
    """The turns of a batch, recorded after the first ones."""

    def __init__(self, turn: Callable[[Batch], None], batch: Batch) -> None:
        self.turn, self.batch = turn, batch
        self.count, self.graph, self.seconds = 0, None, 1.0

    def run(self, n_turns: int) -> tuple[Any, Any]:
        """Do some turns; return the numbers and the history after them."""
        started = time.perf_counter()
        for _ in range(n_turns):
            if self.graph is None and self.count >= WARM_UP and self.batch.numbers.is_cuda:
                self.graph = record(lambda: self.turn(self.batch))[0]
            if self.graph:
                self.graph.replay()
            else:
                self.turn(self.batch)
            self.count += 1
        found = self.read()
        self.seconds = (time.perf_counter() - started) / n_turns
        return found

    def read(self) -> tuple[Any, Any]:
        """Wait for the turns so far; return the numbers and the history."""
        import torch

        numbers, history = self.batch.numbers, self.batch.history
        both = torch.cat([numbers.reshape(-1), history.reshape(-1)]).cpu().numpy()
        return both[: numbers.numel()].reshape(numbers.shape), both[numbers.numel() :].reshape(history.shape)


class Outcome:
    """What is known of all restarts: measures of their iterations, and factors of those that have ended."""

    def __init__(self, n: int, n_measures: int) -> None:
        self.measures = np.empty((n_measures + 1, n, ROWS))  # the last one: seconds
        self.n_iter = np.zeros(n, dtype=np.int64)
        self.finished = np.zeros(n)
        self.factors: dict[int, tuple[Any, Any, float]] = {}

    def record(self, members: Any, numbers: Any, history: Any, before: float, now: float) -> None:
        """Take the iterations since the last look."""
        seen, done = self.n_iter[members], numbers[N_ITER].astype(np.int64)
        if done.max() > self.measures.shape[2]:
            more = np.empty_like(self.measures)
            self.measures = np.concatenate([self.measures, more], axis=2)
        for step in range(int((done - seen).max())):
            places = np.flatnonzero(seen + step < done)
            at = seen[places] + step
            self.measures[:-1, members[places], at] = history[:, at % ROWS, places]
            part = (step + 1) / (done - seen)[places]
            self.measures[-1, members[places], at] = before + part * (now - before)
        self.n_iter[members], self.finished[members] = done, numbers[FINISHED]

    def keep(self, batch: Batch, numbers: Any, places: Any) -> None:
        """Copy the factors of some restarts, apart from the rest of the batch."""
        for place in places:
            W, Ht = (batch.arrays[name][int(place)].clone().T for name in ("W", "Ht"))
            self.factors[int(batch.members[place])] = W, Ht, float(numbers[LOSS, place])


def run_turns(turn: Callable[[Batch], None], batch: Batch, max_iter: int, outcome: Outcome) -> bool:
    """Do turns until all restarts have ended; tell whether they did."""
    started, before = time.perf_counter(), 0.0
    turns, interrupted, left = Turns(turn, batch), False, max_iter
    while True:
        wanted = int(min(max(SECONDS / turns.seconds, 1), ROWS // 2, left))
        try:
            numbers, history = turns.run(wanted)
        except KeyboardInterrupt:
            forget_interrupt()
            interrupted = True
            numbers, history = turns.read()
        now = time.perf_counter() - started
        outcome.record(turns.batch.members, numbers, history, before, now)
        before = now
        live = np.flatnonzero(numbers[FINISHED] == 0)
        if interrupted or not live.size:
            break
        left = int(max_iter - numbers[N_ITER][live].min())
        ended, n = np.flatnonzero(numbers[FINISHED]), len(turns.batch.members)
        if ended.size and ended.size >= LEAVING * n and n > SMALLEST:
            outcome.keep(turns.batch, numbers, ended)
            turns = Turns(turn, turns.batch.take(live))
    outcome.keep(turns.batch, numbers, np.arange(len(turns.batch.members)))
    return not interrupted
