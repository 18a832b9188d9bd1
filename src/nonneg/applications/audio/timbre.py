"""Whose sound a component is, learned from mixtures of the training recordings.

Parts of the training recordings are mixed and factorized as the recording is. The sources of these components
are known, and a logistic regression on what they sound like tells the sources of other components.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.applications.audio.affinity import component_features
from nonneg.applications.audio.recordings import Recordings
from nonneg.applications.audio.spectrogram import magnitudes

# All chosen on mixtures that the study `studies/separation-trained` names as choosing ones.
N_MIXTURES = 8
# Parts are as long as the recording, but no longer than this many frames.
MOST_FRAMES = 400
# Every other source is louder by up to this many decibels, or softer.
DECIBELS = 3.0
# Pitches in hertz, and partials that speak for a pitch; what is between them speaks against it.
PITCHES = np.geomspace(55.0, 1500.0, 240)
N_PARTIALS, PARTIAL_DECAY = 10, 0.85
# The shares of the first partials, at least this much, say what an instrument sounds like.
N_SHARES, SMALLEST_SHARE = 8, 1e-3
# Lags of the autocorrelations of activations, in frames: up to 0.4 s.
LAGS = (1, 2, 4, 9, 17)
# How far a component may lie outside of those of the mixtures, in standard deviations.
FARTHEST = 4.0


def source_odds(
    W: FloatArray,
    H: FloatArray,
    framing: Any,
    frequencies: FloatArray,
    solos: Sequence[Recordings],
    factorize: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    exponent: float = 1.0,
) -> FloatArray:
    """Return the log probability of every source for every component; zeros if nothing tells them apart."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    features, energies = [], []
    for parts in mixed_parts(solos, framing, len(W)):
        V = magnitudes([framing.analyze(parts.sum(axis=0))], exponent)
        own = factorize(V)
        features.append(timbre(*own, frequencies))
        energies.append(masked_energies(V, *own, np.square(np.abs(framing.analyze(parts)))))
    nothing = np.zeros((len(H), len(solos)))
    if not features:
        return nothing
    shares = np.concatenate(energies)
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    labels = shares.argmax(axis=1)
    if len(np.unique(labels)) < len(solos):
        return nothing
    scaler = StandardScaler().fit(np.concatenate(features))
    # A component that two sources share says little about either.
    ordered = np.sort(shares, axis=1)
    model = LogisticRegression(max_iter=1000)
    model.fit(scaler.transform(np.concatenate(features)), labels, ordered[:, -1] - ordered[:, -2])
    known = np.clip(scaler.transform(timbre(W, H, frequencies)), -FARTHEST, FARTHEST)
    return np.asarray(model.predict_log_proba(known))


def mixed_parts(solos: Sequence[Recordings], framing: Any, n_frames: int) -> Iterator[FloatArray]:
    """Yield parts of the training recordings that are to be mixed, (n_sources, n_samples)."""
    signals = [np.concatenate([part.mean(axis=0) for part in solo.parts]) for solo in solos]
    length = min(min(n_frames, MOST_FRAMES) * framing.hop, *(len(signal) for signal in signals))
    gains = 10.0 ** (np.linspace(-DECIBELS, DECIBELS, N_MIXTURES) / 20.0)
    for number in range(N_MIXTURES):
        parts = []
        for source, signal in enumerate(signals):
            # Other parts of one source go with every part of another.
            place = (number * (2 * source + 1) + source) % N_MIXTURES
            first = round(place * (len(signal) - length) / (N_MIXTURES - 1))
            part = signal[first : first + length]
            power = float(np.sqrt(np.mean(np.square(part, dtype=np.float64))))
            parts.append(part * ((gains[number] if source % 2 else 1.0) / power) if power > 0 else part)
        if all(part.any() for part in parts):
            yield np.stack(parts)


def masked_energies(V: FloatArray, W: FloatArray, H: FloatArray, powers: Any) -> FloatArray:
    """Return the energy of a spectrogram in the mask of every component, by source."""
    tiny = np.finfo(V.dtype).tiny
    mixed = np.square(V) / np.maximum(W @ H, tiny) / np.maximum(sum(powers), tiny)
    return np.stack([np.einsum("tk,kt->k", W, H @ (mixed * part).T) for part in powers], axis=1)


def timbre(W: FloatArray, H: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Return what components sound like, one row each."""
    W, H = W.astype(np.float64), H.astype(np.float64)
    columns = list(component_features(W, H, frequencies).values())
    return np.column_stack([*columns, *_partials(H, frequencies), *_autocorrelations(W)])


def _partials(H: FloatArray, frequencies: FloatArray) -> tuple[FloatArray, ...]:
    """Return the pitch in octaves, how harmonic a template is, and logarithms of the shares of partials."""
    decay = PARTIAL_DECAY ** np.arange(N_PARTIALS)
    orders = np.arange(1, N_PARTIALS + 1)
    pitches, harmonic, shares = [], [], []
    for template in H:
        at, between = (
            np.interp(np.outer(PITCHES, numbers), frequencies, template, right=0.0)
            for numbers in (orders, orders - 0.5)
        )
        salience = (at - between) @ decay
        best = int(salience.argmax())
        pitches.append(np.log2(PITCHES[best]))
        harmonic.append(salience[best] / max(float(template.sum()), np.finfo(float).tiny))
        share = at[best] / max(float(at[best].sum()), np.finfo(float).tiny)
        shares.append(np.log10(np.maximum(share[:N_SHARES], SMALLEST_SHARE)))
    return np.array(pitches), np.array(harmonic), np.array(shares)


def _autocorrelations(W: FloatArray) -> list[FloatArray]:
    centered = W - W.mean(axis=0)
    squares = np.maximum(np.square(centered).sum(axis=0), np.finfo(float).tiny)
    return [(centered[lag:] * centered[:-lag]).sum(axis=0) / squares for lag in LAGS]
