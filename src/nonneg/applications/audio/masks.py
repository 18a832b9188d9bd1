"""Wiener masks: the share of every coefficient that belongs to a source, in every channel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nonneg._typing import Array, FloatArray
from nonneg.applications.audio.grouping import checked_factors
from nonneg.applications.audio.sources import checked_groups

# Multiplicative updates of the gains of a channel, a problem with one unknown per component.
GAIN_UPDATES = 30


def wiener_masks(
    activations: Any, components: Any, groups: Any = None, *, floor: float = 0.0, exponent: float = 1.0
) -> FloatArray:
    """Return the share of each source in the variance of every coefficient.

    Parameters
    ----------
    activations : array-like of shape (n_frames, n_components)
        Nonnegative: how much of each component is in each frame.
    components : array-like of shape (n_components, frame_length)
        Nonnegative: the variances that a component represents.
    groups : array-like of int of shape (n_components,), optional
        The source of each component, from 0; by default each component is its own source.
    floor : float, default 0.0
        A variance that every coefficient has in addition to the components, such as eps0 of the loss: each
        source has an equal share of it.
    exponent : float, default 1.0
        The power of the sources whose ratios are the masks: 1 where the factors model variances, 2 where they
        model magnitudes.

    Returns
    -------
    array of shape (n_sources, n_frames, frame_length)
        In [0, 1]; over the sources they sum to one. Equal shares where nothing is known.
    """
    return np.stack(list(mask_of_each(activations, components, groups, floor=floor, exponent=exponent)))


def mask_of_each(
    activations: Any, components: Any, groups: Any = None, *, floor: float = 0.0, exponent: float = 1.0
) -> Iterator[FloatArray]:
    """Make the masks of `wiener_masks` one after the other, for recordings whose masks are large together."""
    W, H = checked_factors(activations, components)
    labels = np.arange(H.shape[0]) if groups is None else checked_groups(groups, H.shape[0])
    n_sources = int(labels.max()) + 1

    def part(source: int) -> FloatArray:
        mine = labels == source
        modeled = W[:, mine] @ H[mine] + floor / n_sources
        return modeled if exponent == 1 else modeled**exponent

    # The parts are made twice, rather than kept.
    total = sum(map(part, range(1, n_sources)), part(0))
    unknown = total <= 0
    total[unknown] = 1.0
    for source in range(n_sources):
        mask = part(source) / total
        mask[unknown] = 1.0 / n_sources
        yield mask


def channel_masks(
    coefficients: Array,
    activations: FloatArray,
    components: FloatArray,
    groups: Any,
    *,
    floor: float,
    exponent: float,
    with_gains: bool,
) -> Iterator[FloatArray]:
    """Yield the masks of each source, (n_channels, n_frames, n_bins), or one mask for all channels."""
    W, H = activations, components
    gains = np.ones((1, W.shape[1]), W.dtype)
    if with_gains and len(coefficients) > 1:
        gains = channel_gains(np.abs(coefficients), W, H)
    # One iterator of masks per channel, because all masks of all sources need much memory.
    channels = (mask_of_each(W * gain, H, groups, floor=floor, exponent=exponent) for gain in gains)
    yield from map(np.stack, zip(*channels, strict=True))


def channel_gains(magnitudes: FloatArray, activations: FloatArray, components: FloatArray) -> FloatArray:
    """Return the gain of every component in every channel, (n_channels, n_components).

    The factors model all channels together; where a component is panned, it is louder in one of them. This is
    the nonnegative tensor factorization of FitzGerald, Cranitch & Coyle (2005), fitted in two steps.
    """
    W, H, small = activations, components, np.finfo(activations.dtype).tiny
    weights = np.maximum(W.sum(axis=0) * H.sum(axis=1), small)
    gains = []
    for channel in magnitudes:
        mean = float(channel.mean(dtype=np.float64))
        V = (channel / (mean if mean > 0 else 1.0)).astype(W.dtype, copy=False)
        gain = np.ones(W.shape[1], W.dtype)
        for _ in range(GAIN_UPDATES):
            ratio = V / np.maximum((W * gain) @ H, small)
            gain *= np.einsum("kb,kb->k", W.T @ ratio, H) / weights
        gains.append(gain)
    return np.stack(gains)
