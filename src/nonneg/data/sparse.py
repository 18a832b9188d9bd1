"""Sparse entries by rows, with their transpose computed once: SciPy matrices, tensors and CuPy matrices.

`CsrArrays` does for tensors what SciPy's sparse matrices do for NumPy. Index arrays are int32 where the shape
allows it. Columns are sorted within rows, and repeated entries are added. Sparse matrices of CuPy become
tensors in the same memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import to_device, to_numpy, to_torch
from nonneg._lazy import cached_property
from nonneg._optional import import_optional
from nonneg._threads import parallel_for
from nonneg._typing import Array, Namespace, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix, powers
from nonneg.data.observed import ArrayObserved, ListedObserved, Observed, observed_entries
from nonneg.exceptions import DataTypeError, InvalidDataError
from nonneg.kernels.sparse_products import RowPlan, row_plan, row_sums, rows_of_entries, sparse_times

# Stored entries of which a function is computed at a time, in float64.
ENTRIES = 1 << 22
INT32_LIMIT = 2**31 - 1


class CsrArrays:
    """A sparse matrix by rows: the columns and values of row i are at ``indptr[i]`` to ``indptr[i + 1]``."""

    def __init__(self, indptr: Array, indices: Array, data: Array, shape: tuple[int, int]) -> None:
        self.indptr, self.indices, self.data = indptr, indices, data
        self.shape = (int(shape[0]), int(shape[1]))

    @property
    def xp(self) -> Namespace:
        """The namespace of the arrays."""
        return array_namespace(self.data)

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        return int(self.data.shape[0])

    @cached_property
    def plan(self) -> RowPlan | None:
        """Division of the rows among the threads of a GPU; made once."""
        return row_plan(self.indptr)

    def with_data(self, data: Array) -> CsrArrays:
        """Return a matrix with the same places and other values."""
        other = CsrArrays(self.indptr, self.indices, data, self.shape)
        if "plan" in vars(self):
            other.__dict__["plan"] = self.plan
        return other

    def rows_of_entries(self) -> Array:
        """Return the row of every stored entry."""
        return rows_of_entries(self.indptr, 0, self.nnz)

    @property
    def tensor(self) -> Any:
        """The same matrix as a sparse tensor."""
        return csr_tensor(self.indptr, self.indices, self.data, self.shape)

    @property
    def T(self) -> CsrArrays:
        """The transpose, a matrix of its own."""
        with quiet():
            turned = self.tensor.to_sparse_csc()
        return CsrArrays(turned.ccol_indices(), turned.row_indices(), turned.values(), self.shape[::-1])

    def __getitem__(self, rows: Any) -> CsrArrays:
        """Return some rows: a range, indices or truth values."""
        xp = self.xp
        index = np.arange(self.shape[0])[rows] if isinstance(rows, slice) else to_numpy(rows)
        index = np.flatnonzero(index) if index.dtype == bool else index.astype(np.int64)
        index = np.where(index < 0, index + self.shape[0], index)
        places = to_device(index, self.data)
        starts, lengths = self.indptr[:-1], self.indptr[1:] - self.indptr[:-1]
        starts, lengths = xp.take(starts, places), xp.take(lengths, places)
        ends = xp.cumulative_sum(lengths, dtype=self.indptr.dtype)
        indptr = xp.concat([xp.zeros_like(self.indptr[:1]), ends])
        total = int(indptr[-1])
        new_rows = rows_of_entries(indptr, 0, total)
        entries = xp.arange(total, dtype=indptr.dtype, device=self.data.device)
        entries = entries + xp.take(starts - indptr[:-1], new_rows)
        shape = (len(index), self.shape[1])
        return CsrArrays(indptr, xp.take(self.indices, entries), xp.take(self.data, entries), shape)

    def toarray(self) -> Array:
        """Return a dense array; for few rows."""
        return self.tensor.to_dense()

    @classmethod
    def from_scipy(cls, csr: Any, like: Array) -> CsrArrays:
        """Return a SciPy matrix in the namespace, on the device and with the dtype of `like`."""
        indptr, indices = (to_device(part, like) for part in (csr.indptr, csr.indices))
        return cls(indptr, indices, to_device(csr.data, like, like.dtype), csr.shape)

    def to_scipy(self) -> Any:
        """Return a SciPy matrix; on the CPU it shares the memory."""
        parts = (to_numpy(part) for part in (self.data, self.indices, self.indptr))
        return sp.csr_array(tuple(parts), shape=self.shape)


def _canonical(csr: CsrArrays) -> CsrArrays:
    """Return a matrix with sorted columns, repeated entries added, and short indices where these suffice."""
    import torch

    _check_places(csr)
    rows = csr.rows_of_entries()
    if bool(torch.any((rows[1:] == rows[:-1]) & (csr.indices[1:] <= csr.indices[:-1]))):
        places = torch.stack([rows, csr.indices]).long()
        csr = _from_coordinates(torch.sparse_coo_tensor(places, csr.data, csr.shape))
    index = torch.int32 if max(*csr.shape, csr.nnz) < INT32_LIMIT else torch.int64
    return CsrArrays(csr.indptr.to(index), csr.indices.to(index), csr.data, csr.shape)


def _from_coordinates(X: Any) -> CsrArrays:
    with quiet():
        X = X.coalesce().to_sparse_csr()
    return CsrArrays(X.crow_indices(), X.col_indices(), X.values(), X.shape)


def _check_places(csr: CsrArrays) -> None:
    # Neither PyTorch nor CuPy checks this by default, and a kernel would read elsewhere in memory.
    xp, indptr = csr.xp, csr.indptr
    good = int(indptr.shape[0]) == csr.shape[0] + 1 and int(csr.indices.shape[0]) == csr.nnz
    good = good and int(indptr[0]) == 0 and int(indptr[-1]) == csr.nnz
    good = good and not bool(xp.any(indptr[1:] < indptr[:-1]))
    if good and csr.nnz:
        good = int(xp.min(csr.indices)) >= 0 and int(xp.max(csr.indices)) < csr.shape[1]
    if not good:
        raise InvalidDataError(
            f"The index arrays of the sparse X do not describe a matrix of shape {csr.shape} (or of its "
            "transpose): they must start at 0, not decrease and end at the number of entries, with indices "
            "inside the shape. Check how X was made."
        )


LAYOUTS = "torch.sparse_csr, torch.sparse_csc or torch.sparse_coo"


def check_sparse_array(X: Any, name: str = "X") -> None:
    """Reject layouts and dtypes of tensors that the library does not read."""
    if str(X.layout) not in LAYOUTS:
        raise DataTypeError(
            f"Expected a sparse tensor {name} with layout {LAYOUTS}, got {X.layout}. Convert it first, "
            f"for example {name}.to_sparse_csr() or {name}.to_dense()."
        )
    if len(X.shape) == 2 and X.dense_dim() != 0:
        raise DataTypeError(
            f"Expected a sparse tensor {name} whose entries are numbers, got one with {X.dense_dim()} dense "
            f"dimensions. Use {name}.to_dense()."
        )
    if str(X.dtype) not in ("torch.float32", "torch.float64"):
        raise DataTypeError(
            f"Expected a sparse {name} of float32 or float64, got {X.dtype}. Convert it first, for example "
            f"{f'abs({name})' if X.is_complex() else name}.to(torch.float32)."
        )


def scipy_matrix(X: Any, name: str = "X") -> Any:
    """Return a sparse tensor or CuPy matrix as a SciPy matrix in host memory; whole numbers become floats."""
    X = sparse_tensor(X)
    if str(X.dtype) not in ("torch.float32", "torch.float64") and not X.is_complex():
        X = X.double()  # before entries of one place are added, which might wrap around in small integers
    check_sparse_array(X, name)
    return csr_arrays(X).to_scipy()


def csr_arrays(X: Any) -> CsrArrays:
    """Return a checked sparse tensor or CuPy matrix by rows."""
    X = sparse_tensor(X).detach()
    layout = str(X.layout).removeprefix("torch.")
    if layout == "sparse_coo":
        return _canonical(_from_coordinates(X))
    if layout == "sparse_csr":
        return _canonical(CsrArrays(X.crow_indices(), X.col_indices(), X.values(), X.shape))
    return _canonical(CsrArrays(X.ccol_indices(), X.row_indices(), X.values(), X.shape[::-1])).T


def sparse_tensor(X: Any) -> Any:
    """Return a sparse matrix of CuPy as a tensor in the same memory, and a tensor as it is."""
    if type(X).__module__ == "torch":
        return X
    import_optional("torch", extra="torch", purpose="A sparse matrix of CuPy")
    csr = X.tocsr()
    indptr, indices, data = (to_torch(part) for part in (csr.indptr, csr.indices, csr.data))
    return csr_tensor(indptr, indices, data, csr.shape)


def csr_tensor(indptr: Any, indices: Any, data: Any, shape: tuple[int, int]) -> Any:
    """Return a sparse tensor of its parts."""
    import torch

    with quiet():
        return torch.sparse_csr_tensor(indptr, indices, data, size=shape, check_invariants=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore PyTorch's warning that sparse layouts are in beta state."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")
        yield


class SparseRows(LocalMatrix):
    """Compressed sparse rows in arrays of any namespace; entries that are not stored are zeros."""

    is_sparse = True
    csr: Any

    def __init__(
        self, csr: Any, *, transposed: Any = None, weights: Array | None = None,
        observed: Observed | None = None,
    ) -> None:  # fmt: skip
        self.csr, self.xp = csr, array_namespace(csr.data)
        self.shape = (int(csr.shape[0]), int(csr.shape[1]))
        self.dtype = csr.data.dtype
        self.weights, self.observed = weights, observed
        self.is_weighted = observed is not None and not observed.is_mask
        if transposed is not None:
            self.__dict__["transposed"] = transposed

    @cached_property
    def products(self) -> Any:
        """The entries times their weights: what products with the data are made of."""
        if not self.is_weighted:
            return self.csr
        weights = self._entry_weights(0, self.csr.data.shape[0], rows=False)
        return _with_data(self.csr, self.csr.data * self.xp.astype(weights, self.dtype))

    @cached_property
    def transposed(self) -> Any:
        """The transpose of `products` by rows: two more arrays of the nonzeros, made once."""
        Xt = self.products.T
        return Xt if isinstance(Xt, CsrArrays) else sp.csr_array(Xt.tocsr())

    def times(self, Ht: Array) -> SampleArray:
        """Return X Ht."""
        return _product(self.products, Ht)

    def transposed_times(self, W: SampleArray) -> Array:
        """Return X' diag(weights) W."""
        return _product(self.transposed, self.weighted(W))

    def _entry_weights(self, first: int, last: int, *, rows: bool = True) -> Array:
        """Return the weights of some stored entries in float64, with those of their rows or without."""
        xp, places = self.xp, rows_of_entries(self.csr.indptr, first, last)
        weights = xp.ones(last - first, dtype=xp.float64, device=self.csr.data.device)
        if rows and self.weights is not None:
            weights = xp.take(xp.astype(self.weights, xp.float64), places)
        if self.is_weighted:
            weights = weights * self.observed.at(places, self.csr.indices[first:last])  # type: ignore[union-attr]
        return weights

    def entry_sum(self, function: Callable[[Array], Array]) -> float:
        """Return the weighted sum of a function of the entries that is 0 at 0, in float64."""
        xp, data, total = self.xp, self.csr.data, 0.0
        for first in range(0, data.shape[0], ENTRIES):
            last = min(first + ENTRIES, data.shape[0])
            values = function(xp.astype(data[first:last], xp.float64))
            if self.weights is not None or self.is_weighted:
                values = values * self._entry_weights(first, last)
            total = total + xp.sum(values)
        return float(total)

    def row_powers(self, power: float) -> Array:
        """Return the sum of a power of the absolute entries of every row, in float64."""
        values = powers(self.xp.astype(self.csr.data, self.xp.float64), power)
        return row_sums(self.csr.indptr, values, plan=getattr(self.csr, "plan", None))

    def column_powers(self, power: float) -> Array:
        """Return the weighted sum of a power of the entries of every column, in float64."""
        # The products need the transpose, too; with weights of the entries it holds others than the data.
        xp, Xt = self.xp, (type(self)(self.csr) if self.is_weighted else self).transposed
        values = xp.astype(Xt.data, xp.float64) ** power
        if self.weights is not None:
            values = values * xp.take(xp.astype(self.weights, xp.float64), Xt.indices)
        return row_sums(Xt.indptr, values, plan=getattr(Xt, "plan", None))

    def to_device(self, array: Any) -> Array:
        """Return an array in the namespace and dtype and on the device of the data."""
        return to_device(array, self.csr.data, self.dtype)

    def count_nonzero(self) -> int:
        """Return the number of entries that are not zero."""
        # PyTorch counts in an array of integers of eight bytes.
        data = self.csr.data
        parts = (data[first : first + ENTRIES] for first in range(0, data.shape[0], ENTRIES))
        return int(sum(self.xp.count_nonzero(part) for part in parts))

    def _compute_extremes(self) -> tuple[float, float]:
        data = self.csr.data
        if data.shape[0] == 0:
            return 0.0, 0.0
        low, high = float(self.xp.min(data)), float(self.xp.max(data))
        if data.shape[0] < self.shape[0] * self.shape[1] and low == low:
            low, high = min(low, 0.0), max(high, 0.0)
        return low, high

    def take_rows(self, rows: Any) -> Array:
        """Return the given rows."""
        return self.csr[np.asarray(rows, dtype=np.int64)].toarray()

    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows, made dense."""
        return self.csr[start:stop].toarray()

    def select(self, rows: Any) -> SparseRows:
        """Return some rows."""
        index = rows if isinstance(rows, slice) else to_device(to_numpy(rows), self.csr.data)
        return type(self)(
            self.csr[rows],
            weights=None if self.weights is None else self.weights[index],
            observed=None if self.observed is None else self.observed.rows(rows),
        )

    def scaled(self, row_scale: Array | None, column_scale: Array | None) -> SparseRows:
        """Return the same places with entries times the scales of their row and column."""
        values = self.csr.data
        if row_scale is not None:
            values = values * self.xp.take(row_scale[:, 0], rows_of_entries(self.csr.indptr, 0, len(values)))
        if column_scale is not None:
            values = values * self.xp.take(column_scale, self.csr.indices)
        return type(self)(_with_data(self.csr, values), weights=self.weights, observed=self.observed)


class SparseMatrix(SparseRows):
    """A SciPy matrix."""

    container = "sparse"
    single_use = False  # a block of a file, whose transpose would be used once and double its memory

    def transposed_times(self, W: SampleArray) -> Array:
        """Return X' diag(weights) W."""
        if not self.single_use or "transposed" in vars(self):
            return super().transposed_times(W)
        # From the rows of X, each thread with a sum of its own.
        W, csr, n_columns = self.weighted(W), self.products, self.shape[1]

        def work(start: int, stop: int) -> Any:
            first, last = csr.indptr[start], csr.indptr[stop]
            # Set one by one: SciPy's constructor copies slices of less than half of an array.
            part = sp.csc_array((n_columns, stop - start), dtype=csr.dtype)
            part.data, part.indices = csr.data[first:last], csr.indices[first:last]
            part.indptr = csr.indptr[start : stop + 1] - first
            return part @ W[start:stop]

        products = parallel_for(work, self.shape[0], chunk_size=256, operations=2.0 * csr.nnz * W.shape[1])
        return sum(products[1:], start=products[0])

    def raw_rows(self) -> tuple[Any, Any, Any]:
        """Return the entries as compiled kernels read them."""
        return self.csr.indptr, self.csr.indices, self.csr.data


