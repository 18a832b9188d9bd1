"""Components of many restarts: outliers, clusters, stability, and the consensus spectra."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from nonneg._typing import FloatArray, IntArray

CLUSTERINGS = ("kmeans", "matched")
# Neighbors of a component, as a share of the number of restarts: the default of cNMF.
NEIGHBORHOOD = 0.3
# cNMF's own settings of k-means.
_KMEANS = {"n_init": 10, "random_state": 1}
# Assignments settle after a handful of rounds; a cycle would have to be broken.
_MAX_ROUNDS = 50


class Clusters(NamedTuple):
    """A cluster per component of each restart."""

    labels: IntArray  # of every component of every restart; -1 for outliers
    nearest: IntArray  # the same, with outliers in the nearest cluster; -1 for components of zeros
    spectra: FloatArray  # the median of each cluster, sum one
    silhouettes: FloatArray  # of every component; NaN for components of zeros


def unit_spectra(spectra: FloatArray) -> FloatArray:
    """Divide rows by their norm; rows of zeros stay."""
    norms = np.sqrt(np.einsum("ij,ij->i", spectra, spectra))
    return spectra / np.where(norms > 0, norms, 1.0)[:, None]


def distances_of(unit: FloatArray) -> FloatArray:
    """Return the Euclidean distances between unit rows, and infinity to rows of zeros."""
    gram = unit @ unit.T
    distances = np.sqrt(np.clip(2.0 - 2.0 * gram, 0.0, None))
    dead = np.diagonal(gram) < 0.5
    distances[dead] = distances[:, dead] = np.inf
    np.fill_diagonal(distances, 0.0)
    return distances


def local_density(distances: FloatArray, k: int) -> FloatArray:
    """Return the mean distance to the nearest components, a share of one per restart."""
    n = len(distances)
    n_neighbors = min(max(int(NEIGHBORHOOD * n / k), 1), n - 1)
    # The nearest of all is the component itself, at distance zero.
    nearest = np.partition(distances, n_neighbors, axis=1)[:, : n_neighbors + 1]
    return nearest.sum(axis=1) / n_neighbors


def cluster(unit: FloatArray, distances: FloatArray, k: int, dense: IntArray, method: str) -> Clusters:
    """Cluster the dense components; silhouettes are those of all of them, with outliers in their clusters."""
    usable = np.flatnonzero(unit.any(axis=1))
    chosen = np.intersect1d(dense, usable)
    if method == "kmeans":
        from sklearn.cluster import KMeans  # an import that most fits do not need

        inside: IntArray = np.asarray(KMeans(k, **_KMEANS).fit(unit[chosen]).labels_, dtype=np.int64)
    else:
        inside = _matched(unit, chosen, k)
    spectra = np.array([_median(unit[chosen[inside == a]]) for a in range(k)])
    labels = np.full(len(unit), -1)
    labels[chosen] = inside
    # All components count for the stability, as in cNMF: outliers are those that make a rank unstable.
    nearest = labels.copy()
    rest = np.setdiff1d(usable, chosen)
    nearest[rest] = np.argmax(unit[rest] @ unit_spectra(spectra).T, axis=1)
    silhouettes = np.full(len(unit), np.nan)
    silhouettes[usable] = silhouettes_of(distances[np.ix_(usable, usable)], nearest[usable], k)
    return Clusters(labels, nearest, spectra, silhouettes)


def silhouettes_of(distances: FloatArray, labels: IntArray, k: int) -> FloatArray:
    """Return the silhouette of every component; in a single cluster, one minus its mean distance."""
    n = len(labels)
    if k == 1:
        return 1.0 - distances.sum(axis=1) / max(n - 1, 1)
    member = np.zeros((n, k))
    member[np.arange(n), labels] = 1.0
    sizes = member.sum(axis=0)
    sums = distances @ member
    own = sums[np.arange(n), labels] / np.maximum(sizes[labels] - 1, 1)
    others = np.where(sizes > 0, sums / np.maximum(sizes, 1), np.inf)
    others[np.arange(n), labels] = np.inf
    other = others.min(axis=1)
    other = np.where(np.isfinite(other), other, own)  # without another cluster there is nothing to compare
    silhouettes = (other - own) / np.maximum(np.maximum(own, other), 1e-300)
    # A component on its own is in no cluster at all (Rousseeuw 1987).
    return np.where(sizes[labels] > 1, silhouettes, 0.0)


def _median(rows: FloatArray) -> FloatArray:
    middle = np.median(rows, axis=0)
    if not middle.any():
        middle = rows.mean(axis=0)
    return middle / max(float(middle.sum()), np.finfo(float).tiny)


def _matched(unit: FloatArray, chosen: IntArray, k: int) -> IntArray:
    """Give every restart at most one component in each cluster: Hungarian assignments to the medians."""
    restarts = chosen // k
    groups = [np.flatnonzero(restarts == restart) for restart in np.unique(restarts)]
    rows = unit[chosen]
    # The restart whose components are nearest to all others begins.
    whole = [group for group in groups if len(group) == k] or [max(groups, key=len)]
    closeness = [np.sort(rows[group] @ rows.T, axis=0)[-1].mean() for group in whole]
    centers = rows[whole[int(np.argmax(closeness))]]
    if len(centers) < k:
        centers = _farthest(rows, k)
    labels = np.full(len(chosen), -1)
    for _ in range(_MAX_ROUNDS):
        before = labels.copy()
        for group in groups:
            matched, to = linear_sum_assignment(rows[group] @ centers.T, maximize=True)
            labels[group[matched]] = to
        if np.array_equal(before, labels):
            break
        centers = np.array([unit_spectra(_median(rows[labels == a])[None])[0] for a in range(k)])
    return labels


def _farthest(rows: FloatArray, k: int) -> FloatArray:
    picked = [0]
    for _ in range(k - 1):
        picked.append(int(np.argmin((rows @ rows[picked].T).max(axis=1))))
    return rows[picked]
