"""Compressed sparse rows in arrays of PyTorch or CuPy: conversion, transpose, selection of rows.

SciPy's sparse matrices do this for NumPy. Index arrays are int32 where the shape allows it. Columns are
sorted within rows, and repeated entries are added in a fixed order: results do not depend on timing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import to_device, to_numpy, to_torch
from nonneg._lazy import cached_property
from nonneg._typing import Array, Namespace
from nonneg.exceptions import DataTypeError, InvalidDataError
from nonneg.kernels.sparse_products import RowPlan, row_plan, row_sums, rows_of_entries

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
        """How kernels on a GPU share the rows; made once."""
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
    def T(self) -> CsrArrays:
        """The transpose, a matrix of its own."""
        xp = self.xp
        order = xp.argsort(self.indices, stable=True)
        columns = xp.take(self.indices, order)
        rows, values = xp.take(self.rows_of_entries(), order), xp.take(self.data, order)
        indptr = _starts(columns, self.shape[1], self.indptr.dtype)
        return CsrArrays(indptr, rows, values, (self.shape[1], self.shape[0]))

    def __getitem__(self, rows: Any) -> CsrArrays:
        """Return some rows: a range, indices or truth values."""
        xp = self.xp
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.shape[0])
            if step == 1:
                stop = max(start, stop)
                first, last = int(self.indptr[start]), int(self.indptr[stop])
                indptr = self.indptr[start : stop + 1] - self.indptr[start]
                return CsrArrays(
                    indptr, self.indices[first:last], self.data[first:last], (stop - start, self.shape[1])
                )
            rows = np.arange(start, stop, step)
        index = to_numpy(rows)
        index = np.flatnonzero(index) if index.dtype == bool else index.astype(np.int64)
        index = np.where(index < 0, index + self.shape[0], index)
        chosen = to_device(index, self.data)
        starts, lengths = self.indptr[:-1], self.indptr[1:] - self.indptr[:-1]
        starts, lengths = xp.take(starts, chosen), xp.take(lengths, chosen)
        ends = xp.cumulative_sum(lengths, dtype=self.indptr.dtype)
        indptr = xp.concat([xp.zeros_like(self.indptr[:1]), ends])
        total = int(indptr[-1])
        new_rows = rows_of_entries(indptr, 0, total)
        at = xp.arange(total, dtype=indptr.dtype, device=self.data.device)
        at = at + xp.take(starts - indptr[:-1], new_rows)
        shape = (len(index), self.shape[1])
        return CsrArrays(indptr, xp.take(self.indices, at), xp.take(self.data, at), shape)

    def toarray(self) -> Array:
        """Return a dense array; for few rows."""
        xp = self.xp
        n_rows, n_columns = self.shape
        out = xp.zeros(n_rows * n_columns, dtype=self.data.dtype, device=self.data.device)
        rows = xp.astype(self.rows_of_entries(), xp.int64)
        out[rows * n_columns + xp.astype(self.indices, xp.int64)] = self.data
        return xp.reshape(out, (n_rows, n_columns))

    def as_torch(self) -> CsrArrays:
        """Return the same matrix as tensors in the same memory, where they are arrays of CuPy."""
        indptr, indices, data = (to_torch(part) for part in (self.indptr, self.indices, self.data))
        return CsrArrays(indptr, indices, data, self.shape)

    @classmethod
    def from_scipy(cls, csr: Any, like: Array) -> CsrArrays:
        """Return a SciPy matrix in the namespace and on the device of `like`."""
        indptr, indices, data = (to_device(part, like) for part in (csr.indptr, csr.indices, csr.data))
        return cls(indptr, indices, data, csr.shape)

    def to_scipy(self) -> Any:
        """Return a SciPy matrix; on the CPU it shares the memory."""
        parts = (to_numpy(part) for part in (self.data, self.indices, self.indptr))
        return sp.csr_array(tuple(parts), shape=self.shape)


def _starts(sorted_rows: Array, n_rows: int, dtype: Any) -> Array:
    xp = array_namespace(sorted_rows)
    wanted = xp.arange(n_rows + 1, dtype=sorted_rows.dtype, device=sorted_rows.device)
    return xp.astype(xp.searchsorted(sorted_rows, wanted, side="left"), dtype)


def from_entries(rows: Array, columns: Array, values: Array, shape: tuple[int, int]) -> CsrArrays:
    """Return the matrix with the given entries, in any order; those of one place are added."""
    xp = array_namespace(values)
    key = xp.astype(rows, xp.int64) * shape[1] + xp.astype(columns, xp.int64)
    if values.shape[0] > 1 and bool(xp.any(key[1:] <= key[:-1])):
        order = xp.argsort(key, stable=True)
        key, values = xp.take(key, order), xp.take(values, order)
        first = xp.concat([xp.ones_like(key[:1]) > 0, key[1:] != key[:-1]])
        places = xp.nonzero(first)[0]
        if int(places.shape[0]) < int(key.shape[0]):
            end = xp.full_like(places[:1], int(key.shape[0]))
            values = row_sums(xp.concat([places, end]), values)
            key = xp.take(key, places)
    index = _index_dtype(xp, shape, int(values.shape[0]))
    row_of = key // shape[1]
    columns = xp.astype(key - row_of * shape[1], index)
    return CsrArrays(_starts(row_of, shape[0], index), columns, values, shape)


def _index_dtype(xp: Namespace, shape: tuple[int, int], nnz: int) -> Any:
    return xp.int32 if max(*shape, nnz) < INT32_LIMIT else xp.int64


def _from_compressed(indptr: Array, indices: Array, values: Array, shape: tuple[int, int]) -> CsrArrays:
    xp = array_namespace(values)
    nnz = int(values.shape[0])
    index = _index_dtype(xp, shape, nnz)
    csr = CsrArrays(
        xp.astype(indptr, index, copy=False), xp.astype(indices, index, copy=False), values, shape
    )
    _check_places(csr)
    if nnz > 1:
        rows = csr.rows_of_entries()
        behind = xp.logical_and(rows[1:] == rows[:-1], csr.indices[1:] <= csr.indices[:-1])
        if bool(xp.any(behind)):
            return from_entries(rows, csr.indices, values, shape)
    return csr


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


def check_sparse_array(X: Any, name: str = "X", *, mask: bool = False) -> None:
    """Reject layouts and dtypes that the library does not read."""
    if type(X).__module__ == "torch":
        if str(X.layout) not in LAYOUTS:
            raise DataTypeError(
                f"Expected a sparse tensor {name} with layout {LAYOUTS}, got {X.layout}. Convert it first, "
                f"for example {name}.to_sparse_csr() or {name}.to_dense()."
            )
        if len(X.shape) == 2 and X.dense_dim() != 0:
            raise DataTypeError(
                f"Expected a sparse tensor {name} whose entries are numbers, got one with "
                f"{X.dense_dim()} dense dimensions. Use {name}.to_dense()."
            )
    if not mask and str(X.dtype).removeprefix("torch.") not in ("float32", "float64"):
        kind = "torch.float32" if type(X).__module__ == "torch" else "'float32'"
        to = "to" if type(X).__module__ == "torch" else "astype"
        raise DataTypeError(
            f"Expected a sparse {name} of float32 or float64, got {X.dtype}. Convert it first, "
            f"for example {'abs(X)' if 'complex' in str(X.dtype) else name}.{to}({kind})."
        )


def scipy_matrix(X: Any, name: str = "X") -> Any:
    """Return a sparse tensor or CuPy matrix as a SciPy matrix in host memory; whole numbers become floats."""
    check_sparse_array(X, name, mask=True)
    if "complex" in str(X.dtype):
        check_sparse_array(X, name)
    if str(X.dtype).removeprefix("torch.") not in ("float32", "float64"):
        # Before entries of one place are added, which might wrap around in small integers.
        X = X.double() if type(X).__module__ == "torch" else X.astype(np.float64)
    return csr_arrays(X)[0].to_scipy()


def csr_arrays(X: Any) -> tuple[CsrArrays, CsrArrays | None]:
    """Return a checked sparse tensor or CuPy matrix by rows, and its transpose where that was at hand."""
    shape = (int(X.shape[0]), int(X.shape[1]))
    if type(X).__module__ == "torch":
        X = X.detach()
        layout = str(X.layout).removeprefix("torch.")
        if layout == "sparse_coo":
            places = X._indices()
            return from_entries(places[0], places[1], X._values(), shape), None
        if layout == "sparse_csr":
            return _from_compressed(X.crow_indices(), X.col_indices(), X.values(), shape), None
        turned = _from_compressed(X.ccol_indices(), X.row_indices(), X.values(), shape[::-1])
        return turned.T, turned
    if X.format == "csc":
        turned = _from_compressed(X.indptr, X.indices, X.data, shape[::-1])
        return turned.T, turned
    if X.format == "csr":
        return _from_compressed(X.indptr, X.indices, X.data, shape), None
    X = X.tocoo()
    return from_entries(X.row, X.col, X.data, shape), None
