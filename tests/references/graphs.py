"""Small graphs for the tests of communities."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def connected_graph(n, rng, p=0.5):
    """Return a random graph with whole weights that contains the path of all nodes."""
    A = np.triu(rng.integers(1, 5, (n, n)) * (rng.random((n, n)) < p), 1).astype(float)
    A[np.arange(n - 1), np.arange(1, n)] += 1.0
    return sp.csr_array(A + A.T)
