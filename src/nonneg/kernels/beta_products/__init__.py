"""Elementwise parts of the beta-divergences, a block of rows at a time, and coordinate descent over nonzeros.

A block is a few rows of the data x and of the model v = W H, both dense; v is clipped to a lower bound that
depends on the dtype before it is divided by. Sparse data under the Kullback-Leibler divergence need v at the
nonzeros only, and have a kernel of their own.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from nonneg._arrays import is_float_array, on_gpu
from nonneg._compiled import core
from nonneg._typing import Array, IntArray
from nonneg.kernels.beta_products import array_api, compiled

# A line search tries at most this many steps for a row.
TRIES = 6


def _implementation(x: Array, mask: Any = None) -> ModuleType:
    if on_gpu(x):
        from nonneg.kernels.beta_products import triton

        return triton if triton.is_supported(x) else array_api
    return compiled if mask is None and is_float_array(x) and core() is not None else array_api


def ratio_terms(x: Array, v: Array, beta: float, lower_bound: float, mask: Any = None) -> tuple[Any, Any]:
    """Return x v^(beta - 2) and v^(beta - 1), whose products with the factors are the parts of the gradients.

    Parameters
    ----------
    x, v : array of shape (n_rows, n_columns)
        Data and model; the memory of v may be reused.
    beta : float
        Which divergence.
    lower_bound : float
        Lower bound of the model.
    mask : array of shape (n_rows, n_columns), optional
        Weights of the entries, 0 where missing.

    Returns
    -------
    ratio, power : array of shape (n_rows, n_columns)
        Both times the mask; `power` is the mask (None without one) for beta = 1.
    """
    return _implementation(x, mask).ratio_terms(x, v, beta, lower_bound, mask)


def ratio_terms_and_losses(
    x: Array, v: Array, beta: float, lower_bound: float, mask: Any = None
) -> tuple[Any, Any, Any]:
    """Return what `ratio_terms` and `row_losses` return, on a GPU from one pass over the entries."""
    kernels = _implementation(x, mask)
    if hasattr(kernels, "ratio_terms_and_losses"):
        return kernels.ratio_terms_and_losses(x, v, beta, lower_bound, mask)
    losses = kernels.row_losses(x, v, beta, lower_bound, None, mask)
    return *kernels.ratio_terms(x, v, beta, lower_bound, mask), losses


def row_losses(x: Any, v: Any, beta: float, lower_bound: float, weights: Any = None, mask: Any = None) -> Any:
    """Return the divergence of every row of x from the row of v, in float64.

    `weights`, here and below, are those of the columns or of the entries.
    """
    return _implementation(x, mask).row_losses(x, v, beta, lower_bound, weights, mask)


def column_losses(
    x: Array, v: Array, beta: float, lower_bound: float, row_weights: Any = None, weights: Array = None
) -> Any:
    """Return the divergence of every column of x from the column of v, in float64."""
    return _implementation(x).column_losses(x, v, beta, lower_bound, row_weights, weights)


def newton_terms(
    x: Array,
    v: Array,
    weights: Array,
    beta: float,
    lower_bound: float,
    *,
    curvature_bound: float = 0.0,
    exact: bool = False,
) -> tuple[Any, Any]:
    """Return first and second derivatives of the divergence with respect to v, times the weights.

    Where the divergence is not convex the second derivative is v^(beta - 2), its expectation under the model;
    with `exact` it is the true one, and zero where that is below zero. Between 1 and 2, v is at least
    `curvature_bound` in the part of it that does not depend on x.
    """
    terms = _implementation(x).newton_terms
    return terms(x, v, weights, beta, lower_bound, curvature_bound, exact)


def line_search(
    x: Array,
    v: Array,
    d: Array,
    weights: Array,
    beta: float,
    lower_bound: float,
    linear: Array,
    quadratic: Array,
    slopes: Array,
) -> tuple[Any, Any]:
    """Choose a step t in (0, 1] along d for every row so that its loss decreases, and return v + t d and t.

    The penalty of a row along d is ``linear t + quadratic t^2 / 2``; `slopes` are the derivatives at 0. A row
    without a good step has step 0. The memory of v may be reused.
    """
    return _implementation(x).line_search(
        x, v, d, weights, beta, lower_bound, linear, quadratic, slopes, TRIES
    )


def kl_passes(
    csr: Any,
    factor: Array,
    other: Any,
    sums: Any,
    *,
    order: IntArray | None = None,
    l1: float = 0.0,
    l2: float = 0.0,
    max_rounds: int = 1,
    max_sweeps: int = 1,
    shrink: float = 0.0,
    tol: float = 0.0,
    unit: float = 1.0,
) -> tuple[Any, Any, Any]:
    """Decrease sum_j v_j - x_j log v_j + l1 |f| + l2 / 2 |f|^2 over every row f >= 0, where v = f O'.

    Parameters
    ----------
    csr : tuple of array
        `indptr, indices, data` of the nonzeros x.
    factor : array of shape (n_rows, k)
        The initial rows; not modified.
    other : array of shape (n_columns, k)
        The other factor O.
    sums : array of shape (k,) or (n_rows, k)
        Sums of the columns of O, over the entries that count.
    order : array of int, optional
        The components to update; all by default.
    l1, l2 : float, default 0.0
        The penalties.
    max_rounds : int, default 1
        Maximum number of full gradients of a row, each of which selects the components to sweep.
    max_sweeps : int, default 1
        Maximum number of sweeps over these components in a round.
    shrink : float, default 0.0
        A round ends when a sweep changes the row by at most this fraction of its first sweep.
    tol : float, default 0.0
        A row stops when its residual is at most this, and each round ends with a Newton step on the positive
        components; 0 does all rounds without it.
    unit : float, default 1.0
        The unit of x and v in logarithms: about the size of x, so that sums of them keep their digits.

    Returns
    -------
    factor : array of shape (n_rows, k)
        The updated rows.
    logs : array of shape (n_rows,)
        Sums of x log(v / unit) over the nonzeros, at the updated rows, in float64.
    residuals : array of shape (n_rows,)
        KKT residuals at the last full gradient g: the larger of -min(g) relative to the positive part of g
        and of sum |f g| relative to the sum of the row.

    Notes
    -----
    A sweep costs about 8 nnz k operations. Rows are independent.
    """
    return _implementation(factor).kl_passes(
        csr, factor, other, sums, order, l1, l2, max_rounds, max_sweeps, shrink, tol, unit
    )
