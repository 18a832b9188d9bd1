"""Masks of recordings with several channels: a factorization that all share, and gains of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nonneg._typing import Array, FloatArray
from nonneg.applications.audio.masks import mask_of_each
from nonneg.applications.audio.spectrogram import band_edges

# Multiplicative updates of the gains; after 30 they change by less than 1% on stereo mixtures of two
# generated instruments.
GAIN_UPDATES = 30


def masked_parts(
    coefficients: Sequence[Array],
    activations: Sequence[FloatArray],
    components: FloatArray,
    groups: Any,
    *,
    floor: float,
    exponent: float,
    with_gains: bool,
) -> Iterator[tuple[list[FloatArray], Sequence[Array]]]:
    """Yield for each source its masks and the coefficients, one array per part."""
    # One iterator of masks per channel, because all masks of all sources need much memory.
    makers = []
    for part, W in zip(coefficients, activations, strict=True):
        own = with_gains and len(part) > 1
        gains = channel_gains(np.abs(part), W, components) if own else np.ones((1, W.shape[1]), W.dtype)
        makers.append(
            [mask_of_each(W * gain, components, groups, floor=floor, exponent=exponent) for gain in gains]
        )
    for _ in range(int(groups.max()) + 1):
        yield [np.stack([next(mask) for mask in channels]) for channels in makers], coefficients


def channel_gains(magnitudes: FloatArray, activations: FloatArray, components: FloatArray) -> FloatArray:
    """Return the gain of every component in every channel, (n_channels, n_components).

    The factors model all channels together; where a component is panned, it is louder in one of them. This is
    the nonnegative tensor factorization of FitzGerald, Cranitch & Coyle (2005), fitted in two steps.
    """
    edges = band_edges(magnitudes.shape[-1])
    H = np.add.reduceat(components, edges, axis=1)
    W, small = activations, np.finfo(activations.dtype).tiny
    weights = np.maximum(W.sum(axis=0) * H.sum(axis=1), small)
    gains = []
    for channel in magnitudes:
        V = np.add.reduceat(channel, edges, axis=1)
        mean = float(V.mean(dtype=np.float64))
        V = (V / (mean if mean > 0 else 1.0)).astype(W.dtype, copy=False)
        gain = np.ones(W.shape[1], W.dtype)
        for _ in range(GAIN_UPDATES):
            ratio = V / np.maximum((W * gain) @ H, small)
            gain *= np.einsum("kb,kb->k", W.T @ ratio, H) / weights
        gains.append(gain)
    return np.stack(gains)
