"""NMF of magnitude spectrograms: window length, number of components, and the fit."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nonneg._typing import FloatArray
from nonneg.applications.audio.recordings import Recordings
from nonneg.applications.audio.stft import STFT, automatic_frame_length
from nonneg.estimators import NMF

# The constants were chosen on the mixtures that the study `studies/separation` names as choosing ones.
# A frame may be so many times as long as librosa's 93 ms ...
LONGER = (1, 2, 4)
# ... where that makes the spectrogram this much more concentrated. Sounds that change need short frames, and
# gain less; steady ones near each other in pitch need long frames, and gain a quarter or more.
WORTH_LENGTH = 0.9
# One component per source is enough where these leave less than this share of the power unexplained (two
# notes or tones: up to 0.1; mixtures of instruments: from 0.43). Otherwise there are so many per source.
SIMPLE = 0.2
COMPONENTS_PER_SOURCE = 4
# Bands of the first fit: half a semitone wide.
BANDS_PER_OCTAVE = 24
# Iterations with all bins afterwards: five bring the divergence of 10 s of piano and drums within 0.02 % of
# its limit.
REFINEMENTS = 5


def spectrogram_framing(
    recordings: Recordings, frame_length: int | None, hop: int | None, window: Any, rate: float | None
) -> STFT:
    """Return the given transform, or the one whose window suits the recordings."""
    window = "hann" if window is None else window
    if frame_length is not None:
        return STFT(frame_length, hop, window)
    shortest = recordings.shortest
    base = automatic_frame_length(shortest, rate)
    lengths = [base * factor for factor in LONGER if base * factor <= max(base, shortest // 4)]
    if len(lengths) == 1 or hop is not None:
        return STFT(base, hop, window)
    spread = np.array([_spread(recordings, STFT(length, None, window)) for length in lengths])
    # The shortest that is nearly as concentrated as the best.
    chosen = int(np.flatnonzero(WORTH_LENGTH * spread <= spread.min())[0])
    return STFT(lengths[chosen], None, window)


def _spread(recordings: Recordings, framing: STFT) -> float:
    """Return the ratio of l1 and l2 norm of the coefficients: small if few of them hold the energy."""
    total = squares = count = 0.0
    for part in recordings.parts:
        magnitudes = np.abs(framing.analyze(part))
        total += float(magnitudes.sum(dtype=np.float64))
        squares += float(np.square(magnitudes).sum(dtype=np.float64))
        count += magnitudes.size
    return total / (squares * count) ** 0.5 if squares > 0 else 1.0


def magnitudes(coefficients: list[Any], exponent: float = 1.0) -> FloatArray:
    """Return the spectrogram of all recordings: root mean squares over aligned ones, others in a row.

    Divided by its mean, so that nothing hinges on how loud a recording is.
    """
    V = np.concatenate([np.sqrt(np.mean(np.square(np.abs(part)), axis=0)) for part in coefficients])
    V = V if exponent == 1 else V**exponent
    mean = float(V.mean(dtype=np.float64))
    return V / V.dtype.type(mean if mean > 0 else 1.0)


def fit_spectrogram(
    V: FloatArray,
    n_sources: int,
    n_components: int | None,
    *,
    checkpoint: Any = None,
    **options: Any,
) -> tuple[NMF, FloatArray]:
    """Factorize a spectrogram; without a number of components, with as many as it needs.

    First with bins pooled to bands, which is fast and has the same minima but for details of the spectra
    (sums of Poisson variables are Poisson variables), then with all bins from there.
    """
    folder = None if checkpoint is None else Path(checkpoint)
    edges = band_edges(V.shape[1])
    pooled, widths = np.add.reduceat(V, edges, axis=1), np.diff([*edges, V.shape[1]])

    def model_of(k: int, name: str, **more: Any) -> NMF:
        return NMF(k, checkpoint=None if folder is None else str(folder / name), **(options | more))

    if n_components is None:
        n_components = COMPONENTS_PER_SOURCE * n_sources
        few = model_of(n_sources, "few")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # good enough to see whether they are enough
            rest = pooled - few.fit_transform(pooled) @ few.components_
        # Sums over a wide band are large, whatever is in it: powers are per bin.
        power, left = (float((np.square(part).sum(axis=0) / widths).sum()) for part in (pooled, rest))
        if left <= SIMPLE * power:
            n_components = n_sources
    coarse = model_of(n_components, "bands")
    with warnings.catch_warnings():
        # Masks are ratios of sums of components: small changes of single ones do not matter to them.
        warnings.filterwarnings("ignore", message="The stopping rule .* far from a stationary point")
        W = coarse.fit_transform(pooled)
    if pooled.shape == V.shape:
        return coarse, W
    shares = V.sum(axis=0) / np.repeat(np.maximum(pooled.sum(axis=0), np.finfo(V.dtype).tiny), widths)
    H = np.repeat(coarse.components_, widths, axis=1) * shares
    steps = min(options["max_iter"], REFINEMENTS)
    model = model_of(n_components, "bins", init="custom", n_init=1, max_iter=steps)
    with warnings.catch_warnings():
        # The fit to the bands has said whether it converged.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model, model.fit_transform(V, W=W, H=H.astype(V.dtype))


def band_edges(n_bins: int) -> Any:
    """Return the first bin of each band: single bins, and where these are narrower, parts of an octave."""
    edges = [0]
    while edges[-1] < n_bins:
        edges.append(edges[-1] + max(1, round(edges[-1] * (2 ** (1 / BANDS_PER_OCTAVE) - 1))))
    return np.array(edges[:-1])
