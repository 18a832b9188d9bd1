"""MERIT as published: Frank-Wolfe on the self-dictionary problem with row sparsity, in linear memory.

With one data point per column of X, as in the paper, it minimizes (18),

    0.5 ||X - XC||^2 + lam sum_n mu log(mean_l exp(c_nl / mu))   over C >= 0 with columns that sum to one,

by 100 steps of size 2 / (t + 2) from zero. Every column of C gains at most one entry per step, so that the
memory is that of the residuals and of the nonzero coefficients, both linear in the number of points. The
anchors are the rows of C with the largest entries.

Nguyen, Fu & Wu, "Memory-efficient convex optimization for self-dictionary separable nonnegative matrix
factorization: a Frank-Wolfe approach", Algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import numpy_dtype, numpy_view, to_float64, to_numpy
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.certificates.certificate import Certificate
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.fingerprint import fingerprint
from nonneg.exceptions import InvalidParameterError, UnknownNameError, UnsupportedInputError
from nonneg.iteration import Checkpoint, History, Progress, iterate
from nonneg.iteration.loop import Finished
from nonneg.iteration.progress import reporter
from nonneg.kernels.self_dictionary import Dictionary, PenaltyGradient, minimizing_vertices
from nonneg.separable.certificate import merit_statements
from nonneg.separable.result import SelectionResult
from nonneg.separable.snpa import snpa
from nonneg.separable.spa import spa
from nonneg.separable.weights import anchor_weights, squared_residuals

# Largest size in bytes of the dense residuals of sparse points, before and after a step (16 GiB).
RESIDUAL_LIMIT = float(16 << 30)
# exp(-x) is zero in float64 from here on.
UNDERFLOW = 745.2
# Lists of entries grow by this number of places when one of them is full.
GROWTH = 8
# Residuals are updated in blocks of 1 / PIECES of the most numbers that exist at a time: less than 300 kB.
PIECES = 120
# Bytes per second that checkpoints may write on average.
SAVED_PER_SECOND = 2e7
# The latest iteration at which a warm start continues.
LONGEST = 60_000
T_RULES = ("auto", "paper", "authors")
ENDED = "the duality gap is at most `tol`"


def merit(
    data: DataMatrix,
    n_components: int,
    *,
    lam: float | str = "paper",
    mu: float = 1e-5,
    max_iter: int = 100,
    tol: float = 1e-5,
    init: Any = None,
    t_init: str | int = "auto",
    recovery: bool | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    verbose: int = 0,
    checkpoint: Any = None,
) -> SelectionResult:
    """Write every sample as a mixture of few samples, and select those with the largest weights.

    Parameters besides those of `select_anchors`:

    lam : float, "paper" or "printed", default "paper"
        Weight of the row sparsity in (18). "paper" is ``||X - W H|| / (2 K)`` with the anchors of successive
        projections as W and the best mixtures of them as H, as in the authors' program; it depends on the
        units of X. "printed" is ``||X - W H|| / Phi(H)``, about twice as much, as the paper prints it. 0 is
        MERIT(0).
    mu : float, default 1e-5
        Smoothing of the row sparsity, positive.
    tol : float, default 1e-5
        Stop at a duality gap of at most this, in the unit of the objective; 0 never does.
    init : None or array of int
        A cold start from zero, or a warm start from anchors.
    t_init : {"auto", "paper", "authors"} or int, default "auto"
        The iteration at which a warm start continues: the root mean square norm of a sample over that of its
        residual ("auto"), the inverse of the latter ("paper"), or that of its spectral norm ("authors").
    recovery : bool, optional
        Whether the certificate evaluates Lemma 1 and Theorem 3, which needs the mixtures of the anchors; by
        default where points times anchors are at most a million.

    Duality gap and objective of the result belong to its coefficients. An iteration costs 2 N^2 M operations
    in float32 (see `nonneg.kernels.self_dictionary`). The residuals are dense, also those of sparse points:
    reduce the points first (`reduce=`) where M is large. Of equal scores and equal row maxima the lowest
    index wins, as in the authors' program.
    """
    check_points(data)
    problem = Problem(dictionary_of(data), 0.0, float(mu))
    weight = lam if not isinstance(lam, str) else published_weight(data, n_components, lam, float(mu))
    problem = replace(problem, lam=float(weight))
    state = problem.initial_iterate(init, data, t_init)
    first_t = state.t
    saved = Checkpoint.of(
        checkpoint,
        *("merit", [problem.lam, problem.mu, tol, state.t], n_components, data.container),
        *(partial(fingerprint, data), state.weights, state.counts),
        interval=max(5.0, 24.0 * math.prod(data.shape) / SAVED_PER_SECOND),
        from_numpy=lambda name, array: problem.dictionary.to_device(array) if name == "residual" else array,
    )

    def step(state: Iterate) -> tuple[Iterate, Mapping[str, Any]]:
        if state.vertices is None:
            state, _ = problem.call_oracle(state)
        # Zero is infeasible: its gap bounds nothing.
        if tol > 0 and state.t > 0 and state.gap <= tol:
            raise Finished(ENDED)
        try:
            return problem.call_oracle(problem.advance(state))
        except BaseException:  # Ctrl-C and the like: the state is the result
            problem.restore(state)
            raise

    run = iterate(
        step,
        state,
        max_iter=max_iter,
        stop=GapBelow(float(tol)),
        callback=callback,
        progress=reporter("anchors by merit", verbose),
        checkpoint=saved,
    )
    state = run.state if run.state.vertices is not None else problem.call_oracle(run.state)[0]
    maxima = state.row_maxima
    anchors = largest_rows(maxima, n_components)
    coefficients = state.as_csc(numpy_dtype(data.dtype))
    loss, gap, n_entries, largest = state.loss, state.gap, int(state.counts.sum()), state.largest_residual
    history, n_iter, reason, sentence = run.history, run.n_iter, run.stop_reason, run.sentence
    del run, state  # the certificate needs the memory
    statements = merit_statements(
        data,
        anchors,
        coefficients=coefficients,
        weight=(problem.lam, problem.mu),
        objective=loss,
        gap=gap,
        recovery=recovery,
    )
    return SelectionResult(
        anchors=anchors,
        method="merit",
        coefficients=coefficients,
        gap=gap,
        history=history,
        certificate=Certificate(tuple(statements)),
        scores=maxima[anchors],
        row_maxima=maxima,
        lam=problem.lam,
        mu=problem.mu,
        objective=loss,
        n_iter=n_iter,
        stop_reason=reason,
        stop_sentence=sentence,
        details={"t_init": first_t, "entries": n_entries, "largest_residual": largest},
    )


def largest_rows(row_maxima: FloatArray, n_components: int) -> IntArray:
    """Return the rows with the largest maxima, of equal ones the first."""
    rows = np.argsort(-row_maxima, kind="stable")[:n_components]
    # A row of zeros is no anchor, even if more were requested.
    return rows[row_maxima[rows] > 0]


def check_points(data: DataMatrix) -> None:
    """Refuse data on which the self-dictionary problem cannot be solved."""
    if not isinstance(data, LocalMatrix):
        raise UnsupportedInputError(
            "MERIT needs the points in this process. `select_anchors` reduces and gathers chunked data."
        )
    size = 16.0 * math.prod(data.shape)
    if data.container == "sparse" and size > RESIDUAL_LIMIT:
        raise UnsupportedInputError(
            f"MERIT keeps the residuals of all points, {data.shape[0]} x {data.shape[1]} dense numbers: "
            f"{1e-9 * size:.1f} GB. Pass reduce=, the number of leading directions to keep (for example "
            "twice the number of anchors)."
        )


def dictionary_of(data: DataMatrix) -> Dictionary:
    """Return the points of a local matrix."""
    return Dictionary.of(data.csr if data.container == "sparse" else data.array)  # type: ignore[attr-defined]


def greedy_anchors(data: DataMatrix, n_components: int) -> IntArray:
    """Return the anchors of SPA, or of SNPA where there are more anchors than dimensions."""
    anchors = spa(data, min(n_components, *data.shape)).anchors
    return anchors if len(anchors) == n_components else snpa(data, n_components).anchors


def published_weight(data: DataMatrix, n_components: int, rule: str, mu: float) -> float:
    """Return the published weight of the row sparsity, from the residuals of SPA's anchors."""
    anchors = greedy_anchors(data, n_components)
    norm = math.sqrt(float(np.sum(squared_residuals(data, to_float64(data.take_rows(anchors))))))
    if rule == "paper":
        # The authors' program sets twice this weight in an objective without the 1/2: the same problem.
        return norm / (2.0 * n_components)
    # Every anchor represents itself: the rows of H have the maximum one, of which the smoothing leaves
    # 1 - mu log N.
    return norm / (n_components * (1.0 - mu * math.log(data.shape[0])))


