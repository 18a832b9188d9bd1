"""Restarts on a GPU as one batch: the iterations of HALS and of Newton's method with one axis more.

A turn tries one iteration of every restart. Whether a restart takes its result, and whether it has ended, is
decided on the GPU; a rejected one tries again in the next turn. All turns are therefore the same launches on
the same memory, recorded as a CUDA graph, and the host looks at the numbers now and then. Restarts that have
ended stay as they are; once half of them have ended, the others continue in a smaller batch.

Factors are arrays (batch, k, rows), so that products of the data with those of all restarts copy nothing.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_cuda_tensor, to_device
from nonneg._devices import free_memory
from nonneg._interruption import pending
from nonneg._typing import Array
from nonneg.data import DataMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.data.sparse import SparseArrayMatrix
from nonneg.exceptions import InterruptedFitWarning
from nonneg.initializers.random import random_init
from nonneg.iteration import History, Run, SlowDecrease, StopReason
from nonneg.iteration.captured import WARM_UP, record
from nonneg.kernels import batched_kl
from nonneg.kernels.batched_kl import batched_targets
from nonneg.kernels.hals import batched_hals
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers import alternating, newton
from nonneg.solvers.extrapolation import LOWEST_FRACTION, STEEP, Schedule
from nonneg.solvers.hals import SHRINK, inner_passes
from nonneg.solvers.mu import update_ratio
from nonneg.solvers.newton import DAMPING, SHORTEST_STEP, correlations_of, shared_correlations
from nonneg.solvers.registry import choose_solver

# Arrays of the size of X, and of the size of the factors, that a restart takes.
ARRAYS = {"hals": (0, 24), "newton": (9, 40)}
# Part of the free memory that a batch may take.
MEMORY_PART = 0.5
# Sparse data on a GPU become dense for a batch up to this many bytes, which are within what a fit may add to
# its data. A restart alone waits for its launches; a batch under KL reads its models 25 times per iteration.
DENSE_BYTES = {"hals": 192 << 20, "newton": 32 << 20}
# Iterations between two looks at the decrease of the error.
WINDOW = SlowDecrease().window
# Why a restart has ended.
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
    plain = plain and not options["penalties"].any
    named = {"beta", "penalties", "tol", "free", "accelerate"}
    fits = isinstance(data, DenseMatrix) or _bytes(data) <= DENSE_BYTES[solver]
    return loss and plain and set(options) <= named and fits


def _on_gpu(data: DataMatrix) -> bool:
    return isinstance(data, DenseMatrix | SparseArrayMatrix) and is_cuda_tensor(data.to_device(np.zeros(1)))


def _bytes(data: DataMatrix) -> int:
    return data.shape[0] * data.shape[1] * (8 if "64" in str(data.dtype) else 4)


def batch_size(data: DataMatrix, solver: str, k: int) -> int:
    """Return how many restarts fit in memory together."""
    of_X, of_factors = ARRAYS[solver]
    of_k = k * (1 / data.shape[0] + 1 / data.shape[1])  # entries of the factors for one of X
    free = free_memory(data.to_device(np.zeros(1)).device)
    return int(max(1, min(1 << 14, MEMORY_PART * free / (_bytes(data) * (of_X + of_factors * of_k)))))


def restarts_per_batch(
    data: DataMatrix, k: int, solver: str, beta: float, penalties: Penalties, *, own_data: bool = False
) -> int:
    """Return how many restarts of a solver can run as one batch; 1 where they cannot."""
    name = choose_solver(solver, data, k, beta)
    able = can_be_batched(data, name, {"beta": beta, "penalties": penalties, "free": None})
    if own_data:
        able = able and name == "newton" and isinstance(data, DenseMatrix)
    return batch_size(data, name, k) if able else 1


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
    if not isinstance(data, DenseMatrix):
        data = DenseMatrix(data.dense_rows(0, data.shape[0]), data.xp)
    size = batch_size(data, solver, k)
    results: list[Any] = []
    for first in range(0, len(rngs), size):
        some = rngs[first : first + size]
        factors = [random_init(data, k, rng=rng) for rng in some]
        runs = run_batched([data] * len(some), solver, factors, max_iter, tol)
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
        warnings.warn(
            f"Interrupted after {max(run.n_iter for run in runs)} iterations; the best factors so far are "
            "returned.",
            InterruptedFitWarning,
            stacklevel=2,
        )
    return runs


class Batch:
    """The memory of some restarts, arrays by name with one entry for each, and what a method does with it."""

    measures: tuple[str, ...]  # of an iteration
    state: Callable[..., Any]  # in which a run ends
    # Returns the first arrays of the method, given data, W, H and an array of zeros.
    begin: Callable[..., dict[str, Any]]
    # Tries one iteration of every restart, given the arrays and which restarts are active. Returns arrays,
    # changed for active restarts alone, numbers of all of them, and which of them have ended an iteration.
    attempt: Callable[..., tuple[dict[str, Any], dict[str, Any], Any]]

    def __init__(self, data: Sequence[Any], factors: Sequence[Any], max_iter: int, tol: float) -> None:
        import torch

        shared = all(each is data[0] for each in data)
        self.X: Any = data[0].array if shared else None  # of all restarts; None if each has its own
        self.n_rows, self.max_iter, self.tol = data[0].shape[0], int(min(max_iter, LONGEST)), tol
        self.n_restarts, self.members = len(factors), np.arange(len(factors))  # which of them are in it
        W, Ht = (torch.stack([pair[at] for pair in factors]).mT.contiguous() for at in (0, 1))
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
            wanted, before = int(min(max(SECONDS / of_turn, 1), remaining)), time.perf_counter()
            try:
                for _ in range(wanted):
                    if graph is None and n_turns >= WARM_UP and is_cuda_tensor(self.arrays["loss"]):
                        graph = record(self.turn)[0]
                    if graph:
                        graph.replay()
                    else:
                        self.turn()
                    n_turns += 1
            except KeyboardInterrupt:
                pending.clear()
                interrupted = True
            # These wait for the turns so far.
            n_iter, finished = (self.arrays[name].cpu().numpy() for name in ("n_iter", "finished"))
            of_turn = (time.perf_counter() - before) / max(wanted, 1)
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

    def take(self, chosen: Any) -> None:
        """Continue with some of the restarts, in memory of their own."""
        import torch

        index = torch.tensor(chosen, device=self.arrays["loss"].device)
        self.arrays = {name: array.index_select(0, index) for name, array in self.arrays.items()}
        self.members = self.members[chosen]

    def run_of(self, place: int, n_iter: int, finished: float, seconds: float) -> Run[Any]:
        """Return what a single run would have returned; the time is divided among restarts and iterations."""
        values = self.arrays["history"][place, :n_iter].cpu().numpy()
        columns: dict[str, list[Any]] = {"n_iter": list(range(1, n_iter + 1))}
        columns["seconds"] = [seconds * number / n_iter for number in columns["n_iter"]]
        columns |= {name: values[:, i].tolist() for i, name in enumerate(self.measures)}
        W, Ht = (self.arrays[name][place].clone().T for name in ("W", "Ht"))
        state = self.state(W, Ht, loss=float(self.arrays["loss"][place]))
        reason = REASONS[float(finished)]
        return Run(state, n_iter, reason, History(columns), reason.value)


class BatchedHals(Batch):
    """Extrapolated HALS, as in `solvers.alternating`."""

    measures = ("loss", "violation")
    state = alternating.AlternatingState

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
        chosen = (W + amount * (W - now["W_plain"])).clip(0.0)
        cross = (chosen.flatten(0, 1) @ X).reshape(now["Ht"].shape)
        gram = chosen @ chosen.mT
        H, of_H = batched_hals(now["Ht_next"].mT, gram, cross.mT, max_passes=self.passes[1], shrink=SHRINK)
        H = H.mT
        violation = (violation + (of_H - _rounding(cross)).clip(0.0)).double()
        own = (H @ H.mT).double() * gram.double()
        products = torch.sum(cross.double() * H.double(), dim=(1, 2))
        loss = (0.5 * self.squared_norm - products + 0.5 * torch.sum(own, dim=(1, 2))).clip(0.0)
        following = (H + amount * (H - now["Ht"])).clip(0.0)

        rejected = (used > 0) & (loss > before)
        worse = ~rejected & (loss > before + self.slack)  # by rounding: the better pair is kept
        momentum, ceiling = _scheduled(alternating.SCHEDULE, used, now["ceiling"], ~rejected)
        most = alternating.SCHEDULE.max_restarts
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
        taken, worse = ~rejected & ~worse & active, worse & active
        arrays = {
            "W": _choose(taken, chosen, now["W"]),
            "W_plain": _choose(taken, W, _choose(worse, now["W"], now["W_plain"])),
            "Ht": _choose(taken, H, now["Ht"]),
            "Ht_next": _choose(taken, _choose(momentum > 0, following, H), now["Ht"]),
        }
        return arrays, numbers, ~rejected


class BatchedNewton(Batch):
    """Newton steps for the Kullback-Leibler divergence, as in `solvers.newton`."""

    measures = ("loss",)
    state = newton.NewtonState

    def begin(self, data: Sequence[Any], W: Array, H: Array, zero: Array) -> dict[str, Any]:
        """Return the first arrays: the rows of W alone have moved."""
        import torch

        scales = {
            id(each): (BetaLoss.of(each, 1.0).lower_bound, each.shape[1] * (each.mean() or 1.0))
            for each in {id(each): each for each in data}.values()
        }
        bounds, units = (to_device(part, W) for part in np.array([scales[id(each)] for each in data]).T)
        own = {} if self.X is not None else {"X": torch.stack([each.array for each in data])}
        arrays = own | {"bounds": bounds, "units": units}
        W, _ = self.move_W(arrays, W, H, torch.sum(H, dim=1))
        arrays |= self.sums(arrays, W, H)
        steps = torch.ones_like(arrays["columns"])
        first = {"W_before": W.clone(), "Ht": H, "Ht_plain": H.clone(), "tries": zero}
        return arrays | first | {"steps": steps, "tried": steps.clone()}

    def move_W(self, arrays: dict[str, Array], start: Array, H: Array, means: Array) -> tuple[Array, Array]:
        """Return W after a Newton step, and the losses of the columns before it."""
        import torch

        X, bounds = arrays.get("X", self.X), arrays["bounds"]
        v = start.mT @ H
        at_start = batched_kl.column_losses(X, v, bounds)
        slope, curvature = batched_kl.newton_terms(X, v, bounds)
        squares = H * H + DAMPING * torch.mean(H, dim=2, keepdim=True) ** 2
        gradient, diagonal = H @ slope.mT, squares @ curvature.mT
        direction, slopes = batched_targets(
            start.mT, gradient.mT, diagonal.mT, shared_correlations(1.0, H.mT, means)
        )
        del slope, curvature
        steps = batched_kl.line_search(X, v, direction @ H, slopes, bounds)[:, None, :]
        sums = torch.sum(H, dim=2, keepdim=True)
        # (x / v) Ht is what the gradient leaves of the sums.
        ratio = update_ratio(start, sums - gradient, sums, l1=0.0, l2=0.0, beta=1.0)
        moved = (start + steps * direction.mT).clip(0.0)
        return torch.where(steps < SHORTEST_STEP, start * ratio, moved), at_start

    def sums(self, arrays: dict[str, Array], W: Array, H: Array) -> dict[str, Any]:
        """Return W, its loss and what the next step of H needs."""
        import torch

        X, bounds = arrays.get("X", self.X), arrays["bounds"]
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

    def attempt(self, now: dict[str, Any], active: Any) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Try one iteration of every restart; see `NewtonProblem.candidates`."""
        import torch

        loss, momentum, tries, steps = now["loss"], now["momentum"], now["tries"], now["tried"]
        direction, slopes = self.direction(now)
        rests = momentum == 0
        plain = now["Ht"] + steps.to(direction.dtype)[:, None, :] * direction
        amount = momentum.to(direction.dtype)[:, None, None]
        H = _bounded(plain, now["Ht_plain"], amount)
        means = (now["total"][:, None, :] @ H)[:, 0]
        # What the columns gain by extrapolated rows says nothing about their own steps.
        W, at_start = self.move_W(now, _bounded(now["W"], now["W_before"], amount), H, means)
        new = self.sums(now, W, H)
        new_loss = new.pop("loss")
        gained, change = steps * slopes, at_start - now["columns"]
        following, shorter = newton.next_steps(torch, steps, gained, change, new["columns"])
        following = torch.where(rests[:, None], following, (2.0 * steps).clip(max=1.0))
        new |= {"Ht": H, "Ht_plain": plain, "steps": following}
        # Restarts with momentum try again without it first, with the same steps.
        shorter = torch.where(rests[:, None], shorter, steps)

        good = new_loss <= loss
        nothing = newton.NOTHING["float64" if H.dtype == torch.float64 else "float32"]
        hopeless = rests & (torch.sum(gained, dim=1) > -nothing * torch.abs(loss))
        # Rounding only: the better pair is kept, and the stopping rule ends the run.
        stuck = ~good & (hopeless | (tries + 1 >= newton.TRIES))
        momentum, ceiling = _scheduled(STEEP, momentum, now["ceiling"], good)
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


