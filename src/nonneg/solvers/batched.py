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
from nonneg._interruption import forget_interrupt
from nonneg._typing import Array
from nonneg.data import DataMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.data.sparse import SparseArrayMatrix
from nonneg.exceptions import InterruptedFitWarning
from nonneg.initializers.random import random_inits
from nonneg.initializers.registry import INITS
from nonneg.iteration import History, Run, SlowDecrease, StopReason
from nonneg.iteration.captured import WARM_UP, record
from nonneg.kernels import batched_kl
from nonneg.kernels.batched_kl import batched_targets
from nonneg.kernels.hals import batched_hals
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers import alternating, newton
from nonneg.solvers.extrapolation import LOWEST_FRACTION
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
# Rows of the history on the GPU: the host reads them before they are written again.
ROWS = 64
# Turns between two looks take about this many seconds: a look keeps the GPU waiting for a millisecond.
SECONDS = 4e-2
# Restarts leave the batch once this part of them has ended: a smaller batch is recorded anew, which takes
# tens of milliseconds.
LEAVING = 0.5
SMALLEST = 8


def can_be_batched(data: DataMatrix, solver: str, options: dict[str, Any]) -> bool:
    """Tell whether restarts of a solver can run as one batch: the plain cases, on a GPU."""
    if (
        solver not in ARRAYS
        or not _on_gpu(data)
        or not (isinstance(data, DenseMatrix) or _densifies(data, solver))
    ):
        return False
    plain = data.weights is None and data.observed is None and options["free"] is None
    named = {"beta", "penalties", "tol", "free", "accelerate"}
    loss = options["beta"] == (2.0 if solver == "hals" else 1.0)
    return plain and loss and not options["penalties"].any and set(options) <= named


def _on_gpu(data: DataMatrix) -> bool:
    return isinstance(data, DenseMatrix | SparseArrayMatrix) and is_cuda_tensor(_entries(data))


def _entries(data: Any) -> Any:
    return data.csr.data if isinstance(data, SparseArrayMatrix) else data.array


def _densifies(data: Any, solver: str) -> bool:
    return data.shape[0] * data.shape[1] * _entries(data).element_size() <= DENSE_BYTES[solver]


def batch_size(data: Any, solver: str, k: int) -> int:
    """Return how many restarts fit in memory together."""
    of_X, of_factors = ARRAYS[solver]
    (n_rows, n_columns), size = data.shape, 8 if "64" in str(data.dtype) else 4
    one = size * (of_X * n_rows * n_columns + of_factors * k * (n_rows + n_columns))
    return int(max(1, min(1 << 14, MEMORY_PART * free_memory(_entries(data).device) / one)))


def restarts_per_batch(
    data: DataMatrix, k: int, solver: str, beta: float, penalties: Penalties, *, own_data: bool = False
) -> int:
    """Return how many restarts of a solver can run as one batch; 1 where they cannot."""
    name = choose_solver(
        solver, container=data.container, shape=data.shape, k=k, beta=beta, missing=data.has_missing
    )
    options = {"beta": beta, "penalties": penalties, "free": None}
    if not can_be_batched(data, name, options) or (
        own_data and (name != "newton" or not isinstance(data, DenseMatrix))
    ):
        return 1
    return batch_size(data, name, k)


