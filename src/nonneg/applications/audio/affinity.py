"""How likely two components belong to the same source: from when and how they sound."""

from __future__ import annotations

import numpy as np

from nonneg._typing import FloatArray

# Differences at which two components count as half different.
SCALES = {
    "roughness": 0.3,
    "centroid": 0.8,
    "asymmetry": 0.4,
    "peakedness": 0.8,
}
# Components rougher than this (a logarithm) are struck or plucked, smoother ones last.
ROUGH, ROUGH_WIDTH = -1.4, 0.15
# Templates with jumps above this (a logarithm) have partials, those below are noise.
PEAKED, PEAKED_WIDTH = -1.4, 0.2
# Lags of the correlations of activations, in frames.
LAGS = (1, 2, 4)
# Octave bands of the envelopes: two per octave below the highest frequency.
N_ENVELOPE = 18
# A bin of an envelope this much below the largest counts as silent.
ENVELOPE_FLOOR = 1e-4
# Logistic regression of "same source" on the features of pairs, weighted by their energies, on draws 0 to 12
# of twelve kinds of generated mixtures of piano, violin, plucked strings, bass, drums and speech (`KINDS` in
# `reproduction/studies/separation_weights.py`), none of which report in `studies/separation`. They come from
# fits with a smaller weight of the continuity (0.1): the script, which fits with the present one, prints
# others.
WEIGHTS = {
    "roughness": -0.81,
    "centroid": 1.54,
    "asymmetry": -0.71,
    "peakedness": 0.32,
    "both rough": -0.89,
    "both rough, centroid": 0.5,
    "both smooth": 0.5,
    "both smooth, asymmetry": -1.03,
    "both peaked": 3.02,
    "both peaked, centroid": -4.14,
    "both noisy": 2.74,
    "both noisy, centroid": -0.42,
    "both rough, asymmetry": 1.89,
    "activations": -1.42,
    "onsets": 1.5,  # half of the regression's: in music, different sources share their beats
    "successive": 2.02,
    "envelopes": -0.43,
}
BIAS = 0.23


def affinities(activations: FloatArray, components: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Return the log odds that two components belong to the same source, (n_components, n_components)."""
    features = pair_features(activations, components, frequencies)
    total = np.full((len(components), len(components)), BIAS)
    for name, weight in WEIGHTS.items():
        total += weight * features[name]
    return (total + total.T) / 2


def pair_features(W: FloatArray, H: FloatArray, frequencies: FloatArray) -> dict[str, FloatArray]:
    """Return what is known about pairs of components, each (n_components, n_components)."""
    single = component_features(W, H, frequencies)
    found: dict[str, FloatArray] = {}
    for name, scale in SCALES.items():
        squares = np.square(single[name][:, None] - single[name])
        found[name] = squares / (squares + scale**2)
    rough = 1 / (1 + np.exp((ROUGH - single["roughness"]) / ROUGH_WIDTH))
    peaked = 1 / (1 + np.exp((PEAKED - single["jumps"]) / PEAKED_WIDTH))
    kinds = {"rough": rough, "smooth": 1 - rough, "peaked": peaked, "noisy": 1 - peaked}
    for kind, share in kinds.items():
        both = found[f"both {kind}"] = share[:, None] * share
        name = "asymmetry" if kind == "smooth" else "centroid"
        found[f"both {kind}, {name}"] = both * found[name]
    found["both rough, asymmetry"] = found["both rough"] * found["asymmetry"]
    roots = np.sqrt(W.T)
    onsets = np.maximum(np.diff(W, axis=0, prepend=0.0), 0.0).T
    found["activations"] = correlations(roots)
    found["onsets"] = correlations(onsets)
    found["successive"] = np.maximum(_lagged(roots) - found["activations"], 0.0)
    envelopes = _envelopes(H, frequencies)
    found["envelopes"] = np.sqrt(np.square(envelopes[:, None] - envelopes).mean(axis=-1))
    return found


def component_features(W: FloatArray, H: FloatArray, frequencies: FloatArray) -> dict[str, FloatArray]:
    """Return numbers that describe components, each of shape (n_components,)."""
    octaves = np.log2(np.maximum(frequencies, frequencies[frequencies > 0].min(initial=1.0)))
    template = _shares(H.T).T
    activation = _shares(W)
    changes = np.diff(np.pad(activation, ((1, 1), (0, 0))), axis=0)
    rises, falls = (np.square(np.maximum(sign * changes, 0.0)).sum(axis=0) + 1e-12 for sign in (1, -1))
    jumps = np.abs(np.diff(template, axis=1)).sum(axis=1) / 2
    return {
        "roughness": np.log(np.maximum(roughness(W), 1e-3)),
        "centroid": template @ octaves,
        # Struck sounds rise faster than they fall.
        "asymmetry": np.log(rises / falls),
        # Noise is flat over neighboring bins, partials are not.
        "jumps": np.log(np.maximum(jumps, 1e-3)),
        "peakedness": np.log(np.maximum(np.square(template).sum(axis=1) * H.shape[1], 1e-12)),
    }


def roughness(activations: FloatArray) -> FloatArray:
    """Return the total variation of activations over twice their sum: 1 for lone impulses, 0 for a hum."""
    padded = np.pad(activations, ((1, 1), (0, 0)))
    sums = activations.sum(axis=0)
    return np.abs(np.diff(padded, axis=0)).sum(axis=0) / (2 * np.where(sums > 0, sums, 1.0))


def correlations(rows: FloatArray) -> FloatArray:
    """Return the correlations of rows; a constant one has none with any other."""
    unit = _centered(rows)
    return unit @ unit.T


def _lagged(rows: FloatArray) -> FloatArray:
    """Return the largest correlation with what follows, in either order."""
    unit = _centered(rows)
    lags = [lag for lag in LAGS if lag < rows.shape[1]]
    largest = np.max([unit[:, :-lag] @ unit[:, lag:].T for lag in lags], axis=0)
    return np.maximum(largest, largest.T)


def _envelopes(H: FloatArray, frequencies: FloatArray) -> FloatArray:
    edges = frequencies.max() * 2.0 ** (-np.arange(N_ENVELOPE)[::-1] / 2)
    band = np.digitize(frequencies, edges)
    members = (band[:, None] == np.arange(N_ENVELOPE)).astype(H.dtype)
    energies = np.square(H) @ members
    logs = np.log(energies + ENVELOPE_FLOOR * energies.max(axis=1, keepdims=True) + 1e-30)
    return logs - logs.mean(axis=1, keepdims=True)


def _centered(rows: FloatArray) -> FloatArray:
    centered = rows - rows.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centered, axis=1, keepdims=True)
    return centered / np.where(norms > 0, norms, 1.0)


def _shares(columns: FloatArray) -> FloatArray:
    sums = columns.sum(axis=0)
    return columns / np.where(sums > 0, sums, 1.0)
