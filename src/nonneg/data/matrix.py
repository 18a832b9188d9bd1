"""The data operator: what solvers may ask of the data, whatever holds the entries.

A Frobenius solver sees Gram matrices and cross products only; other losses see blocks of rows. One
pass over the data is one `map_reduce_rows`: a function is called with each local block and the rows of the
left factor that belong to it, and returns new rows, which stay beside the block, and small arrays,
which are summed. Local holders have one block, chunked ones one a chunk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from nonneg._typing import Array, Namespace, SampleArray
from nonneg.data.observed import Observed
from nonneg.kernels.grams import Gram, SharedGram

RowFunction: TypeAlias = Callable[..., tuple[tuple[Any, ...], tuple[Any, ...]]]


class DataMatrix(ABC):
    """What every holder of entries offers; X is (n_rows, n_columns), one data point a row."""

    kind: str
    shape: tuple[int, int]
    dtype: Any
    xp: Namespace
    weights: Array | None = None
    observed: Observed | None = None
    # Whether there is a mask beside the entries, which only its blocks know.
    has_mask: bool = False

    @property
    def has_missing(self) -> bool:
        """Whether some entries were not observed: rows then have Gram matrices of their own."""
        return self.observed is not None or self.has_mask

    @abstractmethod
    def times(self, right: Array) -> SampleArray:
        """Return X right, which has one row a data point."""

    @abstractmethod
    def transposed_times(self, left: SampleArray) -> Array:
        """Return X' diag(weights) left."""

    @abstractmethod
    def row_gram(self, left: SampleArray) -> Array:
        """Return left' diag(weights) left."""

    @abstractmethod
    def squared_norm(self) -> float:
        """Return the weighted sum of the squared (observed) entries."""

    @abstractmethod
    def total(self) -> float:
        """Return the weighted sum of the (observed) entries."""

    @abstractmethod
    def count_nonzero(self) -> int:
        """Return the number of entries that are not zero."""

    @abstractmethod
    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest entry; NaN if there is one."""

    @abstractmethod
    def map_reduce_rows(
        self, function: RowFunction, *lefts: SampleArray, n_out: int = 1, **shared: Any
    ) -> tuple[tuple[SampleArray, ...], tuple[Any, ...]]:
        """Call `function(block, *left_blocks, **shared)` on every block.

        It returns `n_out` arrays with one row a data point, which stay where they are, and a tuple of
        small results, which are summed in the order of the blocks.
        """

    @abstractmethod
    def place_left(self, array: Any) -> SampleArray:
        """Bring a NumPy array with one row a data point to where the data are."""

    @abstractmethod
    def place(self, array: Any) -> Array:
        """Bring a small NumPy array to the namespace, dtype and device of the local blocks."""

    @abstractmethod
    def take_rows(self, rows: Any) -> Array:
        """Return the given rows as a dense local array."""

    def total_weight(self) -> float:
        """Return the sum of the row weights.

        Returns
        -------
        float
            The number of rows where there are no weights.
        """
        return float(self.shape[0]) if self.weights is None else float(self.xp.sum(self.weights))

    def counted_rows(self) -> float:
        """Return how many rows the weights stand for, which rules that count rows should use.

        Returns
        -------
        float
            The sum of the weights, or the number of rows with a weight where that is more (fractions).
        """
        if self.weights is None:
            return float(self.shape[0])
        return max(self.total_weight(), float(self.xp.sum(self.xp.astype(self.weights > 0, self.xp.float64))))

    def observed_weight(self) -> float:
        """Return the weighted number of observed entries.

        Returns
        -------
        float
            Rows times columns where nothing is missing.
        """
        if self.observed is None:
            return self.total_weight() * self.shape[1]
        return self.observed.weight(self.weights)

    def mean(self) -> float:
        """Return the weighted mean of the observed entries.

        Returns
        -------
        float
            0 where nothing is observed.
        """
        count = self.observed_weight()
        return self.total() / count if count > 0 else 0.0


class LocalMatrix(DataMatrix):
    """A holder in this process: its only block is itself."""

    def map_reduce_rows(
        self, function: RowFunction, *lefts: SampleArray, n_out: int = 1, **shared: Any
    ) -> tuple[tuple[SampleArray, ...], tuple[Any, ...]]:
        """Call the function once, with the whole matrix.

        Parameters
        ----------
        function : callable
            Takes the block, the rows of the lefts and the shared values.
        *lefts : array
            Arrays with one row a data point.
        n_out : int
            How many such arrays the function returns.
        **shared : Any
            Handed on.

        Returns
        -------
        tuple
            What the function returned.
        """
        return function(self, *lefts, **shared)

    def place_left(self, array: Any) -> SampleArray:
        """Bring an array to where the data are.

        Parameters
        ----------
        array : array
            One row a data point.

        Returns
        -------
        array
            Of the holder's namespace and dtype.
        """
        return self.place(array)

    def weighted(self, left: Array) -> Array:
        """Multiply each row by its weight.

        Parameters
        ----------
        left : array
            One row a data point.

        Returns
        -------
        array
            The same object where there are no weights.
        """
        return left if self.weights is None else left * self.weights[:, None]

    def row_gram(self, left: SampleArray) -> Array:
        """Return left' diag(weights) left.

        Parameters
        ----------
        left : array of shape (n_rows, k)
            The left factor.

        Returns
        -------
        array of shape (k, k)
            The Gram matrix.
        """
        return left.T @ self.weighted(left)

    def inverse_row_norms(self) -> Array:
        """Return one over the norm of every row, by which products are scaled instead of the data.

        Returns
        -------
        array of shape (n_rows, 1)
            0 for rows of zeros.
        """
        squares = self.squared_row_norms()[:, None]
        found = squares > 0
        safe = self.xp.where(found, squares, self.xp.ones_like(squares))
        return self.xp.where(found, 1.0 / self.xp.sqrt(safe), self.xp.zeros_like(squares))

    def left_gram(self, right: Array) -> Gram:
        """Return the Gram matrices of the rows' problems, given the right factor.

        Parameters
        ----------
        right : array of shape (n_columns, k)
            The right factor.

        Returns
        -------
        Gram
            One for all rows, or one a row where entries are missing.
        """
        if self.observed is None:
            return SharedGram(right.T @ right)
        return self.observed.left_gram(right)

    def right_gram(self, left: Array) -> Gram:
        """Return the Gram matrices of the columns' problems, given the left factor.

        Parameters
        ----------
        left : array of shape (n_rows, k)
            The left factor.

        Returns
        -------
        Gram
            One for all columns, or one a column where entries are missing.
        """
        if self.observed is None:
            return SharedGram(self.row_gram(left))
        root = None if self.weights is None else self.xp.sqrt(self.weights)
        return self.observed.right_gram(left if root is None else left * root[:, None])

    def squared_row_norms(self) -> Array:
        """Return the sum of the squared (observed) entries of every row.

        Returns
        -------
        array of shape (n_rows,)
            Without the weights.
        """
        parts = (self.dense_rows(start, stop) for start, stop in self.row_blocks(1 << 20))
        return self.xp.concat([self.xp.sum(rows * rows, axis=1) for rows in parts])

    def raw_rows(self) -> Any:
        """Return the entries in a form that compiled kernels read row by row.

        Returns
        -------
        numpy.ndarray, tuple of three numpy.ndarray, or None
            A dense array in row order, the arrays (indptr, indices, data) of a sparse one, or None where the
            entries are held otherwise; nothing is copied.
        """
        return None

    @abstractmethod
    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows as a dense array."""

    @abstractmethod
    def select(self, rows: Any) -> LocalMatrix:
        """Return a holder of the given rows, with their weights and mask."""

    def row_blocks(self, entries: int = 1 << 17) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows of about so many entries each.

        Parameters
        ----------
        entries : int
            The product of the rows of a range and the columns.

        Yields
        ------
        tuple of int
            The first row of a range and the one after its last.
        """
        step = block_rows(self.shape[1], entries)
        for start in range(0, self.shape[0], step):
            yield start, min(self.shape[0], start + step)


def block_rows(n_columns: int, entries: int = 1 << 17) -> int:
    """Return the number of rows of a block of about so many entries."""
    return max(1, entries // max(1, n_columns))


def exact_sum(xp: Namespace, values: Array) -> float:
    """Sum in float64 whatever the dtype."""
    if isinstance(values, np.ndarray):
        return float(np.sum(values, dtype=np.float64))
    return float(xp.sum(values, dtype=xp.float64))
