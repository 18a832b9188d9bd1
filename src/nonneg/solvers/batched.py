"""Restarts that run on a GPU as one batch: products and kernels have one axis more, the host no loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._arrays import is_cuda_tensor
from nonneg._devices import free_memory
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.data.sparse_array import SparseArrayMatrix
from nonneg.iteration import History, Run, StopReason, iterate
from nonneg.losses.penalties import Penalties
from nonneg.solvers.alternating import AlternatingState
from nonneg.solvers.batched_alternating import BatchedAlternating
from nonneg.solvers.batched_newton import BatchedNewton
from nonneg.solvers.newton import NewtonState
from nonneg.solvers.registry import choose_solver

# Arrays of the size of X, and of the size of the factors, that a restart takes.
ARRAYS = {"hals": (0, 24), "newton": (9, 40)}
# Part of the free memory that a batch may take.
MEMORY_PART = 0.5
# Sparse data on a GPU become dense for a batch up to this many bytes, which are within what a fit may add to
# its data. A restart alone waits for its launches; a batch under KL reads its models 25 times per iteration.
DENSE_BYTES = {"hals": 192 << 20, "newton": 32 << 20}


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


def dense_twin(data: Any) -> DenseMatrix:
    """Return sparse data as dense ones; dense data as they are."""
    if isinstance(data, DenseMatrix):
        return data
    return DenseMatrix(data.dense_rows(0, data.shape[0]), data.xp)


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


def advance_batched(
    data: Any, solver: str, options: dict[str, Any], restarts: Sequence[Any], max_iter: int
) -> bool:
    """Run restarts that have not begun as one batch, or as few as memory allows; tell whether it was done."""
    fresh = len(restarts) > 1 and all(each.run is None and not each.options for each in restarts)
    if not fresh or not isinstance(data, DenseMatrix) or not can_be_batched(data, solver, options):
        return False
    size = batch_size(data, solver, int(restarts[0].Ht.shape[1]))
    for at in range(0, len(restarts), size):
        group = restarts[at : at + size]
        factors = [(each.W, each.Ht) for each in group]
        runs = run_batched([data] * len(group), solver, factors, max_iter, options["tol"])
        for each, run in zip(group, runs, strict=True):
            each.run = run
            each.saved.save(
                run.state, run.n_iter, run.history.seconds[-1] if run.n_iter else 0.0, run.history
            )
        if runs[0].stop_reason is StopReason.INTERRUPTED:
            break
    return True


def run_batched(
    data: Sequence[Any], solver: str, factors: Sequence[tuple[Any, Any]], max_iter: int, tol: float
) -> list[Run[Any]]:
    """Run restarts as one batch, each from given factors of its data; return their runs in order.

    "hals" shares its products, so that all restarts must have the same data.
    """
    if solver == "hals":
        return _run_hals(data[0], factors, max_iter, tol)
    n, xp = len(factors), data[0].xp
    problem, rule = BatchedNewton.of(data), _Decrease(tol)
    rows: list[dict[str, Any]] = []
    ended: dict[int, tuple[Any, int, StopReason]] = {}

    def end(state: Any, places: Any, n_iter: int, reason: StopReason) -> None:
        for place in places:
            one = state.take(np.array([place]))
            ended[int(one.numbers[0])] = (one.W[0], one.Ht[0], float(one.loss[0])), n_iter, reason

    def step(before: Any) -> tuple[Any, dict[str, Any]]:
        state, measures = problem.step(before)
        row: dict[str, Any] = {name: np.full(n, np.nan) for name in measures}
        for name, values in measures.items():
            row[name][state.numbers] = values
        rows.append(row)
        finished = rule(rows, state.numbers)
        if finished.any():
            end(state, np.flatnonzero(finished), len(rows), StopReason.CONVERGED)
            if not finished.all():
                state = state.take(np.flatnonzero(~finished))
        return state, row | {"live": float(n - len(ended))}

    first = problem.begin(*(xp.stack([pair[at] for pair in factors]) for at in (0, 1)))
    run = iterate(step, first, max_iter=max_iter, stop=lambda history: history["live"][-1] == 0)
    left = [place for place, number in enumerate(run.state.numbers) if int(number) not in ended]
    end(run.state, left, run.n_iter, run.stop_reason)
    seconds = np.asarray(run.history.seconds) / n
    return [_as_run(*ended[i], i, run.history, seconds) for i in range(n)]


def _run_hals(data: Any, factors: Sequence[tuple[Any, Any]], max_iter: int, tol: float) -> list[Run[Any]]:
    problem = BatchedAlternating.of(data, factors[0][1].shape[1], max_iter, tol)
    ended, seconds = problem.run(factors)
    runs = []
    for each in ended:
        n_iter, (losses, violations) = len(each.measures), each.measures.T.tolist()
        columns = {
            "n_iter": list(range(1, n_iter + 1)),
            "seconds": [seconds / len(ended) * i for i in range(1, n_iter + 1)],
            "loss": losses,
            "violation": violations,
        }
        state = AlternatingState(each.W, each.Ht, loss=losses[-1] if losses else np.inf)
        runs.append(Run(state, n_iter, each.stop_reason, History(columns), each.stop_reason.value))
    return runs


def _as_run(
    found: tuple[Any, Any, float],
    n_iter: int,
    reason: StopReason,
    member: int,
    history: History,
    seconds: Any,
) -> Run[Any]:
    """Return what a single run would have returned."""
    columns: dict[str, list[Any]] = {
        "n_iter": list(range(1, n_iter + 1)),
        "seconds": seconds[:n_iter].tolist(),
    }
    columns["loss"] = [float(values[member]) for values in history["loss"][:n_iter]]
    W, Ht, loss = found
    return Run(NewtonState(W, Ht, loss=loss), n_iter, reason, History(columns), reason.value)


@dataclass(frozen=True)
class _Decrease:
    """`iteration.RelativeDecrease` for all restarts at once."""

    tol: float
    window: int = 10

    def __call__(self, rows: list[dict[str, FloatArray]], members: IntArray) -> Any:
        if self.tol <= 0 or len(rows) <= self.window or (len(rows) - 1) % self.window:
            return np.zeros(len(members), dtype=bool)
        first, before, now = (
            np.sqrt(2.0 * np.maximum(rows[at]["loss"][members], 0.0)) for at in (0, -1 - self.window, -1)
        )
        return before - now <= self.tol * first
