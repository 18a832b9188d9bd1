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

from nonneg._typing import Array, FloatArray, IntArray
from nonneg.data import LocalMatrix
from nonneg.kernels.column_residuals import column_products, residuals_of
from nonneg.kernels.self_dictionary import Dictionary, best_atoms, dictionary_of
from nonneg.kernels.sparse_columns import SparseColumns, row_facts, value_at
from nonneg.losses.row_sparsity import RowSparsity, row_sparsity


@dataclass(frozen=True)
class FrankWolfeIterate:
    """Coefficients, residuals and what the oracle said of them; flat, so that it can be saved.

    Attributes
    ----------
    rows, weights, counts, total : array, array, array, float
        The coefficients, as in `SparseColumns`.
    row_max, row_count : array of shape (n_points,)
        The largest weight and the number of entries of every row.
    residual : array of float64 of shape (n_points, n_features)
        One row a column of XC - X, where the points are.
    t : int
        The iteration, from which an open-loop step is made.
    chosen : array of int64 of shape (n_points,) or None
        The oracle's answer: the vertex of every column. None before it was asked.
    column_gaps : array of float64 of shape (n_points,) or None
        The part of each column in the gap.
    active : array of bool of shape (n_points,) or None
        Columns that still move, where some are skipped.
    gap : float
        Their sum: the objective is at most so much above its minimum. NaN where columns were skipped.
    loss : float
        The objective.
    largest_residual : float
        The longest residual.
    anchors : array of int or None
        The rows with the largest maxima, where they are watched.
    """

    rows: IntArray
    weights: Any
    counts: IntArray
    total: float
    row_max: Any
    row_count: IntArray
    residual: Array
    t: int = 0
    chosen: IntArray | None = None
    column_gaps: FloatArray | None = None
    active: Any = None
    gap: float = float("nan")
    loss: float = float("nan")
    largest_residual: float = float("nan")
    anchors: IntArray | None = None

    @property
    def columns(self) -> SparseColumns:
        """The coefficients."""
        return SparseColumns(self.rows, self.weights, self.counts, self.total)

    @property
    def row_maxima(self) -> FloatArray:
        """The largest coefficient of every data point."""
        return self.row_max / (self.total or 1.0)

    @property
    def answered(self) -> bool:
        """Whether the oracle was asked."""
        return self.chosen is not None


@dataclass(frozen=True)
class SelfDictionary:
    """The problem at given data, weight and smoothing.

    Attributes
    ----------
    dictionary : Dictionary
        The data points.
    lam : float
        Weight of the row sparsity.
    mu : float
        Its smoothing.
    gap_tol : float
        The gap that is good enough; columns whose part is below their share of it may be skipped.
    skip : bool
        Whether they are.
    """

    dictionary: Dictionary
    lam: float
    mu: float
    gap_tol: float = 0.0
    skip: bool = False

    @classmethod
    def of(cls, data: LocalMatrix, lam: float, mu: float, **options: Any) -> SelfDictionary:
        """Return the problem of a local matrix.

        Parameters
        ----------
        data : LocalMatrix
            The data, one point a row.
        lam, mu : float
            Weight and smoothing of the row sparsity.
        **options : Any
            Further attributes.

        Returns
        -------
        SelfDictionary
            Dense and sparse host data and host tensors are not copied.
        """
        points = data.csr if data.kind == "sparse" else data.array  # type: ignore[attr-defined]
        return cls(dictionary_of(points), lam, mu, **options)

    def start(self, columns: SparseColumns, t: int = 0, residual: Array | None = None) -> FrankWolfeIterate:
        """Return the first iterate.

        Parameters
        ----------
        columns : SparseColumns
            The coefficients.
        t : int
            The iteration to begin with.
        residual : array of float64 of shape (n_points, n_features), optional
            Their residuals, where they are known.

        Returns
        -------
        FrankWolfeIterate
            Not answered yet.
        """
        row_max, row_count = row_facts(columns)
        return FrankWolfeIterate(
            rows=columns.rows,
            weights=columns.weights,
            counts=columns.counts,
            total=columns.total,
            row_max=row_max,
            row_count=row_count,
            residual=residuals_of(self.dictionary, columns) if residual is None else residual,
            t=t,
            active=np.ones(columns.n_columns, dtype=bool) if self.skip else None,
        )

    def sparsity(self, state: FrankWolfeIterate) -> RowSparsity:
        """Evaluate the row sparsity at an iterate.

        Parameters
        ----------
        state : FrankWolfeIterate
            Where.

        Returns
        -------
        RowSparsity
            Value and slope.
        """
        return row_sparsity(state.columns, self.mu, row_max=state.row_max, row_count=state.row_count)

    def answer(self, state: FrankWolfeIterate) -> tuple[FrankWolfeIterate, Mapping[str, Any]]:
        """Ask for the best vertex of every column, and measure gap and objective.

        Parameters
        ----------
        state : FrankWolfeIterate
            Where.

        Returns
        -------
        state : FrankWolfeIterate
            Answered.
        measures : mapping
            "loss", "gap", "largest_residual" and "entries" at this iterate.
        """
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
        gap = float(np.sum(gaps)) if whole else float("nan")
        loss = 0.5 * float(np.sum(squares)) + self.lam * sparsity.value
        largest = float(np.sqrt(squares.max(initial=0.0)))
        new = replace(
            state,
            chosen=chosen,
            column_gaps=gaps,
            gap=gap,
            loss=loss,
            largest_residual=largest,
            active=gaps > self._share() if self.skip else None,
        )
        measures = {"loss": loss, "gap": gap, "largest_residual": largest, "entries": state.counts.sum()}
        return new, measures

    def complete(self, state: FrankWolfeIterate) -> FrankWolfeIterate:
        """Return the iterate with the gap of all columns, where some were skipped.

        Parameters
        ----------
        state : FrankWolfeIterate
            Answered.

        Returns
        -------
        FrankWolfeIterate
            With a gap that bounds the distance from the optimum.
        """
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
