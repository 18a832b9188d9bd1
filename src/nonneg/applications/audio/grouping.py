"""Which components belong to the same source: learned from when they sound, or from how they sound."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.applications.audio.affinity import affinities, correlations, roughness
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError

WAYS = ("features", "activations", "templates", "both", "harmonic-percussive")
"""What components are compared by."""
# Partitions from which components move between groups while that helps, and the seed that draws them.
N_RANDOM, SEED = 32, 0
# Groups have this share of the energy of the model; squares in the masks make small ones smaller still.
LEAST_SHARE = 0.12


def group_components(
    activations: Any,
    components: Any,
    n_groups: int,
    *,
    by: str = "features",
    frequencies: Any = None,
) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Group components that resemble one another.

    Parameters
    ----------
    activations : array-like of shape (n_frames, n_components)
        How much of each component is in each frame.
    components : array-like of shape (n_components, n_bins)
        What each component is made of.
    n_groups : int
        At most as many as components.
    by : {"features", "activations", "templates", "both", "harmonic-percussive"}, default "features"
        "features": by how likely two components belong to the same source, given how rough, sparse and
        asymmetric their activations are, the centroid, width and envelope of their templates, and whether
        they sound together or one after the other. "activations" and "templates": they sound at the same
        time, or have similar templates; "both" uses the mean of the two correlations. "harmonic-percussive":
        components that are smoother in time than over frequency, and the others; two groups.
    frequencies : array-like of shape (n_bins,), optional
        The frequency of each bin, in any unit; by default bins are equally spaced from zero.

    Returns
    -------
    array of int of shape (n_components,)
        The group of each component, numbered in the order in which they appear; with "harmonic-percussive"
        0 is harmonic and 1 percussive.

    Notes
    -----
    "features" maximizes the sum of log odds within the groups, where pairs weigh by the product of their
    energies (correlation clustering, by local search): loud components decide, and a nearly empty group gains
    very little. The odds are a logistic regression on mixtures whose sources are known. The other rules cut a
    tree built by average linkage on the correlations; a constant component resembles no other.
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
    bins = np.asarray(np.arange(H.shape[1]) if frequencies is None else frequencies, dtype=np.float64)
    if by == "harmonic-percussive":
        return _harmonic_percussive(W, H, n_groups)
    if by == "features":
        energies = energy_shares(W, H)
        odds = affinities(W, H, bins) * np.outer(energies, energies)
        return _in_order(partition(odds, n_groups, energies))
    return _in_order(_linked(W, H, n_groups, by))


def energy_shares(W: FloatArray, H: FloatArray) -> FloatArray:
    """Return the share of each component in the power of the model."""
    powers = ((W.T @ W) * (H @ H.T)).sum(axis=1)
    total = powers.sum()
    # Silent components go anywhere.
    return np.maximum(powers / total, 1e-12) if total > 0 else np.full(len(H), 1.0 / len(H))


def _harmonic_percussive(W: FloatArray, H: FloatArray, n_groups: int) -> Any:
    if n_groups != 2:
        raise InvalidParameterError(
            f"by='harmonic-percussive' finds two groups, got n_groups={n_groups}. Pass 2, or another `by`."
        )
    # Total variations of amplitudes: partials jump over frequency, strokes in time.
    contrast = np.log(np.maximum(roughness(W), 1e-6) / np.maximum(roughness(H.T), 1e-6))
    labels = (contrast > 0).astype(np.intp)
    if labels.all() or not labels.any():  # neither group is empty
        labels[int(np.argmin(contrast) if labels.all() else np.argmax(contrast))] ^= 1
    return labels


def partition(affinity: FloatArray, n_groups: int, shares: Any = None) -> Any:
    """Return the partition into this number of balanced groups with the largest sum of affinities within."""
    k = len(affinity)
    shares = np.full(k, 1.0 / k) if shares is None else shares
    least = LEAST_SHARE / max(n_groups - 1, 1) if n_groups < k / 2 else 0.0
    total = 2 * float(np.abs(affinity).sum())
    affinity = affinity - np.diag(np.diag(affinity))
    best, most = None, -np.inf
    random = np.random.default_rng(SEED)
    for _ in range(N_RANDOM):
        # Each group has a component to begin with, whatever is drawn.
        labels = random.permutation(np.r_[np.arange(n_groups), random.integers(n_groups, size=k - n_groups)])
        value = _improve(labels, affinity, n_groups, shares, least)
        # Balanced partitions come first, and a gain below rounding decides nothing.
        if np.bincount(labels, shares, n_groups).min() < least:
            value -= total
        if best is None or value > most + 1e-12 * abs(most):
            best, most = labels, value
    return best


def _improve(labels: Any, affinity: FloatArray, n_groups: int, shares: FloatArray, least: float) -> float:
    """Move components one by one to the group where they gain most, in place, and return the sum within."""
    rows = np.arange(len(labels))
    members = np.eye(n_groups)[labels]
    towards = affinity @ members
    while True:
        gains = towards - towards[rows, labels][:, None]
        # The last one of a group stays, and what a group needs to have a share at all.
        alone = members.sum(axis=0)[labels] == 1
        gains[alone | ((shares @ members)[labels] - shares < least)] = 0.0
        at, group = np.unravel_index(int(np.argmax(gains)), gains.shape)
        if not gains[at, group] > 1e-12 * np.abs(affinity).max(initial=0.0):
            return float((towards * members).sum())
        towards[:, group] += affinity[:, at]
        towards[:, labels[at]] -= affinity[:, at]
        members[at, labels[at]], members[at, group], labels[at] = 0.0, 1.0, group


def _linked(W: FloatArray, H: FloatArray, n_groups: int, by: str) -> Any:
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    similar = {
        "activations": lambda: correlations(W.T),
        "templates": lambda: correlations(H),
        "both": lambda: (correlations(W.T) + correlations(H)) / 2,
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
