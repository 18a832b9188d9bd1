"""Scores of anchor selection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from nonneg.exceptions import InvalidParameterError
from nonneg.metrics.reconstruction import relative_error


def anchors_found(true: Any, found: Any) -> float:
    """Return the fraction of the true anchors that were found.

    Parameters
    ----------
    true : array-like of int
        Indices of the true anchors.
    found : array-like of int
        Indices of the selected samples, in any order.

    Returns
    -------
    float
        From 0 to 1.
    """
    wanted = set(np.asarray(true).ravel().tolist())
    if not wanted:
        raise InvalidParameterError("Expected at least one true anchor, got none.")
    return len(wanted & set(np.asarray(found).ravel().tolist())) / len(wanted)


def success_rate(trials: Iterable[tuple[Any, Any]]) -> float:
    """Return the fraction of trials in which exactly the true anchors were found.

    Parameters
    ----------
    trials : iterable of pairs
        For each trial the true and the found indices, in any order.

    Returns
    -------
    float
        From 0 to 1.
    """
    hits = [
        set(np.asarray(true).ravel().tolist()) == set(np.asarray(found).ravel().tolist())
        for true, found in trials
    ]
    if not hits:
        raise InvalidParameterError("Expected at least one trial, got none.")
    return float(np.mean(hits))


def relative_approximation(X: Any, W: Any, H: Any) -> float:
    """Return ``1 - ||X - W H|| / ||X||``: the relative approximation error (RAE) of the separable literature.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data.
    W : array-like of shape (n_samples, k)
        The weights; the best ones for the selected anchors, as `nonneg.SeparableNMF` computes them.
    H : array-like of shape (k, n_features)
        The anchors.

    Returns
    -------
    float
        1 for an exact factorization; larger is better. W = 0 has 0.

    References
    ----------
    .. [1] Gillis & Luce (2018), IEEE Trans. Image Process. 27(1), section IV-B.
    """
    return 1.0 - relative_error(X, W, H)
