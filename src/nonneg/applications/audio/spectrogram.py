"""NMF of magnitude spectrograms: the Kullback-Leibler divergence with activations that are smooth in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.fft

from nonneg._arguments import is_count
from nonneg._random import generator
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.audio.frames import Framing
from nonneg.certificates.certificate import Certificate
from nonneg.certificates.stationarity import normalized, ratio_residual, stationarity_statement
from nonneg.estimators.nmf import NMF
from nonneg.iteration import Checkpoint, RelativeDecrease, Run, iterate
from nonneg.iteration.progress import reporter
from nonneg.solvers.factorize import checked_rank
from nonneg.solvers.result import FactorizationResult

# librosa's n_fft = 2048 at its default rate of 22050 Hz, in seconds; lengths that are tried, in this unit.
SECONDS, LENGTHS = 2048 / 22050, (0.5, 1, 2, 4)
# Bands of the iterations: quarter tones.
BANDS_PER_OCTAVE = 24
# Updates of the templates in all bins, for activations that were fitted to bands: a convex problem.
BIN_UPDATES = 10


def spectrogram_framing(
    recordings: FloatArray, frame_length: int | None, window: Any, rate: float | None
) -> Framing:
    """Return the given transform, or the one among a few lengths that concentrates the energy best."""
    window = "hann" if window is None else window
    if frame_length is not None:
        return stft_framing(frame_length, window)
    length = 2048 if rate is None else 1 << max(round(float(np.log2(SECONDS * rate))), 4)
    # At least four frames that share nothing.
    longest = recordings.shape[1] // 4
    base = min(length, 1 << max(int(np.log2(max(longest, 1))), 4))
    lengths = sorted({max(16, int(base * factor)) for factor in LENGTHS})
    framings = [stft_framing(length, window) for length in lengths if length <= max(base, longest)]
    return min(framings, key=lambda framing: spread(recordings, framing))


def stft_framing(frame_length: Any, window: Any) -> Framing:
    """Return the frames of ``librosa.stft``: centered, a quarter of a frame apart."""
    hop = max(int(frame_length) // 4, 1) if is_count(frame_length) else None
    return Framing(frame_length, hop, window, centered=True)


def spread(recordings: FloatArray, framing: Framing) -> float:
    """Return the ratio of l1 and l2 norm of the coefficients: small if few of them hold the energy.

    Jones & Parks (1990), A high resolution data-adaptive time-frequency representation.
    """
    # Squares of faint recordings vanish.
    peak = max(float(np.abs(recordings).max()), np.finfo(float).tiny)
    magnitudes = np.abs(scipy.fft.rfft(framing.split(recordings / peak))).astype(np.float64)
    norm = float(np.linalg.norm(magnitudes))
    return float(magnitudes.sum()) / (norm * magnitudes.size**0.5) if norm > 0 else 1.0


def spectrogram(framing: Framing, recordings: Sequence[FloatArray]) -> FloatArray:
    """Return the magnitudes of recordings in a row: root mean squares over the channels of each.

    Divided by its mean, so that nothing hinges on how loud a recording is.
    """
    powers = [np.square(np.abs(scipy.fft.rfft(framing.split(one)))).mean(axis=0) for one in recordings]
    V = np.sqrt(np.concatenate(powers))
    mean = float(V.mean(dtype=np.float64))
    return V / V.dtype.type(mean if mean > 0 else 1.0)


@dataclass(frozen=True)
class Factors:
    """The state of the iterations."""

    W: FloatArray
    H: FloatArray


@dataclass(frozen=True)
class Model:
    """The divergence of V from W H, plus the weight of smooth activations.

    The penalty of an activation is half the sum of its squared differences over the sum of its squares
    (Virtanen 2007, eq. 10, as the logarithm of a normal density), in units of the mean mass of a component.
    """

    V: FloatArray
    continuity: float

    def run(self, factors: Factors, *, update_H: bool = True, **options: Any) -> Run[Any]:
        """Minimize by multiplicative updates.

        The gradient of the penalty is split into positive and negative parts. There is no proof that the sum
        decreases, and no need: the stopping rule sees the sum.
        """
        V, tiny = self.V, float(np.finfo(self.V.dtype).tiny) ** 0.5
        logs = float(np.sum(V * np.log(np.maximum(V, tiny)), dtype=np.float64)) - float(V.sum())

        def step(now: Factors) -> tuple[Factors, dict[str, Any]]:
            W, H = now.W, now.H
            if update_H:
                H = H * (W.T @ (V / (W @ H + tiny)) / (W.sum(axis=0)[:, None] + tiny))
            model = W @ H + tiny
            positive, negative = self.penalty_gradient(W)
            new = W * (((V / model) @ H.T + negative) / (H.sum(axis=1) + positive + tiny))

            def loss() -> float:
                # Of the pair before the last update, whose product is at hand.
                return logs + float(np.sum(model - V * np.log(model), dtype=np.float64)) + self.penalty(W)

            return Factors(new, H), {"loss": loss}

        return iterate(step, factors, **options)

    def _weights(self, W: FloatArray) -> FloatArray:
        unit = 0.5 * self.continuity * float(self.V.sum()) / W.shape[1]
        return unit / (np.square(W).sum(axis=0) + np.finfo(W.dtype).tiny)

    def penalty(self, W: FloatArray) -> float:
        """Return the penalty of the activations."""
        return float(self._weights(W) @ np.square(np.diff(W, axis=0)).sum(axis=0)) if self.continuity else 0.0

    def penalty_gradient(self, W: FloatArray) -> tuple[Any, Any]:
        """Return the positive and the negative part of its gradient."""
        if not self.continuity or len(W) == 1:
            return W.dtype.type(0), W.dtype.type(0)
        weights = 2 * self._weights(W)
        neighbors = np.zeros_like(W)
        neighbors[1:] += W[:-1]
        neighbors[:-1] += W[1:]
        count = np.full((len(W), 1), 2, dtype=W.dtype)  # neighbors: one at either end
        count[[0, -1]] = 1
        changes = np.square(np.diff(W, axis=0)).sum(axis=0)
        squares = np.square(W).sum(axis=0) + np.finfo(W.dtype).tiny
        return weights * (count * W), weights * (neighbors + (changes / squares) * W)

    def certificate(self, W: FloatArray, H: FloatArray) -> Certificate:
        """Return how far the factors are from stationary."""
        tiny = float(np.finfo(self.V.dtype).tiny) ** 0.5
        quotient = self.V / (W @ H + tiny)
        positive, negative = self.penalty_gradient(W)
        of_W = normalized(
            *map(float, ratio_residual(np, W, quotient @ H.T + negative, H.sum(axis=1) + positive))
        )
        power = np.broadcast_to(W.sum(axis=0), H.T.shape)
        of_H = normalized(*map(float, ratio_residual(np, H.T, quotient.T @ W, power)))
        loss = "continuity-penalized-" * (self.continuity > 0) + "kullback-leibler"
        return Certificate((stationarity_statement(of_W, of_H, loss=loss),))


def fit_spectrogram(
    V: FloatArray, k: int, continuity: float, search: dict[str, Any], *, name: str = "stft"
) -> tuple[NMF, FloatArray]:
    """Factorize a spectrogram; return model and activations.

    The iterations see bins pooled to bands, in single precision: sums of Poisson variables are Poisson
    variables, so that activations are fitted to the same model with fewer numbers. Templates in bins follow.
    """
    bands = pooled(V)
    k = checked_rank(k, V.shape, "SourceSeparation")
    model, best = Model(bands, continuity), None
    for number, random in enumerate(generator(search["random_state"]).spawn(search["n_init"])):
        # Noise around the mean spectrum and the loudness.
        H = random.uniform(0.5, 1.5, (k, bands.shape[1])) * bands.mean(axis=0)
        H /= np.maximum(H.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        W = random.uniform(0.5, 1.5, (len(bands), k)) * bands.sum(axis=1, keepdims=True) / k
        initial = Factors(W.astype(bands.dtype), H.astype(bands.dtype))
        key = (continuity, bands, initial.W, initial.H)
        run = model.run(initial, **_loop(search, f"{name}-{number}", *key))
        if best is None or run.history.loss[-1] < best.history.loss[-1]:
            best = run
    assert best is not None
    certificate = model.certificate(best.state.W, best.state.H)
    W, H = best.state.W, templates_in_bins(V.astype(bands.dtype), best.state)
    sums = np.maximum(H.sum(axis=1), np.finfo(H.dtype).tiny)
    W, H = (W * sums).astype(V.dtype), np.ascontiguousarray(H / sums[:, None], dtype=V.dtype)
    loss = float(best.history.loss[-1])
    result = FactorizationResult(
        W, H, loss, best.n_iter, best.stop_reason, best.history, certificate, "mu", "kullback-leibler"
    )
    # As its own fit would leave it.
    options = {name: value for name, value in search.items() if name not in ("init", "checkpoint")}
    nmf = NMF(len(H), solver="mu", beta_loss="kullback-leibler", init="random", **options)
    nmf._name(result, H)
    nmf.result_, nmf.n_features_in_ = result, H.shape[1]
    nmf.reconstruction_err_ = math.sqrt(2 * max(loss, 0.0))
    return nmf, W


def templates_in_bins(V: FloatArray, factors: Factors) -> FloatArray:
    """Return the templates of all bins for activations that were fitted to bands."""
    edges = band_edges(V.shape[1])
    widths = np.diff([*edges, V.shape[1]])
    tiny = float(np.finfo(V.dtype).tiny) ** 0.5
    # Within a band, all templates begin as the mean spectrum.
    mean = V.mean(axis=0)
    profile = mean / np.maximum(np.repeat(np.add.reduceat(mean, edges), widths), tiny)
    H = np.repeat(factors.H, widths, axis=1) * profile
    sums = factors.W.sum(axis=0)[:, None] + tiny
    for _ in range(BIN_UPDATES):
        H = H * (factors.W.T @ (V / (factors.W @ H + tiny)) / sums)
    return H


def encode_spectrogram(V: FloatArray, H: FloatArray, continuity: float, search: dict[str, Any]) -> FloatArray:
    """Return the activations of a spectrogram for given templates."""
    bands, templates = pooled(V), pooled(H)
    total = max(float(templates.sum()), float(np.finfo(bands.dtype).tiny))
    W = np.repeat(bands.sum(axis=1, keepdims=True) / total, len(H), axis=1)
    options = _loop(search | {"checkpoint": None, "callback": None, "verbose": 0}, "", continuity)
    run = Model(bands, continuity).run(Factors(W, templates), update_H=False, **options)
    return np.asarray(run.state.W, dtype=V.dtype)


def pooled(V: FloatArray) -> FloatArray:
    """Return the sums over bands, in single precision."""
    return np.add.reduceat(V, band_edges(V.shape[1]), axis=1).astype(np.float32)


def band_edges(n_bins: int) -> IntArray:
    """Return the first bin of each band: single bins, and where these are narrower, parts of an octave."""
    edges = [0]
    while edges[-1] < n_bins:
        edges.append(edges[-1] + max(1, round(edges[-1] * (2 ** (1 / BANDS_PER_OCTAVE) - 1))))
    return np.array(edges[:-1])


def _loop(search: dict[str, Any], name: str, *key: Any) -> dict[str, Any]:
    folder = search["checkpoint"]
    return {
        "max_iter": search["max_iter"],
        "stop": RelativeDecrease(search["tol"]),
        "callback": search["callback"],
        "progress": reporter("SourceSeparation", search["verbose"]),
        "checkpoint": Checkpoint.of(None if folder is None else Path(folder) / name, *key),
    }
