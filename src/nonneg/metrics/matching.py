"""The best matching of two sets of components."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from nonneg.exceptions import NonFiniteDataError, ShapeError


class Matching(NamedTuple):
    """A matching of components.

    Parameters
    ----------
    permutation : array of shape (n_matched,)
        Entry i is the row of `found` that matches true component i, so that ``found[permutation]`` is in the
        order of the true ones; -1 where there is no match.
    cosines : array of shape (n_matched,)
        The cosines of the pairs; 0 where there is no match.
    """

    permutation: np.ndarray[Any, np.dtype[np.intp]]
    cosines: np.ndarray[Any, np.dtype[np.float64]]


def match_components(true: Any, found: Any) -> Matching:
    """Return the one-to-one matching of components with the largest sum of cosines.

    Parameters
    ----------
    true : array-like of shape (k, n_features)
        Components in rows.
    found : array-like of shape (l, n_features)
        Components in rows; l may differ from k.

    Returns
    -------
    Matching
        For each true component its match (-1 if none is left) and the cosine. Components of zeros have
        cosine 0 with all.

    Notes
    -----
    The Hungarian method, O(k^3).
    """
    first, second = np.asarray(true, dtype=np.float64), np.asarray(found, dtype=np.float64)
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise ShapeError(
            f"Expected two arrays of shape (n_components, n_features) with equal n_features, "
            f"got {first.shape} and {second.shape}."
        )
    cosines = _unit_rows(first, "true") @ _unit_rows(second, "found").T
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    permutation = np.full(first.shape[0], -1, dtype=np.intp)
    permutation[rows] = columns
    best = np.zeros(first.shape[0])
    best[rows] = cosines[rows, columns]
    return Matching(permutation, np.clip(best, -1.0, 1.0))


def _unit_rows(rows: Any, name: str) -> Any:
    if not np.isfinite(rows).all():
        raise NonFiniteDataError(
            f"Expected finite components, got NaN or infinite entries in `{name}`. Remove them first."
        )
    # Scaled by the largest entry first: the squares of tiny or huge components would be 0 or infinite.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows = rows / np.where(largest > 0, largest, 1.0)
    # At least 1 then, but for components of zeros.
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
