"""The self-dictionary problem: write every data point as a mixture of few data points.

Minimize 0.5 ||X - XC||^2 + lam Phi(C) over C >= 0 with columns that sum to one, (18) of the paper, whose
orientation is used here: a data point is a column of X. The memory is that of the nonzero coefficients, the
residuals, and one block of scores per thread.
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
from nonneg.kernels.self_dictionary import dictionary_of, minimizing_vertices
from nonneg.kernels.self_dictionary.types import Dictionary
from nonneg.kernels.sparse_columns import SparseColumns, row_facts, value_at
from nonneg.kernels.sparse_columns.torch import columns_to_device, tensor_on
from nonneg.separable.merit.row_sparsity import RowSparsity, row_sparsity, tensor_row_sparsity


@dataclass(frozen=True)
class FrankWolfeIterate:
    """Coefficients, residuals, and the result of the oracle; flat, so that it can be saved."""

    # The lists and the facts about rows and columns are NumPy arrays, or PyTorch tensors on the GPU of the
    # points for open-loop steps of all columns (`on_device`).

    rows: IntArray  # the coefficients, as in `SparseColumns`
    weights: Any
    counts: IntArray
    total: float
    row_max: Any  # the largest weight and the number of entries of every row
    row_count: IntArray
    residual: Array  # (XC - X)', on the device of the points
    t: int = 0  # the iteration, which determines the open-loop step size
    # The vertex of every column that minimizes the linearized objective; None before the oracle was called.
    vertices: IntArray | None = None
    column_gaps: FloatArray | None = None  # the part of each column in the duality gap
    active: Any = None  # columns that are not skipped; None where all are active
    # The duality gap, their sum. NaN where columns were skipped.
    gap: float = float("nan")
    loss: float = float("nan")  # the objective
    largest_residual: float = float("nan")  # the largest norm of a residual
    anchors: IntArray | None = None  # the rows with the largest maxima, where `anchor_window` needs them

    @property
    def columns(self) -> SparseColumns:
        """The coefficients."""
        return SparseColumns(self.rows, self.weights, self.counts, self.total)

    @property
    def row_maxima(self) -> FloatArray:
        """The largest coefficient of every data point, in NumPy."""
        return np.divide(to_numpy(self.row_max), self.total or 1.0)

    @property
    def on_device(self) -> bool:
        """Whether the lists are tensors on the device of the points."""
        return not isinstance(self.rows, np.ndarray)

    @property
    def as_numpy(self) -> FrankWolfeIterate:
        """The same iterate with lists in NumPy; the residuals stay on their device."""
        named = ("rows", "weights", "counts", "row_max", "row_count", "vertices", "column_gaps")
        lists = {name: getattr(self, name) for name in named}
        return replace(self, **{name: to_numpy(of) for name, of in lists.items() if of is not None})

    def changed(self, **fields: Any) -> FrankWolfeIterate:
        """Return the iterate with some fields replaced."""
        new = object.__new__(FrankWolfeIterate)
        new.__dict__.update(self.__dict__, **fields)
        return new

    @property
    def has_vertices(self) -> bool:
        """Whether the oracle was called."""
        return self.vertices is not None


@dataclass(frozen=True)
class SelfDictionary:
    """The problem, given data, weight and smoothing."""

    dictionary: Dictionary  # the data points
    lam: float  # weight of the row sparsity
    mu: float  # its smoothing
    # The tolerance of the duality gap; columns whose part is below their share of it may be skipped.
    gap_tol: float = 0.0
    skip: bool = False  # whether they are skipped

    @classmethod
    def of(cls, data: LocalMatrix, lam: float, mu: float, **options: Any) -> SelfDictionary:
        """Return the problem of a local matrix."""
        points = data.csr if data.container == "sparse" else data.array  # type: ignore[attr-defined]
        return cls(dictionary_of(points), lam, mu, **options)

    def initial_iterate(
        self, columns: SparseColumns, t: int = 0, residual: Array | None = None, *, on_device: bool = False
    ) -> FrankWolfeIterate:
        """Return the initial iterate."""
        row_max, row_count = row_facts(columns)
        if residual is None:
            residual = residuals_of(self.dictionary, columns)
        if on_device:
            columns = columns_to_device(columns, residual.device)
            row_max, row_count = (tensor_on(array, residual.device) for array in (row_max, row_count))
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

    def call_oracle(self, state: FrankWolfeIterate) -> tuple[FrankWolfeIterate, Mapping[str, Any]]:
        """Call the linear minimization oracle, and measure duality gap and objective."""
        if state.on_device:
            return self._call_oracle_on_device(state)
        sparsity = self.sparsity(state)
        gradient = sparsity.penalty_gradient(self.lam)
        vertices, whole = state.vertices, True
        if vertices is not None and state.active is not None and not state.active.all():
            moving = np.flatnonzero(state.active)
            vertices = vertices.copy()
            vertices[moving] = minimizing_vertices(self.dictionary, state.residual, gradient, moving)
            gaps, squares = self._gaps(state, sparsity, vertices)
            # The active columns alone say that the run has converged: check all columns first.
            whole = float(np.sum(gaps)) <= self.gap_tol or not bool((gaps > self._share()).any())
        if whole:
            vertices = minimizing_vertices(self.dictionary, state.residual, gradient)
            gaps, squares = self._gaps(state, sparsity, vertices)
        gap = float(gaps.sum()) if whole else float("nan")
        loss = 0.5 * float(squares.sum()) + self.lam * sparsity.value
        largest = float(np.sqrt(squares.max(initial=0.0)))
        new = state.changed(
            vertices=vertices,
            column_gaps=gaps,
            gap=gap,
            loss=loss,
            largest_residual=largest,
            active=gaps > self._share() if self.skip else None,
        )
        measures = {"loss": loss, "gap": gap, "largest_residual": largest, "entries": state.counts.sum()}
        return new, measures

    def _call_oracle_on_device(self, state: FrankWolfeIterate) -> tuple[FrankWolfeIterate, Mapping[str, Any]]:
        # All columns, with lists of tensors: only the sums are transferred, in one copy.
        import torch

        sparsity = tensor_row_sparsity(state.columns, self.mu, state.row_max, state.row_count)
        gradient = sparsity.penalty_gradient(self.lam)
        vertices = minimizing_vertices(self.dictionary, state.residual, gradient)
        gaps, squares = column_products(self.dictionary, state.residual, vertices)
        gaps = gaps + (self.lam * sparsity.inner - gradient.at(vertices))
        sums = (gaps.sum(), squares.sum(), squares.max(), sparsity.value, state.counts.sum().double())
        gap, square, largest, value, entries = torch.stack(sums).tolist()
        measures = {
            "loss": 0.5 * square + self.lam * value,
            "gap": gap,
            "largest_residual": math.sqrt(largest),
            "entries": entries,
        }
        found = {name: measures[name] for name in ("loss", "gap", "largest_residual")}
        return replace(state, vertices=vertices, column_gaps=gaps, **found), measures

    def complete(self, state: FrankWolfeIterate) -> FrankWolfeIterate:
        """Return the iterate with the duality gap of all columns, where some were skipped."""
        if not math.isnan(state.gap):
            return state
        return self.call_oracle(replace(state, vertices=None))[0]

    def _share(self) -> float:
        return self.gap_tol / self.dictionary.points.shape[0]

    def _gaps(
        self, state: FrankWolfeIterate, sparsity: RowSparsity, vertices: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        fit, squares = column_products(self.dictionary, state.residual, vertices)
        if self.lam == 0:
            return fit, squares
        there = value_at(sparsity.indptr, sparsity.rows, sparsity.shares, vertices, sparsity.base)
        return fit + self.lam * (sparsity.inner - there), squares
