"""The Kullback-Leibler divergence of sparse data from a model A B', which is formed at the nonzeros only."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import Array
from nonneg.kernels.nonzeros import array_api
from nonneg.kernels.nonzeros.array_api import RatioSums

__all__ = ["RatioSums", "line_search", "ratio_sums", "row_hessians"]


def _implementation(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return array_api  # without importing Triton, which takes 0.2 s
    from nonneg.kernels.nonzeros import triton

    return triton if triton.is_supported(array) else array_api


def ratio_sums(
    csr: Any,
    A: Array,
    Bt: Array,
    lower_bound: float,
    *,
    weights: Array = None,
    product: bool = True,
    second: bool = False,
    logs: bool = False,
) -> RatioSums:
    """Return sums over the nonzeros x of every row, with v the model there, at least `lower_bound`.

    Parameters
    ----------
    csr : SciPy CSR matrix or CsrArrays
        The nonzeros by rows.
    A : array of shape (n_rows, k)
        The factor of the rows.
    Bt : array of shape (n_columns, k)
        The factor of the columns, transposed.
    lower_bound : float
        Lower bound of the model.
    weights : array of shape (n_columns,), optional
        Weights of the columns.
    product, second, logs : bool, default True, False and False
        Which sums are wanted.

    Returns
    -------
    RatioSums
        With b the rows of Bt at the nonzeros: `product`, the sums of (x / v) b; `second`, those of
        (x / v^2) b^2, and `trace`, those of x / v^2; and `logs`, those of x (log(x / v) - 1), in float64.
        None where not wanted.

    Notes
    -----
    Costs 2 nnz k operations for the model and as many for each of the first two sums. A GPU reads the rows of
    Bt once for all of them.
    """
    return _implementation(csr.data).ratio_sums(csr, A, Bt, lower_bound, weights, product, second, logs)


def line_search(
    csr: Any,
    A: Array,
    direction: Array,
    Bt: Array,
    lower_bound: float,
    linear: Array,
    quadratic: Array,
    slopes: Array,
    tries: int,
) -> Any:
    """Choose a step t in (0, 1] along the direction for every row, so that its divergence decreases.

    Parameters
    ----------
    csr : SciPy CSR matrix or CsrArrays
        The nonzeros by rows.
    A, direction : array of shape (n_rows, k)
        The factor of the rows, and their directions.
    Bt : array of shape (n_columns, k)
        The factor of the columns, transposed.
    lower_bound : float
        Lower bound of the model.
    linear, quadratic : array of shape (n_rows,)
        ``linear t + quadratic t^2 / 2`` is what the loss of a row has besides the logarithms.
    slopes : array of shape (n_rows,)
        Derivatives of the losses at 0.
    tries : int
        Maximum number of steps that are tried.

    Returns
    -------
    array of shape (n_rows,)
        The steps, in the dtype of A; 0 where none was found.
    """
    return _implementation(csr.data).line_search(
        csr, A, direction, Bt, lower_bound, linear, quadratic, slopes, tries
    )


def row_hessians(indptr: Array, indices: Array, curvatures: Any, Bt: Array) -> Any:
    """Return the sum of c b b' over the entries of every row, with b the rows of Bt that they name.

    Parameters
    ----------
    indptr, indices : array
        The places of the entries.
    curvatures : array of shape (nnz,) or None
        The numbers c; 1 by default.
    Bt : array of shape (n_columns, k)
        The factor of the columns, transposed.

    Returns
    -------
    array of shape (n_rows, k, k)
        The matrices, in the dtype of Bt.
    """
    return _implementation(Bt).row_hessians(indptr, indices, curvatures, Bt)