class SparseArrayMatrix(SparseRows):
    """A sparse tensor or CuPy matrix."""

    container = "sparse-array"
    csr: CsrArrays

    def row_blocks(self, entries: int = 1 << 17) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows, larger ones than on the CPU: each costs a few kernels."""
        return super().row_blocks(max(entries, ENTRIES))

    def on_host(self) -> SparseMatrix:
        """Return the same data in SciPy's container, for what has no implementation on a GPU."""
        observed = self.observed
        if isinstance(observed, ListedObserved):
            observed = observed.converted(CsrArrays.to_scipy)
        elif observed is not None:
            observed = ArrayObserved(to_numpy(observed.weights), np)
        weights = None if self.weights is None else to_numpy(self.weights)
        return SparseMatrix(self.csr.to_scipy(), weights=weights, observed=observed)


def _with_data(csr: Any, data: Array) -> Any:
    if isinstance(csr, CsrArrays):
        return csr.with_data(data)
    # Not by the constructor, which would look through the places again.
    other = sp.csr_array(csr.shape, dtype=data.dtype)
    other.data, other.indices, other.indptr = data, csr.indices, csr.indptr
    return other


def _product(csr: Any, factor: Array) -> Array:
    return sparse_times(csr.indptr, csr.indices, csr.data, factor, plan=getattr(csr, "plan", None))


