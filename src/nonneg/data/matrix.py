"""The data operator: what solvers may ask of the data, whatever container holds the entries.

A Frobenius solver sees Gram matrices and cross products only; other losses see blocks of rows. One pass over
the data is one `map_reduce_rows`: a function is called with each local block and the matching rows of W. It
returns new rows, which stay beside the block, and small arrays, which are summed; `map_rows` and
`reduce_rows` take a function that returns one of the two. A local container has one block, a chunked one has
one per chunk, one on disk as many as memory allows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nonneg._arrays import to_numpy
from nonneg._lazy import cached_property
from nonneg._typing import Array, FloatArray, Namespace, SampleArray
from nonneg.data.observed import Observed
from nonneg.kernels.grams import Gram, SharedGram
from nonneg.kernels.rows import gram_of

RowFunction: TypeAlias = Callable[..., tuple[tuple[Any, ...], tuple[Any, ...]]]


def rows_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function of blocks that uses no entries of X, so that a file is not read for it."""
    function.rows_only = True  # type: ignore[attr-defined]
    return function


class _RowMap:
    """A function of blocks that returns new rows alone, as `map_reduce_rows` calls it."""

    # A class, not a closure: it travels to other processes.

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.rows_only = function, getattr(function, "rows_only", False)

    def __call__(self, block: LocalMatrix, *rows: Array, **shared: Any) -> Any:
        return (self.function(block, *rows, **shared),), ()


class _RowSum(_RowMap):
    """A function of blocks that returns small results alone."""

    def __call__(self, block: LocalMatrix, *rows: Array, **shared: Any) -> Any:
        sums = self.function(block, *rows, **shared)
        return (), sums if type(sums) is tuple else (sums,)


