"""Groups of components: those that belong to the same source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.fft

from nonneg._typing import FloatArray, IntArray
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError

PROPOSALS = ("timbre", "timbre-dynamics")
GROUPINGS = ("auto", *PROPOSALS, "activations", "harmonic-percussive")
"""The ways to group components, by name."""
# Mel-frequency cepstral coefficients as in speech recognition: 40 bands, 13 coefficients of which the first,
# the loudness, is left out (Davis & Mermelstein 1980; librosa and HTK).
MEL_BANDS, CEPSTRAL_COEFFICIENTS = 40, 13
# Initializations of k-means, of which the best counts.
N_INIT, MAX_ITER = 32, 100


def group_components(
    activations: Any, components: Any, n_groups: int, *, by: str = "auto", frequencies: Any = None
) -> IntArray:
    """Group components that belong to the same source.

    Parameters
    ----------
    activations : array-like of shape (n_frames, n_components)
        How much of each component is in each frame.
    components : array-like of shape (n_components, n_bins)
        What each component is made of.
    n_groups : int
        At most as many as components.
    by : {"auto", "timbre", "timbre-dynamics", "activations", "harmonic-percussive"}, default "auto"
        "timbre": components with similar spectral envelopes, by their mel-frequency cepstral coefficients.
        "timbre-dynamics": the same, where the dynamics of the activations (how rough they are, and how much
        faster they rise than fall) count as much as the envelopes. "auto": the one of these two whose groups
        have the more equal energies. "activations": components that sound at the same time.
        "harmonic-percussive": components with smooth and with rough activations; two groups.
    frequencies : array-like of shape (n_bins,), optional
        The frequency of each bin in hertz; by default bins are equally spaced from 0 to 11025 Hz.

    Returns
    -------
    array of int of shape (n_components,)
        The group of each component, numbered in the order in which they appear; with "harmonic-percussive"
        0 is harmonic and 1 percussive.

    Notes
    -----
    Groups are found by k-means of the descriptors, in which a component counts by its magnitude. Roughness is
    the total variation of an activation over its sum. "activations" cuts a tree by average linkage of the
    correlations; a constant activation resembles no other.

    References
    ----------
    .. [1] Spiertz & Gnann (2009), Source-filter based clustering for monaural blind source separation.
    .. [2] Virtanen (2007), Monaural sound source separation by nonnegative matrix factorization with temporal
       continuity and sparseness criteria.
    """
    W, H = np.asarray(activations, dtype=np.float64), np.asarray(components, dtype=np.float64)
    if W.ndim != 2 or H.ndim != 2 or W.shape[1] != H.shape[0]:
        raise ShapeError(
            f"Expected activations of shape (n_frames, n_components) and components of shape (n_components, "
            f"n_bins), got {W.shape} and {H.shape}."
        )
    if by not in GROUPINGS:
        raise UnknownNameError.of("by", by, GROUPINGS)
    k = H.shape[0]
    if not 1 <= n_groups <= k:
        raise InvalidParameterError(
            f"n_groups must be from 1 to the number of components {k}, got {n_groups}."
        )
    if by == "harmonic-percussive" and n_groups != 2:
        raise InvalidParameterError(
            f"by='harmonic-percussive' finds two groups, got n_groups={n_groups}. Pass 2, or another `by`."
        )
    bins = np.linspace(0, 11025, H.shape[1]) if frequencies is None else np.asarray(frequencies, np.float64)
    if by != "auto":
        return _grouped(W, H, n_groups, by, bins)
    labels = {name: _grouped(W, H, n_groups, name, bins) for name in PROPOSALS}
    return labels[best_proposal({name: largest_share(W, H, one) for name, one in labels.items()})]


def best_proposal(shares: Mapping[str, float]) -> str:
    """Return the proposal whose largest group has the smallest share; the first of equal ones."""
    return min(shares, key=lambda name: round(shares[name], 9))


def largest_share(W: FloatArray, H: FloatArray, labels: IntArray) -> float:
    """Return the share of the loudest group in the sum of the energies of all groups."""
    products = (W.T @ W) * (H @ H.T)
    energies = [float(products[np.ix_(labels == at, labels == at)].sum()) for at in np.unique(labels)]
    return max(energies) / max(sum(energies), np.finfo(float).tiny)


def _grouped(W: FloatArray, H: FloatArray, n_groups: int, by: str, frequencies: FloatArray) -> IntArray:
    if n_groups == H.shape[0] and by != "harmonic-percussive":
        return np.arange(n_groups, dtype=np.intp)
    if by == "activations":
        return _in_order(_linked(_correlations(W.T), n_groups))
    masses = W.sum(axis=0) * H.sum(axis=1)
    # Silent components go anywhere, but go.
    weights = np.maximum(masses / max(float(masses.sum()), np.finfo(float).tiny), 1e-12)
    dynamics = _standardized(_dynamics(W), weights)
    if by == "harmonic-percussive":
        labels = _means(dynamics[:, :1], weights, 2)
        smooth = int(np.argmin([dynamics[labels == at, 0].mean() for at in (0, 1)]))
        return np.where(labels == smooth, 0, 1).astype(np.intp)
    descriptors = _cepstral_coefficients(H, frequencies)
    if by == "timbre-dynamics":
        # Both parts have the same total variance.
        envelopes = _standardized(descriptors, weights) / np.sqrt(descriptors.shape[1])
        descriptors = np.concatenate([envelopes, dynamics / np.sqrt(dynamics.shape[1])], axis=1)
    return _in_order(_means(descriptors, weights, n_groups))


def _means(points: FloatArray, weights: FloatArray, n_groups: int) -> IntArray:
    """Return the groups of weighted k-means, none of them empty."""
    random = np.random.default_rng(0)
    best, least = np.arange(len(points)) % n_groups, np.inf
    for _ in range(N_INIT):
        chosen = random.choice(len(points), n_groups, replace=False, p=weights / weights.sum())
        centers, labels = points[chosen], np.zeros(len(points), dtype=np.intp)
        for _ in range(MAX_ITER):
            before = labels
            labels = np.square(points[:, None] - centers).sum(axis=2).argmin(axis=1)
            if len(np.unique(labels)) < n_groups:
                # Points that coincide: no group is left empty.
                labels[chosen] = np.arange(n_groups)
            if (labels == before).all():
                break
            members = np.eye(n_groups)[labels] * weights[:, None]
            centers = members.T @ points / members.sum(axis=0)[:, None]
        scatter = float(weights @ np.square(points - centers[labels]).sum(axis=1))
        # A gain below rounding decides nothing.
        if scatter < least * (1 - 1e-9):
            best, least = labels, scatter
    return best


def _dynamics(W: FloatArray) -> FloatArray:
    """Return the logarithms of roughness and asymmetry of activations, one row each."""
    sums = W.sum(axis=0)
    changes = np.diff(np.pad(W / np.where(sums > 0, sums, 1.0), ((1, 1), (0, 0))), axis=0)
    # The total variation: 2 for lone impulses, hardly anything for a hum.
    rough = np.abs(changes).sum(axis=0)
    # Struck sounds rise faster than they fall.
    rises, falls = (np.square(np.maximum(sign * changes, 0.0)).sum(axis=0) for sign in (1, -1))
    tiny = np.finfo(float).tiny
    return np.log(np.maximum(np.stack([rough, np.sqrt(rises / np.maximum(falls, tiny))], axis=1), tiny))


def _cepstral_coefficients(H: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Return the mel-frequency cepstral coefficients of templates, one row each."""
    mels = 2595.0 * np.log10(1.0 + frequencies / 700.0)
    edges = np.linspace(mels[0], max(mels[-1], mels[0] + 1.0), MEL_BANDS + 2)
    width = edges[1] - edges[0]
    # Triangles, each from the middle of the band below to that of the band above.
    bands = np.clip(1.0 - np.abs(mels - edges[1:-1, None]) / width, 0.0, None)
    powers = np.square(H) @ bands.T
    # Bands 50 dB below the loudest count as silent.
    powers += 1e-5 * powers.max(axis=1, keepdims=True) + np.finfo(float).tiny
    return scipy.fft.dct(np.log(powers), norm="ortho", axis=1)[:, 1:CEPSTRAL_COEFFICIENTS]


def _standardized(columns: FloatArray, weights: FloatArray) -> FloatArray:
    centered = columns - np.average(columns, axis=0, weights=weights)
    spread = np.sqrt(np.average(np.square(centered), axis=0, weights=weights))
    return centered / np.where(spread > 0, spread, 1.0)


def _correlations(rows: FloatArray) -> FloatArray:
    """Return the correlations of rows; a constant one has none with any other."""
    centered = rows - rows.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centered, axis=1, keepdims=True)
    unit = centered / np.where(norms > 0, norms, 1.0)
    return unit @ unit.T


def _linked(similar: FloatArray, n_groups: int) -> IntArray:
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    distances = np.clip(1.0 - similar, 0.0, None)
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


def _in_order(labels: IntArray) -> IntArray:
    """Number groups in the order in which they appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]
