"""Held-out entries and how well a fit without them predicts them: Wold hold-out and bi-cross-validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.data import LocalMatrix
from nonneg.data.sparse import SparseMatrix
from nonneg.data.views import transposed
from nonneg.exceptions import InvalidDataError
from nonneg.losses.penalties import Penalties
from nonneg.rank_selection.nested import nested_fits
from nonneg.rank_selection.sampling import block, without
from nonneg.solvers.encoding import encode

# The share of the entries that a fold of the Wold hold-out hides: that of tenfold cross-validation.
SHARE = 0.1
# Maximum number of entries hidden by a fold: each costs k^2 operations per iteration.
MAX_HIDDEN = 200_000
# A mean of so few squares has a relative standard error of 0.45 (normal residuals).
MIN_HIDDEN = 10
# Fits are initialized with the next smaller one, so that few iterations suffice for the held-out error.
MAX_ITER, TOL = 40, 1e-3
# The l2 penalty of the fits, relative to the smallest singular value that was computed: small beside every
# component that a candidate can have, and enough to bound components that nothing determines.
RIDGE = 0.02


class Holdout(Protocol):
    """A part of the entries that a fit does not see."""

    def errors(
        self,
        data: LocalMatrix,
        candidates: Sequence[int],
        rng: np.random.Generator,
        *,
        ridge: float,
        init: Array | None = None,
        fitted: tuple[Array, Array] | None = None,
    ) -> Iterator[tuple[float, Array, Array]]:
        """Yield the share of the held-out squares that each candidate does not explain, its W and its Ht."""


@dataclass(frozen=True)
class WoldHoldout:
    """Single entries, treated as missing by the fit (Wold)."""

    rows: IntArray
    columns: IntArray
    weights: FloatArray  # how many entries each stands for

    def errors(
        self,
        data: LocalMatrix,
        candidates: Sequence[int],
        rng: np.random.Generator,
        *,
        ridge: float,
        init: Array | None = None,
        fitted: tuple[Array, Array] | None = None,
    ) -> Iterator[tuple[float, Array, Array]]:
        """Fit without the entries and predict them."""
        truth = _entries(data, self.rows, self.columns)
        total = float(self.weights @ (truth * truth))
        largest = data.extremes()[1]
        seen = without(data, self.rows, self.columns)
        fits = nested_fits(
            seen, candidates, rng, max_iter=MAX_ITER, tol=TOL, ridge=ridge, init=init, fitted=fitted
        )
        for _, W, Ht in fits:
            left, right = to_float64(W), to_float64(Ht)
            # No prediction exceeds the largest observed entry.
            missed = truth - np.minimum(_products(left, right, self.rows, self.columns), largest)
            yield float(self.weights @ (missed * missed)) / (total if total > 0 else 1.0), W, Ht


@dataclass(frozen=True)
class BiCrossValidationBlock:
    """The block where some rows meet some columns (Owen & Perry)."""

    # The other rows and columns are factorized; the held-out rows are encoded from the other columns, the
    # held-out columns from the other rows, and the product predicts the block. No entry is missing from any
    # of these problems, so that each costs what complete data cost, zeros included.

    rows: IntArray  # in ascending order
    columns: IntArray

    def errors(
        self,
        data: LocalMatrix,
        candidates: Sequence[int],
        rng: np.random.Generator,
        *,
        ridge: float,
        init: Array | None = None,
        fitted: tuple[Array, Array] | None = None,
    ) -> Iterator[tuple[float, Array, Array]]:
        """Fit the rest and predict the block."""
        other_rows = np.setdiff1d(np.arange(data.shape[0]), self.rows)
        other_columns = np.setdiff1d(np.arange(data.shape[1]), self.columns)
        held = block(data, self.rows, self.columns)
        beside = block(data, self.rows, other_columns)
        above = transposed(block(data, other_rows, self.columns))
        rest = block(data, other_rows, other_columns)
        total = held.squared_norm()
        fits = nested_fits(
            rest, candidates, rng, max_iter=MAX_ITER, tol=TOL, ridge=ridge, init=init, fitted=fitted
        )
        for _, W, Ht in fits:
            rows, _ = encode(beside, Ht, beta=2.0, penalties=Penalties())
            columns, _ = encode(above, W, beta=2.0, penalties=Penalties())
            inner = float(held.xp.sum(held.times(columns) * rows))
            model = float(held.xp.sum((rows.T @ rows) * (columns.T @ columns)))
            yield max(total - 2 * inner + model, 0.0) / (total if total > 0 else 1.0), W, Ht


def wold_holdouts(data: LocalMatrix, n_folds: int, rng: np.random.Generator) -> list[Holdout]:
    """Draw disjoint folds of single entries, zero or not."""
    n_entries = round(data.observed_weight())
    share = min(SHARE, 1.0 / n_folds)
    if share * n_entries < MIN_HIDDEN:
        raise InvalidDataError(
            f"Cross-validation hides at least {MIN_HIDDEN} entries per fold, but X has {n_entries} observed "
            f"entries for {n_folds} folds. Use method='singular-value-ratio', or fewer folds."
        )
    per_fold = int(share * n_entries)
    if isinstance(data, SparseMatrix) and data.observed is None and per_fold > MAX_HIDDEN:
        return _sparse_entries(data, share, n_folds, rng)
    per_fold = min(per_fold, MAX_HIDDEN)
    places = _observed_places(data, per_fold * n_folds, rng)
    return [
        WoldHoldout(part // data.shape[1], part % data.shape[1], np.ones(len(part)))
        for part in np.array_split(places, n_folds)
    ]


def bi_cross_validation(data: LocalMatrix, n_folds: int, rng: np.random.Generator) -> list[Holdout]:
    """Split rows and columns into groups; fold i holds out the block where the i-th groups meet."""
    n_rows, n_columns = data.shape
    if min(n_rows, n_columns) < 2 * n_folds:
        raise InvalidDataError(
            f"Bi-cross-validation needs at least {2 * n_folds} rows and columns for {n_folds} folds, but X "
            f"is {n_rows} x {n_columns}. Use holdout='wold', or fewer folds."
        )
    row_groups = np.array_split(rng.permutation(n_rows), n_folds)
    column_groups = np.array_split(rng.permutation(n_columns), n_folds)
    return [
        BiCrossValidationBlock(np.sort(rows), np.sort(columns))
        for rows, columns in zip(row_groups, column_groups, strict=True)
    ]


def _observed_places(data: LocalMatrix, count: int, rng: np.random.Generator) -> IntArray:
    n_entries = data.shape[0] * data.shape[1]
    if data.observed is None:
        return rng.choice(n_entries, count, replace=False)
    seen = np.concatenate(
        [
            np.flatnonzero(to_float64(data.observed.dense_rows(start, stop))) + start * data.shape[1]
            for start, stop in data.row_blocks(1 << 20)
        ]
    )
    return rng.choice(seen, min(count, len(seen)), replace=False)


def _sparse_entries(
    data: SparseMatrix, share: float, n_folds: int, rng: np.random.Generator
) -> list[Holdout]:
    csr, (n_rows, n_columns) = data.csr, data.shape
    n_stored, n_zeros = csr.nnz, n_rows * n_columns - csr.nnz
    stored = rng.choice(n_stored, min(int(share * n_stored), MAX_HIDDEN // 2) * n_folds, replace=False)
    owner = np.repeat(np.arange(n_rows, dtype=np.int64), np.diff(csr.indptr))
    filled = owner * n_columns + csr.indices
    per_fold = min(int(share * n_zeros), MAX_HIDDEN - len(stored) // n_folds)
    zeros = _unfilled_places(filled, n_rows * n_columns, per_fold * n_folds, rng)
    folds: list[Holdout] = []
    for some, others in zip(np.array_split(stored, n_folds), np.array_split(zeros, n_folds), strict=True):
        places = np.concatenate([filled[some], others])
        weights = np.repeat([n_stored / len(some), n_zeros / len(others)], [len(some), len(others)])
        folds.append(WoldHoldout(places // n_columns, places % n_columns, weights))
    return folds


def _unfilled_places(filled: IntArray, n_entries: int, count: int, rng: np.random.Generator) -> IntArray:
    # By rejection: there are many more zeros than stored entries.
    ordered = np.sort(filled)
    found = np.zeros(0, dtype=np.int64)
    while len(found) < count:
        drawn = rng.integers(n_entries, size=2 * (count - len(found)))
        place = np.minimum(np.searchsorted(ordered, drawn), len(ordered) - 1)
        found = np.concatenate([found, drawn[ordered[place] != drawn]])
        _, first = np.unique(found, return_index=True)
        found = found[np.sort(first)]
    return found[:count]


def _entries(data: LocalMatrix, rows: IntArray, columns: IntArray) -> FloatArray:
    if isinstance(data, SparseMatrix):
        return np.asarray(data.csr[rows, columns], dtype=np.float64).ravel()
    array: Any = data.array  # type: ignore[attr-defined]
    if isinstance(array, np.ndarray):
        return array[rows, columns].astype(np.float64)
    flat = data.xp.reshape(array, (-1,))
    index = data.xp.asarray(rows * data.shape[1] + columns, device=array.device)
    return to_float64(data.xp.take(flat, index, axis=0))


def _products(left: FloatArray, right: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
    out = np.empty(len(rows))
    for start in range(0, len(rows), 1 << 15):
        part = slice(start, start + (1 << 15))
        out[part] = np.einsum("ij,ij->i", left[rows[part]], right[columns[part]])
    return out
