"""The samples of an iteration: all of the data, mini-batches of rows, or a stream of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj

from nonneg._arrays import is_dask, to_float64
from nonneg._typing import FloatArray
from nonneg.data import DataMatrix, LocalMatrix, as_data_matrix
from nonneg.data.door import Request, check_entries, wrap
from nonneg.exceptions import InvalidDataError, InvalidParameterError, ShapeError, UnsupportedError
from nonneg.purification.decode import Decoder
from nonneg.purification.moments import Moments, moments_of

# Thresholds are chosen from this many samples, spread over the data: medians are then known to 2% of a
# standard deviation.
SUBSAMPLE = 4096
# Samples per iteration of an iterator by default, the larger of the two: 10 000 samples give a mean to 1% of
# a standard deviation, and 200 per feature keep the covariance of the weights well conditioned.
STREAM_SAMPLES, STREAM_PER_FEATURE = 10_000, 200
REQUEST = Request(signed=True, who="purify", masks=False)
_END = object()


class SamplesExhausted(Exception):
    """Raised when a stream has not enough samples left for an iteration."""


class StoredSamples:
    """All samples in every iteration, or the next rows of the data, cyclically."""

    def __init__(self, data: DataMatrix, batch_size: int | None) -> None:
        self.data = data
        self.n_columns = data.shape[1]
        self.dtype = data.dtype
        self.n_rows = None if batch_size is None else min(batch_size, data.shape[0])
        self.batch_size = data.counted_rows() if self.n_rows is None else float(self.n_rows)

    def subsample(self) -> FloatArray:
        """Return rows spread evenly over the data, as dense float64, the same at every call."""
        return spread_rows(self.data)

    def moments(self, decoder: Decoder, reference: FloatArray, iteration: int) -> Moments:
        """Return the moments of the rows of this iteration."""
        if self.n_rows is None:
            return moments_of(self.data, decoder, reference)
        total = self.data.shape[0]
        first = iteration * self.n_rows % total
        last = first + self.n_rows
        rows = moments_of(_rows(self.data, first, min(last, total)), decoder, reference)
        if last > total:
            rows = rows + moments_of(_rows(self.data, 0, last - total), decoder, reference)
        return rows


class BatchStream:
    """Batches of samples that are read, used and dropped."""

    def __init__(self, batches: Any, batch_size: int | None, n_components: int) -> None:
        self._once = isinstance(batches, Iterator)
        if self._once and batch_size is None:
            batch_size = max(STREAM_SAMPLES, STREAM_PER_FEATURE * n_components)
        self._wanted = batch_size  # samples per iteration; None reads the stream to its end
        self._open: Callable[[], Iterator[Any]] = lambda: _opened(batches)
        self._batches: Iterator[Any] = self._open() if not self._once else batches
        head = next(self._batches, _END)
        if head is _END:
            raise InvalidDataError("The stream of samples is empty: expected at least one batch.")
        self._head: DataMatrix | None = _checked(head)
        self.n_columns = self._head.shape[1]
        self.dtype = self._head.dtype
        self._subsample = spread_rows(self._head)
        self.batch_size = float(batch_size or self._head.shape[0])
        self.n_seen = 0
        self.halves: tuple[Moments, Moments] | None = None

    def subsample(self) -> FloatArray:
        """Return rows of the first batch."""
        return self._subsample

    def _next(self) -> DataMatrix | None:
        if self._head is not None:
            batch, self._head = self._head, None
            return batch
        block = next(self._batches, _END)
        return None if block is _END else _checked(block, self.n_columns)

    def moments(self, decoder: Decoder, reference: FloatArray, iteration: int) -> Moments:
        """Return the moments of the next samples, or of all."""
        parts: list[Moments] = []
        n_seen = 0
        anew = False
        while self._wanted is None or n_seen < self._wanted:
            batch = self._next()
            if batch is None:
                if self._wanted is None or self._once or (anew and n_seen == 0):
                    break
                self._batches, anew = self._open(), True
                continue
            part = moments_of(batch, decoder, reference)
            if not np.isfinite(part.mean_sample).all():
                # Entries are checked only now, because that takes as long as a product: name the wrong one.
                check_entries(batch, REQUEST)
            # Batches go to two halves in turn, which the certificate compares.
            parts = (
                [part] if not parts else [*parts, part] if len(parts) == 1 else [parts[1], parts[0] + part]
            )
            n_seen += batch.shape[0]
        self.n_seen += n_seen
        if self._wanted is None:
            self._batches = self._open()
        # What is left at the end of a stream is used where it is at least half of an iteration.
        if not parts or (self._wanted is not None and 2 * n_seen < self._wanted):
            raise SamplesExhausted
        if len(parts) == 1:
            return parts[0]
        self.halves = (parts[0], parts[1])
        return parts[0] + parts[1]


Samples: TypeAlias = StoredSamples | BatchStream
"""What an iteration decodes: samples that are there, or those that come."""


def samples_of(X: Any, batch_size: int | None, n_components: int, sample_weight: Any) -> Samples:
    """Wrap what the user passed as X."""
    if is_stream(X):
        if sample_weight is not None:
            raise UnsupportedError("A stream has no sample_weight. Repeat samples, or leave some out.")
        return BatchStream(X, batch_size, n_components)
    data = wrap(X, replace(REQUEST, sample_weight=sample_weight))
    return StoredSamples(data, batch_size)


def is_stream(X: Any) -> bool:
    """Tell whether X gives batches rather than being a matrix."""
    if isinstance(X, DataMatrix | np.ndarray) or sp.issparse(X) or is_dask(X) or is_array_api_obj(X):
        return False
    if callable(X) or isinstance(X, Iterator):
        return True
    if hasattr(X, "__array__") or hasattr(X, "iloc"):
        return False
    if isinstance(X, list | tuple):
        return len(X) > 0 and len(getattr(X[0], "shape", ())) == 2
    return isinstance(X, Iterable) and not isinstance(X, str | bytes)


def _opened(batches: Any) -> Iterator[Any]:
    source = batches() if callable(batches) and not isinstance(batches, Iterable) else batches
    if not isinstance(source, Iterable):
        raise InvalidParameterError(
            f"X is a function that returned {type(source).__name__}. Pass one without arguments that returns "
            "an iterator of batches, such as a generator function."
        )
    return iter(source)


def spread_rows(data: DataMatrix, most: int = SUBSAMPLE) -> FloatArray:
    """Return rows spread evenly over the data."""
    n_rows = data.shape[0]
    if data.weights is None:
        chosen = np.unique(np.linspace(0, n_rows - 1, min(n_rows, max(most, 1))).astype(np.int64))
    else:
        # As if every row were there as often as its weight says.
        ends = np.cumsum(to_float64(data.weights))
        n_places = max(1, min(most, round(data.counted_rows())))
        places = (np.arange(n_places) + 0.5) * (ends[-1] / n_places)
        chosen = np.minimum(np.searchsorted(ends, places, side="right"), n_rows - 1)
    return to_float64(data.take_rows(chosen))


def _rows(data: DataMatrix, first: int, last: int) -> DataMatrix:
    if isinstance(data, LocalMatrix):
        return data.select(slice(first, last))
    weights = None if data.weights is None else data.weights[first:last]
    return as_data_matrix(data.array[first:last], weights=weights)  # type: ignore[attr-defined]


def _checked(batch: Any, n_columns: int | None = None) -> DataMatrix:
    plain = isinstance(batch, np.ndarray) and batch.ndim == 2 and batch.dtype in (np.float32, np.float64)
    # Entries of later arrays are checked by their moments.
    data = as_data_matrix(batch) if plain and n_columns and len(batch) else wrap(batch, REQUEST)
    if n_columns is not None and data.shape[1] != n_columns:
        raise ShapeError(
            f"A batch of the stream has {data.shape[1]} columns, but the previous ones had {n_columns}. All "
            "batches need the same columns."
        )
    return data
