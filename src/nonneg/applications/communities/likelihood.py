"""How well memberships explain the edges: the likelihood of the degree-corrected blockmodel."""

from __future__ import annotations

import numpy as np

from nonneg._typing import FloatArray, SparseMatrix

# Alternating updates of strengths and connectivity; the likelihood then changes in the fourth digit.
N_UPDATES = 20
# A larger graph is judged by this many of its edges, drawn with a fixed seed.
N_EDGES = 200_000
# Part of every membership that is spread over all communities, so that no edge is impossible.
SPREAD = 1e-3


def edge_likelihood(adjacency: SparseMatrix, memberships: FloatArray, n_first: int | None = None) -> float:
    """Return the mean log-likelihood of an edge; comparable for the same graph and number of communities.

    The weight of edge (i, j) is Poisson with mean t_i t_j m_i' B m_j, where m are the memberships (Karrer &
    Newman, 2011, with mixed memberships); the strengths t and the connectivity B are fitted.
    """
    found = SPREAD / memberships.shape[1] + (1.0 - SPREAD) * memberships
    first = slice(0, n_first) if n_first is not None else slice(None)
    second = slice(n_first, None) if n_first is not None else slice(None)
    edges = adjacency[first, second].tocoo()
    left, right = found[first], found[second]
    weights = edges.data / float(edges.data.sum())
    kept = weights > 0  # shares of huge sums may be zero
    rows, columns, weights = edges.row[kept], edges.col[kept], weights[kept]
    out, into = (np.bincount(at, weights, len(m)) for at, m in ((rows, left), (columns, right)))
    if len(weights) > N_EDGES:
        drawn = np.random.default_rng(len(weights)).choice(len(weights), N_EDGES, replace=False)
        rows, columns, weights = rows[drawn], columns[drawn], weights[drawn] / float(weights[drawn].sum())
    sent, received = out.copy(), into.copy()
    a, b = left[rows], right[columns]
    blocks = np.ones((left.shape[1], left.shape[1]))
    for _ in range(N_UPDATES):
        means = np.einsum("ij,ij->i", a @ blocks, b)
        totals = np.outer(sent @ left, received @ right)
        blocks = blocks * ((a * (weights / means)[:, None]).T @ b) / totals
        # The geometric mean of old and new strengths: the new ones alone may oscillate.
        sent = np.sqrt(sent * out / (left @ (blocks @ (received @ right))))
        received = np.sqrt(received * into / (right @ ((sent @ left) @ blocks)))
    means = np.einsum("ij,ij->i", a @ blocks, b)
    expected = float((sent @ left) @ blocks @ (received @ right))
    logs = np.log(sent[rows]) + np.log(received[columns]) + np.log(means)
    return float(weights @ logs) - expected
