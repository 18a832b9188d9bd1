"""SPOC: successive projections on the eigenvectors (Panov, Slavnov & Ushakov, 2017)."""

from __future__ import annotations

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.applications.communities.recovery import ROUNDING, Memberships, clipped_fraction, coordinates
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors

EPS = float(np.finfo(np.float64).eps)


def spoc(vectors: FloatArray, k: int) -> tuple[SelectionResult, Memberships]:
    """Find pure nodes by successive projections among all nodes, and the memberships between them.

    Parameters
    ----------
    vectors : array of shape (n_nodes, k)
        Eigenvectors of the k largest eigenvalues, unscaled.
    k : int
        How many communities.

    Returns
    -------
    tuple
        The pure nodes, and the memberships: coordinates with respect to the pure nodes, at least the machine
        epsilon and divided by their sum, so that a row of zeros becomes equal shares of all communities.

    References
    ----------
    .. [1] Panov, Slavnov & Ushakov (2017), "Consistent estimation of mixed memberships with successive
       projections", Complex Networks.
    """
    found = select_anchors(vectors, k, method="spa")
    memberships = coordinates(vectors, vectors[found.anchors])
    clipped = clipped_fraction(memberships)
    reached = np.abs(memberships).max(axis=1) >= ROUNDING
    np.maximum(memberships, EPS, out=memberships)
    memberships /= memberships.sum(axis=1, keepdims=True)
    return found, Memberships(memberships, reached, clipped)


def connectivity(values: FloatArray, corners: FloatArray) -> FloatArray:
    """Return how strongly communities are tied to one another, from the rows of their pure nodes."""
    return (corners * values) @ corners.T


def as_selection(pure: IntArray, method: str) -> SelectionResult:
    """Wrap pure nodes that no search for anchors found."""
    return SelectionResult(anchors=np.asarray(pure, dtype=np.intp), method=method, n_iter=len(pure))