@dataclass(frozen=True)
class GapBelow:
    """Stop when the duality gap is at most `tol`, which is above 0, or `tol` times the objective."""

    tol: float
    relative: bool = False
    sentence: str = ENDED

    def __call__(self, history: History) -> bool:
        if len(history) == 0 or not (self.relative or self.tol > 0):
            return False
        return bool(history["gap"][-1] <= self.tol * (history["loss"][-1] if self.relative else 1.0))


@dataclass
class Iterate:
    """Coefficients, residuals, and the answer of the oracle; flat, so that it can be saved.

    The next iterate is written over the lists and the residuals of this one, which `Problem.restore` undoes.
    A column of C is a list of rows and weights, of which the first `counts` are in use and one at least is
    free; an entry of C is a weight divided by the total. Weights never decrease. From a cold start they are
    integers and the total is t (t + 1) / 2: the coefficients are exact.
    """

    rows: IntArray  # (n, capacity)
    weights: FloatArray
    counts: IntArray  # (n,)
    total: float
    residual: Array  # (XC - X)', on the device of the points
    row_max: FloatArray  # the largest weight of every row
    n_entries: IntArray  # the number of entries of every row
    t: int = 0  # the iteration, which determines the step size
    vertices: IntArray | None = None  # the answer of the oracle; None before it was called
    places: IntArray | None = None  # of the vertices in the lists
    held: Any = None  # the weights at these places
    gap: float = math.nan  # the duality gap
    loss: float = math.nan  # the objective
    largest_residual: float = math.nan

    @property
    def row_maxima(self) -> FloatArray:
        """The largest coefficient of every data point."""
        return self.row_max / (self.total or 1.0)

    @property
    def used(self) -> Any:
        """Which places of the lists are in use."""
        return np.arange(self.rows.shape[1]) < self.counts[:, None]

    def as_csc(self, dtype: Any = np.float64) -> Any:
        """Return C."""
        used, n = self.used, len(self.counts)
        indptr = np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])
        values = self.weights[used]
        values /= self.total or 1.0
        matrix = sp.csc_array((values.astype(dtype, copy=False), self.rows[used], indptr), shape=(n, n))
        matrix.sort_indices()
        return matrix