class DataMatrix(ABC):
    """Interface of every container of entries; X has shape (n_rows, n_columns), with one sample per row.

    `W` stands for any array with one row per sample, `Ht` for any array with one row per feature.

    Attributes
    ----------
    container : {"dense", "sparse", "array", "sparse-array", "dask", "streamed", "scaled"}
        What holds the entries: a NumPy array, a SciPy sparse matrix, an array of another namespace, a sparse
        one, a Dask array, a file, or a view with scaled rows or columns.
    shape : tuple of int
        Rows and columns.
    dtype : dtype
        float32 or float64, of the namespace of the entries.
    xp : module
        The array API namespace of the entries.
    weights : array of shape (n_rows,) or None
        The row weights.
    observed : Observed or None
        The weights of the entries, where some are missing (0) or not all are 1. Products and sums are
        weighted; rows as arrays are not.
    has_mask : bool
        Whether there are weights of entries that only the blocks know.
    is_weighted : bool
        Whether the weights of the entries are others than 0 and 1.
    numpy_out : bool
        Whether X was given in host memory and is worked on by a GPU, so that results become NumPy arrays.
    is_sparse : bool
        Whether only nonzeros are stored, by rows in `csr` and by columns in `transposed`.
    """

    container: str
    shape: tuple[int, int]
    dtype: Any
    xp: Namespace
    weights: Array | None = None
    observed: Observed | None = None
    has_mask: bool = False
    is_weighted: bool = False
    numpy_out: bool = False
    is_sparse: bool = False
    _extremes: tuple[float, float] | None = None

    @property
    def has_missing(self) -> bool:
        """Whether entries have weights, 0 if missing, so that each row has a Gram matrix of its own."""
        return self.observed is not None or self.has_mask

    @property
    def n_missing(self) -> int:
        """The number of entries that were not observed."""
        return 0 if self.observed is None else self.observed.n_missing()

    @abstractmethod
    def times(self, Ht: Array) -> SampleArray:
        """Return X Ht, which has one row per sample."""

    @abstractmethod
    def transposed_times(self, W: SampleArray) -> Array:
        """Return X' diag(weights) W."""

    @abstractmethod
    def weighted_gram(self, W: SampleArray) -> Array:
        """Return W' diag(weights) W."""

    @abstractmethod
    def squared_norm(self) -> float:
        """Return the weighted sum of the squared (observed) entries."""

    @abstractmethod
    def total(self) -> float:
        """Return the weighted sum of the (observed) entries."""

    @abstractmethod
    def count_nonzero(self) -> int:
        """Return the number of nonzero entries."""

    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest entry, NaN if there is one; computed once."""
        if self._extremes is None:
            self._extremes = self._compute_extremes()
        return self._extremes

    @abstractmethod
    def _compute_extremes(self) -> tuple[float, float]:
        """Compute what `extremes` returns."""

    @abstractmethod
    def map_reduce_rows(
        self, function: RowFunction, *sample_arrays: SampleArray, n_out: int = 1, **shared: Any
    ) -> tuple[tuple[SampleArray, ...], tuple[Any, ...]]:
        """Call `function(block, *rows_of_sample_arrays, **shared)` on every block.

        It returns `n_out` arrays with one row per sample, which stay where they are, and a tuple of small
        results, which are summed in the order of the blocks.
        """

    def map_rows(self, function: Callable[..., Array], /, *rows: SampleArray, **shared: Any) -> SampleArray:
        """Call a function of blocks that returns one array with one row per sample; see `map_reduce_rows`."""
        return self.map_reduce_rows(_RowMap(function), *rows, **shared)[0][0]

    def reduce_rows(self, function: Callable[..., Any], /, *rows: SampleArray, **shared: Any) -> Any:
        """Call a function of blocks that returns a small result, or a tuple of several; return the sum."""
        sums = self.map_reduce_rows(_RowSum(function), *rows, n_out=0, **shared)[1]
        return sums[0] if len(sums) == 1 else sums

    @abstractmethod
    def to_sample_array(self, array: Any) -> SampleArray:
        """Return an array with one row per sample in the container, dtype and device of the data."""

    @abstractmethod
    def to_device(self, array: Any) -> Array:
        """Return a small array in the namespace and dtype and on the device of the local blocks."""

    def to_caller(self, array: Any) -> Any:
        """Return a result in the array type of the X that was given."""
        return to_numpy(array) if self.numpy_out else array

    @abstractmethod
    def local_blocks(self) -> Iterator[LocalMatrix]:
        """Yield the blocks one by one, in this process."""

    @abstractmethod
    def take_rows(self, rows: Any) -> Array:
        """Return the given rows as a dense local array."""

    def sample_matrix(self, W: SampleArray) -> DataMatrix | None:
        """Return an array with one row per sample as data of its own, with the same row weights.

        None where the container keeps such arrays in no form that products can be formed with.
        """
        return None

    def total_weight(self) -> float:
        """Return the sum of the row weights; without weights, the number of rows."""
        return float(self.shape[0]) if self.weights is None else float(self.xp.sum(self.weights))

    def counted_rows(self) -> float:
        """Return how many rows the weights stand for: their sum, or the number of positive ones if larger."""
        if self.weights is None:
            return float(self.shape[0])
        return max(self.total_weight(), float(self.xp.sum(self.xp.astype(self.weights > 0, self.xp.float64))))

    def observed_weight(self) -> float:
        """Return the weighted number of observed entries."""
        if self.observed is None:
            return self.total_weight() * self.shape[1]
        return self.observed.weight(self.weights)

    def mean(self) -> float:
        """Return the weighted mean of the observed entries; 0 where there are none."""
        count = self.observed_weight()
        return self.total() / count if count > 0 else 0.0

    def typical(self) -> float:
        """Return the size of an entry: the mean, or the root mean square where some are negative."""
        if self.extremes()[0] >= 0:
            return self.mean()
        count = self.observed_weight()
        return (self.squared_norm() / count) ** 0.5 if count > 0 else 0.0


class LocalMatrix(DataMatrix):
    """A container in this process: its only block is itself."""

    part_entries = 1 << 20  # that are looked at at a time, as float64

    def map_reduce_rows(
        self, function: RowFunction, *sample_arrays: SampleArray, n_out: int = 1, **shared: Any
    ) -> tuple[tuple[SampleArray, ...], tuple[Any, ...]]:
        """Call the function once, with the whole matrix."""
        return function(self, *sample_arrays, **shared)

    def to_sample_array(self, array: Any) -> SampleArray:
        """Return an array with one row per sample in the container, dtype and device of the data."""
        return self.to_device(array)

    def local_blocks(self) -> Iterator[LocalMatrix]:
        """Yield the matrix itself."""
        yield self

    def weighted(self, W: Array) -> Array:
        """Multiply each row by its weight; without weights, return the same object."""
        return W if self.weights is None else W * self.weights[:, None]

    def weighted_gram(self, W: SampleArray) -> Array:
        """Return W' diag(weights) W."""
        return gram_of(W, self.weighted(W))

    def inverse_row_norms(self, norm: str = "l2") -> Array:
        """Return one over the norm of every row, a column; 0 for rows of zeros."""
        xp = self.xp
        sizes = (
            xp.sqrt(self.squared_row_norms()) if norm == "l2" else xp.astype(self.row_powers(1.0), self.dtype)
        )
        positive = sizes > 0
        return xp.where(positive, 1.0 / xp.where(positive, sizes, xp.ones_like(sizes)), sizes)[:, None]

    def row_grams(self, Ht: Array) -> Gram:
        """Return the Gram matrices of the row subproblems: one for all, or one per row."""
        if self.observed is None:
            return SharedGram(gram_of(Ht))
        return self.observed.row_grams(Ht)

    def column_grams(self, W: Array) -> Gram:
        """Return the Gram matrices of the column subproblems: one for all, or one per column."""
        if self.observed is None:
            return SharedGram(self.weighted_gram(W))
        root = None if self.weights is None else self.xp.sqrt(self.weights)
        return self.observed.T.row_grams(W if root is None else W * root[:, None])

    def _dense_parts(self) -> Iterator[tuple[slice, Array]]:
        for start, stop in self.row_blocks(self.part_entries):
            yield slice(start, stop), self.xp.astype(self.dense_rows(start, stop), self.xp.float64)

    def entry_sum(self, function: Callable[[Array], Array]) -> float:
        """Return the weighted sum of a function of the entries that is 0 at 0, in float64."""
        # Block by block, so that no float64 copy exists whole. The sum stays where the entries are: a GPU is
        # asked for it once.
        xp, total = self.xp, 0.0
        for rows, values in self._dense_parts():
            values = function(values)
            if self.is_weighted and self.observed is not None:
                weights = self.observed.dense_rows(rows.start, rows.stop)
                values = values * xp.astype(weights, xp.float64)
            values = xp.sum(values, axis=1)
            if self.weights is not None:
                values = values * xp.astype(self.weights[rows], xp.float64)
            total = total + xp.sum(values)
        return float(total)

    def squared_norm(self) -> float:
        """Return the weighted sum of the squared entries."""
        return self._squared_norm

    @cached_property  # because solver, encoder and certificate ask for it
    def _squared_norm(self) -> float:
        return self.entry_sum(lambda values: values * values)

    def total(self) -> float:
        """Return the weighted sum of the entries."""
        return self._total

    @cached_property
    def _total(self) -> float:
        return self.entry_sum(lambda values: values)

    def _compute_extremes(self) -> tuple[float, float]:
        limits = [(float(self.xp.min(rows)), float(self.xp.max(rows))) for _, rows in self._dense_parts()]
        return float(np.min(limits)), float(np.max(limits))  # NaN, if one of them is

    def squared_row_norms(self) -> Array:
        """Return the sum of the squared (observed) entries of every row, without any weights."""
        return self.xp.astype(self.row_powers(2.0), self.dtype)

    def row_powers(self, power: float) -> Array:
        """Return the sum of a power of the absolute entries of every row, in float64."""
        xp = self.xp
        return xp.concat([xp.sum(powers(values, power), axis=1) for _, values in self._dense_parts()])

    def column_powers(self, power: float) -> Array:
        """Return the weighted sum of a power of the entries of every column, in float64."""
        total: Any = 0.0
        for rows, values in self._dense_parts():
            values = values**power
            if self.weights is not None:
                values = values * self.xp.astype(self.weights[rows], self.xp.float64)[:, None]
            total = total + self.xp.sum(values, axis=0)
        return total

    def raw_rows(self) -> Any:
        """Return the entries as compiled kernels read them, without a copy.

        A dense C-contiguous array, the arrays (indptr, indices, data) of a sparse one, or None where the
        entries are stored otherwise.
        """
        return None

    @abstractmethod
    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows as a dense array."""

    @abstractmethod
    def select(self, rows: Any) -> LocalMatrix:
        """Return a container of the given rows, with their weights and mask."""

    def row_blocks(self, entries: int = 1 << 17) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows (start, stop) of about `entries` entries each."""
        step = rows_per_block(self.shape[1], entries)
        for start in range(0, self.shape[0], step):
            yield start, min(self.shape[0], start + step)


