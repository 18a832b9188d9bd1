"""Distance from the true features: how much estimated ones mix them, and what is outside their span."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.exceptions import NonFiniteDataError, ShapeError
from nonneg.metrics.factors import checked_rows, match_components


@dataclass(frozen=True)
class Mixing:
    """The decomposition A = A* (Sigma + E) + N of estimated features A, in the paper's orientation.

    Attributes
    ----------
    diagonal : array of shape (n,)
        The diagonal of Sigma: how much of its own true feature each estimated one has.
    off_diagonal : array of shape (n, n)
        E: column i contains the coefficients of the other true features in estimated feature i.
    outside : array of shape (n_features, n)
        N: the part outside the span of the true features.
    normalized_error : float
        Largest l1 distance of an estimated from its true feature, both scaled to l1 norm one.
    """

    diagonal: FloatArray
    off_diagonal: FloatArray
    outside: FloatArray
    normalized_error: float

    @property
    def e_norm(self) -> float:
        """The norm ``||E||_1``: the largest sum of a column's absolute values."""
        return float(np.abs(self.off_diagonal).sum(axis=0).max(initial=0.0))

    @property
    def e_symmetric_norm(self) -> float:
        """The norm ``||E||_s``: the largest column sum or row sum of absolute values."""
        return _symmetric_norm(self.off_diagonal)

    @property
    def n_norm(self) -> float:
        """The norm ``||N||_1``."""
        return float(np.abs(self.outside).sum(axis=0).max(initial=0.0))

    @property
    def relative_e_norm(self) -> float:
        """The norm ``||E||_1`` with every column divided by its entry of Sigma."""
        own = np.where(self.diagonal != 0, np.abs(self.diagonal), np.nan)
        return float(np.nan_to_num(np.abs(self.off_diagonal).sum(axis=0) / own, nan=np.inf).max(initial=0.0))

    def potential(self, beta: float = 4.0) -> float:
        """Return ``||E+||_s + beta ||E-||_s``, which falls from iteration to iteration in the proof.

        Parameters
        ----------
        beta : float, default 4
            The weight of the negative part, between 1 and 8 in the proof.

        Returns
        -------
        float
            The potential.
        """
        plus, minus = np.maximum(self.off_diagonal, 0.0), np.maximum(-self.off_diagonal, 0.0)
        return _symmetric_norm(plus) + beta * _symmetric_norm(minus)


def _symmetric_norm(E: FloatArray) -> float:
    return float(max(np.abs(E).sum(axis=axis).max(initial=0.0) for axis in (0, 1)))


def mixing(true: Any, estimated: Any, *, match: bool = False) -> Mixing:
    """Decompose estimated features into the true ones.

    Parameters
    ----------
    true : array-like of shape (n, n_features)
        Linearly independent features in rows.
    estimated : array-like of shape (n, n_features)
        The same number of features in rows.
    match : bool, default False
        Whether to match the estimated features to the true ones first; otherwise row i belongs to row i.

    Returns
    -------
    Mixing
        Sigma, E and N of Li, Liang and Risteski (2016), assumption (A3).
    """
    first, second = checked_rows(true, estimated)
    if first.shape != second.shape:
        raise ShapeError(
            f"Expected two arrays of the same shape (n, n_features), got {first.shape} and {second.shape}."
        )
    for name, features in (("true", first), ("estimated", second)):
        if not np.isfinite(features).all():
            raise NonFiniteDataError(
                f"Expected finite features, got NaN or infinite entries in `{name}`. Remove them first."
            )
    if match:
        second = second[match_components(first, second).permutation]
    coefficients = np.linalg.lstsq(first.T, second.T, rcond=None)[0]
    diagonal = np.diagonal(coefficients).copy()
    apart = _unit_rows(second) - _unit_rows(first)
    return Mixing(
        diagonal,
        coefficients - np.diag(diagonal),
        second.T - first.T @ coefficients,
        float(np.abs(apart).sum(axis=1).max(initial=0.0)),
    )


def _unit_rows(rows: FloatArray) -> FloatArray:
    sizes = np.abs(rows).sum(axis=1, keepdims=True)
    return rows / np.where(sizes > 0, sizes, 1.0)
