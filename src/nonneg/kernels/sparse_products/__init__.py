"""Products of a matrix in compressed sparse rows with tall dense factors, and sums of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from nonneg._arrays import is_float_array, serves_tensors
from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg.kernels.sparse_products import array_api
from nonneg.kernels.sparse_products.array_api import rows_of_entries
from nonneg.kernels.sparse_products.plan import RowPlan, row_plan

__all__ = ["RowPlan", "row_plan", "row_sums", "rows_of_entries", "sampled_product", "sparse_times"]


def _implementation(array: Any) -> Any:
    # Importing Triton takes 0.2 s, for which NumPy arrays need not wait.
    from nonneg.kernels.sparse_products import triton

    return triton if triton.is_supported(array) else array_api


@serves_tensors
def sparse_times(indptr: Any, indices: Any, data: Any, Bt: Any, *, plan: Any = None) -> Any:
    """Multiply a CSR matrix with a tall dense one.

    Parameters
    ----------
    indptr, indices, data : array
        The CSR matrix.
    Bt : array of shape (n_columns, k)
        The dense matrix.
    plan : RowPlan, optional
        What `row_plan` returns for `indptr`, where it is at hand; only a GPU uses it.

    Returns
    -------
    array of shape (n_rows, k)
        The product.

    Notes
    -----
    Costs 2 nnz k operations. Threads take ranges of rows; a GPU takes parts of rows and adds them in order.
    """
    if not isinstance(data, np.ndarray):
        return _implementation(data).sparse_times(indptr, indices, data, Bt, plan)
    n_rows, (n_columns, k) = len(indptr) - 1, Bt.shape
    compiled = core() if is_float_array(Bt) else None
    data = np.ascontiguousarray(data, dtype=Bt.dtype)
    if compiled is None:
        return scipy.sparse.csr_array((data, indices, indptr), shape=(n_rows, n_columns)) @ Bt
    out = np.empty((n_rows, k), dtype=Bt.dtype)
    places = _places(indptr, indices)
    compiled.csr_times(*places, data, np.ascontiguousarray(Bt), out, team_size(2.0 * len(data) * k))
    return out


@serves_tensors
def sampled_product(indptr: Any, indices: Any, A: Any, Bt: Any, *, plan: RowPlan | None = None) -> Any:
    """Return the entries of A B' at the stored places of a CSR pattern.

    Parameters
    ----------
    indptr, indices : array
        The pattern.
    A : array of shape (n_rows, k)
        The first factor.
    Bt : array of shape (n_columns, k)
        The second factor, transposed.
    plan : RowPlan, optional
        What `row_plan` returns for `indptr`, where it is at hand; only a GPU uses it.

    Returns
    -------
    array of shape (nnz,)
        The values, in the order of the pattern.
    """
    if not isinstance(A, np.ndarray):
        return _implementation(A).sampled_product(indptr, indices, A, Bt, plan)
    compiled = core() if is_float_array(A) else None
    if compiled is None:
        return array_api.sampled_product(indptr, indices, A, Bt)
    out = np.empty(len(indices), dtype=A.dtype)
    factors = np.ascontiguousarray(A), np.ascontiguousarray(Bt, dtype=A.dtype)
    compiled.sampled_product(*_places(indptr, indices), *factors, out, team_size(2.0 * out.size * A.shape[1]))
    return out


def _places(indptr: Any, indices: Any) -> tuple[Any, Any]:
    """Return a pattern with indices of one type."""
    index = np.result_type(indptr, indices, np.int32)
    return np.ascontiguousarray(indptr, dtype=index), np.ascontiguousarray(indices, dtype=index)


@serves_tensors
def row_sums(indptr: Any, values: Any, *, plan: RowPlan | None = None) -> Any:
    """Return the sum of the values of every row, in their dtype.

    Parameters
    ----------
    indptr : array of shape (n_rows + 1,)
        Where the values of a row begin and end.
    values : array of shape (nnz,)
        The values.
    plan : RowPlan, optional
        What `row_plan` returns for `indptr`, where it is at hand; only a GPU uses it.

    Returns
    -------
    array of shape (n_rows,)
        The sums; 0 for empty rows.
    """
    if not isinstance(values, np.ndarray):
        return _implementation(values).row_sums(indptr, values, plan)
    out = np.zeros(len(indptr) - 1, dtype=values.dtype)
    filled = np.flatnonzero(indptr[1:] > indptr[:-1])
    if filled.size:
        out[filled] = np.add.reduceat(values, indptr[:-1][filled])
    return out
