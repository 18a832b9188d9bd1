"""Judge of the methods: the likelihood of hidden edges under the degree-corrected blockmodel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from nonneg._typing import BoolArray, FloatArray, IntArray, SparseMatrix

# The share of the edges that is hidden, as in the edge cross-validation of Li, Levina & Zhu (2020).
HIDDEN = 0.1
# Alternating updates of strengths and connectivity, which converge in a few.
N_UPDATES = 8


@dataclass(frozen=True)
class HiddenEdges:
    """A graph of which some edges are hidden."""

    shown: SparseMatrix  # CSR, symmetric: the nodes that keep an edge
    connected: BoolArray  # which nodes these are
    rows: IntArray  # the ends of the hidden edges among them, as rows of `shown`
    columns: IntArray
    weights: FloatArray  # of the hidden edges, of mean 1

    def log_likelihoods(self, memberships: FloatArray) -> FloatArray:
        """Return the log-likelihood of each hidden edge, relative to a single community.

        The weight of edge (i, j) is Poisson with mean t_i t_j m_i' B m_j, where m are the memberships (Karrer
        & Newman, 2011, with mixed memberships); the strengths t and the connectivity B are fitted to the
        edges that are shown. Memberships are those of Laplace's rule: one edge is added per community, so
        that no edge is impossible.
        """
        return self.weights * (self._logs(memberships) - self._logs(np.ones((len(memberships), 1))))

    def _logs(self, memberships: FloatArray) -> FloatArray:
        k = memberships.shape[1]
        counts = np.diff(self.shown.indptr)[:, None]
        m = (counts * memberships + 1.0) / (counts + k)
        table = sp.coo_array(self.shown * (1.0 / float(self.shown.sum())))
        degrees = np.asarray(table.sum(axis=1)).ravel()
        strengths = degrees.copy()
        left, right = m[table.row], m[table.col]
        # The moments m' W m = (m' diag(t) m) B (m' diag(t) m) give a first guess of B, near the fit.
        inverse = np.linalg.pinv(m.T @ (strengths[:, None] * m))
        blocks = inverse @ (m.T @ (table @ m)) @ inverse
        blocks = np.maximum(blocks, 1e-3 * float(np.abs(blocks).mean()))
        for _ in range(N_UPDATES):
            means = np.einsum("ij,ij->i", left @ blocks, right)
            totals = strengths @ m
            pairs = (left * (table.data / means)[:, None]).T @ right
            blocks = blocks * (0.5 * (pairs + pairs.T)) / np.outer(totals, totals)
            # The geometric mean of old and new strengths: the new ones alone may oscillate.
            strengths = np.sqrt(strengths * degrees / (m @ (blocks @ (strengths @ m))))
        means = np.einsum("ij,ij->i", m[self.rows] @ blocks, m[self.columns])
        return np.log(strengths[self.rows]) + np.log(strengths[self.columns]) + np.log(means)


def hide_edges(adjacency: SparseMatrix) -> HiddenEdges | None:
    """Hide some edges of a symmetric graph, the same at every call; None where none can be hidden."""
    upper = sp.coo_array(sp.triu(adjacency, 1))
    hidden = np.random.default_rng(adjacency.shape[0]).random(upper.nnz) < HIDDEN
    kept = ~hidden
    half = sp.csr_array((upper.data[kept], (upper.row[kept], upper.col[kept])), shape=adjacency.shape)
    shown = sp.csr_array(half + half.T)
    connected = np.diff(shown.indptr) > 0
    # The strength of a node without another edge is not known.
    hidden &= connected[upper.row] & connected[upper.col]
    if not hidden.any():
        return None
    places = np.cumsum(connected) - 1
    weights = upper.data[hidden]
    return HiddenEdges(
        shown if connected.all() else sp.csr_array(shown[connected][:, connected]),
        connected,
        places[upper.row[hidden]],
        places[upper.col[hidden]],
        weights / float(weights.mean()),
    )
