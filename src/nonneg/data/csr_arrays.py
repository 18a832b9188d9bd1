"""Compressed sparse rows in tensors of PyTorch: conversion, transpose, selection of rows.

SciPy's sparse matrices do this for NumPy. Index arrays are int32 where the shape allows it. Columns are
sorted within rows, and repeated entries are added. Sparse matrices of CuPy become tensors in the same memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import to_device, to_numpy, to_torch
from nonneg._lazy import cached_property
from nonneg._optional import import_optional
from nonneg._typing import Array, Namespace
from nonneg.exceptions import DataTypeError, InvalidDataError
from nonneg.kernels.sparse_products import RowPlan, row_plan, rows_of_entries

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
        return self.tensor.to_dense()

    @classmethod
    def from_scipy(cls, csr: Any, like: Array) -> CsrArrays:
        """Return a SciPy matrix in the namespace and on the device of `like`."""
        indptr, indices, data = (to_device(part, like) for part in (csr.indptr, csr.indices, csr.data))
        return cls(indptr, indices, data, csr.shape)

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
    _check_layout(X, name)
    if str(X.dtype) not in ("torch.float32", "torch.float64"):
        raise DataTypeError(
            f"Expected a sparse {name} of float32 or float64, got {X.dtype}. Convert it first, for example "
            f"{f'abs({name})' if X.is_complex() else name}.to(torch.float32)."
        )


def _check_layout(X: Any, name: str) -> None:
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


def scipy_matrix(X: Any, name: str = "X") -> Any:
    """Return a sparse tensor or CuPy matrix as a SciPy matrix in host memory; whole numbers become floats."""
    X = sparse_tensor(X)
    _check_layout(X, name)
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
