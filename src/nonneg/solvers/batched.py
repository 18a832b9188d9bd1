"""Restarts that run on a GPU as one batch: products and kernels have one axis more, the host no loop."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from nonneg._arrays import is_cuda_tensor
from nonneg._devices import free_memory
from nonneg.data import DataMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.data.sparse_array import SparseArrayMatrix
from nonneg.exceptions import InterruptedFitWarning
from nonneg.iteration import History, Run, StopReason
from nonneg.losses.penalties import Penalties
from nonneg.solvers.alternating import AlternatingState
from nonneg.solvers.batch import CONVERGED, MAX_ITER, Outcome, run_turns
from nonneg.solvers.batched_alternating import BatchedAlternating
from nonneg.solvers.batched_newton import BatchedNewton
from nonneg.solvers.newton import NewtonState
from nonneg.solvers.registry import choose_solver

MEASURES = {"hals": ("loss", "violation"), "newton": ("loss",)}
REASONS = {0.0: StopReason.INTERRUPTED, CONVERGED: StopReason.CONVERGED, MAX_ITER: StopReason.MAX_ITER}
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
        if any(run.stop_reason is StopReason.INTERRUPTED for run in runs):
            break
    return True


def run_batched(
    data: Sequence[Any], solver: str, factors: Sequence[tuple[Any, Any]], max_iter: int, tol: float
) -> list[Run[Any]]:
    """Run restarts as one batch, each from given factors of its data; return their runs in order.

    "hals" shares its products, so that all restarts must have the same data.
    """
    import torch

    n = len(factors)
    W, Ht = (torch.stack([pair[at] for pair in factors]) for at in (0, 1))
    problem: Any
    if solver == "hals":
        problem = BatchedAlternating.of(data[0], Ht.shape[2], max_iter, tol)
        batch = problem.begin(W, Ht)
    else:
        problem = BatchedNewton.of(data, max_iter, tol)
        batch = problem.begin(data, W, Ht)
    del W, Ht
    outcome = Outcome(n, batch.history.shape[0])
    if not run_turns(problem.turn, batch, max_iter, outcome):
        warnings.warn(
            f"Interrupted after {outcome.n_iter.max()} iterations; the best factors so far are returned.",
            InterruptedFitWarning,
            stacklevel=2,
        )
    return [_as_run(outcome, i, solver) for i in range(n)]


def _as_run(outcome: Outcome, member: int, solver: str) -> Run[Any]:
    """Return what a single run would have returned."""
    n_iter = int(outcome.n_iter[member])
    names = MEASURES[solver]
    columns: dict[str, list[Any]] = {"n_iter": list(range(1, n_iter + 1))}
    values = outcome.measures[:, member, :n_iter]
    columns["seconds"] = (values[-1] / len(outcome.n_iter)).tolist()
    columns |= {name: values[i].tolist() for i, name in enumerate(names)}
    W, Ht, loss = outcome.factors[member]
    state = AlternatingState(W, Ht, loss=loss) if solver == "hals" else NewtonState(W, Ht, loss=loss)
    reason = REASONS[float(outcome.finished[member])]
    return Run(state, n_iter, reason, History(columns), reason.value)
