"""Restarts on a GPU as one batch: the iterations of HALS and of Newton's method with one axis more.

A turn tries one iteration of every restart. Whether a restart takes its result, and whether it has ended, is
decided on the GPU; a rejected one tries again in the next turn. All turns are therefore the same launches on
the same memory, recorded as a CUDA graph, and the host looks at the numbers now and then. Restarts that have
ended stay as they are; once half of them have ended, the others continue in a smaller batch.

The factors of HALS are arrays (batch, k, rows): products of the data with those of all restarts copy nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from nonneg._arrays import is_cuda_tensor, to_device
from nonneg._devices import free_memory
from nonneg._interruption import end_run
from nonneg._typing import Array, IntArray
from nonneg.data import DataMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.initializers.random import random_init
from nonneg.iteration import History, Run, SlowDecrease, StopReason
from nonneg.iteration.captured import WARM_UP, record
from nonneg.kernels.hals import batched_hals
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers import alternating, extrapolation, newton
from nonneg.solvers.extrapolation import extrapolate_bounded
from nonneg.solvers.hals import SHRINK, inner_passes
from nonneg.solvers.newton import RowPass, column_directions, shared_correlations
from nonneg.solvers.registry import choose_solver

# Arrays of the size of X, and of the size of the factors, that a restart takes.
ARRAYS = {"hals": (0, 24), "newton": (9, 40)}
# Part of the free memory that a batch may take.
MEMORY_PART = 0.5
# Iterations between two looks at the decrease of the error.
WINDOW = SlowDecrease().window
# Reason for the end of a restart.
CONVERGED, MAX_ITER = 1.0, 2.0
REASONS = {0.0: StopReason.INTERRUPTED, CONVERGED: StopReason.CONVERGED, MAX_ITER: StopReason.MAX_ITER}
# Iterations of a batch at most: all that was measured stays on the GPU until a restart leaves.
LONGEST = 1 << 20
# Turns between two looks take about this many seconds: a look keeps the GPU waiting for a millisecond.
SECONDS = 4e-2
# Restarts leave the batch once this part of them has ended: a smaller batch is recorded anew, which takes
# tens of milliseconds.
LEAVING, SMALLEST = 0.5, 8


def can_be_batched(data: DataMatrix, solver: str, options: dict[str, Any]) -> bool:
    """Tell whether restarts of a solver can run as one batch: the plain cases, on a GPU."""
    if solver not in ARRAYS or not _on_gpu(data):
        return False
    loss = options["beta"] == (2.0 if solver == "hals" else 1.0)
    plain = data.weights is None and data.observed is None and options["free"] is None
    named = {"beta", "penalties", "tol", "free", "accelerate"}
    return loss and plain and not options["penalties"].any and set(options) <= named


def _on_gpu(data: DataMatrix) -> bool:
    return isinstance(data, DenseMatrix) and is_cuda_tensor(data.array)


def batch_size(data: DataMatrix, solver: str, k: int) -> int:
    """Return how many restarts fit in memory together."""
    of_X, of_factors = ARRAYS[solver]
    entries = of_X * data.shape[0] * data.shape[1] + of_factors * k * sum(data.shape)
    of_entry = 8 if "64" in str(data.dtype) else 4
    free = free_memory(data.to_device(np.zeros(1)).device)
    return int(max(1, min(1 << 14, MEMORY_PART * free / (of_entry * entries))))


def restarts_per_batch(data: DataMatrix, k: int, beta: float, *, own_data: bool = False) -> int:
    """Return how many restarts can run as one batch; 1 where they cannot."""
    name = choose_solver("auto", data, k, beta)
    able = can_be_batched(data, name, {"beta": beta, "penalties": Penalties(), "free": None})
    return batch_size(data, name, k) if able and (name == "newton" or not own_data) else 1


def run_in_batches(
    data: Any,
    solver: str,
    k: int,
    rngs: Sequence[np.random.Generator],
    max_iter: int,
    tol: float,
    finish: Callable[[int, Run[Any]], Any],
) -> list[Any]:
    """Run a restart per generator, as many at a time as memory allows; return what `finish` makes of them."""
    size = batch_size(data, solver, k)
    results: list[Any] = []
    for first in range(0, len(rngs), size):
        part = rngs[first : first + size]
        factors = [random_init(data, k, rng=rng) for rng in part]
        runs = run_batched([data] * len(part), solver, factors, max_iter, tol)
        results += [finish(first + i, run) for i, run in enumerate(runs)]
        if any(run.stop_reason is StopReason.INTERRUPTED for run in runs):
            break
    return results


def run_batched(
    data: Sequence[Any], solver: str, factors: Sequence[tuple[Any, Any]], max_iter: int, tol: float
) -> list[Run[Any]]:
    """Run restarts as one batch, each from given factors of its data; return their runs in order.

    "hals" shares its products, so that all restarts must have the same data.
    """
    batch = (BatchedHals if solver == "hals" else BatchedNewton)(data, factors, max_iter, tol)
    runs, ended = batch.run()
    if not ended:
        end_run(max(run.n_iter for run in runs))
    return runs


class Batch:
    """The memory of some restarts, arrays by name with one entry for each, and what a method does with it."""

    measures: tuple[str, ...]  # of an iteration
    state: Callable[..., Any]  # in which a run ends
    turned = False  # whether arrays have a row per component
    # Returns the first arrays of the method, given data, W, H and an array of zeros.
    begin: Callable[..., dict[str, Any]]
    # Tries one iteration of every restart, given the arrays and which restarts are active. Returns arrays,
    # changed for active restarts alone, numbers of all of them, and which of them have ended an iteration.
    attempt: Callable[..., tuple[dict[str, Any], dict[str, Any], Any]]

    def __init__(self, data: Sequence[Any], factors: Sequence[Any], max_iter: int, tol: float) -> None:
        import torch

        shared = all(matrix is data[0] for matrix in data)
        self.X: Any = data[0].array if shared else None  # of all restarts; None if each has its own
        self.n_rows, self.max_iter, self.tol = data[0].shape[0], int(min(max_iter, LONGEST)), tol
        self.n_restarts, self.members = len(factors), np.arange(len(factors))  # which of them are in it
        W, Ht = (torch.stack([pair[side] for pair in factors]) for side in (0, 1))
        if self.turned:
            W, Ht = W.mT.contiguous(), Ht.mT.contiguous()
        zero = torch.zeros(len(factors), dtype=torch.float64, device=W.device)
        self.arrays: dict[str, Any] = {
            "n_iter": zero,
            "finished": zero + (0.0 if self.max_iter else MAX_ITER),
            "momentum": zero.clone(),  # of the next try
            "ceiling": zero + 1.0,
            # The last row is for what restarts that have ended still measure.
            "history": zero.new_zeros((len(factors), self.max_iter + 1, len(self.measures))),
        }
        self.arrays |= self.begin(data, W, Ht, zero.clone())

    def turn(self) -> None:
        """Try one iteration of every restart; those that have ended stay as they are."""
        import torch

        now = self.arrays
        active = now["finished"] == 0
        arrays, numbers, done = self.attempt(now, active)
        measured = torch.stack([numbers[name] for name in self.measures], dim=1)[:, None]
        now["history"].scatter_(1, now["n_iter"].long()[:, None, None].expand(measured.shape), measured)
        numbers |= self.rules(now, numbers, done)
        new = arrays | {name: torch.where(active, number, now[name]) for name, number in numbers.items()}
        # One call: whenever a run is interrupted, its state is that after some turn.
        torch._foreach_copy_([now[name] for name in new], list(new.values()))

    def rules(self, now: dict[str, Any], numbers: dict[str, Any], done: Any) -> dict[str, Any]:
        """Return the number of iterations, and whether a restart has ended; see `iteration.stopping`."""
        import torch

        n_iter, history = now["n_iter"] + done, now["history"]
        finished = torch.where(done & (n_iter >= self.max_iter), MAX_ITER, torch.zeros_like(n_iter))
        if self.tol > 0:
            earlier = (n_iter - 1 - WINDOW).clip(min=0).long()[:, None]
            losses = history[:, 0, 0], history[:, :, 0].gather(1, earlier)[:, 0], numbers["loss"]
            first, before, error = (torch.sqrt(2.0 * loss.clip(0.0)) for loss in losses)
            looks = done & (n_iter > WINDOW) & ((n_iter - 1) % WINDOW == 0)
            small = looks & (before - error <= WINDOW * self.tol * first)
            if "violation" in numbers:
                small = small | (done & (numbers["violation"] <= self.tol * history[:, 0, 1]))
            finished = torch.where(small, CONVERGED, finished)
        return {"n_iter": n_iter, "finished": finished}

    def run(self) -> tuple[list[Run[Any]], bool]:
        """Do turns until all restarts have ended; return their runs, and whether they did."""
        runs: dict[int, Run[Any]] = {}
        started, of_turn, n_turns, graph, interrupted = time.perf_counter(), 1.0, 0, None, False
        remaining = self.max_iter
        while True:
            n_steps, before = int(min(max(SECONDS / of_turn, 1), remaining)), time.perf_counter()
            try:
                for _ in range(n_steps):
                    if graph is None and n_turns >= WARM_UP and is_cuda_tensor(self.arrays["loss"]):
                        graph = record(self.turn)[0]
                    if graph:
                        graph.replay()
                    else:
                        self.turn()
                    n_turns += 1
            except KeyboardInterrupt:
                interrupted = True
            # These wait for the turns so far.
            n_iter, finished = (self.arrays[name].cpu().numpy() for name in ("n_iter", "finished"))
            of_turn = (time.perf_counter() - before) / max(n_steps, 1)
            live, ended = np.flatnonzero(finished == 0), np.flatnonzero(finished)
            ends = interrupted or not live.size
            if ends or (len(ended) >= LEAVING * len(finished) and len(finished) > SMALLEST):
                seconds = (time.perf_counter() - started) / self.n_restarts
                for place in np.arange(len(finished)) if ends else ended:
                    number = int(self.members[place])
                    runs[number] = self.run_of(int(place), int(n_iter[place]), finished[place], seconds)
                if ends:
                    return [runs[number] for number in range(self.n_restarts)], not interrupted
                self.take(live)
                n_turns, graph = 0, None
            remaining = int(self.max_iter - n_iter[live].min())

    def take(self, restarts: IntArray) -> None:
        """Continue with some of the restarts, in memory of their own."""
        import torch

        index = torch.tensor(restarts, device=self.arrays["loss"].device)
        self.arrays = {name: array.index_select(0, index) for name, array in self.arrays.items()}
        self.members = self.members[restarts]

    def run_of(self, place: int, n_iter: int, finished: float, seconds: float) -> Run[Any]:
        """Return what a single run would have returned; the time is divided among restarts and iterations."""
        values = self.arrays["history"][place, :n_iter].cpu().numpy()
        columns: dict[str, list[Any]] = {"n_iter": list(range(1, n_iter + 1))}
        columns["seconds"] = [seconds * number / n_iter for number in columns["n_iter"]]
        columns |= {name: values[:, i].tolist() for i, name in enumerate(self.measures)}
        W, Ht = (self.arrays[name][place].clone() for name in ("W", "Ht"))
        W, Ht = (W.T, Ht.T) if self.turned else (W, Ht)
        state = self.state(W, Ht, loss=float(self.arrays["loss"][place]))
        reason = REASONS[float(finished)]
        return Run(state, n_iter, reason, History(columns), reason.value)


class BatchedHals(Batch):
    """Extrapolated HALS, as in `solvers.alternating`."""

    measures = ("loss", "violation")
    state = alternating.AlternatingState
    turned = True

    def begin(self, data: Sequence[Any], W: Array, H: Array, zero: Array) -> dict[str, Any]:
        """Return the first arrays; the first turn has nothing to extrapolate from."""
        self.squared_norm, self.passes = data[0].squared_norm(), inner_passes(data[0], H.shape[1])
        self.slack = alternating.slack_of(data[0].dtype, self.squared_norm)
        numbers = {"loss": zero + np.inf, "violation": zero, "restarts": zero.clone()}
        return numbers | {"W": W, "W_plain": W.clone(), "Ht": H, "Ht_next": H.clone()}

    def attempt(self, now: dict[str, Any], active: Any) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Try one iteration of every restart; see `AlternatingProblem.candidates`."""
        import torch

        X, used, before = self.X, now["momentum"], now["loss"]
        amount = used.to(X.dtype)[:, None, None]
        cross = (now["Ht_next"].flatten(0, 1) @ X.T).reshape(now["W"].shape)
        gram = now["Ht_next"] @ now["Ht_next"].mT
        W, of_W = batched_hals(now["W"].mT, gram, cross.mT, max_passes=self.passes[0], shrink=SHRINK)
        violation = (of_W - _rounding(cross)).clip(0.0)
        W = W.mT
        extrapolated = (W + amount * (W - now["W_plain"])).clip(0.0)
        cross = (extrapolated.flatten(0, 1) @ X).reshape(now["Ht"].shape)
        gram = extrapolated @ extrapolated.mT
        H, of_H = batched_hals(now["Ht_next"].mT, gram, cross.mT, max_passes=self.passes[1], shrink=SHRINK)
        H = H.mT
        violation = (violation + (of_H - _rounding(cross)).clip(0.0)).double()
        own = (H @ H.mT).double() * gram.double()
        products = torch.sum(cross.double() * H.double(), dim=(1, 2))
        loss = (0.5 * self.squared_norm - products + 0.5 * torch.sum(own, dim=(1, 2))).clip(0.0)
        following = (H + amount * (H - now["Ht"])).clip(0.0)

        rejected = (used > 0) & (loss > before)
        worse = ~rejected & (loss > before + self.slack)  # by rounding: the better pair is kept
        momentum, ceiling = _scheduled(used, now["ceiling"], ~rejected)
        most = extrapolation.MAX_RESTARTS
        restarts = torch.where(rejected, now["restarts"] + 1, torch.where(used > 0, 0.0, now["restarts"]))
        restarts = torch.where(worse, most, restarts)
        momentum = torch.where(restarts >= most, 0.0, momentum)
        numbers = {
            "loss": torch.where(rejected | worse, before, loss),
            "violation": violation,
            "momentum": momentum,
            "ceiling": ceiling,
            "restarts": restarts,
        }
        better, worse = ~rejected & ~worse & active, worse & active
        arrays = {
            "W": _choose(better, extrapolated, now["W"]),
            "W_plain": _choose(better, W, _choose(worse, now["W"], now["W_plain"])),
            "Ht": _choose(better, H, now["Ht"]),
            "Ht_next": _choose(better, _choose(momentum > 0, following, H), now["Ht"]),
        }
        return arrays, numbers, ~rejected


