"""Mixtures of two sources: those that chose the settings of `SourceSeparation`, and those that report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.decomposition import NMF

from nonneg._typing import FloatArray
from nonneg.applications import SourceSeparation
from nonneg.applications.audio import STFT
from nonneg.applications.audio.timbre import masked_energies
from nonneg.datasets import load_armstrong, music_notes
from reproduction.artifacts import Measured, Table
from reproduction.data import instrument_sound, load_nonstationary440
from reproduction.experiment import Record
from reproduction.grouping import grouped, mean_and_spread

RATE, SECONDS = 11025, 8.0
CHOOSING = (
    "piano+drums",
    "speech+bass",
    "plucked+bass",
    "notes",
    "violin+drums",
    "speech+piano",
    "piano+bass",
    "violin+bass",
    "bass+drums",
    "bass+drums@44100",
    "speech+violin",
    "speech+plucked",
    "piano+plucked",
    "piano+violin",
)
"""Chose window, number of components, masks and grouping, in draws below 1000."""
REPORTING = (
    "speech+drums",
    "plucked+drums",
    "armstrong+drums",
    "armstrong+bass",
    "violin+plucked",
    "nonstationary440",
    "organ+drums",
    "flute+drums",
    "brass+drums",
    "flute+bass",
    "organ+bass",
    "marimba+bass",
    "brass+congas",
    "speech+marimba",
    "armstrong+congas",
)
"""Had no part in choosing anything."""
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
    stft = STFT(_n_fft(rate))
    coefficients = stft.analyze(signal)[0]
    kind: dict[str, Any] = {"solver": "mu", "init": "random"} if beta_loss != "frobenius" else {}
    model = NMF(8, beta_loss=beta_loss, max_iter=200, random_state=0, **kind)
    W = model.fit_transform(np.abs(coefficients))
    masks = _centroid_masks(W, model.components_)
    return np.stack([stft.synthesize(coefficients * mask, len(signal)) for mask in masks])


def librosa_nmf(signal: FloatArray, rate: int) -> FloatArray:
    """Separate by `librosa.decompose.decompose` with 8 sorted components, groups by centroid."""
    librosa = import_module("librosa")
    coefficients = librosa.stft(signal, n_fft=_n_fft(rate))
    model = NMF(8, init="random", random_state=0)
    H, W = librosa.decompose.decompose(np.abs(coefficients), transformer=model, sort=True)
    masks = _centroid_masks(W.T, H.T)
    return np.stack([librosa.istft(coefficients * mask.T, length=len(signal)) for mask in masks])


def librosa_hpss(signal: FloatArray, rate: int) -> FloatArray:
    """Separate into a harmonic and a percussive part by `librosa.effects.hpss`."""
    librosa = import_module("librosa")
    return np.stack(librosa.effects.hpss(signal, n_fft=_n_fft(rate)))


def torch_nmf(signal: FloatArray, rate: int) -> FloatArray:
    """Separate by `torchnmf` with the Kullback-Leibler divergence, groups by centroid."""
    torch, torchnmf = import_module("torch"), import_module("torchnmf.nmf")
    stft = STFT(_n_fft(rate))
    coefficients = stft.analyze(signal)[0]
    torch.manual_seed(0)
    V = torch.from_numpy(np.abs(coefficients).astype(np.float32))
    model = torchnmf.NMF(tuple(V.shape), rank=8)
    model.fit(V, beta=1, max_iter=200)
    masks = _centroid_masks(model.H.detach().numpy(), model.W.detach().numpy().T)
    return np.stack([stft.synthesize(coefficients * mask, len(signal)) for mask in masks])


def true_groups(separation: SourceSeparation, true: FloatArray) -> Any:
    """Give each component to the source that has more of the energy in its mask."""
    return np.argmax(energies_by_source(separation, true), axis=1)


def energies_by_source(separation: SourceSeparation, true: FloatArray) -> FloatArray:
    """Return how much of the energy in the mask of each component belongs to each source."""
    stft = separation.framing_
    V = np.abs(stft.analyze(true.sum(axis=0))[0])
    powers = np.square(np.abs(stft.analyze(true)))
    return masked_energies(V, separation.activations_, separation.model_.components_, powers)


def score_rows(
    records: Sequence[Record], kinds: Sequence[str], methods: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return one row per kind of mixture and method that has records."""
    groups, rows = grouped(records, "mixture", "method"), []
    for kind in kinds:
        for method, name in methods.items():
            if group := groups.get((kind, method)):
                row: dict[str, Any] = {"mixture": kind, "method": name, "n": len(group)}
                for score in ("sdr", "sir", "sar", "gain_sdr"):
                    row[score] = Measured(*mean_and_spread([record[score] for record in group]))
                row["seconds"] = mean_and_spread([record["seconds_taken"] for record in group])[0]
                if any("choice" in record for record in records):
                    row["choice"] = ", ".join(
                        sorted({record["choice"] for record in group if "choice" in record})
                    )
                rows.append(row)
    return rows


def score_table(rows: Sequence[Mapping[str, Any]], caption: str) -> Table:
    """Return a table of such rows."""
    columns = {
        "mixture": "mixture",
        "method": "method",
        "n": "draws",
        "sdr": "SDR (dB)",
        "sir": "SIR (dB)",
        "sar": "SAR (dB)",
        "gain_sdr": "SDR, gain (dB)",
        **({"choice": "transforms chosen"} if "choice" in rows[0] else {}),
        "seconds": "time (s)",
    }
    caption = (
        f"{caption}: mean and standard deviation over draws of the means over both sources. SDR, SIR and SAR "
        "by mir_eval; the last SDR allows a gain only."
    )
    return Table(caption, columns, rows, 3)


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
