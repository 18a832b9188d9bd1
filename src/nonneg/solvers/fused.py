"""Iterations of HALS on NumPy arrays in two compiled tasks, one per factor."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nonneg._arrays import is_float_array
from nonneg._compiled import core
from nonneg._typing import Array
from nonneg.data.compressed import CompressedMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.kernels.factor_update import FactorUpdate, Updated, block_of, is_by_lines
from nonneg.kernels.grams import SharedGram
from nonneg.kernels.hals import hals_passes
from nonneg.kernels.rows import gram_of

# Entries of the products X' W of all blocks of rows up to which they are formed with the update of W, which
# has just read the rows of X; one thread adds them up.
WIDE_ENTRIES = 1 << 16
# Chunks with at least this many rows are updated as a whole, where the products X' W of their blocks of rows
# take at most this part of the chunk's own memory. Smaller ones have no rows for whole blocks.
CHUNK_ROWS, CHUNK_SHARE = 2000, 0.25


class FusedIterations:
    """`AlternatingProblem.advance` for data in memory without weights and missing entries."""

    def __init__(self, problem: Any, X: Array | None, V: Array | None) -> None:
        # X or, with V, its form X V' with few columns of X; None where products with X are given.
        self.problem = problem
        k, (n_rows, n_columns) = len(problem.order), problem.data.shape
        penalties, dtype = problem.penalties, np.dtype(problem.data.dtype if X is None else X.dtype)
        blocks = -(-n_rows // block_of(n_rows, dtype.itemsize))
        tall = X is not None and blocks * n_columns * k <= WIDE_ENTRIES
        self.right = V
        self.of_W = FactorUpdate(
            X, n_rows, k, dtype=dtype, l1=penalties.l1_W, wide=V is not None or tall,
            **_options(problem.update_W),
        )  # fmt: skip
        if V is not None:
            columns = V
        else:
            columns = None if tall or X is None else X.T
        self.of_H = FactorUpdate(
            columns, n_columns, k, dtype=dtype, l1=penalties.l1_H, of_new=True, wide=V is not None,
            **_options(problem.update_H),
        )  # fmt: skip
        self.eps = 8 * float(np.finfo(dtype).eps)
        # For compressed data: Gram matrices and products with V of the last Ht and of the extrapolated one.
        self._known: list[tuple[Array, Array, Array | None]] = []

    @classmethod
    def of(cls, problem: Any) -> FusedIterations | None:
        """Return the iterations of a problem, None where it is of another kind."""
        data: Any = problem.data
        V = None
        if not _is_hals(problem):
            return None
        if isinstance(data, CompressedMatrix):
            data, V = data.projected, data.V
        if not isinstance(data, DenseMatrix) or data.weights is not None or data.has_missing:
            return None
        parts = [data.array] if V is None else [data.array, V]
        if not all(is_float_array(part) and is_by_lines(part) for part in parts):
            return None
        return cls(problem, data.array, V)

    @classmethod
    def of_products(cls, problem: Any) -> FusedIterations | None:
        """Return the iterations of a problem with given products, None where it is of another kind."""
        data = problem.data
        plain = data.weights is None and not data.has_missing and np.dtype(data.dtype).char in "df"
        return cls(problem, None, None) if plain and _is_hals(problem) else None

    def _of_H(self, Ht: Array) -> tuple[Array, Array]:
        """Return the Gram matrix of Ht, and what the rows of X, or of X V, are multiplied with."""
        if self.right is None:
            # Not the sums of the last iteration, whose last digits differ: a resumed fit has only Ht.
            return gram_of(Ht), Ht
        for known, gram, products in self._known:
            if known is Ht:
                return gram, gram_of(self.right, Ht) if products is None else products
        return gram_of(Ht), gram_of(self.right, Ht)

    def advance(self, state: Any, momentum: float) -> tuple[Any, float]:
        """Do one iteration."""
        gram, factor = self._of_H(state.initial_Ht(momentum))
        rows = self.update_W(state, momentum, gram, factor)
        other = rows.chosen if rows.products is None else rows.products
        return self.update_H(state, momentum, rows, other)

    def update_W(self, state: Any, momentum: float, gram: Array, factor: Array) -> Updated:
        """Do the first half, given the Gram matrix of H' and H' or products of the data with it."""
        old = state.W_plain if momentum != 0.0 else None
        return self.of_W(state.W, _with_ridge(gram, self.problem.penalties.l2_W), factor, old, momentum)

    def update_H(self, state: Any, momentum: float, rows: Updated, other: Array) -> tuple[Any, float]:
        """Do the second half, given W or products of the data with it."""
        penalties = self.problem.penalties
        moves = momentum != 0.0
        columns = self.of_H(
            state.initial_Ht(momentum), _with_ridge(rows.gram, penalties.l2_H), other,
            state.Ht_plain if moves else None, momentum,
        )  # fmt: skip
        new = columns.new
        self._known = [(columns.chosen, columns.gram, columns.products)]
        if moves:
            self._known.append((new, columns.new_gram, None))
        # In float64 whatever the data.
        quadratic = float(np.vdot(columns.new_gram.astype(np.float64), rows.gram.astype(np.float64)))
        loss = 0.5 * self.problem.squared_norm - columns.dot + 0.5 * quadratic
        loss += float(penalties.of_W(rows.chosen)) + float(penalties.of_H(new))
        after = replace(
            state,
            W=rows.chosen,
            Ht=new,
            W_plain=rows.new,
            Ht_plain=new,
            Ht_next=columns.chosen if moves else None,
            # Rounding may take the difference below zero where the fit is exact.
            loss=max(loss, 0.0),
        )
        violations = (updated.violation - self.eps * updated.absolute for updated in (rows, columns))
        return after, sum(max(violation, 0.0) for violation in violations)


def _is_hals(problem: Any) -> bool:
    updates = (problem.update_W, problem.update_H)
    inner = all(isinstance(update, partial) and update.func is hals_passes for update in updates)
    return inner and core() is not None


def takes_chunk(block: Any, *, gram: Any, update: Any, order: Any, **_: Any) -> bool:
    """Tell whether `updated_chunk` takes a block of rows with what `update_W_block` is given."""
    X = getattr(block, "array", None)
    if not isinstance(X, np.ndarray) or X.shape[0] < CHUNK_ROWS or block.has_missing or gram is None:
        return False
    if not isinstance(update, partial) or update.func is not hals_passes or core() is None:
        return False
    n_blocks = -(-X.shape[0] // block_of(X.shape[0], X.itemsize))
    fits = n_blocks * len(order) <= CHUNK_SHARE * X.shape[0]
    return block.weights is None and is_float_array(X) and is_by_lines(X) and fits


def updated_chunk(
    block: Any, W: Array, W_plain: Array | None, *, Ht: Array, gram: Any, update: Any, penalties: Any,
    momentum: float,
) -> tuple[tuple[Array, ...], tuple[Any, ...]]:  # fmt: skip
    """Do the same as `update_W_block` in one task."""
    X, options = block.array, _options(update)
    task = FactorUpdate(X, len(X), Ht.shape[1], dtype=X.dtype, l1=penalties.l1_W, wide=True, **options)
    found = task(W, _with_ridge(gram.matrix, penalties.l2_W), Ht, W_plain, momentum)
    violation = found.violation - 8 * float(np.finfo(X.dtype).eps) * found.absolute
    sums = (violation, SharedGram(found.gram), found.products, penalties.of_W(found.chosen))
    return (found.new,) if W_plain is None else (found.new, found.chosen), sums


def _options(update: Any) -> dict[str, Any]:
    given = update.keywords
    return {
        "order": given["order"],
        "max_passes": given.get("max_passes", 1),
        "shrink": given.get("shrink", 0.0),
    }


def _with_ridge(gram: Array, ridge: float) -> Array:
    return gram + ridge * np.eye(len(gram), dtype=gram.dtype) if ridge else gram
