"""Where the nodes of a small graph are drawn: near those they are tied to."""

from __future__ import annotations

import numpy as np

from nonneg._typing import FloatArray, SparseMatrix

N_STEPS = 160


def corner_places(k: int) -> FloatArray:
    """Return the corners of a regular polygon, one per community."""
    angles = 2 * np.pi * np.arange(k) / k
    return np.column_stack([np.cos(angles), np.sin(angles)])


def placed_nodes(adjacency: SparseMatrix, memberships: FloatArray) -> FloatArray:
    """Place the nodes in a square."""
    # Ties pull and all pairs push, with a falling step (Fruchterman & Reingold, 1991); a weak pull to the
    # middle keeps components together. The same graph is always drawn the same.
    n, k = memberships.shape
    corners = corner_places(k)
    shares = np.nan_to_num(memberships, nan=1.0 / k)
    rng = np.random.default_rng([n, k])
    at = shares @ corners + 0.15 * rng.standard_normal((n, 2))
    if n == 1:
        return np.full((1, 2), 0.5)
    parts = adjacency.tocoo()
    pull = (parts.data / parts.data.max()) ** 0.25 if parts.nnz else parts.data
    ideal = 2.0 / np.sqrt(n)
    for step in np.geomspace(0.2, 0.004, N_STEPS):
        apart = at[:, None, :] - at[None, :, :]
        squares = np.einsum("ijk,ijk->ij", apart, apart) + 1e-6
        forces = np.einsum("ijk,ij->ik", apart, ideal**2 / squares)
        ties = at[parts.col] - at[parts.row]
        strength = pull * np.linalg.norm(ties, axis=1) / ideal
        np.add.at(forces, parts.row, ties * strength[:, None])
        forces -= 0.6 * at
        lengths = np.linalg.norm(forces, axis=1, keepdims=True)
        at = at + forces / np.maximum(lengths, 1e-12) * np.minimum(lengths, step)
    low, high = at.min(axis=0), at.max(axis=0)
    return (at - low) / np.maximum(high - low, 1e-12)
