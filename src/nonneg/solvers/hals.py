"""HALS for the Frobenius loss: extrapolated with restarts, and for semi-NMF."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import on_gpu
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.iteration import least_squares_rule
from nonneg.iteration.loop import solver
from nonneg.kernels.factor_update import CoordinateDescent
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import free_rows
from nonneg.losses.penalties import Penalties
from nonneg.solvers.acceleration import CONTAINERS, AcceleratedProblem
from nonneg.solvers.alternating import AlternatingProblem, AlternatingState
from nonneg.solvers.extrapolation import INITIAL

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
            weighted = data.reduce_rows(_weighted_nonzeros)
            entries = weighted * n_rows / data.total_weight()

    gpu = on_gpu(data.to_device(np.zeros(1)))

    def passes(rows: float, other: float) -> int:
        n_passes = 1 + SHARE * (entries / max(1, rows) + other * k / max(1, rows)) / k
        return min(GPU_PASSES if gpu and rows * k >= GPU_ENTRIES else MAX_PASSES, int(n_passes))

    return passes(n_rows, n_columns), passes(n_columns, n_rows)


def _weighted_nonzeros(block: LocalMatrix) -> float:
    return block.entry_sum(lambda values: block.xp.astype(values != 0, block.xp.float64))


@solver(least_squares_rule, limits=True)
def hals(
    data: DataMatrix,
    W: SampleArray,
    Ht: Array,
    *,
    penalties: Penalties,
    max_iter: int,
    tol: float,
    beta: float = 2.0,
    free: IntArray | None = None,
    signed: bool = False,
    accelerate: bool = True,
    shuffle: np.random.Generator | None = None,
    passes: tuple[int, int] | None = None,
    momentum: float = INITIAL,
) -> tuple[Any, AlternatingState]:
    """Minimize 0.5 ||X - W H||^2 + penalties by coordinate descent on columns of the factors.

    `signed` leaves the sign of H free; without `momentum` and with one of the `passes` it is plain HALS.
    """
    # An iteration costs two products with the data and some passes over the factors, 2 (n + m) k^2 each. Rows
    # stop on their own, so that no row depends on the chunk it is in.
    # Cichocki & Phan (2009), IEICE Trans. Fundamentals E92-A(3), Algorithm 2. Gillis & Glineur (2012), Neural
    # Computation 24(4). Ang & Gillis (2019), Neural Computation 31(2), Algorithm 3. With a free sign Ding, Li
    # & Jordan (2010), IEEE PAMI 32(1), here with exact rows.
    k = Ht.shape[1]
    order = tuple(range(k)) if shuffle is None else tuple(int(a) for a in shuffle.permutation(k))
    of_H = order if free is None else tuple(a for a in order if a in free)
    n_W, n_H = passes or inner_passes(data, k)
    update_H: Any = free_rows if signed else CoordinateDescent(of_H, n_H, SHRINK)
    problem = AlternatingProblem(data, CoordinateDescent(order, n_W, SHRINK), update_H, penalties)
    if signed:
        momentum = 0.0
        gram = SharedGram(data.weighted_gram(W)).plus_ridge(penalties.l2_H)
        Ht, _ = update_H(Ht, gram, data.transposed_times(W))
    state = AlternatingState(W, Ht, momentum=momentum, signed=signed)
    accelerate = accelerate and not penalties.smooth
    if accelerate and momentum and len(of_H) == k and data.container in CONTAINERS:
        faster = AcceleratedProblem(problem, k, inner_passes, max_iter=max_iter, tol=tol)
        if faster.levels:
            return faster.step, state
    return problem.step, state
