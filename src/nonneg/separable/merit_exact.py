"""MERIT solved to a duality gap: fully corrective steps over a working set of rows.

The problem is that of the paper before smoothing, ``0.5 ||X - XC||^2 + lam sum_n max_l c_nl``. Its dual is

    maximize  sum_l (t_l - r_l'x_l - 0.5 r_l'r_l)   subject to   sum_l max(0, t_l - x_n'r_l) <= lam for all n,

so that any residuals R and levels t that meet the constraints bound the minimum from below. The points that
violate theirs enter the working set; where none does, the solution over the working set solves the problem.

The weight needs no constant: ``lam = ||X - W H||^2 / (2 K)``, with the K anchors of successive projections as
W and the best mixtures of them as H, is where both terms of the objective are equal at that factorization. It
scales with the square of X, so that the anchors do not depend on the units of X.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import numpy_dtype, to_device, to_float64
from nonneg._threads import parallel_for
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.certificates.certificate import Certificate
from nonneg.data import DataMatrix
from nonneg.data.fingerprint import fingerprint
from nonneg.exceptions import InvalidParameterError, NonnegWarning
from nonneg.iteration import Checkpoint, Progress, iterate
from nonneg.iteration.loop import Stalled
from nonneg.iteration.progress import reporter
from nonneg.kernels.row_caps import cap_rows
from nonneg.kernels.rows import ranges
from nonneg.kernels.self_dictionary import ENTRIES, Dictionary, constraint_sums
from nonneg.separable.certificate import conditioning_statement, duality_gap_statement, support_statement
from nonneg.separable.merit import GapBelow, check_points, dictionary_of, greedy_anchors, largest_rows
from nonneg.separable.preprocessing import rows_of
from nonneg.separable.result import SelectionResult
from nonneg.separable.weights import squared_residuals

# The restricted problem is solved to this share of the gap that is left, and of the one that is wanted: its
# error is then an order below what the next scan can tell.
INNER, LAST = 0.1, 0.3
# A row of zeros stays in the working set where its constraint is this close to being active.
NEARLY_ACTIVE = 0.9
# The lower bound corrects the levels for violated constraints one after another, up to this number of them.
CORRECTED = 2048
# Largest size in bytes of the arrays of ADMM.
MEMORY_LIMIT = float(16 << 30)
# Over-relaxation of 1.5 to 1.8 works well; rho is balanced for some iterations and then fixed, with which
# ADMM converges (Boyd et al. 2011, sections 3.4.3 and 3.4.1).
RELAX, BALANCED, MOST_ITERATIONS = 1.7, 200, 1000
# Bounds are computed after this number of iterations: a computation costs about two iterations.
CHECK = 10
ENDED = "the duality gap is at most `tol` times the objective"
# Columns that a product takes at a time, whatever the number of threads.
COLUMNS = 1024


def merit_exact(
    data: DataMatrix,
    n_components: int,
    *,
    lam: float | str = "auto",
    n_explained: int | None = None,
    max_iter: int = 100,
    tol: float = 0.01,
    init: Any = None,
    callback: Callable[[Progress], bool | None] | None = None,
    verbose: int = 0,
    checkpoint: Any = None,
) -> SelectionResult:
    """Solve the problem of MERIT without smoothing, and select the samples with the largest weights.

    Parameters besides those of `select_anchors`:

    lam : float or "auto", default "auto"
        Weight of the row sparsity, positive. "auto" is ``||X - W H||^2 / (2 K)``, see the module.
    n_explained : int, optional
        The number of samples that C writes as mixtures, evenly spaced over the rows; all by default. All
        samples may become anchors. Work and memory are proportional to it.
    max_iter : int, default 100
        Maximum number of working sets.
    tol : float, default 0.01
        Stop at a duality gap of at most this fraction of the objective.
    init : None or array of int
        Anchors, the first working set; those of SPA by default.

    The coefficients of the result are None where `n_explained` leaves samples out. An iteration is one scan
    of 2 N L M operations for N points, L of them explained, and, for a working set of s rows, 2 s^2 L
    operations for each of the inner iterations (ADMM). The memory is that of six s x L matrices.
    """
    check_points(data)
    n = data.shape[0]
    explained: IntArray = np.arange(n)
    if n_explained is not None and n_explained < n:
        explained = evenly_spaced(n, n_explained)
    columns = data if len(explained) == n else rows_of(data, explained)
    first = greedy_anchors(data, n_components) if init is None else np.asarray(init)
    if isinstance(lam, str):
        W = to_float64(data.take_rows(first))
        square = float(np.sum(squared_residuals(columns, W)))
        # Without noise any small weight gives the same anchors: one that single precision can resolve.
        floor = float(np.finfo(np.float32).eps) * columns.squared_norm()
        lam = max(square, floor) / (2.0 * n_components)
    elif not lam > 0:
        raise InvalidParameterError(
            "method='merit-exact' needs lam above 0: without the penalty every sample represents itself."
        )
    solver = WorkingSets(dictionary_of(data), dictionary_of(columns), float(lam), float(tol))
    initial = solver.initial_iterate(first)
    saved = Checkpoint.of(
        checkpoint,
        *("merit-exact", [solver.lam, tol, len(explained)], n_components, data.container),
        *(partial(fingerprint, data), initial.rows, initial.split),
        from_numpy=lambda name, array: (
            solver.points.to_device(array) if name in ("split", "dual", "caps") else array
        ),
    )
    run = iterate(
        solver.step,
        initial,
        max_iter=max_iter,
        stop=GapBelow(float(tol), relative=True, sentence=ENDED),
        callback=callback,
        progress=reporter("anchors by merit-exact", verbose),
        checkpoint=saved,
    )
    state = run.state
    maxima = state.row_maxima
    anchors = largest_rows(maxima, n_components)
    coefficients = solver.coefficients(state)
    statements = [duality_gap_statement(state.loss, state.gap)]
    if len(anchors):
        if len(explained) < n:
            sentence = f"{statements[0].sentence} It explains {len(explained)} of the {n} samples."
            statements = [replace(statements[0], sentence=sentence)]
        statements.append(conditioning_statement(to_float64(data.take_rows(anchors))))
        if len(explained) == n:
            statements.append(support_statement(coefficients, anchors))
    return SelectionResult(
        anchors=anchors,
        method="merit-exact",
        coefficients=coefficients.astype(numpy_dtype(data.dtype)) if len(explained) == n else None,
        gap=state.gap,
        history=run.history,
        certificate=Certificate(tuple(statements)),
        scores=maxima[anchors],
        row_maxima=maxima,
        lam=solver.lam,
        mu=0.0,
        objective=state.loss,
        n_iter=run.n_iter,
        stop_reason=run.stop_reason,
        stop_sentence=run.sentence,
        details={"working_set": len(state.rows), "n_explained": len(explained)}
        | {"largest_residual": state.largest_residual},
    )


def evenly_spaced(n: int, most: int) -> IntArray:
    """Return up to `most` indices of n, evenly spaced."""
    return np.arange(0, n, -(-n // most))


@dataclass(frozen=True)
class WorkingSetIterate:
    """A working set, the solution over it, and bounds on the minimum; flat, so that it can be saved."""

    rows: IntArray  # the working set
    split: Array  # the variables of ADMM, as in `Splitting`
    dual: Array
    caps: Array
    rho: float
    sums: FloatArray  # left sides of the dual constraints at the last scan
    loss: float = math.inf  # the objective
    lower: float = 0.0  # the best lower bound: the minimum is not negative
    largest_residual: float = math.inf

    @property
    def gap(self) -> float:
        """The duality gap."""
        return self.loss - self.lower

    @property
    def row_maxima(self) -> FloatArray:
        """The largest coefficient of every data point."""
        maxima = np.zeros(len(self.sums))
        maxima[self.rows] = to_float64(array_namespace(self.split).max(normalized(self.split), axis=1))
        return maxima


class WorkingSets:
    """The steps of the working set method on one problem."""

    def __init__(self, points: Dictionary, columns: Dictionary, lam: float, tol: float) -> None:
        # Both relative to the same center: mixtures whose weights sum to one do not depend on it.
        self.points, self.columns = points, replace(columns, center=points.center)
        self.lam, self.tol = lam, tol
        self.xp: Any = points.xp
        self.square = sum(float(self.xp.sum(part * part)) for part in self.columns.tiles())
        # Single precision is enough where its errors are far below the gap that is wanted: the objective is
        # not below lam, because the row maxima sum to one at least.
        coarse = tol * lam > 8.0 * float(np.finfo(np.float32).eps) * self.square
        coarse = coarse and 1e-12 < self.square < 1e12  # products neither overflow nor vanish
        self.dtype = self.xp.float32 if coarse else self.xp.float64

    def initial_iterate(self, rows: IntArray) -> WorkingSetIterate:
        """Begin with a working set, whose rows share the weight."""
        shape = (len(rows), self.columns.shape[0])
        dense = self.xp.full(shape, 1.0 / len(rows), dtype=self.dtype, device=self.points.device)
        points = to_float64(self.points.rows(rows))
        # The mean diagonal of the Gram matrix: the unit of the quadratic part.
        rho = max(float(np.sum(points * points)) / len(points), 1e-300)
        begin = Splitting(dense, self.xp.zeros_like(dense), self.xp.max(dense, axis=1), rho)
        sums = np.zeros(self.points.shape[0])
        return WorkingSetIterate(rows, begin.split, begin.dual, begin.caps, rho, sums)

    def step(self, state: WorkingSetIterate) -> tuple[WorkingSetIterate, Mapping[str, Any]]:
        """Extend the working set, solve over it, and bound the minimum."""
        rows, splitting = self._working_set(state)
        base = to_float64(self.points.rows(rows))
        restricted = RestrictedProblem(base, self._cross(rows), self.square, self.lam)
        share = state.gap / state.loss if math.isfinite(state.loss) else 1.0
        inner = max(LAST * self.tol, INNER * min(share, 0.5))

        def enough(upper: float, lower: float) -> bool:
            # The objective decreases: coefficients of the last working set are still feasible.
            return upper - lower <= inner * upper and upper < state.loss

        splitting, n_inner = restricted.solve(splitting, enough)
        del restricted
        new = self._bounded(replace(state, rows=rows, **vars(splitting)))
        if not new.loss < state.loss:
            # The same coefficients, with the better of the bounds.
            if new.lower <= state.lower:
                raise Stalled
            new = replace(state, lower=new.lower, sums=new.sums)
        measures = {
            "loss": new.loss,
            "gap": new.gap,
            "largest_residual": new.largest_residual,
            "working_set": len(rows),
            "inner_iterations": n_inner,
        }
        return new, measures

    def coefficients(self, state: WorkingSetIterate) -> Any:
        """Return C with one column per sample that is explained."""
        parts = []
        for part in self.columns.blocks(len(state.rows)):
            parts.append(sp.csc_array(normalized(to_float64(state.split[:, part]).astype(np.float64))))
        stacked = sp.hstack(parts, format="csc")
        shape = (self.points.shape[0], self.columns.shape[0])
        return sp.csc_array((stacked.data, state.rows[stacked.indices], stacked.indptr), shape=shape)

    def _working_set(self, state: WorkingSetIterate) -> tuple[IntArray, Splitting]:
        splitting = Splitting(state.split, state.dual, state.caps, state.rho)
        if math.isinf(state.loss):
            return state.rows, splitting
        sums, maxima = state.sums, state.row_maxima[state.rows]
        stays = (maxima > 0) | (sums[state.rows] > NEARLY_ACTIVE * self.lam)
        inside = np.zeros(len(sums), dtype=bool)
        inside[state.rows[stays]] = True
        violated = np.flatnonzero((sums > self.lam) & ~inside)
        order = violated[np.argsort(-sums[violated], kind="stable")]
        # As many again as there are: the size of the working set doubles at most.
        new = order[: max(32, int(np.sum(maxima > 0)))]
        rows = np.concatenate([state.rows[stays], new])
        size = 6.0 * np.dtype(numpy_dtype(self.dtype)).itemsize * len(rows) * self.columns.shape[0]
        if size > MEMORY_LIMIT:
            share = 100.0 * state.gap / state.loss
            warnings.warn(
                f"MERIT stops at a duality gap of {share:.2g}% of the objective: a working set of "
                f"{len(rows)} rows needs {1e-9 * size:.0f} GB. A smaller n_explained or a larger lam makes "
                "it smaller.",
                NonnegWarning,
                stacklevel=2,
            )
            raise Stalled
        return rows, splitting.rows(stays, len(new))

    def _cross(self, rows: IntArray) -> Array:
        base, xp = self.points.rows(rows), self.xp
        shape = (len(rows), self.columns.shape[0])
        out = xp.empty(shape, dtype=self.dtype, device=self.points.device)
        for part in self.columns.blocks(len(rows) + self.columns.shape[1]):
            out[:, part] = xp.astype(base @ self.columns.tile(part.start, part.stop).T, self.dtype)
        return out

    def _residual(self, rows: IntArray, split: Array) -> tuple[Array, Array]:
        # The residuals and the row maxima of the coefficients, in float64.
        columns, xp = self.columns, self.xp
        base = self.points.rows(rows)
        out = xp.empty(columns.shape, dtype=xp.float64, device=columns.device)
        tops = xp.zeros(len(rows), dtype=xp.float64, device=columns.device)
        for block in columns.blocks(len(rows) + columns.shape[1]):
            part = normalized(xp.astype(split[:, block], xp.float64))
            out[block, ...] = part.T @ base - columns.tile(block.start, block.stop)
            tops = xp.maximum(tops, xp.max(part, axis=1))
        return out, tops

    def _bounded(self, state: WorkingSetIterate) -> WorkingSetIterate:
        # Objective and lower bound in float64. The levels are the lowest scores of the working set with the
        # dual variable of ADMM as the share of each entry in the penalty.
        columns, xp, lam = self.columns, self.xp, self.lam
        residual, tops = self._residual(state.rows, state.split)
        squares = xp.sum(residual * residual, axis=1)
        fit = 0.5 * float(xp.sum(squares))
        loss = fit + lam * float(xp.sum(tops))
        base = self.points.rows(state.rows)
        levels = xp.empty(columns.shape[0], dtype=xp.float64, device=columns.device)
        own = 0.0
        for part in columns.blocks(len(state.rows) + columns.shape[1]):
            dual = xp.clip(xp.astype(state.dual[:, part], xp.float64), 0.0, None)
            levels[part] = xp.min(base @ residual[part, ...].T + state.rho * dual, axis=0)
            own += float(xp.sum(residual[part, ...] * columns.tile(part.start, part.stop)))
        sums = constraint_sums(self.points, residual, levels)
        total, largest = float(xp.sum(levels)) - own, float(sums.max())
        # Scaled residuals and levels meet the constraints.
        scale = lam / largest if largest > lam else 1.0
        bound = scale * total - scale * scale * fit
        violated = np.flatnonzero(sums > lam)
        if 0 < len(violated) <= CORRECTED:
            order = violated[np.argsort(-sums[violated], kind="stable")]
            bound = max(bound, total - self._corrected(residual, levels, order) - fit)
        return replace(
            state,
            sums=sums,
            loss=loss,
            lower=max(bound, state.lower),
            largest_residual=math.sqrt(float(xp.max(squares))),
        )

    def _corrected(self, residual: Array, levels: Array, order: IntArray) -> float:
        # By how much the sum of the levels decreases when each violated constraint in turn scales down the
        # positive parts of its scores until it is met. Lower levels violate no other constraint.
        xp = self.xp
        step = max(1, ENTRIES // len(levels))
        lowered = levels
        for first in range(0, len(order), step):
            scores = self.points.rows(order[first : first + step]) @ residual.T
            for row in range(scores.shape[0]):
                above = xp.clip(lowered - scores[row, :], 0.0, None)
                share = 1.0 - self.lam / xp.clip(xp.sum(above), self.lam, None)
                lowered = lowered - share * above
        return float(xp.sum(levels - lowered))


@dataclass(frozen=True)
class Splitting:
    """State of ADMM: the variables, with which the next solution begins."""

    split: Array  # Z: nonnegative, with capped rows
    dual: Array  # U, the scaled dual variable
    caps: Array  # the caps of the rows
    rho: float

    def rows(self, stays: Any, n_new: int) -> Splitting:
        """Return the splitting with some of its rows and new rows of zeros at the end."""
        xp = array_namespace(self.split)
        index = to_device(np.flatnonzero(stays), self.split)

        def extended(array: Array) -> Array:
            old = xp.take(array, index, axis=0)
            shape = (n_new, *array.shape[1:])
            return xp.concat([old, xp.zeros(shape, dtype=array.dtype, device=array.device)], axis=0)

        return Splitting(extended(self.split), extended(self.dual), extended(self.caps), self.rho)


@dataclass(frozen=True)
class Projection:
    """The matrix of the first variable of ADMM: dense, or I - QQ'."""

    matrix: Array
    thin: bool  # whether `matrix` is Q

    def times(self, array: Array) -> Array:
        """Multiply from the left."""
        return array - self.matrix @ (self.matrix.T @ array) if self.thin else self.matrix @ array


