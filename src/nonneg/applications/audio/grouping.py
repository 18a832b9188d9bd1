"""Groups of components: those that belong to the same source."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.fft
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from nonneg._typing import FloatArray, IntArray
from nonneg.exceptions import InvalidParameterError

PROPOSALS = ("timbre", "timbre-dynamics")
GROUPINGS = ("auto", *PROPOSALS, "harmonic-percussive")
"""The ways to group components, by name."""
# Mel-frequency cepstral coefficients as in speech recognition: 40 bands, 13 coefficients of which the first,
# the loudness, is left out (Davis & Mermelstein 1980; librosa and HTK).
MEL_BANDS, CEPSTRAL_COEFFICIENTS = 40, 13
# Initializations of k-means, of which the best counts.
N_INIT = 32


def group_components(
    W: FloatArray, H: FloatArray, n_groups: int, *, by: str, frequencies: FloatArray
) -> IntArray:
    """Return the group of each component, in the order in which they appear; or 0 harmonic, 1 percussive.

    Groups are those of k-means of descriptors, in which a component counts by its magnitude: of the spectral
    envelopes (Spiertz & Gnann 2009, Source-filter based clustering for monaural blind source separation), of
    envelopes and dynamics, or of the roughness of the activations alone.
    """
    if by == "harmonic-percussive" and n_groups != 2:
        raise InvalidParameterError(
            f"grouping='harmonic-percussive' finds two sources, got n_sources={n_groups}. Pass 2, or another "
            "grouping."
        )
    if n_groups == H.shape[0] and by != "harmonic-percussive":
        return np.arange(n_groups, dtype=np.intp)
    envelopes, dynamics, weights = _features(W, H, frequencies)
    if by == "harmonic-percussive":
        rough = _standardized(dynamics, weights)[:, :1]
        labels = _means(rough, weights, 2)
        smooth = int(np.argmin([rough[labels == at].mean() for at in (0, 1)]))
        return np.where(labels == smooth, 0, 1).astype(np.intp)
    points = envelopes
    if by == "timbre-dynamics":
        # Both parts have the same total variance.
        parts = (_standardized(part, weights) / np.sqrt(part.shape[1]) for part in (envelopes, dynamics))
        points = np.concatenate(list(parts), axis=1)
    return _in_order(_means(points, weights, n_groups))


def best_proposal(energies: Mapping[str, float]) -> str:
    """Return the proposal whose largest group has the smallest share; the first of equal ones."""
    return min(energies, key=lambda name: round(energies[name], 9))


def energy_shares(W: Any, H: Any, labels: IntArray, *, variances: bool = False) -> FloatArray:
    """Return the share of each group in the sum of the energies of all groups, in a model of magnitudes."""
    W, H = np.asarray(W, dtype=np.float64), np.asarray(H, dtype=np.float64)
    products = np.diag(W.sum(axis=0) * H.sum(axis=1)) if variances else (W.T @ W) * (H @ H.T)
    energies = [products[np.ix_(labels == at, labels == at)].sum() for at in range(int(labels.max()) + 1)]
    return np.asarray(energies) / max(sum(energies), np.finfo(float).tiny)


def group_by_solos(
    W: FloatArray, H: FloatArray, solos: Sequence[tuple[Any, Any]], n_groups: int, frequencies: FloatArray
) -> IntArray:
    """Return the source of each component by the components of solo recordings of the first sources.

    A component belongs to the source of the most similar one. If there are more sources than solos, groups
    are those of k-means with the solos as seeds (Basu, Banerjee & Mooney 2002).
    """
    known = np.repeat(np.arange(len(solos)), [len(components) for _, components in solos])
    features = [_features(*factors, frequencies) for factors in (*solos, (W, H))]
    envelopes, dynamics, weights = (np.concatenate(parts) for parts in zip(*features, strict=True))
    # Cepstral distances as they are; both parts have the same total variance.
    parts = [part - np.average(part, axis=0, weights=weights) for part in (envelopes, dynamics)]
    sizes = [float(np.sqrt(np.average(np.square(part).sum(axis=1), weights=weights))) for part in parts]
    points = np.concatenate([part / (size or 1.0) for part, size in zip(parts, sizes, strict=True)], axis=1)
    seeds, others = points[: len(known)], points[len(known) :]
    distances = np.square(others[:, None] - seeds).sum(axis=2)
    if n_groups == len(solos):
        near = np.stack([distances[:, known == at].min(axis=1) for at in range(n_groups)], axis=1)
        return _filled(near.argmin(axis=1), near)
    centers = [
        np.average(seeds[known == at], axis=0, weights=weights[: len(known)][known == at])
        for at in range(len(solos))
    ]
    while len(centers) < n_groups:
        # Each further group begins far from the others, with a component that weighs something.
        far = np.square(others[:, None] - np.array(centers)).sum(axis=2).min(axis=1)
        centers.append(others[int(np.argmax(weights[len(known) :] * far))])
    labels = _means(points, weights, n_groups, init=np.array(centers))[len(known) :]
    return _filled(labels, np.square(others[:, None] - np.array(centers)).sum(axis=2))


def _filled(labels: IntArray, distances: FloatArray) -> IntArray:
    """Give each group without a component the nearest one of a group that has several."""
    for at in range(distances.shape[1]):
        if not (labels == at).any():
            several = np.bincount(labels, minlength=distances.shape[1])[labels] > 1
            labels[np.argmin(np.where(several, distances[:, at], np.inf))] = at
    return labels


def _features(W: Any, H: Any, frequencies: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return envelopes and dynamics of components, and their shares of the magnitude."""
    W, H = np.asarray(W, dtype=np.float64), np.asarray(H, dtype=np.float64)
    masses = W.sum(axis=0) * H.sum(axis=1)
    # Silent components go anywhere, but go.
    weights = np.maximum(masses / max(float(masses.sum()), np.finfo(float).tiny), 1e-12)
    return _cepstral_coefficients(H, frequencies), _dynamics(W), weights


def _means(points: FloatArray, weights: FloatArray, n_groups: int, init: Any = "random") -> IntArray:
    """Return the groups of weighted k-means, none of them empty."""
    with warnings.catch_warnings():
        # Points that coincide.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(
            n_groups, init=init, n_init=N_INIT if isinstance(init, str) else 1, random_state=0
        ).fit(points, sample_weight=weights)
    labels = np.asarray(model.labels_, dtype=np.intp)
    if len(np.unique(labels)) < n_groups:
        labels[np.argsort(-weights, kind="stable")[:n_groups]] = np.arange(n_groups)
    return labels


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


def _in_order(labels: IntArray) -> IntArray:
    """Number groups in the order in which they appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
