"""Elementwise parts of the beta-divergences on NumPy arrays, by the compiled core."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg._typing import Array, IntArray


def ratio_terms(x: Array, v: Array, beta: float, lower_bound: float, mask: None = None) -> tuple[Any, Any]:
    """Return x v^(beta - 2), in the memory of v, and v^(beta - 1)."""
    v, power = np.ascontiguousarray(v), None if beta == 1 else np.empty(v.shape, v.dtype)
    core().ratio_terms(_like(x, v), v, power, beta, lower_bound)
    return v, power


def row_losses(
    x: Array, v: Array, beta: float, lower_bound: float, weights: Array = None, mask: None = None
) -> Any:
    """Return the divergence of every row; see `kernels.beta_products.row_losses`."""
    v, losses = np.ascontiguousarray(v), np.empty(x.shape[0])
    core().row_losses(_like(x, v), v, _weights(weights, v), beta, lower_bound, losses)
    return losses


def column_losses(
    x: Array, v: Array, beta: float, lower_bound: float, row_weights: Any = None, weights: Array = None
) -> Any:
    """Return the divergence of every column; see `kernels.beta_products.column_losses`."""
    v, losses = np.ascontiguousarray(v), np.empty(x.shape[1])
    of_rows = np.ones(len(x)) if row_weights is None else np.ascontiguousarray(row_weights, np.float64)
    core().column_losses(_like(x, v), v, _weights(weights, v), of_rows, beta, lower_bound, losses)
    return losses


def newton_terms(
    x: Array,
    v: Array,
    weights: Array,
    beta: float,
    lower_bound: float,
    curvature_bound: float = 0.0,
    exact: bool = False,
) -> tuple[Any, Any]:
    """Return weighted first and second derivatives; see `kernels.beta_products.newton_terms`."""
    v = np.ascontiguousarray(v)
    slope, curvature = np.empty_like(v), np.empty_like(v)
    options = beta, lower_bound, curvature_bound, exact or 1 <= beta <= 2
    core().newton_terms(_like(x, v), v, _weights(weights, v), *options, slope, curvature)
    return slope, curvature


def line_search(
    x: Array, v: Array, d: Array, weights: Array, beta: float, lower_bound: float,
    linear: Array, quadratic: Array, slopes: Array, tries: int,
) -> tuple[Any, Any]:  # fmt: skip
    """Choose a step along d for every row; see `kernels.beta_products.line_search`."""
    v, steps = np.ascontiguousarray(v), np.empty(x.shape[0])
    rows = [np.ascontiguousarray(values, dtype=np.float64) for values in (linear, quadratic, slopes)]
    loss = _weights(weights, v), beta, lower_bound
    core().line_search(_like(x, v), v, _like(d, v), *loss, *rows, tries, steps)
    return v, steps.astype(v.dtype)


def kl_passes(
    csr: Any, factor: Array, other: Any, sums: Any, order: IntArray | None, l1: float, l2: float,
    max_rounds: int, max_sweeps: int, shrink: float, tol: float, unit: float,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Update all rows; see `kernels.beta_products.kl_passes`."""
    out = np.array(factor, order="C")
    indptr, indices, data = csr[0], csr[1], _like(csr[2], out)
    n_rows, k = out.shape
    order = np.arange(k) if order is None else np.asarray(order, dtype=np.int64)
    logs, residuals = np.empty(n_rows), np.empty(n_rows)
    core().kl_passes(
        np.ascontiguousarray(indptr), np.ascontiguousarray(indices, dtype=indptr.dtype), data, out,
        _like(other, out), _like(np.atleast_2d(sums), out), order, l1, l2, max_rounds, max_sweeps, shrink,
        tol, float(np.finfo(out.dtype).tiny * 1e10), 1.0 / unit, logs, residuals,
        team_size(8.0 * len(data) * k),
    )  # fmt: skip
    return out, logs, residuals


def _like(array: Any, other: Any) -> Any:
    return np.ascontiguousarray(array, dtype=other.dtype)


def _weights(weights: Array, v: Array) -> Any:
    """Return the weights of the entries as rows: one that serves all, or one for each."""
    if weights is None:
        return np.ones((1, v.shape[1]), dtype=v.dtype)
    return _like(np.atleast_2d(weights), v)
