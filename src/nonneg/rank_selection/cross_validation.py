"""Cross-validation of the rank: held-out entries that fits of every candidate predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import stdtrit

from nonneg._arguments import is_count
from nonneg._arrays import computed, to_float64, to_numpy
from nonneg._random import Seed, generator
from nonneg._threads import parallel_for
from nonneg._typing import Array, FloatArray, IntArray, MatrixLike
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.fingerprint import fingerprint
from nonneg.data.local import local_matrix
from nonneg.data.sparse import SparseMatrix, on_host
from nonneg.data.streamed import StreamedMatrix
from nonneg.data.views import transposed
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnsupportedInputError
from nonneg.initializers.registry import INITS
from nonneg.iteration import Checkpoint, History
from nonneg.iteration.progress import StepCounter
from nonneg.losses.penalties import Penalties
from nonneg.rank_selection.candidates import RankProblem, between
from nonneg.rank_selection.result import RankCurve, RankResult, scores_of
from nonneg.solvers.encoding import encode
from nonneg.solvers.hals import hals

NAME = "cross-validation"
N_FOLDS = 5  # scikit-learn's default: blocks of a fifth of the rows and a fifth of the columns
# The share of the entries that a fold of the Wold hold-out hides: that of tenfold cross-validation.
SHARE = 0.1
# A mean of so few squares has a relative standard error of 0.45 (normal residuals).
MIN_HIDDEN = 10
MAX_ITER, TOL = 200, 1e-4  # the defaults of `NMF`
LEVEL = 0.05  # of the two-sided t test over folds, the usual one
# The search ends once this many candidates in a row are worse than the best by more than a standard error.
PATIENCE = 3


def cross_validation(
    problem: RankProblem,
    *,
    n_folds: int = N_FOLDS,
    max_samples: int | None = None,
    rng: Seed = None,
    verbose: int = 0,
    checkpoint: Path | None = None,
) -> RankResult:
    """Return the smallest candidate that predicts held-out entries as well as the best, up to its error."""
    if not is_count(n_folds, 2):
        raise InvalidParameterError(f"n_folds must be an integer of at least 2, got {n_folds!r}.")
    if (trivial := problem.trivial_answer(NAME)) is not None:
        return trivial
    source = generator(rng)
    X, mask = sample(problem.data, max_samples, source)
    root = int(source.integers(2**62))
    folds, limit = _folds(X, mask, n_folds, problem.grid()[-1], np.random.default_rng([root, 0]))
    folder = None if checkpoint is None else checkpoint / NAME
    settings = [NAME, problem.grid(), root, n_folds]
    saved = Checkpoint.of(folder, settings, lambda: fingerprint(local_matrix(X, mask=mask)))
    candidates = [k for k in problem.grid() if k <= limit]
    if not candidates:
        raise InvalidParameterError(
            f"Every candidate from {problem.grid()[0]} on exceeds the {limit} rows or columns that a fold "
            "leaves. Use smaller candidates, more folds, or method='singular-value-ratio'."
        )
    # No candidate by default, but data without further components are not predicted better by more.
    others = [1] if problem.candidates is None else []
    search = Search(folds, StepCounter(NAME, len({*others, *candidates}), verbose))
    if saved is not None:
        search.resume(saved)
    search.measure(others)
    search.measure(candidates, stop_early=problem.candidates is None)
    if problem.candidates is None:
        # The grid is refined around its best candidate, and the proposal of the ratio gets its error too.
        more = between(search.candidates, as_good_as_best(search.candidates, search.errors)[0][0])
        search.measure(sorted({*more, *[k for k in (problem.largest_ratio(),) if k <= limit]}))
    as_good, best = as_good_as_best(search.candidates, search.errors)
    rank = next((k for k in as_good if k >= candidates[0]), candidates[0])
    curve = RankCurve(
        "held-out error",
        tuple(search.candidates),
        search.errors.mean(axis=0),
        search.errors.std(axis=0, ddof=1),
        better="smaller",
    )
    reason = _reason(curve, rank, best, folds, problem.last, rank in as_good)
    return problem.answer(
        rank, reason, NAME, scores=scores_of(curve), curves=(curve,), as_good=tuple(as_good)
    )


class BiCrossValidation:
    """The block where some rows meet some columns (Owen & Perry 2009).

    The other rows and columns are factorized; the held-out rows are encoded from the other columns, the
    held-out columns from the other rows, and the product predicts the block. No entry is missing from any of
    these problems, so that each costs what complete data cost, zeros included.
    """

    what = "blocks of entries"

    def __init__(self, X: MatrixLike, rows: IntArray, columns: IntArray, k_max: int) -> None:
        other_rows = np.setdiff1d(np.arange(X.shape[0]), rows)
        other_columns = np.setdiff1d(np.arange(X.shape[1]), columns)
        self.held = local_matrix(X[rows][:, columns])
        self.beside = local_matrix(X[rows][:, other_columns])
        self.above = transposed(local_matrix(X[other_rows][:, columns]))
        self.fits = _Fits(local_matrix(X[other_rows][:, other_columns]), k_max)

    def error(self, k: int) -> float:
        """Fit the rest and predict the block; return the share of its squares that is not explained."""
        W, Ht = self.fits(k)
        rows, _ = encode(self.beside, Ht, beta=2.0, penalties=Penalties())
        columns, _ = encode(self.above, W, beta=2.0, penalties=Penalties())
        total = self.held.squared_norm()
        inner = float(self.held.xp.sum(self.held.times(columns) * rows))
        model = float(self.held.xp.sum((rows.T @ rows) * (columns.T @ columns)))
        return max(total - 2 * inner + model, 0.0) / (total if total > 0 else 1.0)


class WoldHoldout:
    """Single entries, treated as missing by the fit (Wold 1978): for data with missing entries."""

    what = f"{100 * SHARE:.0f}% of the entries at a time"

    def __init__(self, X: MatrixLike, mask: Any, rows: IntArray, columns: IntArray, k_max: int) -> None:
        self.rows, self.columns = rows, columns
        self.truth = np.asarray(X[rows, columns], dtype=np.float64).ravel()
        self.largest = float(X.max())
        visible = mask.copy()
        visible[rows, columns] = False
        self.fits = _Fits(local_matrix(X, mask=visible), k_max)

    def error(self, k: int) -> float:
        """Fit without the entries and predict them; no prediction exceeds the largest observed entry."""
        W, Ht = (to_float64(factor) for factor in self.fits(k))
        predicted = np.einsum("ij,ij->i", W[self.rows], Ht[self.columns])
        missed = self.truth - np.minimum(predicted, self.largest)
        total = float(self.truth @ self.truth)
        return float(missed @ missed) / (total if total > 0 else 1.0)


class _Fits:
    """Fits of one matrix, from NNDSVD: the factors for fewer components are the first of those for more."""

    def __init__(self, data: LocalMatrix, k_max: int) -> None:
        self.data, self.k_max = data, k_max
        self.init: tuple[Any, Array] | None = None

    def __call__(self, k: int) -> tuple[Any, Array]:
        if self.init is None or self.init[1].shape[1] < k:
            self.init = INITS["nndsvd-scaled"](self.data, max(k, self.k_max))
        W, Ht = (self.data.to_device(factor[:, :k]) for factor in self.init)
        run = hals(self.data, W, Ht, penalties=Penalties(), max_iter=MAX_ITER, tol=TOL)
        return run.state.W, run.state.Ht


Fold = BiCrossValidation | WoldHoldout
"""A part of the entries that a fit does not see."""


def _folds(
    X: MatrixLike, mask: Any, n_folds: int, k_max: int, rng: np.random.Generator
) -> tuple[Sequence[Fold], int]:
    """Draw what each fold holds out; return also the largest rank that a fold can fit."""
    side = min(X.shape)
    if mask is None and side >= 2 * n_folds:
        limit = side - -(-side // n_folds)
        groups = ([np.sort(g) for g in np.array_split(rng.permutation(n), n_folds)] for n in X.shape)
        pairs = zip(*groups, strict=True)
        return [BiCrossValidation(X, rows, columns, min(k_max, limit)) for rows, columns in pairs], limit
    mask = np.ones(X.shape, dtype=bool) if mask is None else mask
    places = np.flatnonzero(mask)
    hidden = int(min(SHARE, 1.0 / n_folds) * len(places))
    if hidden < MIN_HIDDEN:
        raise InvalidDataError(
            f"Cross-validation hides at least {MIN_HIDDEN} entries per fold, but X has {len(places)} "
            f"observed entries for {n_folds} folds. Use method='singular-value-ratio', or fewer folds."
        )
    parts = np.array_split(rng.choice(places, hidden * n_folds, replace=False), n_folds)
    n_columns, k_max = X.shape[1], min(k_max, side)
    return [WoldHoldout(X, mask, part // n_columns, part % n_columns, k_max) for part in parts], side


@dataclass(frozen=True)
class Errors:
    """Held-out errors so far, as the checkpoint keeps them."""

    candidates: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    errors: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # by fold and candidate


class Search:
    """Held-out errors by candidate, in ascending order."""

    def __init__(self, folds: Sequence[Fold], counter: StepCounter) -> None:
        self.folds, self.counter = folds, counter
        self.by_rank: dict[int, FloatArray] = {}
        self.saved: Checkpoint | None = None

    @property
    def candidates(self) -> list[int]:
        """The candidates measured so far."""
        return sorted(self.by_rank)

    @property
    def errors(self) -> FloatArray:
        """Their errors, by fold and candidate."""
        return np.stack([self.by_rank[k] for k in self.candidates], axis=1)

    def resume(self, saved: Checkpoint) -> None:
        """Continue from a checkpoint, and keep it up to date."""
        self.saved = saved
        if (loaded := saved.load(Errors())) is not None:
            errors = loaded[0]
            self.by_rank = dict(zip(errors.candidates.tolist(), errors.errors.T, strict=True))
            self.counter.done("candidates (resumed)", len(self.by_rank))

    def measure(self, candidates: Sequence[int], *, stop_early: bool = False) -> None:
        """Add candidates; `stop_early` ends where several in a row are clearly worse than the best."""
        n_folds = len(self.folds)
        for place, k in enumerate(candidates):
            tried = [self.by_rank[rank] for rank in candidates[:place]]
            if stop_early and tried and _is_past_best(np.stack(tried, axis=1)):
                break
            if k in self.by_rank:
                continue

            def work(first: int, last: int, k: int = k) -> list[float]:
                return [self.folds[fold].error(k) for fold in range(first, last)]

            parts = parallel_for(work, n_folds, chunk_size=1)
            self.by_rank[k] = np.array([error for part in parts for error in part])
            if self.saved is not None:
                state = Errors(np.array(self.candidates), self.errors)
                self.saved.save(state, len(self.by_rank), 0.0, History())
            self.counter.done(f"candidates (k={k})")


def _is_past_best(errors: FloatArray) -> bool:
    best = int(np.argmin(errors.mean(axis=0)))
    if errors.shape[1] - 1 - best < PATIENCE:
        return False
    later = errors[:, -PATIENCE:] - errors[:, [best]]
    return bool(np.all(later.mean(axis=0) > later.std(axis=0, ddof=1) / np.sqrt(len(errors))))


def as_good_as_best(candidates: Sequence[int], errors: FloatArray) -> tuple[list[int], int]:
    """Return the candidates that are not significantly worse than the best, and the best."""
    # A t test over folds of the ratio to the best: some folds are harder than others by a factor.
    logs = np.log(np.maximum(errors, np.finfo(float).eps))
    best = int(np.argmin(logs.mean(axis=0)))
    excess = logs - logs[:, [best]]
    margin = stdtrit(len(errors) - 1, 1.0 - LEVEL / 2.0) * excess.std(axis=0, ddof=1) / np.sqrt(len(errors))
    alike = np.flatnonzero(excess.mean(axis=0) <= margin)
    return [int(candidates[int(at)]) for at in alike], int(candidates[best])


def _reason(curve: RankCurve, rank: int, best: int, folds: Sequence[Fold], last: int, like: bool) -> str:
    scores = scores_of(curve)
    if rank == best:
        compared = f"the least of {len(curve.candidates)} candidates"
    else:
        compared = f"{'not ' * like}significantly more than the least, {scores[best]:.4g} with {best}"
    still = " It still falls at the largest candidate." if best == last else ""
    return (
        f"with {rank} components {scores[rank]:.4g} of the squares of held-out entries is not explained, "
        f"{compared} ({len(folds)} folds, {folds[0].what}).{still}"
    )


def sample(data: DataMatrix, max_samples: int | None, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return up to `max_samples` samples as an array or CSR matrix of the host, and their mask."""
    if data.weights is not None:
        raise UnsupportedInputError(
            "Cross-validation does not support sample weights. Use "
            "method='singular-value-ratio', or repeat the samples."
        )
    if data.has_mask:
        raise UnsupportedInputError(
            "Cross-validation does not support chunked data with missing entries. Compute the "
            "data first, or use method='singular-value-ratio'."
        )
    rows = np.arange(data.shape[0])
    if max_samples is not None and len(rows) > max_samples:
        rows = np.sort(rng.choice(len(rows), max_samples, replace=False))
    return _entries(data, rows)


def _entries(data: Any, rows: IntArray) -> tuple[Any, Any]:
    base = getattr(data, "base", None)
    if base is not None:  # rows scaled to norm one
        X, mask = _entries(base, rows)
        scale = to_numpy(computed(data.row_scale)[rows]).astype(X.dtype)
        return (sp.csr_array(X.multiply(scale)) if sp.issparse(X) else X * scale), mask
    data = on_host(data)
    if isinstance(data, LocalMatrix | StreamedMatrix):
        part: Any = data.select(rows)
    else:
        part = local_matrix(data.array[rows].compute())
    X = part.csr if isinstance(part, SparseMatrix) else to_numpy(part.dense_rows(0, len(rows)))
    if part.observed is None:
        return X, None
    return X, to_numpy(part.observed.dense_rows(0, len(rows))) > 0
