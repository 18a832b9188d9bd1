"""Majorization-equalization (ME): updates of a batch of Itakura-Saito factorizations with an offset."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg._typing import Array

# One division of the core serves four entries of a model: their product must not underflow.
LEAST_EPS0 = 1e-75
# With more components the products of BLAS are faster.
MOST_COMPONENTS = 12


def update_factors(
    V: Array, eps0: float, activations: Array, components: Array, n_updates: int
) -> tuple[Array, Array, Array]:
    """Decrease the divergence of V + eps0 from the model plus eps0 by multiplicative steps with exponent 1.

    Parameters
    ----------
    V : array of shape (batch, n, m) or (1, n, m)
        Variances of each, or of all; not changed.
    eps0 : float
        Added to data and model.
    activations : array of shape (batch, n, k)
        One row per frame; not changed.
    components : array of shape (batch, k, m)
        Rows of sum 1; not changed.
    n_updates : int
        Updates of both factors.

    Returns
    -------
    activations, components : array
        The updated factors; the rows of the components have sum 1.
    inverse : array of shape (batch, n, m)
        ``1 / (activations @ components + eps0)``.

    References
    ----------
    .. [1] Fevotte & Idier (2011), Neural Computation 23(9): algorithms for NMF with the beta-divergence.
    .. [2] Zhang, Soubies & Fevotte, Leveraging Joint-Diagonalization in Transform-Learning NMF, Algorithm 3.
    """
    if not is_supported(V, components.shape[1], eps0):
        return portable_update_factors(V, eps0, activations, components, n_updates)
    # The core has the frames last.
    data = np.ascontiguousarray(V.swapaxes(1, 2))
    w, h = (np.array(factor.swapaxes(1, 2), order="C") for factor in (components, activations))
    inverse = np.empty((len(h), *data.shape[1:]))
    threads = team_size(12.0 * h.size * w.shape[1] * n_updates)
    core().equalize(data, eps0, w, h, n_updates, inverse, threads)
    h, w, inverse = (np.ascontiguousarray(array.swapaxes(1, 2)) for array in (h, w, inverse))
    return h, w, inverse


def is_supported(V: Any, n_components: int, eps0: float) -> bool:
    """Tell whether V is a batch in NumPy's float64, with few components and a safe eps0."""
    suits = n_components <= MOST_COMPONENTS and eps0 >= LEAST_EPS0
    return suits and core() is not None and isinstance(V, np.ndarray) and V.dtype == np.float64


def portable_update_factors(
    V: Array, eps0: float, activations: Array, components: Array, n_updates: int
) -> tuple[Array, Array, Array]:
    """Update the factors, and return the inverse of their model."""
    # A step goes to where the majorizer is as high as at its beginning, so that the divergence never rises.
    xp = array_namespace(V)
    data = V + eps0
    floor = float(xp.finfo(data.dtype).smallest_normal)
    for _ in range(n_updates):
        other = xp.matrix_transpose(components)
        inverse = 1.0 / (activations @ components + eps0)
        ratio = data * inverse * inverse
        activations = activations * ((ratio @ other) / (inverse @ other + floor))
        other = xp.matrix_transpose(activations)
        inverse = 1.0 / (activations @ components + eps0)
        ratio = data * inverse * inverse
        components = components * ((other @ ratio) / (other @ inverse + floor))
        # W H does not change; a component that vanished stays as it is.
        sizes = xp.sum(components, axis=2, keepdims=True)
        safe = xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        components = components / safe
        activations = activations * xp.matrix_transpose(safe)
    return activations, components, 1.0 / (activations @ components + eps0)
