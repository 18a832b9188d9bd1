"""Majorization-equalization (ME): updates of a batch of Itakura-Saito factorizations with an offset."""

from __future__ import annotations

import numpy as np

from nonneg._typing import Array
from nonneg.kernels.majorization_equalization import array_api


def update_factors(
    V: Array, eps0: float, activations: Array, components: Array, n_updates: int, l1: float = 0.0
) -> tuple[Array, Array, Array]:
    """Decrease the divergence of V + eps0 from the model plus eps0 by multiplicative steps with exponent 1.

    Parameters
    ----------
    V : array of shape (batch, n, m)
        Variances; not changed.
    eps0 : float
        Added to data and model.
    activations : array of shape (batch, n, k)
        One row per frame; not changed.
    components : array of shape (batch, k, m)
        Rows of sum 1; not changed.
    n_updates : int
        Updates of both factors.
    l1 : float, default 0.0
        Weight of the sum of the activations.

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
    if not l1 and isinstance(V, np.ndarray):
        # Not at the top: numba takes a quarter of a second to load.
        from nonneg.kernels.majorization_equalization import numba as compiled

        if compiled.is_supported(V, components.shape[1], eps0):
            return compiled.update_factors(V, eps0, activations, components, n_updates)
    return array_api.update_factors(V, eps0, activations, components, n_updates, l1)
