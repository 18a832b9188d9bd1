"""Mixtures of two sources by family, and the methods that are compared on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import NMF

from nonneg._typing import FloatArray
from nonneg.applications import SourceSeparation
from nonneg.applications.audio import Framing
from nonneg.datasets import load_armstrong, music_notes
from reproduction.data import instrument_sound, load_nonstationary440

RATE, SECONDS = 11025, 8.0
FAMILIES = {
    "drums": (
        "speech+drums", "plucked+drums", "armstrong+drums", "organ+drums", "flute+drums", "brass+drums",
        "piano+drums", "violin+drums", "bass+drums", "brass+congas", "armstrong+congas",
    ),
    "bass": (
        "armstrong+bass", "flute+bass", "organ+bass", "marimba+bass", "speech+bass", "plucked+bass",
        "piano+bass", "violin+bass",
    ),
    "pitched and speech": (
        "violin+plucked", "speech+marimba", "speech+piano", "speech+violin", "speech+plucked",
        "piano+plucked", "piano+violin",
    ),
    "two notes": ("nonstationary440", "notes"),
}  # fmt: skip
"""Kinds of mixtures: with drums, with a bass, of two other instruments or voices, and of two notes."""
FAMILY = {kind: family for family, kinds in FAMILIES.items() for kind in kinds}
# The second source is up to this many decibels louder or softer.
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
    # In every other draw the sources keep the same time, as in music; in the others they do not.
    tempo = np.random.default_rng([draw, 8]).uniform(85.0, 135.0) if draw % 2 else None
    sources = [
        _source(name, draw, at, seconds, int(rate or RATE), tempo) for at, name in enumerate(names.split("+"))
    ]
    return np.stack([sources[0], gain * sources[1]]), int(rate or RATE)


def _source(name: str, draw: int, at: int, seconds: float, rate: int, tempo: float | None) -> FloatArray:
    if name != "armstrong":
        return instrument_sound(name, seconds, rate=rate, tempo=tempo, rng=np.random.default_rng([draw, at]))
    # Parts of the recording that do not overlap, after its first seconds.
    signal = load_armstrong().signals[0]
    first = round((3.0 + seconds * (draw % 12)) * RATE)
    part = signal[first : first + round(seconds * RATE)]
    return 0.1 * part / np.sqrt(np.mean(np.square(part)))


def stft_nmf(signal: FloatArray, rate: int, beta_loss: str) -> FloatArray:
    """Separate as is usual: librosa's STFT, scikit-learn's NMF of 8 components, groups by centroid."""
    length = _n_fft(rate)
    framing = Framing(length, length // 4, "hann", centered=True)
    coefficients = np.fft.rfft(framing.split(signal)[0])
    kind: dict[str, Any] = {"solver": "mu", "init": "random"} if beta_loss != "frobenius" else {}
    model = NMF(8, beta_loss=beta_loss, max_iter=200, random_state=0, **kind)
    W = model.fit_transform(np.abs(coefficients))
    masks = _centroid_masks(W, model.components_)
    return np.stack(
        [framing.join(np.fft.irfft(coefficients * mask, n=length), len(signal)) for mask in masks]
    )


def true_groups(separation: SourceSeparation, true: FloatArray) -> Any:
    """Give each component to the source that has more of the energy in its mask."""
    return np.argmax(energies_by_source(separation, true), axis=1)


def energies_by_source(separation: SourceSeparation, true: FloatArray) -> FloatArray:
    """Return how much of the energy in the mask of each component belongs to each source."""
    W, H = separation.activations_, separation.model_.components_
    spectra = np.fft.rfft(separation.framing_.split(true))
    V, powers = np.abs(spectra.sum(axis=0)), np.square(np.abs(spectra))
    tiny = np.finfo(V.dtype).tiny
    mixed = np.square(V) / np.maximum(W @ H, tiny) / np.maximum(powers.sum(axis=0), tiny)
    return np.stack([np.einsum("tk,kt->k", W, H @ (mixed * part).T) for part in powers], axis=1)


def training(kind: str, draw: int, seconds: float, n_solos: int) -> dict[str, FloatArray]:
    """Return recordings of each source alone: other draws, or other parts of the real recording."""
    return {
        name: np.concatenate([_solo(name, draw, at, number, seconds) for number in range(n_solos)])
        for at, name in enumerate(kind.split("+"))
    }


def _solo(name: str, draw: int, at: int, number: int, seconds: float) -> FloatArray:
    if name != "armstrong":
        rng = np.random.default_rng([draw, at, 5000 + number])
        return instrument_sound(name, seconds, rate=RATE, rng=rng)
    # The mixture has part `draw % 12`; these are neither it nor its neighbors.
    first = round((3.0 + seconds * ((draw + 2 + number) % 12)) * RATE)
    return load_armstrong().signals[0, first : first + round(seconds * RATE)]


def _n_fft(rate: int) -> int:
    """Return librosa's 93 ms at any rate."""
    return 1 << round(np.log2(2048 / 22050 * rate))


def _centroid_masks(W: FloatArray, H: FloatArray) -> FloatArray:
    """Return masks of two groups of components, split by spectral centroid."""
    centroids = H @ np.arange(H.shape[1]) / np.maximum(H.sum(axis=1), 1e-300)
    labels = _two_means(centroids)
    parts = np.stack([np.square(W[:, labels == at] @ H[labels == at]) for at in (0, 1)])
    return parts / np.maximum(parts.sum(axis=0), 1e-300)


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
