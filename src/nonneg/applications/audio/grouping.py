"""Groups of components: those that belong to the same source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray

PROPOSALS = ("timbre", "timbre-dynamics")
GROUPINGS = ("auto", *PROPOSALS)
"""The ways to group components, by name."""
# Bands of the mel scale, as in speech recognition (Davis & Mermelstein 1980; librosa and HTK).
MEL_BANDS = 40
# Spectra are transposed by up to an octave, in quarter tones; the lowest key of a piano, in hertz.
STEPS_PER_OCTAVE, LOWEST = 24, 27.5
# Initializations of the search for groups, of which the best counts.
N_INIT = 32


def group_components(
    W: FloatArray, H: FloatArray, n_groups: int, *, by: str, frequencies: FloatArray
) -> tuple[IntArray, float]:
    """Return the group of each component, and the share of the differences that remains within groups.

    Groups are numbered in the order in which they appear. They leave the least of the distances between
    components, which count by their energy, within groups (Li & Rizzo 2017, K-groups: a generalization of
    k-means clustering).
    """
    if n_groups == H.shape[0]:
        return np.arange(n_groups, dtype=np.intp), 0.0
    weights, dynamics = _energies(W, H), _dynamics(W)
    labels, share = _partition(_distances(H, dynamics, weights, by, frequencies), weights, n_groups)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse], share


def best_proposal(within: Mapping[str, float]) -> str:
    """Return the proposal that leaves the smallest share within groups; the first of equal ones."""
    return min(within, key=lambda name: round(within[name], 9))


def energy_shares(W: Any, H: Any, labels: IntArray, *, variances: bool = False) -> FloatArray:
    """Return the share of each group in the sum of the energies of all groups, in a model of magnitudes."""
    products = np.diag(W.sum(axis=0) * H.sum(axis=1)) if variances else _products(W, H)
    energies = [products[np.ix_(labels == at, labels == at)].sum() for at in range(int(labels.max()) + 1)]
    return np.asarray(energies) / max(sum(energies), np.finfo(float).tiny)


def group_by_solos(
    W: FloatArray, H: FloatArray, solos: Sequence[tuple[Any, Any]], n_groups: int, frequencies: FloatArray
) -> IntArray:
    """Return the source of each component by the components of solo recordings of the first sources.

    A component belongs to the source of the nearest one. If there are more sources than solos, groups are
    those in which components of solos stay where they are (Basu, Banerjee & Mooney 2002).
    """
    known = np.repeat(np.arange(len(solos)), [len(components) for _, components in solos])
    models = (*solos, (W, H))
    weights = np.concatenate([_energies(*model) for model in models]) / len(models)
    dynamics = np.concatenate([_dynamics(activations) for activations, _ in models])
    templates = np.concatenate([components for _, components in models])
    distances = _distances(templates, dynamics, weights, "timbre-dynamics", frequencies)
    if n_groups > len(solos):
        return _partition(distances, weights, n_groups, known)[0][len(known) :]
    to_solos = distances[len(known) :, : len(known)]
    near = np.stack([to_solos[:, known == at].min(axis=1) for at in range(n_groups)], axis=1)
    labels = near.argmin(axis=1)
    for at in range(n_groups):
        # A source without a component takes the nearest one of a source that has several.
        if not (labels == at).any():
            several = np.bincount(labels, minlength=n_groups)[labels] > 1
            labels[np.argmin(np.where(several, near[:, at], np.inf))] = at
    return labels


def _partition(
    distances: FloatArray, weights: FloatArray, n_groups: int, known: Any = ()
) -> tuple[IntArray, float]:
    """Return the groups with the smallest sum of mean distances within, and its share of the mean of all.

    Components move one at a time, each to where it lowers the sum most; the first ones are `known` and stay.
    Each group has one that is not known.
    """
    random, first, least = np.random.default_rng(0), len(known), np.inf
    differences, free = distances * np.outer(weights, weights), len(weights) - first
    best = np.zeros(0, dtype=np.intp)
    for _ in range(N_INIT):
        drawn = np.r_[np.arange(n_groups), random.integers(n_groups, size=free - n_groups)]
        labels = np.r_[np.asarray(known, dtype=np.intp), random.permutation(drawn)]
        while True:
            members = np.eye(n_groups)[labels]
            towards, masses = differences @ members, weights @ members
            sums, own = (members * towards).sum(axis=0), (np.arange(len(labels)), labels)
            # What each component adds to a group that it enters, and takes away from its own.
            added = (sums + 2 * towards) / (masses + weights[:, None]) - sums / masses
            rest = np.maximum(masses[labels] - weights, np.finfo(float).tiny)
            freed = (sums / masses)[labels] - (sums[labels] - 2 * towards[own]) / rest
            gains = np.round((freed[:, None] - added) / weights[:, None], 9)
            gains[own] = gains[:first] = 0.0
            gains[members[first:].sum(axis=0)[labels] == 1] = 0.0
            mover, group = np.unravel_index(int(np.argmax(gains)), gains.shape)
            if not gains[mover, group] > 0:
                break
            labels[mover] = group
        share = round(float((sums / masses).sum()), 9)
        if share < least:
            best, least = labels, share
    return best, least


def _energies(W: Any, H: Any) -> FloatArray:
    """Return the shares of components in the energy of the model."""
    energies = _products(W, H).sum(axis=1)
    # Silent components go anywhere, but go.
    shares = np.maximum(energies / max(float(energies.sum()), np.finfo(float).tiny), 1e-6)
    return shares / shares.sum()


def _products(W: Any, H: Any) -> FloatArray:
    W, H = np.asarray(W, dtype=np.float64), np.asarray(H, dtype=np.float64)
    return (W.T @ W) * (H @ H.T)


def _distances(
    H: Any, dynamics: FloatArray, weights: FloatArray, by: str, frequencies: FloatArray
) -> FloatArray:
    """Return distances of components whose mean is one, or zeros.

    They are those of mel spectra; or, half each, of spectra up to a transposition (Jaiswal, FitzGerald, Barry
    & Coyle 2011, Clustering NMF basis functions using shifted NMF) and of dynamics.
    """

    def scaled(distances: FloatArray) -> FloatArray:
        return distances / (float(weights @ distances @ weights) or 1.0)

    powers = np.square(np.asarray(H, dtype=np.float64))
    if by == "timbre":
        mels = 2595.0 * np.log10(1.0 + frequencies / 700.0)
        edges = np.linspace(mels[0], max(mels[-1], mels[0] + 1.0), MEL_BANDS + 2)
        # Triangles, each from the middle of the band below to that of the band above.
        bands = np.clip(1.0 - np.abs(mels - edges[1:-1, None]) / (edges[1] - edges[0]), 0.0, None)
        return scaled(_cosine_distances(powers @ bands.T))
    rough, asymmetry = (scaled(np.abs(column[:, None] - column)) for column in dynamics.T)
    spectra = _cosine_distances(_quarter_tones(powers, frequencies), STEPS_PER_OCTAVE)
    return scaled(scaled(spectra) + scaled(rough + asymmetry))


def _cosine_distances(powers: FloatArray, most: int = 0) -> FloatArray:
    """Return the distances of magnitudes of norm one, shifted by the up to `most` entries that fit best."""
    rows = np.sqrt(powers)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
    n = rows.shape[1]
    shifted = [rows[:, shift:] @ rows[:, : n - shift].T for shift in range(min(most + 1, n))]
    cosines = np.max([np.maximum(one, one.T) for one in shifted], axis=0)
    np.fill_diagonal(cosines, 1.0)
    # Rounding, which the square root would make visible.
    return np.sqrt(np.maximum(1.0 - np.round(cosines, 12), 0.0))


def _dynamics(W: Any) -> FloatArray:
    """Return the logarithms of roughness and asymmetry of activations, one row each."""
    W = np.asarray(W, dtype=np.float64)
    sums = W.sum(axis=0)
    changes = np.diff(np.pad(W / np.where(sums > 0, sums, 1.0), ((1, 1), (0, 0))), axis=0)
    # The total variation: 2 for lone impulses, hardly anything for a hum.
    rough = np.abs(changes).sum(axis=0)
    # Struck sounds rise faster than they fall.
    rises, falls = (np.square(np.maximum(sign * changes, 0.0)).sum(axis=0) for sign in (1, -1))
    tiny = np.finfo(float).tiny
    return np.log(np.maximum(np.stack([rough, np.sqrt(rises / np.maximum(falls, tiny))], axis=1), tiny))


def _quarter_tones(powers: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Return the powers of templates in quarter tones, one row each."""
    order = np.argsort(frequencies, kind="stable")  # atoms of a learned transform are in no order
    ascending = frequencies[order]
    octaves = np.log2(ascending[-1] / min(LOWEST, ascending[-1] / 2))
    steps = np.arange(int(octaves * STEPS_PER_OCTAVE) + 1)[::-1]
    # A bin reaches from halfway to the one below to halfway to that above.
    ends = np.r_[ascending[0], (ascending[1:] + ascending[:-1]) / 2, ascending[-1]]
    sums = np.pad(np.cumsum(powers[:, order], axis=1), ((0, 0), (1, 0)))
    edges = ascending[-1] * 2.0 ** (-steps / STEPS_PER_OCTAVE)
    return np.maximum(np.diff([np.interp(edges, ends, row) for row in sums], axis=1), 0.0)
