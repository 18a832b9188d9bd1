"""Alternating problems on an NVIDIA GPU, without waiting for it inside an iteration.

`AlternatingProblem.advance` runs with its momentum as a number on the GPU. Whether the result is accepted,
and whether the run has ended, is decided there (`kernels/safeguard.py`); the host starts a few turns and then
reads the losses and violations of the iterations that they made. Turns after the end change nothing, so that
runs end where they do on a processor.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nonneg._arrays import from_torch, on_gpu, to_torch
from nonneg.iteration import FirstOf, RelativeMeasure, SlowDecrease
from nonneg.iteration.captured import WARM_UP, record
from nonneg.iteration.loop import Stalled
from nonneg.solvers.alternating import SCHEDULE, AlternatingProblem, AlternatingState

# Where the numbers of a run lie in its memory on the GPU, which `kernels/safeguard.py` updates: those of
# `AlternatingState`, whether the next turn repeats a rejected one, and its momentum.
LOSS, MOMENTUM, CEILING, RESTARTS, RETRY, USED, N_ITER, FINISHED, FIRST = range(9)
N_NUMBERS = 16
# Turns between two looks at the numbers take about this many seconds; a look takes some 30 microseconds.
SECONDS = 4e-3
# A graph saves the host's work, half a millisecond for each turn; longer turns hide it.
GRAPH_SECONDS = 2e-3
# Containers whose turns are the same launches every time, with nothing copied from the host.
CAPTURED = frozenset({"array", "sparse-array"})


@dataclass(frozen=True)
class Buffers:
    """The factors and numbers of a run; every turn writes to the same memory."""

    W: Any  # as in AlternatingState, stored component by component
    W_plain: Any
    Ht: Any
    Ht_next: Any  # with which the next turn begins, with or without momentum
    numbers: Any
    pending: Any
    rules: Any
    history: Any


class DeviceProblem:
    """An alternating problem whose steps do several iterations on a GPU."""

    def __init__(self, problem: AlternatingProblem, stop: FirstOf, max_iter: int, *, each: bool) -> None:
        from nonneg.kernels import safeguard  # loaded with the first fit on a GPU

        self.safeguard = safeguard
        self.like = problem.data.to_device(np.zeros(1))  # the kind of array that the caller has
        self.problem = replace(problem, data=problem.data.as_torch())
        violation, decrease = stop.rules
        assert isinstance(violation, RelativeMeasure)
        assert isinstance(decrease, SlowDecrease)
        self.stop, self.window, self.max_iter = violation, decrease.window, max_iter
        self.each = each  # whether the caller looks at every iteration
        self.buffers: Buffers | None = None
        self.n_turns, self.n_iter = 0, 0
        self.seconds = math.inf  # that a turn takes
        self.graph: Any = None
        self.interrupted = False

    @classmethod
    def of(
        cls, problem: AlternatingProblem, stop: FirstOf, max_iter: int, *, each: bool
    ) -> DeviceProblem | None:
        """Return the problem on its GPU; None where there is none, or no Triton."""
        if not on_gpu(problem.data.to_device(np.zeros(1))):
            return None
        from nonneg.kernels import safeguard

        if not safeguard.is_available():
            return None
        return cls(problem, stop, max_iter, each=each)

    def step(self, state: AlternatingState) -> tuple[AlternatingState, list[dict[str, float]]]:
        """Do some iterations, one or more; return their measures."""
        if self.interrupted:
            raise KeyboardInterrupt
        if self.buffers is None:
            self._begin(state)
        before, started = self.n_iter, time.perf_counter()
        wanted = (
            1
            if self.each
            else int(min(max(SECONDS / self.seconds, 1), self.window - (before - 1) % self.window))
        )
        try:
            for _ in range(wanted):
                self._turn()
        except KeyboardInterrupt:
            self.interrupted = True  # raised again once the iterations so far are in the history
        numbers, history = self._read()
        while not numbers[FINISHED] and (numbers[RETRY] or numbers[N_ITER] == before):
            self._turn()
            wanted += 1
            numbers, history = self._read()
        self.seconds = (time.perf_counter() - started) / wanted
        self.n_iter = int(numbers[N_ITER])
        rows = [history[i % self.safeguard.ROWS] for i in range(before, self.n_iter)]
        if not rows:
            raise Stalled
        return self._state(state, numbers), [{"loss": loss, "violation": found} for loss, found in rows]

    def _begin(self, state: AlternatingState) -> None:
        import torch

        def own(array: Any) -> Any:
            # A run that goes on has memory of its own already; that of the caller is not written to.
            return _flat(to_torch(array)) if state.n_iter else _copy(array)

        W, Ht = own(state.W), _copy(state.Ht)
        known = state.W_plain is not None
        momentum = state.momentum if known else 0.0  # the first iteration has nothing to extrapolate from
        numbers = np.zeros(N_NUMBERS)
        numbers[[LOSS, MOMENTUM, CEILING, RESTARTS]] = (
            state.loss,
            state.momentum,
            state.ceiling,
            state.restarts,
        )
        numbers[[USED, N_ITER, FIRST]] = momentum, state.n_iter, state.first if state.n_iter else -1.0
        rules = (
            SCHEDULE.growth, SCHEDULE.ceiling_growth, SCHEDULE.decay, SCHEDULE.max_restarts or math.inf,
            self.problem.slack, self.stop.tol, 0.0, self.max_iter, 0.0,
        )  # fmt: skip

        def of(values: Any) -> Any:
            return torch.tensor(np.asarray(values, dtype=np.float64)).to(W.device)

        begins = state.Ht_next if momentum and state.Ht_next is not None else state.Ht
        self.n_iter = state.n_iter
        self.buffers = Buffers(
            W, own(state.W_plain) if known else _copy(W), Ht, _copy(begins), of(numbers), of(numbers),
            of(rules), of(np.zeros((self.safeguard.ROWS, 2))),
        )  # fmt: skip

    def _turn(self) -> None:
        self.n_turns += 1
        if self.graph is None and self.n_turns > WARM_UP and self._captures():
            self.graph = record(self._launch)[0]
        if self.graph:
            self.graph.replay()
        else:
            self._launch()

    def _launch(self) -> None:
        """Start the kernels of a turn."""
        b = self.buffers
        assert b is not None
        state = AlternatingState(b.W, b.Ht, W_plain=b.W_plain, Ht_plain=b.Ht, Ht_next=b.Ht_next)
        new, violation = self.problem.advance(state, b.numbers[USED])
        of_W = (b.W, b.W_plain, _flat(new.W), _flat(new.W_plain))
        of_Ht = (b.Ht, b.Ht_next, _flat(new.Ht), _flat(new.Ht_next))
        self.safeguard.settle(b.numbers, b.pending, b.rules, b.history, new.loss, violation, of_W, of_Ht)

    def _captures(self) -> bool:
        b = self.buffers
        assert b is not None
        fits = self.problem.data.container in CAPTURED and self.seconds < GRAPH_SECONDS
        return fits and b.W.is_cuda

    def _read(self) -> tuple[Any, Any]:
        """Wait for the turns so far; return the numbers and the history."""
        import torch

        b = self.buffers
        assert b is not None
        both = torch.cat([b.numbers, b.history.reshape(-1)]).cpu().numpy()
        return both[:N_NUMBERS], both[N_NUMBERS:].reshape(self.safeguard.ROWS, 2).tolist()

    def _state(self, state: AlternatingState, numbers: Any) -> AlternatingState:
        b = self.buffers
        assert b is not None

        def seen(array: Any) -> Any:
            # The memory changes with the next step; one who looks at every iteration may keep what he sees.
            return from_torch(array.clone() if self.each else array, self.like)

        return replace(
            state, W=seen(b.W), Ht=seen(b.Ht), W_plain=seen(b.W_plain), Ht_plain=seen(b.Ht),
            Ht_next=seen(b.Ht_next), loss=float(numbers[LOSS]), momentum=float(numbers[MOMENTUM]),
            ceiling=float(numbers[CEILING]), restarts=int(numbers[RESTARTS]), n_iter=int(numbers[N_ITER]),
            first=float(numbers[FIRST]),
        )  # fmt: skip


def _copy(array: Any) -> Any:
    import torch

    return to_torch(array).T.clone(memory_format=torch.contiguous_format).T


def _flat(array: Any) -> Any:
    # The commit copies memory in its order: that of the buffers.
    return array if array.T.is_contiguous() else array.T.contiguous().T
