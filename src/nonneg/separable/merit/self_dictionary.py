"""The self-dictionary problem: every data point as a mixture of data points, few of which are used.

Minimise 0.5 ||X - XC||^2 + lam Phi(C) over C >= 0 with columns that sum to one, (18) of the paper, whose
orientation is used here: a data point is a column of X. Only the lists of C's entries, the residuals and one
block of scores a thread exist.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nonneg._arrays import to_numpy
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.data import LocalMatrix
from nonneg.kernels.column_residuals import column_products, residuals_of
from nonneg.kernels.self_dictionary import Dictionary, best_atoms, dictionary_of
from nonneg.kernels.sparse_columns import SparseColumns, row_facts, value_at
from nonneg.kernels.sparse_columns.torch import placed_array, placed_columns
from nonneg.separable.merit.row_sparsity import RowSparsity, row_sparsity
from nonneg.separable.merit.tensor_row_sparsity import tensor_row_sparsity


@dataclass(frozen=True)
class FrankWolfeIterate:
    """Coefficients, residuals and what the oracle said of them; flat, so that it can be saved."""

    # The lists and what is known of rows and columns are NumPy arrays, or PyTorch tensors on the GPU where
    # the points are, for open-loop steps of all columns (`placed`).

    rows: IntArray  # the coefficients, as in `SparseColumns`
    weights: Any
    counts: IntArray
    total: float
    row_max: Any  # the largest weight and the number of entries of every row
    row_count: IntArray
    residual: Array  # one row a column of XC - X, where the points are
    t: int = 0  # the iteration, from which an open-loop step is made
    # The oracle's answer: the vertex of every column. None before it was asked.
    chosen: IntArray | None = None
    column_gaps: FloatArray | None = None  # the part of each column in the gap
    active: Any = None  # columns that still move, where some are skipped
    # Their sum: the objective is at most so much above its minimum. NaN where columns were skipped.
    gap: float = float("nan")
    loss: float = float("nan")  # the objective
    largest_residual: float = float("nan")  # the longest residual
    anchors: IntArray | None = None  # the rows with the largest maxima, where they are watched

    @property
    def columns(self) -> SparseColumns:
        """The coefficients."""
        return SparseColumns(self.rows, self.weights, self.counts, self.total)

    @property
    def row_maxima(self) -> FloatArray:
        """The largest coefficient of every data point, in NumPy."""
        return np.divide(to_numpy(self.row_max), self.total or 1.0)

    @property
    def placed(self) -> bool:
        """Whether the lists are tensors."""
        return not isinstance(self.rows, np.ndarray)

    @property
    def home(self) -> FrankWolfeIterate:
        """The same iterate with lists in NumPy; the residuals stay where they are."""
        named = ("rows", "weights", "counts", "row_max", "row_count", "chosen", "column_gaps")
        lists = {name: getattr(self, name) for name in named}
        return replace(self, **{name: to_numpy(of) for name, of in lists.items() if of is not None})

    def changed(self, **fields: Any) -> FrankWolfeIterate:
        """Return the iterate with some fields replaced."""
        new = object.__new__(FrankWolfeIterate)
        new.__dict__.update(self.__dict__, **fields)
        return new

    @property
    def answered(self) -> bool:
        """Whether the oracle was asked."""
        return self.chosen is not None


@dataclass(frozen=True)
class SelfDictionary:
    """The problem at given data, weight and smoothing."""

    dictionary: Dictionary  # the data points
    lam: float  # weight of the row sparsity
    mu: float  # its smoothing
    # The gap that is good enough; columns whose part is below their share of it may be skipped.
    gap_tol: float = 0.0
    skip: bool = False  # whether they are

    @classmethod
    def of(cls, data: LocalMatrix, lam: float, mu: float, **options: Any) -> SelfDictionary:
        """Return the problem of a local matrix."""
        points = data.csr if data.container == "sparse" else data.array  # type: ignore[attr-defined]
        return cls(dictionary_of(points), lam, mu, **options)

    def start(
        self, columns: SparseColumns, t: int = 0, residual: Array | None = None, *, placed: bool = False
    ) -> FrankWolfeIterate:
        """Return the first iterate."""
        row_max, row_count = row_facts(columns)
        if residual is None:
            residual = residuals_of(self.dictionary, columns)
        if placed:
            columns = placed_columns(columns, residual.device)
            row_max, row_count = (placed_array(array, residual.device) for array in (row_max, row_count))
        return FrankWolfeIterate(
            rows=columns.rows,
            weights=columns.weights,
            counts=columns.counts,
            total=columns.total,
            row_max=row_max,
            row_count=row_count,
            residual=residual,
            t=t,
            active=np.ones(columns.n_columns, dtype=bool) if self.skip else None,
        )

    def sparsity(self, state: FrankWolfeIterate) -> RowSparsity:
        """Evaluate the row sparsity at an iterate."""
        return row_sparsity(state.columns, self.mu, row_max=state.row_max, row_count=state.row_count)

    def answer(self, state: FrankWolfeIterate) -> tuple[FrankWolfeIterate, Mapping[str, Any]]:
        """Ask for the best vertex of every column, and measure gap and objective."""
        if state.placed:
            return self._answer_there(state)
        sparsity = self.sparsity(state)
        slope = sparsity.slope(self.lam)
        chosen, whole = state.chosen, True
        if chosen is not None and state.active is not None and not state.active.all():
            moving = np.flatnonzero(state.active)
            chosen = chosen.copy()
            chosen[moving] = best_atoms(self.dictionary, state.residual, slope, moving)
            gaps, squares = self._gaps(state, sparsity, chosen)
            # What is left says that the run may end: look at all columns before that is believed.
            whole = float(np.sum(gaps)) <= self.gap_tol or not bool((gaps > self._share()).any())
        if whole:
            chosen = best_atoms(self.dictionary, state.residual, slope)
            gaps, squares = self._gaps(state, sparsity, chosen)
        gap = float(gaps.sum()) if whole else float("nan")
        loss = 0.5 * float(squares.sum()) + self.lam * sparsity.value
        largest = float(np.sqrt(squares.max(initial=0.0)))
        new = state.changed(
            chosen=chosen,
            column_gaps=gaps,
            gap=gap,
            loss=loss,
            largest_residual=largest,
            active=gaps > self._share() if self.skip else None,
        )
        measures = {"loss": loss, "gap": gap, "largest_residual": largest, "entries": state.counts.sum()}
        return new, measures

    def _answer_there(self, state: FrankWolfeIterate) -> tuple[FrankWolfeIterate, Mapping[str, Any]]:
        # All columns, with lists of tensors: only sums come home, together.
        import torch

        sparsity = tensor_row_sparsity(state.columns, self.mu, state.row_max, state.row_count)
        slope = sparsity.slope(self.lam)
        chosen = best_atoms(self.dictionary, state.residual, slope)
        gaps, squares = column_products(self.dictionary, state.residual, chosen)
        gaps = gaps + (self.lam * sparsity.inner - slope.at(chosen))
        sums = (gaps.sum(), squares.sum(), squares.max(), sparsity.value, state.counts.sum().double())
        gap, square, largest, value, entries = torch.stack(sums).tolist()
        measures = {
            "loss": 0.5 * square + self.lam * value,
            "gap": gap,
            "largest_residual": math.sqrt(largest),
            "entries": entries,
        }
        found = {name: measures[name] for name in ("loss", "gap", "largest_residual")}
        return replace(state, chosen=chosen, column_gaps=gaps, **found), measures

    def complete(self, state: FrankWolfeIterate) -> FrankWolfeIterate:
        """Return the iterate with the gap of all columns, where some were skipped."""
        if not math.isnan(state.gap):
            return state
        return self.answer(replace(state, chosen=None))[0]

    def _share(self) -> float:
        return self.gap_tol / self.dictionary.points.shape[0]

    def _gaps(
        self, state: FrankWolfeIterate, sparsity: RowSparsity, chosen: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        fit, squares = column_products(self.dictionary, state.residual, chosen)
        if self.lam == 0:
            return fit, squares
        there = value_at(sparsity.indptr, sparsity.rows, sparsity.shares, chosen, sparsity.base)
        return fit + self.lam * (sparsity.inner - there), squares
