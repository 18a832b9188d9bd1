"""A Frank-Wolfe iterate: a matrix whose columns have few entries and gain at most one per iteration.

Every column is a short list of rows and weights; an entry of the matrix is a weight divided by a total that
all columns share. With the open-loop step 2/(t+2) from zero the weights are integers and the total is
t(t+1)/2, so that the iterate is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._threads import parallel_for
from nonneg._typing import FloatArray, IntArray

# Columns are updated in chunks of this size: long enough for the call of a compiled loop not to show.
CHUNK_SIZE = 1024
# Lists grow by this number of places when one of them is full.
GROWTH = 8
# Up to this number of columns, entries are listed in one pass, with room for a few per column.
FEW = 1 << 15
# Entries of float weights up to this are rounding errors, and are dropped.
ROUNDING = 1e-15
# exp(-x) is zero in float64 from here on.
UNDERFLOW = 745.2


@dataclass(frozen=True)
class SparseColumns:
    """Lists of rows and weights, one per column.

    Attributes
    ----------
    rows : array of int32 of shape (n_columns, capacity)
        Which rows have an entry; places beyond the count of a column are arbitrary.
    weights : array of int32 or float64 of shape (n_columns, capacity)
        Their weights.
    counts : array of int32 of shape (n_columns,)
        The number of entries of every column.
    total : float
        The divisor of the weights.
    """

    rows: IntArray
    weights: Any
    counts: IntArray
    total: float

    @property
    def n_columns(self) -> int:
        """The number of columns, and of rows."""
        return len(self.counts)

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return int(self.counts.sum())

    def as_csc(self, dtype: Any = np.float64) -> Any:
        """Return the matrix."""
        n, capacity = self.rows.shape
        indptr = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(self.counts, out=indptr[1:])
        used = np.arange(capacity) < self.counts[:, None]
        data = (self.weights[used] / self.total).astype(dtype)
        matrix = sp.csc_array((data, self.rows[used], indptr), shape=(n, n))
        matrix.sort_indices()
        return matrix


def no_entries(n_columns: int, *, exact: bool = True, capacity: int = GROWTH) -> SparseColumns:
    """Return a matrix of zeros.

    Parameters
    ----------
    n_columns : int
        The number of columns.
    exact : bool, default True
        Whether the weights are integers.
    capacity : int
        Number of places per column.

    Returns
    -------
    SparseColumns
        Without entries, with a total of 0 (1 where the weights are not integers).
    """
    weights = np.zeros((n_columns, capacity), dtype=np.int32 if exact else np.float64)
    rows = np.zeros((n_columns, capacity), dtype=np.int32)
    return SparseColumns(rows, weights, np.zeros(n_columns, dtype=np.int32), 0.0 if exact else 1.0)


def columns_of(matrix: Any, *, total: float = 1.0) -> SparseColumns:
    """Return a matrix as lists.

    Parameters
    ----------
    matrix : array or sparse matrix of shape (n, n)
        Nonnegative entries.
    total : float, default 1.0
        The weights are the entries times this.

    Returns
    -------
    SparseColumns
        With float64 weights.
    """
    csc = sp.csc_array(matrix, dtype=np.float64)
    if not csc.has_canonical_format or not csc.data.all():
        csc = csc.copy()
        csc.sum_duplicates()
        csc.eliminate_zeros()
    counts = np.diff(csc.indptr).astype(np.int32)
    capacity = int(counts.max(initial=0)) + GROWTH
    lists = no_entries(csc.shape[1], exact=False, capacity=capacity)
    used = np.arange(capacity) < counts[:, None]
    lists.rows[used] = csc.indices
    lists.weights[used] = csc.data * total
    return SparseColumns(lists.rows, lists.weights, counts, float(total))


def scaled_columns(columns: SparseColumns, total: float) -> SparseColumns:
    """Return the same matrix with weights in another unit.

    Parameters
    ----------
    columns : SparseColumns
        With float weights.
    total : float
        The new total.

    Returns
    -------
    SparseColumns
        The lists of rows are shared.
    """
    weights = columns.weights * (total / columns.total)
    return SparseColumns(columns.rows, weights, columns.counts, float(total))


def step_columns(
    columns: SparseColumns,
    entering: IntArray,
    gain: Any,
    *,
    total: float,
    keep: Any = 1,
    leaving: IntArray | None = None,
    cut: Any = 0,
) -> tuple[SparseColumns, Any]:
    """Take a step in every column: scale its weights, add weight to one row, and remove some from another.

    Parameters
    ----------
    columns : SparseColumns
        The matrix; not modified.
    entering : array of int of shape (n_columns,)
        The rows that gain weight.
    gain : number or array of shape (n_columns,)
        The weight gained; 0 leaves a column as it is.
    total : float
        The divisor of the new weights.
    keep : number or array of shape (n_columns,), default 1
        The factor of the old weights.
    leaving : array of int of shape (n_columns,), optional
        The rows that lose weight; -1 for none.
    cut : number or array of shape (n_columns,), default 0
        The weight lost. Entries that reach zero are dropped.

    Returns
    -------
    columns : SparseColumns
        The new matrix, with longer lists if one of them was full.
    reached : array of shape (n_columns,)
        The new weights of the entering rows.
    """
    from nonneg.kernels.sparse_columns import numba as compiled

    n, capacity = columns.rows.shape
    dtype = columns.weights.dtype
    # The rounding error left of an entry that should be zero.
    floor = 0 if dtype == np.int32 else ROUNDING * float(total)
    if int(columns.counts.max(initial=0)) >= capacity:
        capacity += GROWTH
    rows = np.empty((n, capacity), dtype=np.int32)
    weights = np.empty((n, capacity), dtype=dtype)
    counts, reached = np.empty(n, dtype=np.int32), np.zeros(n, dtype=dtype)
    enters = np.ascontiguousarray(entering, dtype=np.int64)
    before, after = (columns.rows, columns.weights, columns.counts), (rows, weights, counts, reached)
    if leaving is None and isinstance(gain, (int, float)) and isinstance(keep, int) and keep == 1:
        amount = dtype.type(gain)

        def work(start: int, stop: int) -> None:
            compiled.add_to_columns(*before, enters, amount, *after, start, stop)

    else:
        leaves = np.full(n, -1, dtype=np.int64) if leaving is None else np.asarray(leaving, dtype=np.int64)
        shares = [
            np.ascontiguousarray(np.broadcast_to(np.asarray(value, dtype=dtype), (n,)))
            for value in (keep, gain, cut)
        ]

        def work(start: int, stop: int) -> None:
            compiled.step_columns(*before, enters, leaves, *shares, floor, *after, start, stop)

    parallel_for(work, n, chunk_size=CHUNK_SIZE, operations=4.0 * n * capacity)
    return SparseColumns(rows, weights, counts, float(total)), reached


def row_facts(columns: SparseColumns) -> tuple[Any, IntArray]:
    """Find the largest weight and the number of entries of every row.

    Parameters
    ----------
    columns : SparseColumns
        The matrix.

    Returns
    -------
    row_max : array of shape (n_columns,)
        Zero where a row is empty.
    row_count : array of int of shape (n_columns,)
        How many entries each row has.
    """
    from nonneg.kernels.sparse_columns import numba as compiled

    row_max = np.zeros(columns.n_columns, dtype=columns.weights.dtype)
    row_count = np.zeros(columns.n_columns, dtype=np.int32)
    compiled.row_facts(columns.rows, columns.weights, columns.counts, row_max, row_count)
    return row_max, row_count


def raised_row_facts(
    row_max: Any, row_count: IntArray, entering: IntArray, reached: Any, fresh: Any
) -> tuple[Any, IntArray]:
    """Update the largest weights and numbers of entries of the rows after a step without leaving rows.

    Parameters
    ----------
    row_max, row_count : array of shape (n_columns,)
        The values before; not modified.
    entering : array of int of shape (n_columns,)
        The rows that gained weight.
    reached : array of shape (n_columns,)
        Their new weights.
    fresh : array of bool of shape (n_columns,)
        Whether the entry is new.

    Returns
    -------
    row_max, row_count : array of shape (n_columns,)
        The values after.
    """
    from nonneg.kernels.sparse_columns import numba as compiled

    row_max, row_count = row_max.copy(), row_count.copy()
    compiled.raise_row_facts(np.asarray(entering, dtype=np.int64), reached, fresh, row_max, row_count)
    return row_max, row_count


@dataclass(frozen=True)
class NearMaxima:
    """Entries near the largest of their row, column by column."""

    indptr: IntArray  # where the columns begin
    rows: IntArray  # the rows of the entries
    weights: Any  # their weights
    values: FloatArray  # exp((weight - largest) / scale), 1 for the largest


def near_maxima(columns: SparseColumns, row_max: Any, scale: float) -> NearMaxima:
    """List the entries whose exp((weight - largest of the row) / scale) is not zero in float64.

    Parameters
    ----------
    columns : SparseColumns
        The matrix.
    row_max : array of shape (n_columns,)
        The largest weight of every row.
    scale : float
        Positive; weights are measured in it.

    Returns
    -------
    NearMaxima
        Its memory is that of the listed entries.
    """
    from nonneg.kernels.sparse_columns import numba as compiled

    n = columns.n_columns
    reach = UNDERFLOW * scale
    # A scale near the smallest number has no inverse; the largest entries are listed as 1 without it.
    inverse = 1.0 / max(scale, 1e-300)
    arrays = (columns.rows, columns.weights, columns.counts, row_max, reach)
    if n <= FEW:
        indptr, room = np.empty(n + 1, dtype=np.int64), 4 * n + 1024
        rows, values = np.empty(room, dtype=np.int32), np.empty(room)
        weights = np.empty(room, dtype=columns.weights.dtype)
        if compiled.list_near(*arrays, inverse, indptr, rows, weights, values):
            count = int(indptr[-1])
            return NearMaxima(indptr, rows[:count], weights[:count], values[:count])
    operations = 3.0 * columns.nnz
    found = np.empty(n, dtype=np.int64)
    parallel_for(
        lambda start, stop: compiled.count_near(*arrays, found, start, stop),
        n,
        chunk_size=CHUNK_SIZE,
        operations=operations,
    )
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(found, out=indptr[1:])
    rows = np.empty(indptr[-1], dtype=np.int32)
    weights = np.empty(indptr[-1], dtype=columns.weights.dtype)
    values = np.empty(indptr[-1])
    parallel_for(
        lambda start, stop: compiled.fill_near(*arrays, inverse, indptr, rows, weights, values, start, stop),
        n,
        chunk_size=CHUNK_SIZE,
        operations=operations,
    )
    return NearMaxima(indptr, rows, weights, values)


def sums_by_row(near: NearMaxima, n_rows: int) -> FloatArray:
    """Add the listed values of every row.

    Parameters
    ----------
    near : NearMaxima
        The entries.
    n_rows : int
        The number of rows.

    Returns
    -------
    array of shape (n_rows,)
        Added in the order of the columns, whatever the number of threads.
    """
    from nonneg.kernels.sparse_columns import numba as compiled

    sums = np.zeros(n_rows)
    compiled.add_by_row(near.rows, near.values, sums)
    return sums


def value_at(indptr: IntArray, rows: IntArray, values: FloatArray, places: Any, otherwise: Any) -> FloatArray:
    """Look up one row of every column in a list of entries.

    Parameters
    ----------
    indptr, rows, values : array
        The listed entries, column by column.
    places : array of int of shape (n_columns,)
        The row asked of each column.
    otherwise : array of shape (n_rows,)
        The value of a row where the entry is not listed.

    Returns
    -------
    array of shape (n_columns,)
        The values.
    """
    from nonneg.kernels.sparse_columns import numba as compiled

    out = np.empty(len(places))
    wanted = np.asarray(places, dtype=np.int64)
    parallel_for(
        lambda start, stop: compiled.value_at(indptr, rows, values, wanted, otherwise, out, start, stop),
        len(out),
        chunk_size=CHUNK_SIZE,
        operations=4.0 * (len(out) + len(rows)),
    )
    return out
