"""Which components belong to the same source: learned from when they sound, or from how they sound."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError

WAYS = ("activations", "templates", "both")
"""What components are compared by."""


def group_components(
    activations: Any, components: Any, n_groups: int, *, by: str = "activations"
) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Put components together that resemble one another.

    Parameters
    ----------
    activations : array-like of shape (n_frames, n_components)
        How much of each component is in each frame.
    components : array-like of shape (n_components, frame_length)
        What each component is made of.
    n_groups : int
        At most as many as components.
    by : {"activations", "templates", "both"}
        Components of one source sound at the same time, or have similar templates; "both" takes the mean of
        the two correlations.

    Returns
    -------
    array of int of shape (n_components,)
        The group of each component, numbered in the order in which they appear.

    Notes
    -----
    Correlations of variances, then average linkage. A component that is constant resembles none.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    W, H = np.asarray(activations, dtype=np.float64), np.asarray(components, dtype=np.float64)
    if W.ndim != 2 or H.ndim != 2 or W.shape[1] != H.shape[0]:
        raise ShapeError(
            f"Expected activations of shape (n_frames, n_components) and components of shape (n_components, "
            f"frame_length), got {W.shape} and {H.shape}."
        )
    if by not in WAYS:
        raise UnknownNameError.of("by", by, WAYS)
    k = H.shape[0]
    if not 1 <= n_groups <= k:
        raise InvalidParameterError(
            f"n_groups must be from 1 to the number of components {k}, got {n_groups}."
        )
    if n_groups == k:
        return np.arange(k, dtype=np.intp)
    similar = {
        "activations": lambda: _correlations(W.T),
        "templates": lambda: _correlations(H),
        "both": lambda: (_correlations(W.T) + _correlations(H)) / 2,
    }[by]()
    distances = np.clip(1.0 - (similar + similar.T) / 2, 0.0, None)
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(distances, checks=False), method="average")
    return _in_order(_cut(tree, n_groups))


def _cut(tree: Any, n_groups: int) -> Any:
    # The first merges only: where heights are equal, scipy's own cut may leave fewer groups than asked for.
    k = len(tree) + 1
    members = {at: [at] for at in range(k)}
    for step, (first, second, _, _) in enumerate(tree[: k - n_groups]):
        members[k + step] = members.pop(int(first)) + members.pop(int(second))
    labels = np.empty(k, dtype=np.intp)
    for number, group in enumerate(members.values()):
        labels[group] = number
    return labels


def _in_order(labels: Any) -> np.ndarray[Any, np.dtype[np.intp]]:
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _correlations(rows: FloatArray) -> FloatArray:
    centered = rows - rows.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centered, axis=1, keepdims=True)
    unit = centered / np.where(norms > 0, norms, 1.0)
    return unit @ unit.T