class BatchedNewton(Batch):
    """Newton steps for the Kullback-Leibler divergence, as in `solvers.newton`."""

    measures = ("loss",)
    state = newton.NewtonState

    def begin(self, data: Sequence[Any], W: Array, Ht: Array, zero: Array) -> dict[str, Any]:
        """Return the first arrays: the rows of W alone have moved."""
        import torch

        scales = {
            id(matrix): (BetaLoss.of(matrix, 1.0).lower_bound, matrix.shape[1] * (matrix.mean() or 1.0))
            for matrix in {id(matrix): matrix for matrix in data}.values()
        }
        bounds, units = (to_device(part, W) for part in np.array([scales[id(matrix)] for matrix in data]).T)
        own = {} if self.X is not None else {"X": torch.stack([matrix.array for matrix in data])}
        arrays = own | {"bounds": bounds, "units": units}
        arrays |= self.evaluate(arrays, W, Ht, torch.sum(Ht, dim=2))[0]
        steps = torch.ones_like(arrays["columns"])
        first = {"W_before": arrays["W"].clone(), "Ht_plain": Ht.clone(), "tries": zero}
        return arrays | first | {"steps": steps, "tried": steps.clone()}

    def evaluate(
        self, arrays: dict[str, Array], start: Array, Ht: Array, means: Array
    ) -> tuple[dict[str, Any], Array]:
        """Move the rows of W; return what changes, and the losses of the columns before it."""
        loss, units = BetaLoss(1.0, arrays["bounds"]), arrays["units"].to(Ht.dtype)[:, None]
        shared = RowPass(Ht, loss, Penalties(), shared_correlations(1.0, Ht, means), 0.0, units)
        W, (at_start, columns, *sums) = shared.move(arrays.get("X", self.X), start)
        changes = dict(zip(("gradient", "diagonal", "gram", "total"), sums, strict=True))
        return changes | {"W": W, "Ht": Ht, "loss": columns.sum(dim=1), "columns": columns}, at_start

    def attempt(self, now: dict[str, Any], active: Any) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Try one iteration of every restart; see `NewtonProblem.candidates`."""
        import torch

        loss, momentum, tries, steps = now["loss"], now["momentum"], now["tries"], now["tried"]
        direction, slopes = column_directions(SimpleNamespace(**now), self.n_rows, Penalties(), None)
        rests = momentum == 0
        plain = now["Ht"] + steps.to(direction.dtype)[..., None] * direction
        amount = momentum.to(direction.dtype)[:, None, None]
        Ht = extrapolate_bounded(plain, now["Ht_plain"], amount)
        start = extrapolate_bounded(now["W"], now["W_before"], amount)
        # What the columns gain by extrapolated rows says nothing about their own steps.
        new, at_start = self.evaluate(now, start, Ht, (Ht @ now["total"][..., None])[..., 0])
        new_loss = new.pop("loss")
        gained, change = steps * slopes, at_start - now["columns"]
        following, shorter = newton.next_steps(torch, steps, gained, change, new["columns"])
        following = torch.where(rests[:, None], following, (2.0 * steps).clip(max=1.0))
        new |= {"Ht_plain": plain, "steps": following}
        # Restarts with momentum try again without it first, with the same steps.
        shorter = torch.where(rests[:, None], shorter, steps)

        good = new_loss <= loss
        nothing = newton.NOTHING["float64" if Ht.dtype == torch.float64 else "float32"]
        hopeless = rests & (torch.sum(gained, dim=1) > -nothing * torch.abs(loss))
        # Rounding only: the better pair is kept, and the stopping rule ends the run.
        stuck = ~good & (hopeless | (tries + 1 >= newton.TRIES))
        momentum, ceiling = _scheduled(momentum, now["ceiling"], good)
        numbers = {
            "loss": torch.where(good, new_loss, loss),
            "momentum": momentum,
            "ceiling": torch.where(stuck, 1.0, ceiling),
            # After an iteration that kept its pair the same tries would fail: one is enough.
            "tries": torch.where(good, 0.0, torch.where(stuck, newton.TRIES - 1.0, tries + 1)),
        }
        done, good, stuck = good | stuck, good & active, stuck & active
        old = now | {"Ht_plain": _choose(stuck, now["Ht"], now["Ht_plain"])}
        arrays = {name: _choose(good, array, old[name]) for name, array in new.items()}
        arrays["W_before"] = _choose(good | stuck, now["W"], now["W_before"])
        arrays["tried"] = _choose(good, new["steps"], _choose(stuck, now["steps"], shorter))
        return arrays, numbers, done


def _scheduled(momentum: Array, ceiling: Array, good: Array) -> tuple[Array, Array]:
    """Return momentum and ceiling of every restart after a try that was good, or rejected: then it rests."""
    import torch

    # A momentum of zero may have been a rejected one: the schedule goes on below it.
    rests = momentum == 0
    below = rests & (ceiling < 1.0)
    raised = (extrapolation.CEILING_GROWTH * ceiling).clip(max=1.0)
    grown = torch.where(rests, extrapolation.INITIAL, torch.minimum(raised, extrapolation.GROWTH * momentum))
    grown = torch.where(below, ceiling / extrapolation.DECAY, grown)
    rejected = torch.where(rests, ceiling, momentum)
    return torch.where(good, grown, 0.0), torch.where(good, torch.where(below, ceiling, raised), rejected)


def _choose(mask: Array, new: Array, old: Array) -> Array:
    """Return the new arrays of the restarts in a mask, and the old ones of the others."""
    import torch

    return torch.where(mask.reshape(-1, *(1,) * (old.ndim - 1)), new, old)


def _rounding(cross: Array) -> Array:
    import torch

    return 8 * torch.finfo(cross.dtype).eps * torch.linalg.vector_norm(cross, ord=1, dim=(1, 2))