def _scheduled(schedule: Schedule, momentum: Any, ceiling: Any, good: Any) -> tuple[Any, Any]:
    """Return momentum and ceiling of every restart after a try that was good, or rejected: then it rests."""
    import torch

    # A momentum of zero may have been a rejected one: the schedule goes on below it.
    rests = momentum == 0
    below = rests & (ceiling < 1.0)
    raised = (schedule.ceiling_growth * ceiling).clip(max=1.0)
    grown = torch.where(rests, schedule.initial, torch.minimum(raised, schedule.growth * momentum))
    grown = torch.where(below, ceiling / schedule.decay, grown)
    rejected = torch.where(rests, ceiling, momentum)
    return torch.where(good, grown, 0.0), torch.where(good, torch.where(below, ceiling, raised), rejected)


def _choose(chosen: Any, new: Any, old: Any) -> Any:
    """Return the arrays of chosen restarts, and the old ones of the others."""
    import torch

    return torch.where(chosen.reshape(-1, *(1,) * (old.ndim - 1)), new, old)


def _rounding(cross: Array) -> Any:
    import torch

    return 8 * torch.finfo(cross.dtype).eps * torch.linalg.vector_norm(cross, ord=1, dim=(1, 2))


def _bounded(new: Array, old: Array, momentum: Array) -> Array:
    """Return new + momentum (new - old), bounded below by a fraction of `new`; a momentum per restart."""
    out, lowest = new + momentum * (new - old), LOWEST_FRACTION * new
    return array_namespace(new).where(out < lowest, lowest, out)
