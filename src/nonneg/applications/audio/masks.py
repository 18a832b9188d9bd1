"""Wiener masks: the share of every coefficient that belongs to a source, in any orthogonal transform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError, ShapeError


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
    W, H = np.asarray(activations), np.asarray(components)
    if W.ndim != 2 or H.ndim != 2 or W.shape[1] != H.shape[0]:
        raise ShapeError(
            f"Expected activations of shape (n_frames, n_components) and components of shape (n_components, "
            f"frame_length), got {W.shape} and {H.shape}."
        )
    labels = np.arange(H.shape[0]) if groups is None else checked_groups(groups, H.shape[0])
    n_sources = int(labels.max()) + 1

    def part(source: int) -> FloatArray:
        mine = labels == source
        modeled = W[:, mine] @ H[mine] + floor / n_sources
        return modeled if exponent == 1 else modeled**exponent

    # With powers the total is no product: the parts are made twice, rather than kept.
    total = W @ H + floor if exponent == 1 else part(0)
    for source in range(1, n_sources) if exponent != 1 else ():
        total += part(source)
    unknown = total <= 0
    total[unknown] = 1.0
    for source in range(n_sources):
        mask = part(source) / total
        mask[unknown] = 1.0 / n_sources
        yield mask


def masked_frames(frames: Any, transform: Any, masks: Any) -> FloatArray:
    """Return the part of each source in every frame.

    Parameters
    ----------
    frames : array-like of shape (n_recordings, n_frames, frame_length)
        The mixture.
    transform : array-like of shape (frame_length, frame_length)
        Orthogonal; its rows are atoms.
    masks : array-like of shape (n_sources, n_frames, frame_length)
        In the transform's domain.

    Returns
    -------
    array of shape (n_sources, n_recordings, n_frames, frame_length)
        Frames in time; where the masks sum to one, they sum to the mixture.
    """
    mixture, atoms, shares = np.asarray(frames), np.asarray(transform), np.asarray(masks)
    coefficients = mixture @ atoms.T
    return np.stack([(coefficients * share) @ atoms for share in shares])


def checked_groups(groups: Any, n_components: int) -> Any:
    """Check the source of each component."""
    labels = np.asarray(groups)
    if labels.shape != (n_components,) or labels.dtype.kind not in "iu":
        raise ShapeError(
            f"Expected the source of each of {n_components} components, whole numbers from 0, got "
            f"{labels.dtype} of shape {labels.shape}."
        )
    present = np.unique(labels)
    if present[0] != 0 or present[-1] != len(present) - 1:
        raise InvalidParameterError(
            f"Sources are numbered from 0 without gaps; the groups name {present.tolist()}."
        )
    return labels.astype(np.intp)