@dataclass(frozen=True)
class Problem:
    """The self-dictionary problem, given data, weight and smoothing."""

    dictionary: Dictionary
    lam: float  # weight of the row sparsity
    mu: float  # its smoothing

    def initial_iterate(self, init: Any, data: DataMatrix, t_init: str | int) -> Iterate:
        """Return zero, or a warm start from checked anchors."""
        n = self.dictionary.shape[0]
        if init is None:
            if t_init != "auto":
                raise InvalidParameterError(
                    f"t_init={t_init!r} is the iteration at which a warm start continues, but there is no "
                    "warm start. Pass init= ('spa' or anchors), or leave t_init out."
                )
            nothing = np.zeros((n, GROWTH), dtype=np.int32)
            none = np.zeros(n, dtype=np.int64)
            residual = self._residual(None)
            return Iterate(nothing, np.zeros((n, GROWTH)), none, 0.0, residual, np.zeros(n), none)
        C = mixtures_of(data, init)
        C.eliminate_zeros()
        counts = np.diff(C.indptr).astype(np.int64)
        capacity = int(counts.max(initial=0)) + GROWTH
        used = np.arange(capacity) < counts[:, None]
        rows, weights = np.zeros((n, capacity), dtype=np.int32), np.zeros((n, capacity))
        rows[used], weights[used] = C.indices, C.data
        residual = self._residual(C)
        scale = math.sqrt(data.squared_norm() / n)
        t = first_iteration(t_init, to_numpy(residual), scale)
        total = t * (t + 1) / 2
        row_max, n_entries = np.zeros(n), np.bincount(C.indices, minlength=n)
        np.maximum.at(row_max, C.indices, C.data * total)
        return Iterate(rows, weights * total, counts, total, residual, row_max, n_entries, t)

    def _residual(self, C: Any | None) -> Array:
        points = self.dictionary
        if C is None:  # zero
            return -(points.rows(np.arange(points.shape[0])) + points.center)
        # Columns of C sum to one: the center drops out.
        mixing = C.T.tocsr()
        if points.sparse:
            return np.asarray((mixing @ points.points).toarray(), dtype=np.float64) - points.points.toarray()
        host = to_numpy(points.rows(np.arange(points.shape[0])))
        return points.to_device(mixing @ host - host)

    def call_oracle(self, state: Iterate) -> tuple[Iterate, Mapping[str, Any]]:
        """Call the linear minimization oracle, and measure duality gap and objective."""
        n, row_max, total = len(state.counts), state.row_max, state.total or 1.0
        scale = max(self.mu * total, 1e-300)
        # The largest entry is subtracted in the exponents, so that no mu overflows; entries far below it add
        # nothing. Rows without entries have the value 0 and the gradient 1 / n.
        close = state.used
        for part in self.dictionary.blocks(PIECES * close.shape[1]):
            close[part] &= row_max[state.rows[part]] - state.weights[part] <= UNDERFLOW * scale
        near = np.flatnonzero(close)
        columns, rows = near // close.shape[1], state.rows.ravel()[near].astype(np.int64)
        weights = state.weights.ravel()[near]
        values = np.exp((weights - row_max[rows]) / scale)
        with np.errstate(under="ignore"):
            at_zero = np.exp(-np.minimum(row_max / scale, UNDERFLOW + 1.0))
        sums = np.bincount(rows, weights=values, minlength=n) + (n - state.n_entries) * at_zero
        filled = state.n_entries > 0
        penalty = float(row_max.sum()) / total + self.mu * float(np.log(sums[filled] / n).sum())
        base, ratios = at_zero / sums, values / sums[rows]
        inner = np.bincount(columns, weights=ratios * weights / total, minlength=n)
        gradient = PenaltyGradient(
            self.lam * base, rows, columns, self.lam * np.maximum(ratios - base[rows], 0.0)
        )
        vertices = minimizing_vertices(self.dictionary, state.residual, gradient)
        # The gradient at the vertices, of which some have an entry already.
        hit = state.rows == vertices.astype(np.int32)[:, None]
        every, first = np.arange(n), hit.argmax(axis=1)
        places = np.where(hit[every, first], np.minimum(first, state.counts), state.counts)
        held = state.weights[every, places]
        with np.errstate(under="ignore"):
            there = np.exp(-np.minimum((row_max[vertices] - held) / scale, UNDERFLOW + 1.0)) / sums[vertices]
        fit, squares = self._fit_gaps(state.residual, vertices)
        gap = float(np.sum(fit + self.lam * (inner - there)))
        loss = 0.5 * float(squares.sum()) + self.lam * penalty
        largest = math.sqrt(float(squares.max(initial=0.0)))
        measures = {"loss": loss, "gap": gap, "largest_residual": largest, "entries": int(state.counts.sum())}
        new = replace(state, vertices=vertices, places=places, held=held, gap=gap, loss=loss)
        return replace(new, largest_residual=largest), measures

    def _blocks(self) -> list[slice]:
        # On the host what a block needs stays in a core's cache.
        pieces = PIECES if self.dictionary.device in (None, "cpu") else 3
        return self.dictionary.blocks(pieces * self.dictionary.shape[1])

    def _fit_gaps(self, residual: Array, vertices: IntArray) -> tuple[FloatArray, FloatArray]:
        # r'(r + x - a) and r'r for every column, with x its point and a its vertex.
        points, parts = self.dictionary, []
        xp = points.xp
        for place in self._blocks():
            r = numpy_view(residual)[place, ...]
            squares, along = xp.vecdot(r, r), xp.vecdot(r, points.steps(place, vertices[place]))
            parts.append([to_numpy(squares - along), to_numpy(squares)])
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def advance(self, state: Iterate) -> Iterate:
        """Take the published step 2 / (t + 2) toward the vertices in all columns, in place."""
        assert state.vertices is not None
        assert state.places is not None
        vertices, places, held = state.vertices, state.places, state.held
        t, every, fresh = state.t, np.arange(len(state.counts)), places == state.counts
        counts = state.counts + fresh
        if int(counts.max(initial=0)) == state.rows.shape[1]:
            room = ((0, 0), (0, GROWTH))
            state.rows = np.pad(state.rows, room)
            state.weights = np.pad(state.weights, room)
        # Weights are in units of the total: the step adds t + 1 to one of them.
        state.rows[every, places], state.weights[every, places] = vertices, held + (t + 1)
        row_max = state.row_max.copy()
        np.maximum.at(row_max, vertices, held + (t + 1))
        size = 2.0 / (t + 2)
        for part in self._blocks():
            residual = state.residual[part, ...]
            residual *= 1.0 - size
            residual += size * self.dictionary.steps(part, vertices[part])
        return replace(
            state,
            counts=counts,
            total=(t + 1) * (t + 2) / 2,
            row_max=row_max,
            n_entries=state.n_entries + np.bincount(vertices[fresh], minlength=len(every)),
            t=t + 1,
            vertices=None,
        )

    def restore(self, state: Iterate) -> None:
        """Undo what `advance`, all or part of it, has done to the lists and the residuals of an iterate."""
        if state.held is not None:
            state.weights[np.arange(len(state.counts)), state.places] = state.held
            C = state.as_csc() if state.counts.any() else None
            state.residual[...] = self._residual(C)


