"""Front doors of the kernels for beta divergences: compiled for NumPy arrays, portable for all others.

A block is a few rows of the data x and of the model v = W B', both dense; v is raised to a floor that
stems from the dtype before it is divided by. Sparse data under the Kullback-Leibler divergence need v at
the nonzeros only, and have a kernel of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._threads import parallel_for
from nonneg.kernels.beta_products import array_api as portable

# A line search looks at no more than so many steps a row.
TRIES = 6


def ratio_terms(x: Any, v: Any, beta: float, floor: float, mask: Any = None) -> tuple[Any, Any]:
    """Return x v^(beta - 2) and v^(beta - 1), whose products with the factors make the gradients."""
    if mask is not None or not isinstance(x, np.ndarray):
        return portable.ratio_terms(x, v, beta, floor, mask)
    from nonneg.kernels.beta_products.numba import ratio_terms as compiled

    power = np.empty_like(v) if beta != 1 else np.empty((0, 0), dtype=v.dtype)
    compiled(np.ascontiguousarray(x), v, float(beta), float(floor), power)
    return v, power if beta != 1 else None


def row_losses(x: Any, v: Any, beta: float, floor: float, weights: Any = None, mask: Any = None) -> Any:
    """Return the divergence of every row of x from the row of v."""
    if mask is not None or not isinstance(x, np.ndarray):
        return portable.row_losses(x, v, beta, floor, weights, mask)
    from nonneg.kernels.beta_products.numba import block_losses

    losses = np.empty(x.shape[0])
    uniform = weights is None
    weights = _weights(weights, v)
    block_losses(np.ascontiguousarray(x), v, weights, uniform, float(beta), float(floor), losses)
    return losses


def newton_terms(
    x: Any, v: Any, weights: Any, beta: float, floor: float, exact: Any = None
) -> tuple[Any, Any]:
    """Return first and second derivatives of the divergence with respect to v, times the weights."""
    if not isinstance(x, np.ndarray):
        return portable.newton_terms(x, v, weights, beta, floor, exact)
    from nonneg.kernels.beta_products.numba import newton_terms as compiled

    slope, curvature = np.empty_like(v), np.empty_like(v)
    if exact is None or 1 <= beta <= 2:
        exact = np.full(x.shape[0], 1 <= beta <= 2)
    weights = _weights(weights, v)
    compiled(np.ascontiguousarray(x), v, weights, float(beta), float(floor), exact, slope, curvature)
    return slope, curvature


def line_search(
    x: Any, v: Any, d: Any, weights: Any, beta: float, floor: float, linear: Any, quadratic: Any, slopes: Any
) -> tuple[Any, Any]:
    """Choose a step in (0, 1] along d for every row so that its loss falls."""
    if not isinstance(x, np.ndarray):
        return portable.line_search(x, v, d, weights, beta, floor, linear, quadratic, slopes, TRIES)
    from nonneg.kernels.beta_products.numba import line_search as compiled

    steps = np.empty(x.shape[0])
    sides = [np.asarray(values, dtype=np.float64) for values in (linear, quadratic, slopes)]
    uniform = weights is None
    weights = _weights(weights, v)
    compiled(np.ascontiguousarray(x), v, d, weights, uniform, float(beta), float(floor), *sides, TRIES, steps)
    return v, steps.astype(v.dtype)


def _weights(weights: Any, v: Any) -> Any:
    if weights is None:
        return np.ones(v.shape[1], dtype=v.dtype)
    return np.ascontiguousarray(weights, dtype=v.dtype)


def kl_passes(
    csr: Any,
    factor: Any,
    other: Any,
    sums: Any,
    *,
    order: Any = None,
    l1: float = 0.0,
    l2: float = 0.0,
    max_rounds: int = 1,
    max_sweeps: int = 1,
    shrink: float = 0.0,
    tol: float = 0.0,
) -> tuple[Any, Any, Any]:
    """Reduce sum_j v_j - x_j log v_j + l1 |f| + l2 / 2 |f|^2 over every row f >= 0, where v = f O'.

    Parameters
    ----------
    csr : tuple of array
        `indptr, indices, data` of the nonzeros x.
    factor : array of shape (n_rows, k)
        The start; not changed.
    other : array of shape (n_columns, k)
        The other factor O.
    sums : array of shape (k,) or (n_rows, k)
        Sums of the columns of O, over the entries that count.
    order : array of int, optional
        The components to update; all by default.
    l1, l2 : float
        The penalties.
    max_rounds : int
        How often the whole slope of a row is taken, to choose the components that are swept.
    max_sweeps : int
        At most so many sweeps over these components in a round.
    shrink : float
        A round ends when a sweep changed the row by at most this share of its first sweep.
    tol : float
        A row stops when its residual is at most this, and a Newton step on the positive components ends
        a round; 0 does all rounds without.

    Returns
    -------
    factor : array of shape (n_rows, k)
        The updated rows.
    logs : array of shape (n_rows,)
        Sums of x log v over the nonzeros, at the updated rows, in float64.
    residuals : array of shape (n_rows,)
        Unmet optimality where the last slope was taken: the larger of the lowest slope over its
        positive part and of sum |f g| over the sum of the row.

    Notes
    -----
    A sweep costs about 8 nnz k operations. Rows do not know of one another.
    """
    from nonneg.kernels.beta_products.kl_coordinate import kl_rows

    indptr, indices, data = csr
    out = np.array(factor, order="C", copy=True)
    n_rows, k = out.shape
    kind = out.dtype.type
    other = np.ascontiguousarray(other)
    sums = np.ascontiguousarray(np.atleast_2d(sums), dtype=out.dtype)
    order = np.arange(k) if order is None else np.asarray(order, dtype=np.int64)
    logs, residuals = np.empty(n_rows), np.empty(n_rows)
    # Ranges of about the same number of nonzeros: the columns of a text are of very unequal length.
    n_parts = max(1, min(64, n_rows))
    edges = np.searchsorted(indptr, np.linspace(0, indptr[-1], n_parts + 1)[1:-1])
    edges = np.concatenate([[0], np.clip(edges, 0, n_rows), [n_rows]]).astype(np.int64)
    edges = np.maximum.accumulate(edges)
    floor = kind(np.finfo(out.dtype).tiny * 1e10)

    def work(start: int, stop: int) -> None:
        kl_rows(
            indptr,
            indices,
            data,
            other,
            sums,
            out,
            order,
            kind(l1),
            kind(l2),
            max_rounds,
            max_sweeps,
            shrink,
            tol,
            tol > 0,
            floor,
            edges[start],
            edges[stop],
            logs,
            residuals,
        )

    parallel_for(work, n_parts, chunk_size=1, operations=8.0 * len(data) * k)
    return out, logs, residuals
