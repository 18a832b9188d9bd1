"""Angles between components, as hyperspectral unmixing measures them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from nonneg.exceptions import NonFiniteDataError, ShapeError


def spectral_angles(true: Any, found: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the angle of every true spectrum with every found one, in degrees.

    Parameters
    ----------
    true : array-like of shape (k, n_features)
        Spectra in rows.
    found : array-like of shape (l, n_features)
        Spectra in rows.

    Returns
    -------
    array of shape (k, l)
        0 for the same direction, whatever the brightness; 90 for a right angle. A spectrum of zeros has no
        direction and is at a right angle to all.
    """
    return 180.0 * _angles(true, found, centered=False)


def mean_removed_angles(true: Any, found: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the mean-removed spectral angle of every true component with every found one.

    Parameters
    ----------
    true : array-like of shape (k, n_features)
        Components in rows.
    found : array-like of shape (l, n_features)
        Components in rows.

    Returns
    -------
    array of shape (k, l)
        ``100 / pi * arccos(x'y / (|x| |y|))`` with x and y the components minus the mean of their own
        entries: 0 for the same direction, 50 for a right angle, 100 for opposite ones. A constant component
        has no direction and is at a right angle to all.

    References
    ----------
    .. [1] Gillis & Luce (2018), IEEE Trans. Image Process. 27(1), section IV-B.
    """
    return 100.0 * _angles(true, found, centered=True)


def mean_removed_spectral_angle(true: Any, found: Any) -> float:
    """Return the mean-removed spectral angle (MRSA) of two sets of components, averaged over the best pairs.

    Parameters
    ----------
    true : array-like of shape (k, n_features)
        Components in rows.
    found : array-like of shape (k, n_features)
        Components in rows.

    Returns
    -------
    float
        From 0 (the same directions) to 100: the mean of `mean_removed_angles` over the one-to-one pairing
        with the smallest sum.

    Notes
    -----
    As in Gillis & Luce (2018): the mean of its own entries is subtracted from each component, and angles are
    in units of pi / 100. The script of the MERIT paper subtracts the mean over the components instead, and
    returns radians.
    """
    angles = mean_removed_angles(true, found)
    if angles.shape[0] != angles.shape[1]:
        raise ShapeError(
            f"Expected the same number of components in both sets, got {angles.shape[0]} and "
            f"{angles.shape[1]}. "
            "Use mean_removed_angles for sets of different size."
        )
    if not angles.size:
        raise ShapeError("Expected at least one component in both sets, got none.")
    rows, columns = linear_sum_assignment(angles)
    return float(angles[rows, columns].mean())


def _angles(true: Any, found: Any, *, centered: bool) -> Any:
    """Return the angles of all pairs in units of pi."""
    first, second = np.asarray(true, dtype=np.float64), np.asarray(found, dtype=np.float64)
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise ShapeError(
            "Expected two arrays of shape (n_components, n_features) with equal n_features, "
            f"got {first.shape} and {second.shape}."
        )
    x, y = _directions(first, "true", centered=centered), _directions(second, "found", centered=centered)
    # The half-angle form is accurate for small angles, where the cosine is flat.
    apart = np.linalg.norm(x[:, None, :] - y[None, :, :], axis=2)
    together = np.linalg.norm(x[:, None, :] + y[None, :, :], axis=2)
    flat = ~x.any(axis=1)[:, None] | ~y.any(axis=1)[None, :]
    return np.where(flat, 0.5, 2.0 * np.arctan2(apart, together) / np.pi)


def _directions(rows: Any, name: str, *, centered: bool) -> Any:
    if not np.isfinite(rows).all():
        raise NonFiniteDataError(
            f"Expected finite components, got NaN or infinite entries in `{name}`. Remove them first."
        )
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows = rows / np.where(largest > 0, largest, 1.0)
    if centered:
        rows = rows - rows.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    # What rounding leaves of a constant has no direction.
    firm = norms > 1e-14 * np.sqrt(rows.shape[1])
    return np.where(firm, rows / np.where(firm, norms, 1.0), 0.0)
