"""Fully corrective steps: solve over a working set of rows, then scan all points for violated constraints.

The problem is that of the paper before smoothing, ``0.5 ||X - XC||^2 + lam sum_n max_l c_nl``. Its dual is

    maximize  sum_l (t_l - r_l'x_l - 0.5 r_l'r_l)   subject to   sum_l max(0, t_l - x_n'r_l) <= lam for all n,

so that any residuals R and levels t that meet the constraints bound the minimum from below. The points that
violate theirs enter the working set; where none does, the solution over the working set solves the problem.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace
from array_api_compat import device as device_of
from array_api_compat import numpy as array_api_numpy

from nonneg._arrays import is_cuda_tensor, numpy_dtype, to_device, to_float64
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.exceptions import NonnegWarning
from nonneg.iteration import History
from nonneg.iteration.loop import Stalled
from nonneg.kernels.dual_constraints import constraint_sums
from nonneg.kernels.self_dictionary.types import Dictionary
from nonneg.kernels.sparse_columns import columns_of
from nonneg.separable.merit.problem import FrankWolfeIterate, SelfDictionary
from nonneg.separable.merit.restricted import (
    RestrictedBounds,
    RestrictedProblem,
    Splitting,
    first_rho,
    normalized,
)

# Entries of the points and of the scores that are dense at a time.
ENTRIES = 1 << 22
# The restricted problem is solved to this share of the gap that is left, and of the one that is wanted.
INNER, LAST = 0.1, 0.3
# A row of zeros stays in the working set where its constraint is this close to being active.
KEPT = 0.9
# Single precision changes scores by about this share of the squared norms.
ROUNDING = 1e-6
MANY_POINTS = 2000
# The lower bound corrects the levels for violated constraints one after another, up to this number of them.
CORRECTED = 2048
# Largest size in bytes of the six arrays of ADMM: in host memory, and on a GPU.
HOST_LIMIT, GPU_LIMIT = float(16 << 30), float(64 << 30)


@dataclass(frozen=True)
class WorkingSetIterate:
    """A working set, the solution over it, and bounds on the minimum; flat, so that it can be saved."""

    rows: IntArray  # the working set
    split: Array  # the variables of ADMM, as in `Splitting`
    dual: Array
    caps: Array
    rho: float
    sums: FloatArray  # left sides of the dual constraints at the last scan
    row_bounds: FloatArray  # upper bounds on the row maxima of every solution
    loss: float = math.inf  # the objective
    lower: float = 0.0  # the best lower bound: the minimum is not negative
    largest_residual: float = math.inf
    anchors: IntArray | None = None  # the rows with the largest maxima, where `anchor_window` needs them

    @property
    def gap(self) -> float:
        """The duality gap."""
        return self.loss - self.lower

    @property
    def weights(self) -> Array:
        """The coefficients of the working set, whose columns sum to one."""
        return normalized(self.split)

    @property
    def row_maxima(self) -> FloatArray:
        """The largest coefficient of every data point."""
        maxima = np.zeros(len(self.sums))
        xp = array_namespace(self.split)
        maxima[self.rows] = to_float64(xp.max(self.weights, axis=1))
        return maxima

    @property
    def row_max(self) -> FloatArray:
        """The same as `row_maxima`, under the name that Frank-Wolfe iterates use."""
        return self.row_maxima


@dataclass(frozen=True)
class RelativeGap:
    """Stop when the duality gap is at most a fraction of the objective."""

    tol: float
    sentence: ClassVar[str] = "the duality gap is at most `tol` times the objective"

    def __call__(self, history: History) -> bool:
        return len(history) > 0 and bool(history["gap"][-1] <= self.tol * history["loss"][-1])


class FullyCorrective:
    """The steps of the working set method on one problem."""

    def __init__(self, problem: SelfDictionary, tol: float) -> None:
        self.lam, self.tol = problem.lam, tol
        self.points = CenteredPoints(problem.dictionary)
        self.square = self.points.square
        # Single precision is enough where its errors are far below the gap that is wanted: the objective is
        # not below lam, because the row maxima sum to one at least. Few points take no time in any case.
        coarse = self.points.n >= MANY_POINTS and tol * self.lam > ROUNDING * self.square
        xp = self.points.xp
        self.dtype = xp.float32 if coarse else xp.float64
        self.limit = GPU_LIMIT if is_cuda_tensor(problem.dictionary.points) else HOST_LIMIT

    def initial_iterate(self, rows: IntArray, coefficients: Any = None) -> WorkingSetIterate:
        """Begin with a working set, whose rows share the weight, or with coefficients."""
        points, xp, n = self.points, self.points.xp, self.points.n
        if coefficients is None:
            dense = xp.full((len(rows), n), 1.0 / len(rows), dtype=self.dtype, device=points.device)
        else:
            dense = points.to_device(sp.csr_array(coefficients)[rows].toarray().astype(np.float64))
            dense = xp.astype(dense, self.dtype)
        begin = Splitting.of(dense, first_rho(to_float64(points.rows(rows))))
        return WorkingSetIterate(
            rows, begin.split, begin.dual, begin.caps, begin.rho, np.zeros(n), np.ones(n)
        )

    def step(self, state: WorkingSetIterate) -> tuple[WorkingSetIterate, Mapping[str, Any]]:
        """Extend the working set, solve over it, and bound the minimum."""
        rows, splitting = self._working_set(state)
        cross = self.points.cross(rows, self.dtype)
        restricted = RestrictedProblem(to_float64(self.points.rows(rows)), cross, self.square, self.lam)
        share = state.gap / state.loss if math.isfinite(state.loss) else 1.0
        inner = max(LAST * self.tol, INNER * min(share, 0.5))

        def enough(bounds: RestrictedBounds) -> bool:
            # The objective decreases: coefficients of the last working set are still feasible.
            return bounds.upper - bounds.lower <= inner * bounds.upper and bounds.upper < state.loss

        splitting, n_inner = restricted.solve(splitting, enough)
        del cross, restricted
        new = replace(
            state,
            rows=rows,
            split=splitting.split,
            dual=splitting.dual,
            caps=splitting.caps,
            rho=splitting.rho,
        )
        new = self._bounded(new, state.loss)
        if not new.loss < state.loss:
            # The same coefficients, with the better of the bounds.
            if new.lower <= state.lower:
                raise Stalled
            new = replace(state, lower=new.lower, sums=new.sums, row_bounds=new.row_bounds)
        measures = {
            "loss": new.loss,
            "gap": new.gap,
            "largest_residual": new.largest_residual,
            "working_set": len(rows),
            "inner_iterations": n_inner,
        }
        return new, measures

    def as_frank_wolfe(self, state: WorkingSetIterate) -> FrankWolfeIterate:
        """Return the coefficients as lists, with duality gap and objective."""
        weights, n = state.weights, self.points.n
        parts = []
        for some in self.points.blocks(len(state.rows)):
            part = to_float64(weights[:, some])
            parts.append(sp.csc_array(part / part.sum(axis=0)))
        kept = sp.hstack(parts, format="csc")
        columns = columns_of(sp.csc_array((kept.data, state.rows[kept.indices], kept.indptr), shape=(n, n)))
        counts = np.bincount(state.rows[kept.indices], minlength=n)
        return FrankWolfeIterate(
            rows=columns.rows,
            weights=columns.weights,
            counts=columns.counts,
            total=columns.total,
            row_max=state.row_maxima,
            row_count=counts,
            residual=self._residual(state.rows, weights),
            gap=state.gap,
            loss=state.loss,
            largest_residual=state.largest_residual,
        )

    def _working_set(self, state: WorkingSetIterate) -> tuple[IntArray, Splitting]:
        splitting = Splitting(state.split, state.dual, state.caps, state.rho)
        if math.isinf(state.loss):
            return state.rows, splitting
        sums = state.sums
        maxima = state.row_maxima[state.rows]
        kept = (maxima > 0) | (sums[state.rows] > KEPT * self.lam)
        inside = np.zeros(len(sums), dtype=bool)
        inside[state.rows[kept]] = True
        violated = np.flatnonzero((sums > self.lam) & ~inside)
        order = violated[np.argsort(-sums[violated], kind="stable")]
        # As many again as there are: the size of the working set doubles at most.
        new = order[: max(32, int(np.sum(maxima > 0)))]
        rows = np.concatenate([state.rows[kept], new])
        size = 6.0 * np.dtype(numpy_dtype(self.dtype)).itemsize * len(rows) * len(sums)
        if size > self.limit:
            share = 100.0 * state.gap / state.loss
            warnings.warn(
                f"MERIT stops at a duality gap of {share:.2g}% of the objective: a working set of "
                f"{len(rows)} rows needs {1e-9 * size:.0f} GB. A larger lam makes it smaller.",
                NonnegWarning,
                stacklevel=2,
            )
            raise Stalled
        return rows, splitting.rows(kept, len(new))

    def _residual(self, rows: IntArray, weights: Array) -> Array:
        points = self.points
        base = points.rows(rows)
        weights = points.to_device(weights)
        out = points.xp.empty(points.shape, dtype=points.xp.float64, device=points.device)
        for some in points.blocks(len(rows) + points.shape[1]):
            part = points.xp.astype(weights[:, some], points.xp.float64)
            part = part / points.xp.sum(part, axis=0)
            out[some, ...] = part.T @ base - points.tile(some.start, some.stop)
        return out

    def _bounded(self, state: WorkingSetIterate, before: float) -> WorkingSetIterate:
        # Objective and lower bound in float64. The levels are the lowest scores of the working set with the
        # dual variable of ADMM as the share of each entry in the penalty.
        points, xp, lam = self.points, self.points.xp, self.lam
        weights = state.weights
        residual = self._residual(state.rows, weights)
        squares = xp.sum(residual * residual, axis=1)
        fit = 0.5 * float(xp.sum(squares))
        loss = fit + lam * float(xp.sum(xp.astype(xp.max(weights, axis=1), xp.float64)))
        base = points.rows(state.rows)
        levels = xp.empty(points.n, dtype=xp.float64, device=points.device)
        own = 0.0
        for some in points.blocks(len(state.rows) + points.shape[1]):
            shares = xp.clip(xp.astype(state.dual[:, some], xp.float64), 0.0, None)
            levels[some] = xp.min(base @ residual[some, ...].T + state.rho * shares, axis=0)
            own += float(xp.sum(residual[some, ...] * points.tile(some.start, some.stop)))
        sums = constraint_sums(points.tile, points.n, points.radius, residual, levels)
        total, largest = float(xp.sum(levels)) - own, float(sums.max())
        # Scaled residuals and levels meet the constraints.
        scale = lam / largest if largest > lam else 1.0
        bound, feasible = scale * total - scale * scale * fit, scale * sums
        violated = np.flatnonzero(sums > lam)
        if 0 < len(violated) <= CORRECTED:
            order = violated[np.argsort(-sums[violated], kind="stable")]
            corrected = total - self._corrected(residual, levels, order) - fit
            if corrected > bound:
                bound, feasible = corrected, np.minimum(sums, lam)
        return replace(
            state,
            sums=sums,
            row_bounds=np.minimum(state.row_bounds, _row_bounds(min(loss, before) - bound, lam - feasible)),
            loss=loss,
            lower=max(bound, state.lower),
            largest_residual=math.sqrt(float(xp.max(squares))),
        )

    def _corrected(self, residual: Array, levels: Array, order: IntArray) -> float:
        # By how much the sum of the levels decreases when each violated constraint in turn scales down the
        # positive parts of its scores until it is met. Lower levels violate no other constraint.
        points, xp = self.points, self.points.xp
        step = max(1, ENTRIES // points.n)
        lowered = levels
        for first in range(0, len(order), step):
            scores = points.rows(order[first : first + step]) @ residual.T
            for row in range(scores.shape[0]):
                above = xp.clip(lowered - scores[row, :], 0.0, None)
                whole = xp.sum(above)
                share = 1.0 - self.lam / xp.clip(whole, self.lam, None)
                lowered = lowered - share * above
        return float(xp.sum(levels - lowered))


def _row_bounds(gap: float, slack: FloatArray) -> FloatArray:
    # At a dual feasible point with the bound D, F(C) - D >= sum_n slack_n max_l c_nl for all C. So the row
    # maximum of a solution is not above the gap over the slack.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(slack > 0, max(gap, 0.0) / slack, 1.0)


class CenteredPoints:
    """The data points relative to their center, dense in float64, one block at a time."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.points, self.center, self.radius = dictionary.points, dictionary.center, dictionary.radius
        self.shape = dictionary.points.shape
        self.n = self.shape[0]
        self.sparse = sp.issparse(dictionary.points)
        self.xp: Any = array_api_numpy if self.sparse else array_namespace(dictionary.points)
        self.device = None if self.sparse else device_of(dictionary.points)
        self.square = sum(
            float(self.xp.sum(part * part))
            for part in (self.tile(some.start, some.stop) for some in self.blocks(self.shape[1]))
        )

    def tile(self, start: int, stop: int) -> Array:
        """Return a range of points."""
        part = self.points[start:stop] if self.sparse else self.points[start:stop, ...]
        return self.xp.astype(part.toarray() if self.sparse else part, self.xp.float64) - self.center

    def rows(self, index: IntArray) -> Array:
        """Return some points."""
        if self.sparse:
            return self.points[index].toarray().astype(np.float64) - self.center
        part = self.xp.take(self.points, to_device(np.asarray(index, dtype=np.int64), self.points), axis=0)
        return self.xp.astype(part, self.xp.float64) - self.center

    def to_device(self, array: Any) -> Array:
        """Move an array to the device of the points."""
        return array if self.sparse else to_device(array, self.points)

    def blocks(self, width: int) -> list[slice]:
        """Return ranges of the points, given how many numbers each of them needs at a time."""
        step = max(1, ENTRIES // max(1, width))
        return [slice(start, min(start + step, self.n)) for start in range(0, self.n, step)]

    def cross(self, index: IntArray, dtype: Any) -> Array:
        """Return inner products of some points with all."""
        rows, xp = self.rows(index), self.xp
        out = xp.empty((len(index), self.n), dtype=dtype, device=self.device)
        for some in self.blocks(len(index) + self.shape[1]):
            out[:, some] = xp.astype(rows @ self.tile(some.start, some.stop).T, dtype)
        return out