class Statistics(NamedTuple):
    """Summary of all entries from one pass."""

    squared_norm: float
    total: float
    observed_weight: float
    n_nonzero: float
    n_missing: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, sums: FloatArray, limits: list[tuple[float, float]]) -> Statistics:
        """Join what `block_statistics` returns for the blocks."""
        # The extremes are NaN if one of them is.
        return cls._make([*map(float, sums), float(np.min(limits)), float(np.max(limits))])


def block_statistics(block: LocalMatrix) -> tuple[FloatArray, list[tuple[float, float]]]:
    """Return the sums of a block and its extremes, for `map_reduce_rows`."""
    # Entries that cannot be factorized are refused later, by their extremes.
    with np.errstate(all="ignore"):
        sums = block.squared_norm(), block.total(), block.observed_weight(), block.count_nonzero()
    return np.array([*sums, block.n_missing], dtype=np.float64), [block.extremes()]


class BlockedMatrix(DataMatrix):
    """A container of several blocks: all that is asked of it is one `map_reduce_rows`."""

    @cached_property
    def statistics(self) -> Statistics:
        """All statistics, from one pass: each alone would read the blocks, where they are not in memory."""
        return Statistics.of(*self.reduce_rows(block_statistics))

    @property
    def n_missing(self) -> int:
        """The number of entries that were not observed."""
        return int(self.statistics.n_missing)

    def times(self, Ht: Array) -> SampleArray:
        """Return X Ht."""
        return self.map_rows(_times, Ht=Ht)

    def transposed_times(self, W: SampleArray) -> Array:
        """Return X' diag(weights) W."""
        return self.reduce_rows(_transposed_times, W)

    def weighted_gram(self, W: SampleArray) -> Array:
        """Return W' diag(weights) W."""
        return self.reduce_rows(_weighted_gram, W)

    def squared_norm(self) -> float:
        """Return the weighted sum of the squared entries."""
        return self.statistics.squared_norm

    def total(self) -> float:
        """Return the weighted sum of the entries."""
        return self.statistics.total

    def observed_weight(self) -> float:
        """Return the weighted number of observed entries."""
        return self.statistics.observed_weight

    def count_nonzero(self) -> int:
        """Return the number of entries that are not zero."""
        return int(self.statistics.n_nonzero)

    def _compute_extremes(self) -> tuple[float, float]:
        return self.statistics.lowest, self.statistics.highest


def _times(block: LocalMatrix, *, Ht: Array) -> Array:
    return block.times(Ht)


def _transposed_times(block: LocalMatrix, W: Array) -> Array:
    return block.transposed_times(W)


@rows_only
def _weighted_gram(block: LocalMatrix, W: Array) -> Array:
    return block.weighted_gram(W)


def rows_per_block(n_columns: int, entries: int = 1 << 17) -> int:
    """Return the number of rows of a block of about `entries` entries."""
    return max(1, entries // max(1, n_columns))


def powers(values: Array, power: float) -> Array:
    """Return a power of the absolute entries."""
    return values * values if power == 2.0 else abs(values) ** power
