"""Scores of factors: reconstruction error, matching of components, angles and anchors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from nonneg.exceptions import InvalidParameterError, NonFiniteDataError, ShapeError
from nonneg.metrics.arguments import sparse_table, table

_BLOCK_ENTRIES = 1 << 20
# A sum of squares below this may have lost terms to underflow.
_SMALLEST = 1e-280


def relative_error(X: Any, W: Any, H: Any, *, sample_weight: Any = None) -> float:
    """Return ||X - W H|| / ||X|| in the Frobenius norm.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data.
    W : array-like of shape (n_samples, k)
        The factor W.
    H : array-like of shape (k, n_features)
        The factor H.
    sample_weight : array-like of shape (n_samples,), optional
        Sample weights of the squared errors.

    Returns
    -------
    float
        0 for an exact factorization; 0 if X and W H are both zero, infinite if only X is.
    """
    square, scale = _sums_of_squares(X, W, H, sample_weight, 1.0)
    if not (_SMALLEST < scale < math.inf and square < math.inf):
        # Squares underflow or overflow: in units of the largest entry they do not.
        largest = max(
            (float(np.abs(rows).max(initial=0.0)) for rows, *_ in _blocks(X, W, H, None)), default=0.0
        )
        if 0.0 < largest < math.inf:
            square, scale = _sums_of_squares(X, W, H, sample_weight, largest)
    if scale == 0.0:
        return 0.0 if square == 0.0 else math.inf
    return math.sqrt(square / scale)


def _sums_of_squares(X: Any, W: Any, H: Any, sample_weight: Any, unit: float) -> tuple[float, float]:
    square, scale = 0.0, 0.0
    with np.errstate(over="ignore"):
        for rows, model, weights in _blocks(X, W, H, sample_weight):
            if unit != 1.0:
                rows, model = rows / unit, model / unit
            square += _weighted(np.square(rows - model), weights)
            scale += _weighted(np.square(rows), weights)
    return square, scale


def _weighted(values: Any, weights: Any) -> float:
    rows = np.sum(values, axis=1)
    return float(np.sum(rows) if weights is None else rows @ weights)


def _blocks(X: Any, W: Any, H: Any, sample_weight: Any) -> Iterator[tuple[Any, Any, Any]]:
    X = sparse_table(X, "X", "(n, m)") if sp.issparse(X) else table(X, "X", "(n, m)", as_float=False)
    W, H = table(W, "W", "(n, k)"), table(H, "H", "(k, m)")
    if X.shape != (W.shape[0], H.shape[1]) or W.shape[1] != H.shape[0]:
        raise ShapeError(
            f"Expected X (n, m), W (n, k) and H (k, m), got X {X.shape}, W {W.shape} and H {H.shape}."
        )
    weights = None if sample_weight is None else table(sample_weight, "sample_weight", "(n,)")
    if weights is not None and weights.shape != (X.shape[0],):
        raise ShapeError(f"Expected sample_weight of shape ({X.shape[0]},), got {weights.shape}.")
    if weights is not None and not (np.isfinite(weights) & (weights >= 0)).all():
        raise InvalidParameterError("Expected finite sample_weight that is not negative.")
    step = max(1, _BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        part = slice(start, start + step)
        rows = X[part].toarray() if sp.issparse(X) else X[part]
        yield rows.astype(np.float64), W[part] @ H, None if weights is None else weights[part]


class Matching(NamedTuple):
    """A matching of components.

    Parameters
    ----------
    permutation : array of shape (n_matched,)
        Entry i is the row of `estimated` that matches true component i, so that ``estimated[permutation]`` is
        in the order of the true ones; -1 where there is no match.
    cosines : array of shape (n_matched,)
        The cosines of the pairs; 0 where there is no match.
    """

    permutation: np.ndarray[Any, np.dtype[np.intp]]
    cosines: np.ndarray[Any, np.dtype[np.float64]]


def match_components(true: Any, estimated: Any) -> Matching:
    """Return the one-to-one matching of components with the largest sum of cosines.

    Parameters
    ----------
    true : array-like of shape (k, n_features)
        Components in rows.
    estimated : array-like of shape (l, n_features)
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
    first, second = checked_rows(true, estimated)
    cosines = unit_rows(first, "true") @ unit_rows(second, "estimated").T
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    permutation = np.full(first.shape[0], -1, dtype=np.intp)
    permutation[rows] = columns
    best = np.zeros(first.shape[0])
    best[rows] = cosines[rows, columns]
    return Matching(permutation, np.clip(best, -1.0, 1.0))


def spectral_angles(true: Any, estimated: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the angle of every true spectrum with every estimated one, in degrees.

    Parameters
    ----------
    true : array-like of shape (k, n_features)
        Spectra in rows.
    estimated : array-like of shape (l, n_features)
        Spectra in rows.

    Returns
    -------
    array of shape (k, l)
        0 for the same direction, whatever the brightness; 90 for a right angle. A spectrum of zeros has no
        direction and is at a right angle to all.
    """
    first, second = checked_rows(true, estimated)
    x, y = unit_rows(first, "true"), unit_rows(second, "estimated")
    # The half-angle form is accurate for small angles, where the cosine is flat.
    apart = np.linalg.norm(x[:, None, :] - y[None, :, :], axis=2)
    together = np.linalg.norm(x[:, None, :] + y[None, :, :], axis=2)
    flat = ~x.any(axis=1)[:, None] | ~y.any(axis=1)[None, :]
    return np.where(flat, 90.0, 360.0 * np.arctan2(apart, together) / np.pi)


def anchors_found(true: Any, estimated: Any) -> float:
    """Return the fraction of the true anchors that were found.

    Parameters
    ----------
    true : array-like of int
        Indices of the true anchors.
    estimated : array-like of int
        Indices of the selected samples, in any order.

    Returns
    -------
    float
        From 0 to 1.
    """
    anchors = set(table(true, "true", "(n_anchors,)").tolist())
    if not anchors:
        raise InvalidParameterError("Expected at least one true anchor, got none.")
    return len(anchors & set(table(estimated, "estimated", "(n_selected,)").tolist())) / len(anchors)


def checked_rows(true: Any, estimated: Any) -> tuple[Any, Any]:
    """Return two sets of components as arrays."""
    shape = "(n_components, n_features)"
    first, second = table(true, "true", shape), table(estimated, "estimated", shape)
    if first.shape[1] != second.shape[1]:
        raise ShapeError(
            f"Expected two arrays of shape {shape} with equal n_features, got {first.shape} and "
            f"{second.shape}."
        )
    return first, second


def unit_rows(rows: Any, name: str) -> Any:
    """Return components of unit length; zeros stay zeros."""
    if not np.isfinite(rows).all():
        raise NonFiniteDataError(
            f"Expected finite components, got NaN or infinite entries in `{name}`. Remove them first."
        )
    # Scaled by the largest entry first: the squares of tiny or huge components would be 0 or infinite.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows = rows / np.where(largest > 0, largest, 1.0)
    # At least 1 then, but for components of zeros.
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
