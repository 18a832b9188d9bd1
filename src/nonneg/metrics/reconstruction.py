"""Reconstruction errors of W H, computed in blocks of rows; a sparse X stays sparse."""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg.exceptions import InvalidParameterError, NegativeDataError, ShapeError

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


def beta_divergence(
    X: Any, W: Any, H: Any, *, beta_loss: float | str = 2.0, sample_weight: Any = None
) -> float:
    """Return the sum over the entries of the beta divergence of X and W H.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Nonnegative data.
    W : array-like of shape (n_samples, k)
        The factor W.
    H : array-like of shape (k, n_features)
        The factor H.
    beta_loss : float or {"frobenius", "kullback-leibler", "itakura-saito"}, default 2.0
        2 is half the squared error, 1 the generalized Kullback-Leibler and 0 the Itakura-Saito divergence.
    sample_weight : array-like of shape (n_samples,), optional
        Sample weights.

    Returns
    -------
    float
        Infinite where a divergence is: at zeros of X for beta <= 0, and where W H is zero and X is not for
        beta <= 1.
    """
    if isinstance(beta_loss, str):
        names = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}
        if beta_loss not in names:
            raise InvalidParameterError(
                f"beta_loss must be a number or one of {sorted(names)}, got {beta_loss!r}."
            )
        beta_loss = names[beta_loss]
    if not isinstance(beta_loss, Real) or not math.isfinite(beta_loss):
        raise InvalidParameterError(f"beta_loss must be a finite number or a name, got {beta_loss!r}.")
    beta = float(beta_loss)
    total = 0.0
    for rows, model, weights in _blocks(X, W, H, sample_weight):
        if beta != 2.0 and min(rows.min(initial=0.0), model.min(initial=0.0)) < 0.0:
            raise NegativeDataError(
                f"beta_loss={beta:g} needs nonnegative entries, but X or W H has negative ones. beta_loss=2 "
                "allows them."
            )
        total += _weighted(_entrywise(rows, model, beta), weights)
    return total


def _entrywise(x: Any, y: Any, beta: float) -> Any:
    if beta == 2.0:
        return 0.5 * np.square(x - y)
    # Zeros meet logarithms and negative powers: what comes out is infinite or replaced below.
    with np.errstate(divide="ignore", invalid="ignore"):
        if beta == 1.0:
            return np.where(x > 0, x * np.log(x / y), 0.0) - x + y
        if beta == 0.0:
            ratio = x / y
            return np.where(y > 0, ratio - np.log(ratio) - 1.0, np.inf)
        if beta < 0.0:
            terms = x**beta + (beta - 1.0) * y**beta - beta * x * y ** (beta - 1.0)
            return np.where(y > 0, terms / (beta * (beta - 1.0)), np.inf)
        terms = x**beta + (beta - 1.0) * y**beta - beta * x * y ** (beta - 1.0)
        # 0 * inf: no data, no cost, where the model is zero as well.
        terms = np.where(x > 0, terms, (beta - 1.0) * y**beta)
        return terms / (beta * (beta - 1.0))


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
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    W, H = np.asarray(W, dtype=np.float64), np.asarray(H, dtype=np.float64)
    if (
        X.ndim != 2
        or W.ndim != 2
        or H.ndim != 2
        or X.shape != (W.shape[0], H.shape[1])
        or W.shape[1] != H.shape[0]
    ):
        raise ShapeError(
            f"Expected X (n, m), W (n, k) and H (k, m), got X {X.shape}, W {W.shape} and H {H.shape}."
        )
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None and weights.shape != (X.shape[0],):
        raise ShapeError(f"Expected sample_weight of shape ({X.shape[0]},), got {weights.shape}.")
    if weights is not None and not (np.isfinite(weights) & (weights >= 0)).all():
        raise InvalidParameterError("Expected finite sample_weight that is not negative.")
    step = max(1, _BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        part = slice(start, start + step)
        rows = X[part].toarray() if sp.issparse(X) else X[part]
        yield rows.astype(np.float64), W[part] @ H, None if weights is None else weights[part]