class RestrictedProblem:
    """The problem over the rows of a working set, solved by ADMM in Gram form.

    One variable of the splitting has columns that sum to one and minimizes the quadratic part, with one small
    matrix for all columns; the other has nonnegative entries and capped rows (`kernels.row_caps`). Boyd,
    Parikh, Chu, Peleato & Eckstein, "Distributed optimization and statistical learning via the alternating
    direction method of multipliers" (2011), sections 3.3, 3.4 and 4.2.4.
    """

    def __init__(self, rows: FloatArray, cross: Array, square: float, lam: float) -> None:
        # `rows` are the points X_S in float64 on the host, `cross` is X_S X' in the dtype of the iterations,
        # `square` the squared norm of X; all relative to the center.
        self.rows, self.cross, self.square, self.lam = rows, cross, square, lam
        self.xp: Any = array_namespace(cross)
        s, m = rows.shape
        # Products with two thin matrices take fewer operations than with one that is s x s.
        self.thin = 2 * (m + 1) < s
        self._left = self._in_dtype(rows if self.thin else rows @ rows.T)

    def solve(self, begin: Splitting, enough: Callable[[float, float], bool]) -> tuple[Splitting, int]:
        """Iterate until the bounds are good enough; return the splitting and the number of iterations."""
        xp, rho = self.xp, begin.rho
        split, dual, caps = (xp.asarray(array, copy=True) for array in (begin.split, begin.dual, begin.caps))
        matrix, offset = self._factored(rho)
        product, difference = xp.empty_like(split), split - dual
        for n_iter in range(1, MOST_ITERATIONS + 1):
            self._times(matrix, difference, product)
            primal, change, size, dual_size = cap_rows(
                offset, product, split, dual, caps, relax=RELAX, tau=self.lam / rho
            )
            product, difference = difference, product
            if n_iter % CHECK:
                continue
            if enough(*self.bounds(split, dual, rho)):
                return Splitting(split, dual, caps, rho), n_iter
            if n_iter < BALANCED:
                # Both residuals are squared and relative.
                ratio = primal * dual_size / max(change * size, 1e-300)
                factor = float(np.clip(ratio**0.25, 0.2, 5.0))
                if not 0.5 < factor < 2.0:
                    rho *= factor
                    dual /= factor
                    matrix, offset = self._factored(rho)
                    difference = split - dual
        return Splitting(split, dual, caps, rho), MOST_ITERATIONS

    def bounds(self, split: Array, dual: Array, rho: float) -> tuple[float, float]:
        """Bound the minimum from above and below by the current iterate, up to rounding."""
        xp = self.xp

        def work(start: int, stop: int) -> list[tuple[Any, ...]]:
            return [self._part(split, dual, rho, piece) for piece in ranges(start, stop, self._step)]

        if isinstance(split, np.ndarray):
            lists = parallel_for(work, split.shape[1], chunk_size=COLUMNS, operations=float(split.size))
            parts = [part for bounds in lists for part in bounds]
        else:
            parts = work(0, split.shape[1])
        quadratic, linear, levels = (sum(float(part[i]) for part in parts) for i in range(3))
        tops = parts[0][3]
        for part in parts[1:]:
            tops = xp.maximum(tops, part[3])
        fit = 0.5 * quadratic - linear + 0.5 * self.square
        return fit + self.lam * float(xp.sum(tops)), levels - (linear - self.square) - fit

    @property
    def _step(self) -> int:
        # Elsewhere than in host memory large blocks are quick.
        return COLUMNS if isinstance(self.cross, np.ndarray) else max(1, (1 << 26) // len(self.rows))

    def _part(self, split: Array, dual: Array, rho: float, part: slice) -> tuple[Any, ...]:
        xp = self.xp
        weights = normalized(split[:, part])
        cross = self.cross[:, part]
        image = self._left @ (self._left.T @ weights) if self.thin else self._left @ weights
        slopes = image - cross + rho * xp.clip(dual[:, part], 0.0, None)
        levels = xp.sum(xp.min(slopes, axis=0), dtype=xp.float64)
        sums = (xp.sum(weights * array, dtype=xp.float64) for array in (image, cross))
        return (*sums, levels, xp.max(weights, axis=1))

    def _in_dtype(self, array: FloatArray) -> Array:
        return to_device(array.astype(numpy_dtype(self.cross.dtype)), self.cross)

    def _factored(self, rho: float) -> tuple[Projection, Array]:
        # C = argmin 0.5 c'Gc - b'c + 0.5 rho ||c - w||^2 with 1'c = 1 is P (b + rho w) + share, with P the
        # inverse of G + rho I, projected along its image a of the ones. Returned are rho P and P b + share.
        s, m = self.rows.shape
        if self.thin:
            # rho (G + rho I)^-1 = I - QQ' with Q = X_S L'^-1 and LL' = X_S'X_S + rho I.
            factor = np.linalg.cholesky(self.rows.T @ self.rows + rho * np.eye(m))
            q = scipy.linalg.solve_triangular(factor, self.rows.T, lower=True).T
            image = (np.ones(s) - q @ q.sum(axis=0)) / rho
            share = image / image.sum()
            matrix = np.column_stack([q, np.sqrt(rho * image.sum()) * share])
        else:
            inverse = np.linalg.inv(self.rows @ self.rows.T + rho * np.eye(s))
            inverse = 0.5 * (inverse + inverse.T)
            image = inverse.sum(axis=1)
            share = image / image.sum()
            matrix = rho * (inverse - np.outer(image, share))
        projected = Projection(self._in_dtype(matrix), self.thin)
        offset = self.xp.empty_like(self.cross)
        self._times(projected, self.cross, offset)
        offset /= rho
        offset += self._in_dtype(share)[:, None]
        return projected, offset

    def _times(self, matrix: Projection, array: Array, out: Array) -> None:
        def work(start: int, stop: int) -> None:
            for part in ranges(start, stop, self._step):
                out[:, part] = matrix.times(array[:, part])

        if isinstance(out, np.ndarray):
            operations = 2.0 * matrix.matrix.shape[1] * float(out.size)
            parallel_for(work, out.shape[1], chunk_size=COLUMNS, operations=operations)
        else:
            work(0, out.shape[1])


def normalized(split: Array) -> Array:
    """Return nonnegative columns divided by their sums; a column of zeros becomes constant."""
    xp = array_namespace(split)
    sums = xp.sum(split, axis=0)
    empty = sums <= 0
    weights = split / xp.where(empty, xp.ones_like(sums), sums)
    return xp.where(empty[None, :], xp.full_like(weights, 1.0 / split.shape[0]), weights)
