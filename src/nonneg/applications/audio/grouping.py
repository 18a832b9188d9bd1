"""Which components belong to the same source: learned from when they sound, or from how they sound."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError

WAYS = ("features", "activations", "templates", "both")
"""What components are compared by."""
# Differences that count as a different source, and larger ones no more: chosen on the mixtures that the study
# `studies/separation` names as choosing ones. Hi-hat and kick are seven octaves apart and the same source.
ROUGHNESS_SCALE = 0.6
OCTAVES_SCALE = 1.5
# Energy counts, but a soft component is worth more than its share: power of the energies in the means.
ENERGY_EXPONENT = 0.25
# Up to so many partitions are tried all; beyond, components move between groups while that helps.
MOST_PARTITIONS = 20_000


def group_components(
    activations: Any,
    components: Any,
    n_groups: int,
    *,
    by: str = "features",
    frequencies: Any = None,
) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Put components together that resemble one another.

    Parameters
    ----------
    activations : array-like of shape (n_frames, n_components)
        How much of each component is in each frame.
    components : array-like of shape (n_components, n_bins)
        What each component is made of.
    n_groups : int
        At most as many as components.
    by : {"features", "activations", "templates", "both"}
        "features": components of one source are similarly rough (the total variation of their activations:
        drums are rough, voices and strings are smooth) and have similar spectral centroids. "activations" and
        "templates": they sound at the same time, or have similar templates; "both" takes the mean of the two
        correlations.
    frequencies : array-like of shape (n_bins,), optional
        The frequency of each bin, in any unit; by default bins are equally spaced from zero.

    Returns
    -------
    array of int of shape (n_components,)
        The group of each component, numbered in the order in which they appear.

    Notes
    -----
    "features" minimizes the scatter within the groups, where components weigh by their energy. The others cut
    a tree of average linkage; a component that is constant resembles none.
    """
    W, H = np.asarray(activations, dtype=np.float64), np.asarray(components, dtype=np.float64)
    if W.ndim != 2 or H.ndim != 2 or W.shape[1] != H.shape[0]:
        raise ShapeError(
            f"Expected activations of shape (n_frames, n_components) and components of shape (n_components, "
            f"n_bins), got {W.shape} and {H.shape}."
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
    if by == "features":
        bins = np.asarray(np.arange(H.shape[1]) if frequencies is None else frequencies, dtype=np.float64)
        return _in_order(_least_scatter(_distances(W, H, bins), _weights(W, H), n_groups))
    return _in_order(_linked(W, H, n_groups, by))


def roughness(activations: FloatArray) -> FloatArray:
    """Return the total variation of activations over twice their sum: 1 for lone impulses, 0 for a hum."""
    padded = np.pad(activations, ((1, 1), (0, 0)))
    sums = activations.sum(axis=0)
    return np.abs(np.diff(padded, axis=0)).sum(axis=0) / (2 * np.where(sums > 0, sums, 1.0))


def _distances(W: FloatArray, H: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Return the squared distances of components, at most 2."""
    lowest = frequencies[frequencies > 0].min(initial=1.0)
    octaves = np.log2(np.maximum(frequencies, lowest))
    sums = H.sum(axis=1)
    centroids = (H @ octaves) / np.where(sums > 0, sums, 1.0)
    rough = np.log(np.maximum(roughness(W), 1.0 / max(len(W), 2)))
    found = np.zeros((len(H), len(H)))
    for values, scale in ((rough, ROUGHNESS_SCALE), (centroids, OCTAVES_SCALE)):
        found += np.minimum(np.square((values[:, None] - values) / scale), 1.0)
    return found


def _weights(W: FloatArray, H: FloatArray) -> FloatArray:
    energies = W.sum(axis=0) * H.sum(axis=1)
    top = energies.max()
    # Silent components go anywhere.
    return np.maximum(energies / top if top > 0 else np.ones_like(energies), 1e-12) ** ENERGY_EXPONENT


def _least_scatter(distances: FloatArray, weights: FloatArray, n_groups: int) -> Any:
    """Return the partition with the least sum of weighted scatters."""
    k = len(weights)
    pairs = weights[:, None] * distances * weights

    def scatter(labels: Any) -> FloatArray:
        members = (labels[:, None, :] == np.arange(n_groups)[None, :, None]).astype(np.float64)
        inner = np.einsum("pgi,ij,pgj->pg", members, pairs, members)
        mass = members @ weights
        return np.where(mass > 0, inner / np.where(mass > 0, mass, 1.0), np.inf).sum(axis=1)

    if n_groups ** (k - 1) <= MOST_PARTITIONS:
        labels = np.array([(0, *rest) for rest in product(range(n_groups), repeat=k - 1)])
        return labels[int(np.argmin(scatter(labels)))]
    labels = _farthest(distances, n_groups)
    best = float(scatter(labels[None])[0])
    while True:
        moved = np.repeat(labels[None], k * n_groups, axis=0)
        moved[np.arange(k * n_groups), np.repeat(np.arange(k), n_groups)] = np.tile(np.arange(n_groups), k)
        values = scatter(moved)
        at = int(np.argmin(values))
        # A gain below rounding would go on forever.
        if not values[at] < best - 1e-12 * abs(best):
            return labels
        labels, best = moved[at], float(values[at])


def _farthest(distances: FloatArray, n_groups: int) -> Any:
    """Return groups around components that are far from one another."""
    centers = [int(np.argmax(distances.sum(axis=1)))]
    while len(centers) < n_groups:
        nearest = distances[:, centers].min(axis=1)
        nearest[centers] = -1.0
        centers.append(int(np.argmax(nearest)))
    labels = np.argmin(distances[:, centers], axis=1)
    labels[centers] = np.arange(n_groups)
    return labels


def _linked(W: FloatArray, H: FloatArray, n_groups: int, by: str) -> Any:
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    similar = {
        "activations": lambda: _correlations(W.T),
        "templates": lambda: _correlations(H),
        "both": lambda: (_correlations(W.T) + _correlations(H)) / 2,
    }[by]()
    distances = np.clip(1.0 - (similar + similar.T) / 2, 0.0, None)
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(distances, checks=False), method="average")
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
