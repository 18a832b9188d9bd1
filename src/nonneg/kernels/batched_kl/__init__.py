"""Elementwise parts of the Kullback-Leibler divergence of data from many models at once.

The data x have shape (n_rows, n_columns), or (batch, n_rows, n_columns) where models have data of their own;
the models v have shape (batch, n_rows, n_columns). A model is clipped to its lower bound before it is divided
by. Arrays of the size of all models are read and written as rarely as possible.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from nonneg.kernels.batched_kl import array_api, triton

# A line search tries at most this many steps for a row, as in `kernels.beta_products`.
TRIES = 6


def _implementation(v: Any) -> ModuleType:
    return triton if triton.is_supported(v) else array_api


def newton_terms(x: Any, v: Any, bounds: Any) -> tuple[Any, Any]:
    """Return first and second derivatives of the divergence with respect to the models.

    Parameters
    ----------
    x : array of shape (n_rows, n_columns) or (batch, n_rows, n_columns)
        The data.
    v : array of shape (batch, n_rows, n_columns)
        The models; not changed.
    bounds : array of shape (batch,)
        Lower bounds of the models, in float64.

    Returns
    -------
    slope, curvature : array of shape (batch, n_rows, n_columns)
        ``1 - x / v`` and ``x / v^2``.
    """
    return _implementation(v).newton_terms(x, v, bounds)


def line_search(x: Any, v: Any, d: Any, slopes: Any, bounds: Any) -> Any:
    """Choose a step along d for every row of every model.

    Parameters
    ----------
    x : array of shape (n_rows, n_columns) or (batch, n_rows, n_columns)
        The data.
    v, d : array of shape (batch, n_rows, n_columns)
        The models, and the directions in which they move.
    slopes : array of shape (batch, n_rows)
        Derivatives of the divergences of the rows along d.
    bounds : array of shape (batch,)
        Lower bounds of the models, in float64.

    Returns
    -------
    array of shape (batch, n_rows)
        The steps, between 0 and 1; 0 where none was found.
    """
    return _implementation(v).line_search(x, v, d, slopes, bounds, TRIES)


def column_losses(x: Any, v: Any, bounds: Any, wanted: Any = None) -> Any:
    """Return the divergence of every column of x from that of every model, in float64: (batch, n_columns).

    Those of models that are not wanted, by an array of shape (batch,), may have any value.
    """
    return _implementation(v).column_losses(x, v, bounds, wanted)
