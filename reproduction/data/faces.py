"""Images of smooth parts, with the shape and the spectrum of a set of face images."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.datasets.dataset import PlantedData


def faces_like(
    n_subjects: int = 40,
    n_images: int = 10,
    side: int = 64,
    *,
    n_parts: int = 400,
    rng: Seed = None,
    dtype: npt.DTypeLike = np.float64,
) -> PlantedData:
    """Return images of many subjects, each a mixture of smooth bright parts, with varying illumination.

    Parameters
    ----------
    n_subjects : int, default 40
        Number of subjects.
    n_images : int, default 10
        Number of images of each subject.
    side : int, default 64
        Images have ``side * side`` pixels.
    n_parts : int, default 400
        Number of parts, from large to small.
    rng : None, int or numpy.random.Generator
        Random number generator or seed.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    PlantedData
        `X` of shape (n_subjects * n_images, side * side) in [0, 1], the parts as `H`, the amounts as `W`
        and the subject of each image as `labels`. X is W H plus a little noise.
    """
    rng = generator(rng)
    labels = np.repeat(np.arange(n_subjects), n_images)
    parts, strength = _parts(n_parts, side, rng)
    subject = np.exp(1.1 * rng.standard_normal((n_subjects, n_parts)))
    image = np.exp(0.8 * rng.standard_normal((labels.size, n_parts)))
    amounts = strength * subject[labels] * image
    X = amounts @ parts
    # The 99.9th percentile instead of the maximum, so that one bright pixel does not darken the rest.
    scale = 1.0 / np.quantile(X, 0.999)
    X *= scale
    X += 0.01 * rng.standard_normal(X.shape)
    np.clip(X, 0.0, 1.0, out=X)
    return PlantedData(
        X=X.astype(dtype), H=parts.astype(dtype), W=(scale * amounts).astype(dtype), labels=labels
    )


def _parts(count: int, side: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return bumps as rows of unit height, wide ones first, and their mean amounts."""
    grid = (np.arange(side) + 0.5) / side
    widths = np.geomspace(0.35, 0.015, count)
    centers = rng.uniform(0.1, 0.9, size=(2, count))
    across, down = np.exp(-0.5 * ((grid - centers[..., None]) / widths[:, None]) ** 2)
    bumps = np.einsum("pi,pj->pij", down, across).reshape(count, side * side)
    return bumps, widths**-0.8