def on_host(data: DataMatrix) -> DataMatrix:
    """Return sparse tensors and CuPy's sparse matrices in SciPy's container; other data as they are."""
    return data.on_host() if isinstance(data, SparseArrayMatrix) else data


def sparse_matrix(X: Any, weights: Any = None, mask: Any = None) -> SparseMatrix:
    """Wrap a SciPy matrix; entries that are not observed are left out."""
    if X.dtype not in (np.float32, np.float64):
        # Before repeated entries are added, which might wrap around in small integers.
        X = X.astype(np.float64)
    csr = X.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy() if csr is X or np.shares_memory(csr.data, X.data) else csr
        csr.sum_duplicates()
    if weights is not None:
        weights = np.asarray(weights, dtype=csr.dtype)
    if mask is None:
        return SparseMatrix(csr, weights=weights)
    observed = observed_entries(mask, csr.dtype)
    # A product with 0/1 would keep NaN at missing places; look each entry up instead.
    entries = csr.tocoo()
    seen = observed.at(entries.row, entries.col) != 0
    csr = sp.csr_array((entries.data[seen], (entries.row[seen], entries.col[seen])), shape=csr.shape)
    csr.sort_indices()
    return SparseMatrix(csr, weights=weights, observed=observed)


def sparse_array_matrix(X: Any, weights: Any = None, mask: Any = None) -> SparseArrayMatrix:
    """Wrap a sparse tensor or CuPy matrix; entries that are not observed are left out."""
    X = sparse_tensor(X)
    check_sparse_array(X)
    csr = csr_arrays(X)
    like = csr.data
    if weights is not None:
        weights = to_device(weights, like, like.dtype)
    if mask is None:
        return SparseArrayMatrix(csr, weights=weights)
    # SciPy sorts out what was observed, once, on the host.
    host = sparse_matrix(csr.to_scipy(), None, mask)
    observed: Any = host.observed
    if isinstance(observed, ListedObserved):
        observed = observed.converted(lambda part: CsrArrays.from_scipy(part, like))
    else:
        observed = ArrayObserved(to_device(observed.weights, like, like.dtype), array_namespace(like))
    return SparseArrayMatrix(CsrArrays.from_scipy(host.csr, like), weights=weights, observed=observed)
