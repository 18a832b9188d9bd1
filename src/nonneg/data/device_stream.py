"""Data in host memory or in a file that a GPU works on: copied there once, or streamed in blocks of rows.

Arrays with one row per sample stay on the device.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import to_device
from nonneg._devices import PART_FOR_DATA, free_memory
from nonneg._typing import Array, SampleArray
from nonneg.data.dense import DenseMatrix
from nonneg.data.device_blocks import DeviceStream, tensor_dtype
from nonneg.data.local import local_matrix, observed_mask
from nonneg.data.matrix import LocalMatrix, Statistics
from nonneg.data.streamed import StreamedMatrix
from nonneg.exceptions import DeviceMemoryError
from nonneg.io.memory import memory_limit, written_bytes
from nonneg.io.stored import ArrayRows, StoredMatrix

# Entries that are cast to float64 at a time.
WIDE_ENTRIES = 1 << 23


def fits(n_bytes: float, device: Any) -> bool:
    """Tell whether data of this size fit on the device, with room for what a fit adds to them."""
    return n_bytes <= PART_FOR_DATA * free_memory(device)


def host_bytes(X: Any) -> float:
    """Return the bytes that an array or sparse matrix takes on the device."""
    single = X.dtype == np.float32
    if sp.issparse(X):
        # Products with X' keep the transpose.
        return 2.0 * X.nnz * (8 if single else 12)
    return float(X.shape[0] * X.shape[1] * (4 if single else 8))


def host_rows(X: Any) -> StoredMatrix:
    """Return an array in host memory as blocks of rows."""
    if sp.issparse(X):
        raise DeviceMemoryError(
            f"The sparse X and its transpose take {written_bytes(host_bytes(X))}, more than the GPU has "
            "free. Sparse data are not streamed through a GPU; use float32, or leave device out."
        )
    return ArrayRows(X, "X", memory_limit())


def copied(X: Any, device: Any) -> Any:
    """Return a NumPy array or SciPy sparse matrix as a tensor on the device."""
    import torch

    if sp.issparse(X):
        csr = X.tocsr()
        if csr.dtype not in (np.float32, np.float64):
            csr = csr.astype(np.float64)
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        parts = (torch.from_numpy(np.ascontiguousarray(part)) for part in (csr.indptr, csr.indices, csr.data))
        indptr, indices, data = (part.to(device) for part in parts)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
            warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
            return torch.sparse_csr_tensor(indptr, indices, data, size=csr.shape, check_invariants=False)
    X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    out = torch.empty(X.shape, dtype=tensor_dtype(X.dtype), device=device)
    stream = DeviceStream(ArrayRows(X, "X", 1 << 62), device, lock=False)
    for start, stop, block in stream.blocks():
        out[start:stop] = block
    return out


class DeviceStreamedMatrix(StreamedMatrix):
    """A matrix in host memory or on disk, worked on in blocks of rows by a device."""

    numpy_out = True

    def __init__(self, stored: StoredMatrix, device: Any, *, weights: Any = None, **options: Any) -> None:
        super().__init__(stored, **options)
        if stored.is_sparse:
            raise DeviceMemoryError(
                f"{stored.source} is sparse and larger than memory. Sparse data are not streamed through a "
                "GPU; leave device out."
            )
        import torch

        self.device, self.stream = device, DeviceStream(stored, device)
        self.xp = array_namespace(torch.empty(0))
        self.dtype = tensor_dtype(stored.working_dtype)
        self._edges = self.stream.edges
        if weights is not None:
            self.weights = torch.asarray(np.asarray(weights), dtype=self.dtype, device=device)

    def _wrapped(self, entries: Any, start: int, stop: int) -> LocalMatrix:
        weights = None if self.weights is None else self.weights[start:stop]
        return local_matrix(entries, weights=weights, mask=self._seen(entries, slice(start, stop)))

    def _seen(self, entries: Any, rows: Any) -> Any:
        """Return which entries of some rows were observed: not NaN, and not hidden by the mask."""
        mask = None if self._mask is None else self._mask[rows]
        if not (self._nan_is_missing and self.has_mask):
            return mask
        return observed_mask(entries, mask)

    def _blocks(self) -> Iterator[tuple[int, int, LocalMatrix]]:
        """Yield the blocks; while one is worked on, the next ones are copied."""
        self.n_passes += 1
        self.progress.begin(self.n_passes)
        for start, stop, entries in self.stream.blocks():
            yield start, stop, self._wrapped(entries, start, stop)
            self.progress.update(stop / self.shape[0])

    def _rows_alone(self) -> Iterator[tuple[int, int, Any]]:
        import torch

        for start, stop in self._ranges():
            weights = None if self.weights is None else self.weights[start:stop]
            nothing = torch.empty((stop - start, 0), dtype=self.dtype, device=self.device)
            yield start, stop, DenseMatrix(nothing, self.xp, weights=weights)

    def _sample_array(self, columns: tuple[int, ...], dtype: Any) -> Any:
        import torch

        return torch.empty((self.shape[0], *columns), dtype=dtype, device=self.device)

    def examine(self, check: Callable[[LocalMatrix, int], None] | None = None) -> None:
        """Compute all statistics on the device, in one pass."""
        known: Statistics | None = None
        places = np.zeros(2)
        for start, _, block in self._blocks():
            if check is not None:
                check(block, start)
            found, sums = _statistics(block, start)
            known = found if known is None else known + found
            places += sums
        assert known is not None
        self._known = known
        # Sums tell other data from the same, and other orders of rows and columns too.
        facts = (known.squared_norm, known.total, *places.tolist(), known.lowest, known.highest)
        self._digest = " ".join([*(f"{fact:.9g}" for fact in facts), str(known.n_nonzero)])
        if self._mask is None and not known.n_missing:
            self.has_mask = False

    def to_sample_array(self, array: Any) -> SampleArray:
        """Return an array with one row per sample on the device."""
        return self.to_device(array)

    def to_device(self, array: Any) -> Array:
        """Return an array on the device."""
        import torch

        return to_device(array, torch.empty(0, device=self.device), self.dtype)

    def select(self, rows: Any) -> LocalMatrix:
        """Return some rows on the device, in ascending order, with their weights and mask."""
        index = np.asarray(rows, dtype=np.int64)
        entries = copied(self.stored.take_rows(index), self.device)
        weights = None if self.weights is None else self.weights[self.xp.asarray(index, device=self.device)]
        return local_matrix(entries, weights=weights, mask=self._seen(entries, index))


def _statistics(block: LocalMatrix, first_row: int) -> tuple[Statistics, Any]:
    """Return what the first pass finds in a block, and sums that depend on the places of its entries."""
    import torch

    rows = block.dense_rows(0, block.shape[0])
    weights = block.weights
    n_rows, n_columns = block.shape
    squares, sums = (torch.empty(n_rows, dtype=torch.float64, device=rows.device) for _ in range(2))
    columns = torch.zeros(n_columns, dtype=torch.float64, device=rows.device)
    step = max(1, WIDE_ENTRIES // n_columns)
    for start in range(0, n_rows, step):
        part = rows[start : start + step].double()
        squares[start : start + step] = (part * part).sum(dim=1)
        sums[start : start + step] = part.sum(dim=1)
        columns += part.sum(dim=0)
    own = torch.ones_like(sums) if weights is None else weights.double()
    at = torch.cos(torch.arange(first_row, first_row + n_rows, device=rows.device).double())
    across = torch.cos(torch.arange(n_columns, device=rows.device).double())
    low, high = block.extremes()
    found = torch.stack(
        [(own * squares).sum(), (own * sums).sum(), (at * sums).sum(), (across * columns).sum()]
    )
    norm, total, by_row, by_column = found.tolist()
    n_missing = 0
    if block.observed is not None:
        n_missing = n_rows * n_columns - round(float(block.observed.weight(None)))
    statistics = Statistics(
        norm, total, float(block.observed_weight()), block.count_nonzero(), low, high, n_missing
    )
    return statistics, np.array([by_row, by_column])
