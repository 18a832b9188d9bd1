"""FastGradient: accelerated gradient on the self-dictionary problem with the trace as the penalty."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import is_float32, numpy_dtype, to_float64
from nonneg._random import Seed, generator
from nonneg._typing import Array, IntArray, Namespace
from nonneg.data import DataMatrix, LocalMatrix, as_data_matrix
from nonneg.exceptions import InvalidParameterError, UnsupportedInputError
from nonneg.iteration import History, Progress, iterate
from nonneg.iteration.progress import reporter
from nonneg.kernels.dominating_diagonal import dominating_diagonal
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.separable.result import SelectionResult
from nonneg.separable.spa import spa

# Bytes, unless the user says otherwise: 2 GiB, enough for 7,300 samples in float64.
MEMORY_LIMIT = 2 << 30
# Arrays of n by n that exist at a time: C, its extrapolation, the gradient, and the new ones of both.
SQUARE_ARRAYS = 5
# As in the authors' code: the first momentum, and by how much the entries of p differ.
FIRST_MOMENTUM = 0.05
SPREAD = 0.01


@dataclass(frozen=True)
class GradientState:
    """One iterate."""

    coefficients: Array  # the iterate C and the extrapolated point
    ahead: Array
    fitted: Array  # X' times both
    fitted_ahead: Array
    momentum: float  # Nesterov's parameter
    lam: float  # the weight of the trace
    change: float = 0.1  # the fraction by which the weight changes next
    direction: int = 0  # whether it last decreased (1) or increased (-1)
    objective: float = math.inf  # at C
    restarted: bool = False  # whether the extrapolation was restarted in the last step


def fast_gradient(
    data: DataMatrix,
    n_components: int,
    *,
    lam: float | str = "auto",
    max_iter: int = 150,
    tol: float = 1e-8,
    init: Any = None,
    rng: Seed = None,
    callback: Callable[[Progress], bool | None] | None = None,
    verbose: int = 0,
    memory_limit: float = MEMORY_LIMIT,
) -> SelectionResult:
    r"""Minimize the self-dictionary problem of Gillis and Luce and select the largest diagonal entries.

    .. math::

        \min_{C \in \Omega} \tfrac12 \|X^\top - X^\top C\|_F^2 + \lambda p^\top \mathrm{diag}(C)

    with :math:`\Omega = \{C \ge 0, c_{ii} \le 1, w_i c_{ij} \le w_j c_{ii}\}`, w the l1 norms of the points
    and p close to one, with slightly different entries that break ties between duplicates.

    Parameters besides those of `select_anchors`:

    lam : float or "auto", default "auto"
        The weight. "auto" balances the error of successive projections with the trace, and adapts the weight
        at every restart so that the trace tends to n_components / 2 + 1, as the authors' code does.
    tol : float, default 1e-8
        Stop when an iteration changed the diagonal by at most this fraction (1-norm).
    init : array of int, optional
        Anchors from which "auto" takes the weight, in place of those of successive projections. The initial
        C is zero.
    rng : None, int, Generator, RandomState or SeedSequence
        Random numbers for the entries of p.
    memory_limit : float
        In bytes. Five arrays of n_samples by n_samples must fit.

    The result has the diagonal as `row_maxima` and the history of objective, diagonal change and weight.
    O(n^2 m) operations per iteration and O(n^2) memory: for a few thousand points. `method="merit"` needs
    memory linear in n. Gillis & Luce (2018), IEEE Trans. Image Process. 27(1).
    """
    n = data.shape[0]
    needed = float(SQUARE_ARRAYS) * n * n * (4 if is_float32(data.dtype) else 8)
    if needed > memory_limit:
        raise UnsupportedInputError(
            f"fast-gradient would need {needed / 2**30:.1f} GiB for {n} samples ({SQUARE_ARRAYS} arrays of "
            f"{n} x {n}), but the limit is {memory_limit / 2**30:.1f} GiB. Use method='merit', whose memory "
            "is linear in the samples, merge near-duplicates first, or raise memory_limit."
        )
    points, weights = compressed(data)
    xp = array_namespace(points)
    spread = 1.0 + SPREAD * (generator(rng).random(n) - 0.5)
    adaptive = lam == "auto"
    weight = _balanced(data, n_components, init, spread) if adaptive else float(lam)
    prices = xp.asarray(spread, dtype=points.dtype, device=points.device)
    target = min(n_components / 2.0 + 1.0, float(n_components))
    step = TraceStep(points, weights, prices, target if adaptive else None)

    def stop(history: History) -> bool:
        return len(history) > 1 and history["diagonal_change"][-1] <= tol

    shown = reporter("anchors by fast-gradient", verbose)
    run = iterate(
        step, step.initial_state(weight), max_iter=max_iter, stop=stop, callback=callback, progress=shown
    )
    coefficients = to_float64(run.state.coefficients)
    diagonal = np.diagonal(coefficients).copy()
    if not diagonal.any():
        raise InvalidParameterError(
            f"lam={weight:.4g} is so large that all coefficients are zero. Lower it, or leave it at 'auto'."
        )
    anchors = distinct_rows(data, np.argsort(-diagonal, kind="stable"), n_components)
    return SelectionResult(
        anchors=anchors,
        method="fast-gradient",
        coefficients=sp.csc_array(coefficients.astype(numpy_dtype(data.dtype), copy=False)),
        history=run.history,
        row_maxima=diagonal,
        scores=diagonal[anchors],
        lam=run.state.lam,
        objective=run.state.objective,
        n_iter=run.n_iter,
        stop_reason=run.stop_reason,
        stop_sentence=run.sentence,
        details={"first_lam": weight},
    )


def distinct_rows(data: DataMatrix, rows: IntArray, n_wanted: int) -> IntArray:
    """Return the first rows that are distinct samples: duplicates are not two anchors."""
    seen: set[bytes] = set()
    distinct: list[int] = []
    for start in range(0, len(rows), n_wanted):
        part = rows[start : start + n_wanted]
        points = np.ascontiguousarray(to_float64(data.take_rows(part)))
        for row, point in zip(part, points, strict=True):
            if len(distinct) < n_wanted and point.tobytes() not in seen:
                seen.add(point.tobytes())
                distinct.append(int(row))
        if len(distinct) == n_wanted:
            break
    return np.asarray(distinct, dtype=np.intp)


def compressed(data: DataMatrix) -> tuple[Array, Array]:
    """Return points with the same inner products in as few dimensions as there are points, and l1 norms."""
    assert isinstance(data, LocalMatrix)
    xp = data.xp
    parts, norms = [], []
    for start, stop in data.row_blocks(1 << 22):
        rows = data.dense_rows(start, stop)
        norms.append(xp.sum(xp.abs(rows), axis=1))
        parts.append(rows if data.shape[1] <= data.shape[0] else data.times(rows.T).T)
    whole, weights = xp.concat(parts, axis=0), xp.concat(norms, axis=0)
    if data.shape[1] > data.shape[0]:
        values, vectors = np.linalg.eigh(to_float64(whole))
        large = values > 1e-14 * values[-1] if values[-1] > 0 else values == values[-1]
        low = vectors[:, large] * np.sqrt(np.clip(values[large], 0.0, None))
        whole = xp.asarray(low, dtype=weights.dtype, device=weights.device)
    return whole, weights


def _balanced(data: DataMatrix, n_components: int, init: Any, spread: Any) -> float:
    # The weight at which error and trace of a first solution are equal. A fraction of the squared norm of the
    # data is added, so that a perfect first solution does not make it vanish (the authors add 0.001, for data
    # of norm one).
    anchors = spa(data, n_components).anchors if init is None else np.asarray(init, dtype=np.int64)
    rows = data.take_rows(anchors)
    gram = rows @ rows.T
    cross = data.times(data.to_device(rows.T))
    fitted = nonnegative_least_squares(SharedGram(gram), cross)
    F, G, Z = to_float64(fitted), to_float64(gram), to_float64(cross)
    whole = data.squared_norm()
    error = max(whole - 2.0 * float(np.sum(F * Z)) + float(np.sum((F @ G) * F)), 0.0)
    return (error + 1e-3 * whole) / float(spread[anchors].sum())


class TraceStep:
    """One iteration of an accelerated gradient with restarts; each diagonal entry has its own price."""

    def __init__(self, points: Array, weights: Array, prices: Array, target: float | None) -> None:
        self.xp, self.points, self.weights = array_namespace(points), points, weights
        self.prices, self.target = prices, target
        largest = float(self.xp.linalg.matrix_norm(points, ord=2)) ** 2
        self.step_size = 1.0 / largest if largest > 0 else 1.0

    def initial_state(self, lam: float) -> GradientState:
        """Return C = 0."""
        xp, points = self.xp, self.points
        n, m = points.shape
        zero = xp.zeros((n, n), dtype=points.dtype, device=points.device)
        nothing = xp.zeros((m, n), dtype=points.dtype, device=points.device)
        error = 0.5 * float(as_data_matrix(points).squared_norm())
        return GradientState(zero, zero, nothing, nothing, FIRST_MOMENTUM, lam, objective=error)

    def reweighted(self, state: GradientState, trace: float) -> GradientState:
        """Return the state with the weight for the next iterations."""
        if self.target is None:
            return state
        direction = 1 if trace < self.target else -1
        change = state.change / 2.0 if direction * state.direction < 0 else state.change
        return replace(state, lam=(1.0 - direction * change) * state.lam, change=change, direction=direction)

    def __call__(self, state: GradientState) -> tuple[GradientState, Mapping[str, Any]]:
        """Take a projected gradient step at the extrapolated point."""
        xp, points = self.xp, self.points
        first = state.momentum
        second = 0.5 * (math.sqrt(first**4 + 4.0 * first**2) - first**2)
        pull = first * (1.0 - first) / (first**2 + second)
        length = self.step_size
        new = points @ (state.fitted_ahead - points.T)
        new = state.ahead - length * new
        new = _less_on_diagonal(xp, new, length * state.lam * self.prices)
        new = dominating_diagonal(new, self.weights)
        fitted = points.T @ new
        diagonal = xp.linalg.diagonal(new)
        residual = xp.astype(fitted - points.T, xp.float64)
        price = float(xp.sum(xp.astype(self.prices * diagonal, xp.float64)))
        objective = 0.5 * float(xp.sum(residual * residual)) + state.lam * price
        moved = xp.sum(xp.abs(diagonal - xp.linalg.diagonal(state.coefficients)))
        trace = float(xp.sum(diagonal))
        measures = {
            "loss": objective,
            "diagonal_change": float(moved) / trace if trace > 0 else math.inf,
            "trace": trace,
            "lam": state.lam,
        }
        # The extrapolation restarts where the objective increased, but not twice in a row.
        if not state.restarted and objective > state.objective:
            fresh = GradientState(
                new, new, fitted, fitted, FIRST_MOMENTUM, state.lam, state.change, state.direction, objective,
                restarted=True,
            )  # fmt: skip
            return self.reweighted(fresh, trace), measures
        ahead = new + pull * (new - state.coefficients)
        fitted_ahead = fitted + pull * (fitted - state.fitted)
        after = GradientState(
            new, ahead, fitted, fitted_ahead, second, state.lam, state.change, state.direction, objective
        )  # fmt: skip
        return after, measures


def _less_on_diagonal(xp: Namespace, matrix: Array, amounts: Array) -> Array:
    if isinstance(matrix, np.ndarray):
        np.einsum("ii->i", matrix)[...] -= amounts
        return matrix
    eye = xp.eye(matrix.shape[0], dtype=matrix.dtype, device=matrix.device)
    return matrix - eye * amounts[:, None]
