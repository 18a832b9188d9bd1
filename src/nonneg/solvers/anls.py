"""Alternating nonnegative least squares: each factor solved exactly, by block pivoting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nonneg._blas import single_threaded_blas
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data import DataMatrix
from nonneg.iteration import Checkpoint, Run, iterate, least_squares_rule
from nonneg.iteration.progress import Progress, Reporter
from nonneg.leastsquares import ExactRows
from nonneg.losses.penalties import Penalties
from nonneg.solvers.alternating import SCHEDULE, AlternatingProblem, AlternatingState


def anls(
    data: DataMatrix,
    W: SampleArray,
    Ht: Array,
    *,
    penalties: Penalties,
    beta: float = 2.0,
    max_iter: int = 200,
    tol: float = 1e-4,
    free: IntArray | None = None,
    momentum: float = SCHEDULE.initial,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: Reporter | None = None,
    checkpoint: Checkpoint | None = None,
    **options: Any,
) -> Run[AlternatingState]:
    """Minimize 0.5 ||X - W H||^2 + penalties over one factor at a time, exactly."""
    # An iteration costs two products with the data and O(k^3) per row and exchange of supports. It pays on
    # tall, narrow data, where the products are cheap and coordinate descent converges slowly.
    # Kim & Park (2011), SIAM J. Sci. Comput. 33(6), Algorithm 2.
    k = Ht.shape[1]
    free_set = tuple(range(k)) if free is None else tuple(int(a) for a in free)
    problem = AlternatingProblem(data, ExactRows(), ExactRows(free_set), penalties)
    with single_threaded_blas():
        return iterate(
            problem.step,
            AlternatingState(W, Ht, momentum=momentum),
            max_iter=max_iter,
            stop=least_squares_rule(tol),
            callback=callback,
            progress=progress,
            checkpoint=checkpoint,
        )