def mixtures_of(data: DataMatrix, anchors: IntArray) -> Any:
    """Return the C that writes every point as its best mixture of anchors."""
    vertices = to_float64(data.take_rows(anchors))
    mixtures = to_float64(anchor_weights(data, vertices, sum_to_one=True)).astype(np.float64)
    mixtures = mixtures / mixtures.sum(axis=1, keepdims=True)
    # Every anchor is itself, without rounding errors: where a residual is zero the lowest index wins.
    mixtures[anchors] = np.eye(len(anchors))
    csr = sp.csr_array(mixtures)
    rows = np.asarray(anchors)[csr.indices]
    return sp.csc_array((csr.data, rows, csr.indptr), shape=(data.shape[0], data.shape[0]))


def first_iteration(rule: str | int, residual: FloatArray, scale: float) -> int:
    """Return the iteration t at which a warm start continues; `scale` is the norm of a typical point."""
    if isinstance(rule, str):
        UnknownNameError.check("t_init", rule, T_RULES)
        order: Any = 2 if rule == "authors" else None
        size = float(np.linalg.norm(residual, order)) / math.sqrt(len(residual))
        # The paper's rule depends on the unit of the data; relative to their norms, it does not.
        t = (scale if rule == "auto" else 1.0) / size if size > 0 else LONGEST
        return max(1, min(LONGEST, int(t) if rule == "authors" else round(t)))
    if isinstance(rule, bool) or not isinstance(rule, int | np.integer) or rule < 1:
        raise InvalidParameterError(
            f"t_init must be one of {T_RULES} or an integer of at least 1, got {rule!r}."
        )
    return int(rule)
