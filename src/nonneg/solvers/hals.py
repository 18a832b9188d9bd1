"""HALS for the Frobenius loss: plain, accelerated, extrapolated with restarts, and for semi-NMF."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nonneg._arrays import on_gpu
from nonneg._blas import single_threaded_blas
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.iteration import Checkpoint, Run, iterate, least_squares_rule
from nonneg.iteration.progress import Progress, Reporter
from nonneg.kernels.factor_update import CoordinateDescent
from nonneg.leastsquares import FreeRows
from nonneg.losses.penalties import Penalties
from nonneg.solvers.acceleration import CONTAINERS, AcceleratedProblem
from nonneg.solvers.alternating import SCHEDULE, AlternatingProblem, AlternatingState

# The inner passes of a row end when one changes it by at most this fraction of its first pass.
SHRINK = 0.1
# Inner passes may cost this fraction of the products with the data (Gillis & Glineur 2012: alpha, 0.5 there).
SHARE = 0.45
# However cheap they are, more passes than this change little.
MAX_PASSES = 60
# On a GPU products are cheaper beside passes than on a processor, and a pass over a small factor takes as
# long as its slowest row. Rows of a factor with this many entries take at most this many passes; factors that
# are smaller still take those that they take on a processor.
GPU_ENTRIES, GPU_PASSES = 20_000, 4


def inner_passes(data: DataMatrix, k: int, entries: float | None = None) -> tuple[int, int]:
    """Return how many passes over the rows of W and of Ht are worth one product with the data."""
    n_rows, n_columns = data.counted_rows(), data.shape[1]
    if entries is None:
        # Counted the same way for every container, so that all of them take the same steps; and with the
        # weights, so that a weight of two gives the steps of a row given twice.
        entries = float(data.count_nonzero())
        if data.weights is not None:
            _, (weighted,) = data.map_reduce_rows(_weighted_nonzeros, n_out=0)
            entries = weighted * n_rows / data.total_weight()

    gpu = on_gpu(data.to_device(np.zeros(1)))

    def passes(rows: float, other: float) -> int:
        wanted = 1 + SHARE * (entries / max(1, rows) + other * k / max(1, rows)) / k
        return min(GPU_PASSES if gpu and rows * k >= GPU_ENTRIES else MAX_PASSES, int(wanted))

    return passes(n_rows, n_columns), passes(n_columns, n_rows)


def _weighted_nonzeros(block: Any) -> tuple[tuple[()], tuple[float]]:
    xp, total = block.xp, 0.0
    if block.container == "sparse-array":
        return (), (block.weighted_nonzeros(),)
    if block.container == "sparse":
        stored = np.repeat(block.weights, np.diff(block.csr.indptr))
        return (), (float(stored @ (block.csr.data != 0)),)
    for start, stop in block.row_blocks(1 << 20):
        counts = xp.sum(xp.astype(block.dense_rows(start, stop) != 0, block.dtype), axis=1)
        total += float(xp.sum(counts * block.weights[start:stop]))
    return (), (total,)


def hals_problem(
    data: DataMatrix,
    k: int,
    *,
    penalties: Penalties,
    free: IntArray | None = None,
    variant: str = "extrapolated",
    **options: Any,
) -> AlternatingProblem:
    """Return the problem whose `step` is an iteration."""
    passes = (1, 1) if variant == "plain" else options.get("passes") or inner_passes(data, k)
    shrink = options.get("shrink", SHRINK)
    order = tuple(range(k))
    if (shuffle := options.get("shuffle")) is not None:
        order = tuple(int(a) for a in shuffle.permutation(k))
    frozen = set() if free is None else set(order).difference(int(a) for a in free)
    of_H = tuple(a for a in order if a not in frozen)
    return AlternatingProblem(
        data,
        CoordinateDescent(order, passes[0], shrink),
        FreeRows() if variant == "semi" else CoordinateDescent(of_H, passes[1], shrink),
        penalties,
    )


def hals(
    data: DataMatrix,
    W: SampleArray,
    Ht: Array,
    *,
    penalties: Penalties,
    beta: float = 2.0,
    max_iter: int = 200,
    tol: float = 1e-4,
    free: IntArray | None = None,
    variant: str = "extrapolated",
    accelerate: bool = True,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: Reporter | None = None,
    checkpoint: Checkpoint | None = None,
    **options: Any,
) -> Run[AlternatingState]:
    """Minimize 0.5 ||X - W H||^2 + penalties by coordinate descent on columns of the factors."""
    # An iteration costs two products with the data and some passes over the factors, 2 (n + m) k^2 each. Rows
    # stop on their own, so that no row depends on the chunk it is in.
    # Cichocki & Phan (2009), IEICE Trans. Fundamentals E92-A(3), Algorithm 2. Gillis & Glineur (2012), Neural
    # Computation 24(4). Ang & Gillis (2019), Neural Computation 31(2), Algorithm 3. "semi" leaves the sign of
    # H free (Ding, Li & Jordan 2010, IEEE PAMI 32(1)), here with exact rows.
    k = Ht.shape[1]
    problem = hals_problem(data, k, penalties=penalties, free=free, variant=variant, **options)
    step: Any = problem.step
    if variant == "semi":
        _, (gram, cross) = data.map_reduce_rows(_products, W, n_out=0)
        Ht, _ = problem.update_H(Ht, gram.plus_ridge(penalties.l2_H), cross)
    state = AlternatingState(W, Ht, momentum=0.0, signed=variant == "semi")
    if variant == "extrapolated":
        state = replace(state, momentum=SCHEDULE.initial)
    with single_threaded_blas():
        whole = variant == "extrapolated" and (free is None or len(free) == k)
        if accelerate and whole and data.container in CONTAINERS:
            faster = AcceleratedProblem(problem, k, inner_passes, max_iter=max_iter, tol=tol)
            step = faster.step if faster.pays else step
        return iterate(
            step,
            state,
            max_iter=max_iter,
            stop=least_squares_rule(tol),
            callback=callback,
            progress=progress,
            checkpoint=checkpoint,
        )


def _products(block: LocalMatrix, W: Array) -> tuple[tuple[()], tuple[Any, Any]]:
    return (), (block.column_grams(W), block.transposed_times(W))


# The algorithms it builds on, for benchmarks and the reproduced papers.
accelerated_hals = partial(hals, variant="accelerated")
plain_hals = partial(hals, variant="plain")
