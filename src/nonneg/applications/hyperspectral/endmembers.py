"""Pixels in leading directions, and the spectra of the endmembers that a search among them found."""

from __future__ import annotations

import numpy as np

from nonneg._ties import fixed_vectors
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.hyperspectral.pixels import ImagePixels
from nonneg.separable.result import SelectionResult
from nonneg.separable.vertices import aggregated


def reduced_pixels(pixels: ImagePixels, n_directions: int | None, norm: str | None) -> FloatArray:
    """Project the pixels, divided by a norm, onto the leading directions in two passes over the blocks."""
    bands = pixels.n_bands
    gram = np.zeros((bands, bands))
    for block in pixels.blocks():
        spectra = _scaled(block.spectra, norm)
        gram += spectra.T @ spectra
    k = min(int(n_directions or bands), bands)
    values, vectors = np.linalg.eigh(gram)
    # Fixed, so that the points do not depend on the library of linear algebra.
    directions = fixed_vectors(values[::-1][:k], vectors[:, ::-1][:, :k])
    points = np.empty((int(pixels.mask.sum()), directions.shape[1]), dtype=pixels.dtype)
    filled = 0
    for block in pixels.blocks():
        points[filled : filled + len(block.pixels)] = _scaled(block.spectra, norm) @ directions
        filled += len(block.pixels)
    return points


def _scaled(spectra: FloatArray, norm: str | None) -> FloatArray:
    values = np.asarray(spectra, dtype=np.float64)
    if norm is None:
        return values
    sizes = np.linalg.norm(values, ord=int(norm[1:]), axis=1, keepdims=True)
    return values / np.where(sizes > 0, sizes, 1.0)


def spectra_of(pixels: ImagePixels, found: SelectionResult, places: IntArray, *, reduced: bool) -> FloatArray:
    """Return the spectra of pure pixels, or the averages that the method found."""
    if found.components is not None and not reduced:
        return np.asarray(found.components)
    width = pixels.cube.shape[1]
    if found.members is None:
        return np.array([pixels.spectrum(*divmod(int(place), width)) for place in places])
    # The average of a search in leading directions is taken again among the spectra.
    used = np.flatnonzero(pixels.mask)
    groups = [[pixels.spectrum(*divmod(int(at), width)) for at in used[rows]] for rows in found.members]
    aggregate = str(found.facts.get("aggregate", "mean"))
    return np.stack([aggregated(np.asarray(group), aggregate) for group in groups])
