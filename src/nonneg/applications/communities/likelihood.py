"""How well memberships explain the edges: the likelihood of the degree-corrected blockmodel."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, IntArray, SparseMatrix

# Alternating updates of strengths and connectivity. Fifty more change the difference of two methods by a
# tenth or so on the choosing graphs of the study `studies/communities`.
N_UPDATES = 8
# A larger graph is judged by about this many of its edges, drawn with a fixed seed.
N_EDGES = 100_000
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
    left, right = found[first], found[second]
    table = adjacency[first, second] if n_first is not None else adjacency
    table = sp.csr_array(table * (1.0 / float(table.sum())))
    sent, received = (np.asarray(table.sum(axis=axis)).ravel() for axis in (1, 0))
    out, into = sent.copy(), received.copy()
    rows, columns, weights = _edges(table, symmetric=n_first is None)
    a, b = left[rows], right[columns]
    # The moments L' W R = (L' diag(t) L) B (R' diag(t) R) give a first guess of B, near the fit.
    grams = [part.T @ (strength[:, None] * part) for part, strength in ((left, sent), (right, received))]
    blocks = np.linalg.pinv(grams[0]) @ (left.T @ (table @ right)) @ np.linalg.pinv(grams[1])
    blocks = np.maximum(blocks, SPREAD * float(np.abs(blocks).mean()))
    for _ in range(N_UPDATES):
        means = np.einsum("ij,ij->i", a @ blocks, b)
        totals = np.outer(sent @ left, received @ right)
        counts = (a * (weights / means)[:, None]).T @ b
        if n_first is None:
            counts = 0.5 * (counts + counts.T)
        blocks = blocks * counts / totals
        # The geometric mean of old and new strengths: the new ones alone may oscillate.
        sent = np.sqrt(sent * out / (left @ (blocks @ (received @ right))))
        received = (
            np.sqrt(received * into / (right @ ((sent @ left) @ blocks))) if n_first is not None else sent
        )
    means = np.einsum("ij,ij->i", a @ blocks, b)
    expected = float((sent @ left) @ blocks @ (received @ right))
    logs = np.log(sent[rows]) + np.log(received[columns]) + np.log(means)
    return float(weights @ logs) - expected


def _edges(table: SparseMatrix, *, symmetric: bool) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the ends and shares of the edges, each once; some of them where they are many."""
    places = np.arange(table.nnz)
    if table.nnz > 2 * N_EDGES:
        # Drawn with repetition, of which few occur: the order of all places would take memory.
        places = np.unique(np.random.default_rng(table.nnz).integers(table.nnz, size=2 * N_EDGES))
    rows = np.searchsorted(table.indptr, places, side="right") - 1
    kept = table.data[places] > 0  # shares of huge sums may be zero
    if symmetric:
        kept &= rows <= table.indices[places]
    weights = table.data[places[kept]]
    return rows[kept], table.indices[places[kept]], weights / float(weights.sum())
