"""Mixtures of two sources: those that chose the settings of `SourceSeparation`, and those that report."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import NMF

from nonneg._typing import FloatArray
from nonneg.applications.audio import STFT
from nonneg.datasets import instrument_sound, load_armstrong, load_nonstationary440, music_notes

RATE, SECONDS = 11025, 8.0
CHOOSING = ("piano+drums", "speech+bass", "plucked+bass", "notes", "violin+drums", "speech+piano")
"""Chose window, number of components, masks and grouping, in draws below 1000."""
REPORTING = (
    "bass+drums",
    "speech+drums",
    "plucked+drums",
    "armstrong+drums",
    "armstrong+bass",
    "piano+bass",
    "violin+bass",
    "violin+plucked",
    "nonstationary440",
    "bass+drums@44100",
)
"""Had no part in choosing anything."""
HARMONIC = ("plucked+bass", "notes", "piano+bass", "violin+bass", "violin+plucked", "nonstationary440")
"""Both sources have pitches only."""
# The second source is up to so many decibels louder or softer.
DECIBELS = 3.0


def mixture(kind: str, draw: int, seconds: float = SECONDS) -> tuple[FloatArray, int]:
    """Return two sources and their sampling rate."""
    if kind == "notes":
        data = music_notes(1, rng=draw)
        return data.notes[0], data.sample_rate
    if kind == "nonstationary440":
        recording = load_nonstationary440(simulation=1 + draw % 2)
        assert recording.sources is not None
        return recording.sources[:, draw // 2 % 10], recording.rate
    names, _, rate = kind.partition("@")
    gain = 10 ** (np.random.default_rng([draw, 7]).uniform(-DECIBELS, DECIBELS) / 20)
    sources = [
        _source(name, draw, at, seconds, int(rate or RATE)) for at, name in enumerate(names.split("+"))
    ]
    return np.stack([sources[0], gain * sources[1]]), int(rate or RATE)


def _source(name: str, draw: int, at: int, seconds: float, rate: int) -> FloatArray:
    if name != "armstrong":
        return instrument_sound(name, seconds, rate=rate, rng=np.random.default_rng([draw, at]))
    # Parts of the recording that do not overlap, after its first seconds.
    signal = load_armstrong().signals[0]
    first = round((3.0 + seconds * (draw % 12)) * RATE)
    part = signal[first : first + round(seconds * RATE)]
    return 0.1 * part / np.sqrt(np.mean(np.square(part)))


def stft_nmf(signal: FloatArray, rate: int, beta_loss: str) -> FloatArray:
    """Separate as is usual: librosa's STFT, scikit-learn's NMF of 8 components, groups by centroid."""
    stft = STFT(1 << round(np.log2(2048 / 22050 * rate)))
    coefficients = stft.analyze(signal)[0]
    kind: dict[str, Any] = {"solver": "mu", "init": "random"} if beta_loss != "frobenius" else {}
    model = NMF(8, beta_loss=beta_loss, max_iter=200, random_state=0, **kind)
    W = model.fit_transform(np.abs(coefficients))
    H = model.components_
    centroids = H @ np.arange(H.shape[1]) / np.maximum(H.sum(axis=1), 1e-300)
    labels = _two_means(centroids)
    parts = np.stack([np.square(W[:, labels == at] @ H[labels == at]) for at in (0, 1)])
    masks = parts / np.maximum(parts.sum(axis=0), 1e-300)
    return np.stack([stft.synthesize(coefficients * mask, len(signal)) for mask in masks])


def _two_means(values: FloatArray) -> Any:
    """Return the optimal two clusters of numbers."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    scatter = [
        np.square(part - part.mean()).sum()
        for cut in range(1, len(values))
        for part in (ordered[:cut], ordered[cut:])
    ]
    cut = 1 + int(np.argmin(np.add.reduceat(scatter, np.arange(0, len(scatter), 2))))
    labels = np.zeros(len(values), dtype=np.intp)
    labels[order[cut:]] = 1
    return labels
