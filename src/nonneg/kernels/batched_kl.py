"""Newton steps for the Kullback-Leibler divergence of data from many models at once.

The data x have shape (n_rows, n_columns), or (batch, n_rows, n_columns) where models have data of their own;
the models v have shape (batch, n_rows, n_columns). A model is clipped to its lower bound, of shape (batch,)
and in float64, before it is divided by. The functions take the arguments of those in `beta_products`.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from nonneg._arrays import on_gpu
from nonneg._typing import Array
from nonneg.kernels.beta_products import TRIES, array_api, triton


def _bounds(bounds: Any, v: Array) -> Any:
    return array_namespace(v).astype(bounds, v.dtype)[:, None, None]


def newton_terms(x: Array, v: Array, mask: None, beta: float, bounds: Any, **_: Any) -> tuple[Any, Any]:
    """Return first and second derivatives with respect to the models."""
    if on_gpu(v) and triton.is_supported(v):
        return triton.batched_kl_terms(x, v, bounds)
    return array_api.newton_terms(x, array_namespace(v).maximum(v, _bounds(bounds, v)), None, 1.0, 0.0)


def line_search(
    x: Any, v: Any, d: Any, mask: None, beta: float, bounds: Any, linear: Any, quadratic: Array, slopes: Array
) -> tuple[Any, Any]:
    """Return the models, and a step between 0 and 1 along d for every row of every model."""
    if on_gpu(v) and triton.is_supported(v):
        return v, triton.batched_kl_steps(x, v, d, slopes, bounds, TRIES)
    xp, shape = array_namespace(x, v), (-1, v.shape[2])
    data, lowest = (xp.broadcast_to(array, v.shape) for array in (x, _bounds(bounds, v)))
    data, model, d, lowest = (xp.reshape(array, shape) for array in (data, v, d, lowest))
    along = 0.0, 0.0, xp.reshape(slopes, (-1,))
    _, steps = array_api.line_search(data, model, d, None, 1.0, lowest, *along, TRIES)
    return v, xp.reshape(steps, slopes.shape)


def column_losses(x: Array, v: Array, beta: float, bounds: Any, *_: None) -> Any:
    """Return the divergence of every column of x from that of every model, in float64: (batch, n_columns)."""
    xp = array_namespace(x, v)
    v = xp.maximum(xp.astype(v, xp.float64), bounds[:, None, None])
    return xp.sum(array_api.divergences(x, v, 1.0, 0.0), axis=1)
