"""Alternating nonnegative least squares: each factor solved exactly, by block pivoting."""

from __future__ import annotations

from typing import Any

from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data import DataMatrix
from nonneg.iteration import least_squares_rule
from nonneg.iteration.loop import solver
from nonneg.kernels.factor_update import CoordinateDescent, Update
from nonneg.leastsquares import exact_rows
from nonneg.losses.penalties import Penalties
from nonneg.solvers.alternating import AlternatingProblem, AlternatingState
from nonneg.solvers.extrapolation import INITIAL

# Passes over the free components of H, and the change by one, relative to the first, after which they end.
MAX_PASSES, SHRINK = 60, 0.01


@solver(least_squares_rule)
def anls(
    data: DataMatrix,
    W: SampleArray,
    Ht: Array,
    *,
    penalties: Penalties,
    beta: float = 2.0,
    free: IntArray | None = None,
    momentum: float = INITIAL,
) -> tuple[Any, AlternatingState]:
    """Minimize 0.5 ||X - W H||^2 + penalties over one factor at a time, exactly."""
    # An iteration costs two products with the data and O(k^3) per row and exchange of supports. It pays on
    # tall, narrow data, where the products are cheap and coordinate descent converges slowly.
    # Kim & Park (2011), SIAM J. Sci. Comput. 33(6), Algorithm 2.
    update_H: Update = exact_rows
    if free is not None:
        # Beside frozen components the others are descended on: few of them are solved soon.
        update_H = CoordinateDescent(tuple(int(a) for a in free), MAX_PASSES, SHRINK)
    problem = AlternatingProblem(data, exact_rows, update_H, penalties)
    return problem.step, AlternatingState(W, Ht, momentum=momentum)