def run_in_batches(
    data: Any,
    solver: str,
    init: str,
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
        if init == "random":
            factors = random_inits(data, k, some)
        else:
            factors = [INITS.find(init)(data, k, rng=rng) for rng in some]
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
    import torch

    W, Ht = (torch.stack([pair[at] for pair in factors]).mT.contiguous() for at in (0, 1))
    problem = (BatchedHals if solver == "hals" else BatchedNewton)(data, max_iter, tol)
    batch = Batch(problem.begin(data, W, Ht), np.arange(len(factors)))
    del W, Ht
    outcome = Outcome(len(factors), problem.measures)
    if not run_turns(problem.turn, batch, max_iter, outcome):
        warnings.warn(
            f"Interrupted after {outcome.n_iter.max()} iterations; the best factors so far are returned.",
            InterruptedFitWarning,
            stacklevel=2,
        )
    return [outcome.run(member, problem.state) for member in range(len(factors))]


class Batch:
    """The memory of some restarts: arrays by name, with one entry for each restart."""

    def __init__(self, arrays: dict[str, Any], members: Any) -> None:
        self.arrays = arrays
        self.members = members  # which restarts they are

    def take(self, chosen: Any) -> Batch:
        """Return some of the restarts in memory of their own."""
        import torch

        index = torch.tensor(chosen, device=self.arrays["loss"].device)
        arrays = {name: array.index_select(0, index) for name, array in self.arrays.items()}
        return Batch(arrays, self.members[chosen])

    def commit(self, arrays: dict[str, Any]) -> None:
        """Write the outcome of a turn."""
        import torch

        # One call: whenever a run is interrupted, its state is that after some turn.
        torch._foreach_copy_([self.arrays[name] for name in arrays], list(arrays.values()))


class Outcome:
    """What is known of all restarts: measures of their iterations, and factors of those that have ended."""

    def __init__(self, n: int, measures: Sequence[str]) -> None:
        self.names = (*measures, "seconds")
        self.rows: list[list[Any]] = [[] for _ in range(n)]  # of every restart, by look
        self.n_iter = np.zeros(n, dtype=np.int64)
        self.finished = np.zeros(n)
        self.factors: dict[int, tuple[Any, Any, float]] = {}

    def read(self, batch: Batch, before: float, now: float) -> None:
        """Wait for the turns so far; take the iterations since the last look."""
        n_iter, finished, history = (
            batch.arrays[name].cpu().numpy() for name in ("n_iter", "finished", "history")
        )
        done = n_iter.astype(np.int64)
        for place, member in enumerate(batch.members):
            if new := int(done[place] - self.n_iter[member]):
                at = (self.n_iter[member] + np.arange(new)) % ROWS
                seconds = before + (now - before) * (np.arange(new) + 1) / new
                self.rows[member].append(np.column_stack([history[place, at], seconds]))
        self.n_iter[batch.members], self.finished[batch.members] = done, finished

    def keep(self, batch: Batch, places: Any) -> None:
        """Copy the factors of some restarts, apart from the rest of the batch."""
        for place in places:
            W, Ht = (batch.arrays[name][int(place)].clone().T for name in ("W", "Ht"))
            self.factors[int(batch.members[place])] = W, Ht, float(batch.arrays["loss"][int(place)])

    def run(self, member: int, state: Callable[..., Any]) -> Run[Any]:
        """Return what a single run would have returned; the time is divided among the restarts."""
        n_iter = int(self.n_iter[member])
        values = np.concatenate([np.empty((0, len(self.names))), *self.rows[member]])
        values[:, -1] /= len(self.rows)
        columns: dict[str, list[Any]] = {"n_iter": list(range(1, n_iter + 1)), "seconds": []}
        columns |= {name: values[:, i].tolist() for i, name in enumerate(self.names)}
        W, Ht, loss = self.factors[member]
        reason = REASONS[float(self.finished[member])]
        return Run(state(W, Ht, loss=loss), n_iter, reason, History(columns), reason.value)


def run_turns(turn: Callable[[Batch], None], batch: Batch, max_iter: int, outcome: Outcome) -> bool:
    """Do turns until all restarts have ended; tell whether they did."""
    started, before, of_turn = time.perf_counter(), 0.0, 1.0
    n_turns, graph, interrupted, remaining = 0, None, False, max_iter
    while True:
        wanted = int(min(max(SECONDS / of_turn, 1), ROWS // 2, remaining))
        try:
            for _ in range(wanted):
                if graph is None and n_turns >= WARM_UP and is_cuda_tensor(batch.arrays["loss"]):
                    graph = record(lambda batch=batch: turn(batch))[0]  # type: ignore[misc]
                if graph:
                    graph.replay()
                else:
                    turn(batch)
                n_turns += 1
        except KeyboardInterrupt:
            forget_interrupt()
            interrupted = True
        batch.arrays["n_iter"].cpu()  # waits
        now = time.perf_counter() - started
        outcome.read(batch, before, now)
        of_turn, before = (now - before) / wanted, now
        finished = outcome.finished[batch.members]
        live, ended = np.flatnonzero(finished == 0), np.flatnonzero(finished)
        if interrupted or not live.size:
            break
        remaining = int(max_iter - outcome.n_iter[batch.members][live].min())
        if ended.size and ended.size >= LEAVING * len(finished) and len(finished) > SMALLEST:
            outcome.keep(batch, ended)
            batch, n_turns, graph = batch.take(live), 0, None
    outcome.keep(batch, np.arange(len(batch.members)))
    return not interrupted


class BatchedProblem:
    """What the problems of a batch share; `begin(data, W, H)` of a method returns the first arrays."""

    measures: tuple[str, ...]  # of an iteration
    state: Callable[..., Any]  # in which a run ends
    # Tries one iteration of every restart, given the arrays and which restarts are active. Returns arrays,
    # changed for active restarts alone, numbers of all of them, and which of them have ended an iteration.
    attempt: Callable[..., tuple[dict[str, Any], dict[str, Any], Any]]

    def __init__(self, data: Sequence[Any], max_iter: int, tol: float) -> None:
        shared = all(each is data[0] for each in data)
        self.X: Any = data[0].array if shared else None  # of all restarts; None if each has its own
        self.n_rows, self.max_iter, self.tol = data[0].shape[0], max_iter, tol

    def numbers(self, n: int, device: Any, **first: Any) -> dict[str, Any]:
        """Return the numbers of every restart at its beginning."""
        import torch

        zero = torch.zeros(n, dtype=torch.float64, device=device)
        names = ("momentum", "n_iter", "finished", "mark", *self.measures)
        names = (*names, *(f"first_{name}" for name in self.measures))
        numbers = {name: zero.clone() for name in names} | {"ceiling": zero + 1.0}
        numbers["history"] = zero.new_zeros((n, ROWS, len(self.measures)))
        return numbers | {name: zero + value for name, value in first.items()}

    def turn(self, batch: Batch) -> None:
        """Try one iteration of every restart; those that have ended stay as they are."""
        import torch

        now = batch.arrays
        active = now["finished"] == 0
        arrays, numbers, done = self.attempt(now, active)
        measured = torch.stack([numbers[name] for name in self.measures], dim=1)[:, None]
        place = (now["n_iter"] % ROWS).long()[:, None, None].expand(measured.shape)
        numbers |= self.rules(now, numbers, done)
        numbers = {name: torch.where(active, number, now[name]) for name, number in numbers.items()}
        batch.commit(arrays | numbers | {"history": now["history"].scatter(1, place, measured)})

    def rules(self, now: dict[str, Any], numbers: dict[str, Any], done: Any) -> dict[str, Any]:
        """Return the number of iterations, and whether a restart has ended; see `iteration.stopping`."""
        import torch

        n_iter = now["n_iter"] + done
        after = {"n_iter": n_iter}
        for name in self.measures:
            first = f"first_{name}"
            after[first] = torch.where(done & (n_iter == 1), numbers[name], now[first])
        loss, looks = numbers["loss"], done & ((n_iter - 1) % WINDOW == 0)
        finished = torch.where(done & (n_iter >= self.max_iter), MAX_ITER, torch.zeros_like(loss))
        if self.tol > 0:
            losses = (loss, now["mark"], after["first_loss"])
            error, before, start = (torch.sqrt(2.0 * each.clip(0.0)) for each in losses)
            small = looks & (n_iter > WINDOW) & (before - error <= WINDOW * self.tol * start)
            if "violation" in numbers:
                small = small | (done & (numbers["violation"] <= self.tol * after["first_violation"]))
            finished = torch.where(small, CONVERGED, finished)
        return after | {"finished": finished, "mark": torch.where(looks, loss, now["mark"])}


class BatchedHals(BatchedProblem):
    """Extrapolated HALS, as in `solvers.alternating`."""

    measures = ("loss", "violation")
    state = alternating.AlternatingState

    def begin(self, data: Sequence[Any], W: Array, H: Array) -> dict[str, Any]:
        """Return the first arrays; the first turn has nothing to extrapolate from."""
        self.squared_norm, self.passes = data[0].squared_norm(), inner_passes(data[0], H.shape[1])
        self.slack = (2e-13 if "64" in str(W.dtype) else 2e-6) * 0.5 * self.squared_norm
        first = {"loss": np.inf, "momentum": alternating.SCHEDULE.initial, "restarts": 0.0, "used": 0.0}
        numbers = self.numbers(W.shape[0], W.device, **first)
        return numbers | {"W": W, "W_plain": W.clone(), "Ht": H, "Ht_next": H.clone()}

    def attempt(self, now: dict[str, Any], active: Any) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Try one iteration of every restart; see `AlternatingProblem.candidates`."""
        import torch

        X, schedule, used, before = self.X, alternating.SCHEDULE, now["used"], now["loss"]
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
        accepted = (used > 0) & ~rejected
        worse = ~rejected & (loss > before + self.slack)  # by rounding: the better pair is kept
        raised = (schedule.ceiling_growth * now["ceiling"]).clip(max=1.0)
        slowed = used / schedule.decay
        if schedule.max_restarts is not None:
            slowed = torch.where(now["restarts"] + 1 >= schedule.max_restarts, 0.0, slowed)
        momentum = torch.where(accepted, torch.minimum(schedule.growth * used, raised), now["momentum"])
        momentum = torch.where(rejected, slowed, torch.where(worse, 0.0, momentum))
        used = torch.where(rejected, 0.0, momentum)
        numbers = {
            "loss": torch.where(rejected | worse, before, loss),
            "violation": violation,
            "momentum": momentum,
            "ceiling": torch.where(rejected, now["used"], torch.where(accepted, raised, now["ceiling"])),
            "restarts": torch.where(
                rejected, now["restarts"] + 1, torch.where(accepted, 0.0, now["restarts"])
            ),
            "used": used,
        }
        taken, worse = ~rejected & ~worse & active, worse & active
        arrays = {
            "W": choose(taken, chosen, now["W"]),
            "W_plain": choose(taken, W, choose(worse, now["W"], now["W_plain"])),
            "Ht": choose(taken, H, now["Ht"]),
            "Ht_next": choose(taken, choose(used > 0, following, H), now["Ht"]),
        }
        return arrays, numbers, ~rejected


class BatchedNewton(BatchedProblem):
    """Newton steps for the Kullback-Leibler divergence, as in `solvers.newton`."""

    measures = ("loss",)
    state = newton.NewtonState

    def begin(self, data: Sequence[Any], W: Array, H: Array) -> dict[str, Any]:
        """Return the first arrays: the rows of W alone have moved."""
        import torch

        different = {id(each): each for each in data}
        scales = {
            name: (BetaLoss.of(each, 1.0).lower_bound, each.shape[1] * (each.mean() or 1.0))
            for name, each in different.items()
        }
        bounds, units = (to_device(part, W) for part in np.array([scales[id(each)] for each in data]).T)
        own = {} if self.X is not None else {"X": torch.stack([each.array for each in data])}
        arrays = own | {"bounds": bounds, "units": units}
        W, _ = self.move_W(arrays, W, H, torch.sum(H, dim=1))
        arrays |= self.sums(arrays, W, H)
        steps = torch.ones_like(arrays["columns"])
        arrays |= {
            "W_before": W.clone(), "Ht": H, "Ht_plain": H.clone(), "steps": steps, "tried": steps.clone(),
        }  # fmt: skip
        # A momentum is that of the next try.
        return self.numbers(W.shape[0], W.device, tries=0.0) | arrays

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
        doubled = (2.0 * steps).clip(max=1.0)
        gained, change = steps * slopes, at_start - now["columns"]
        unclear = -gained < 1e-12 * new["columns"]
        best = newton.power_of_two(torch, gained, change, most=2.0)
        following = torch.where(unclear, 2.0 * steps, steps * best).clip(newton.SHORTEST, 1.0)
        new |= {"Ht": H, "Ht_plain": plain, "steps": torch.where(rests[:, None], following, doubled)}
        # Restarts with momentum try again without it first, with the same steps.
        worse = rests[:, None] & (change > 0)
        shorter = torch.where(worse, steps * newton.power_of_two(torch, gained, change, most=0.5), steps)

        good = new_loss <= loss
        nothing = newton.NOTHING["float64" if H.dtype == torch.float64 else "float32"]
        hopeless = rests & (torch.sum(gained, dim=1) > -nothing * torch.abs(loss))
        # Rounding only: the better pair is kept, and the stopping rule ends the run.
        stuck = ~good & (hopeless | (tries + 1 >= newton.TRIES))
        numbers = self.schedule(now, good, stuck)
        numbers |= {
            "loss": torch.where(good, new_loss, loss),
            # After an iteration that kept its pair the same tries would fail: one is enough.
            "tries": torch.where(good, 0.0, torch.where(stuck, newton.TRIES - 1.0, tries + 1)),
        }
        done, good, stuck = good | stuck, good & active, stuck & active
        old = now | {"Ht_plain": choose(stuck, now["Ht"], now["Ht_plain"])}
        arrays = {name: choose(good, array, old[name]) for name, array in new.items()}
        arrays["W_before"] = choose(good | stuck, now["W"], now["W_before"])
        arrays["tried"] = choose(good, new["steps"], choose(stuck, now["steps"], shorter))
        return arrays, numbers, done

    def schedule(self, now: dict[str, Any], good: Any, stuck: Any) -> dict[str, Any]:
        """Return momentum and ceiling after a turn."""
        import torch

        schedule, momentum, ceiling = newton.SCHEDULE, now["momentum"], now["ceiling"]
        # A momentum of zero may have been a rejected one: the schedule goes on below it.
        rests = momentum == 0
        below = rests & (ceiling < 1.0)
        raised = (schedule.ceiling_growth * ceiling).clip(max=1.0)
        grown = torch.where(rests, schedule.initial, torch.minimum(raised, schedule.growth * momentum))
        grown = torch.where(below, ceiling / schedule.decay, grown)
        rejected = torch.where(rests, ceiling, momentum)
        ceiling = torch.where(good, torch.where(below, ceiling, raised), torch.where(stuck, 1.0, rejected))
        return {"momentum": torch.where(good, grown, 0.0), "ceiling": ceiling}


def choose(chosen: Any, new: Any, old: Any) -> Any:
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
