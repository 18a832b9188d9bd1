"""Published estimates of the number of endmembers of an image."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from nonneg._typing import FloatArray
from nonneg.applications.hyperspectral.endmembers import isolated_pixels
from nonneg.applications.hyperspectral.pixels import ImagePixels
from nonneg.exceptions import InvalidDataError
from nonneg.io.cube import Cube

# The probability of a false alarm per direction, as is usual (Chang & Du 2004), and the quantile of the
# Tracy-Widom law of order 1 that belongs to it.
FALSE_ALARM, TRACY_WIDOM = 1e-3, 3.272


def estimate_n_endmembers(spectra: FloatArray) -> dict[str, int]:
    """Estimate the number of endmembers of pixels.

    Parameters
    ----------
    spectra : array of shape (n_pixels, n_bands)
        The pixels, one per row; pixels of zeros do not count. At least as many as bands.

    Returns
    -------
    dict of str to int
        "HySime": directions in which the signal exceeds the noise [1]_. "NWHFC": directions in which the mean
        differs from zero, by noise-whitened virtual dimensionality [2]_. "eigenvalues": noise-whitened
        eigenvalues that exceed those of white noise [3]_.

    References
    ----------
    .. [1] Bioucas-Dias & Nascimento (2008), IEEE Trans. Geoscience and Remote Sensing 46(8).
    .. [2] Chang & Du (2004), IEEE Trans. Geoscience and Remote Sensing 42(3).
    .. [3] Kritchman & Nadler (2009), IEEE Trans. Signal Processing 57(10).
    """
    values: FloatArray = np.asarray(spectra, dtype=np.float64)
    fits = values.ndim == 2 and min(values.shape) > 1 and bool(np.isfinite(values).all())
    # The noise is what a band leaves on all others: with fewer pixels than bands, nothing.
    if not fits or (values.max(axis=1) > 0).sum() < values.shape[1]:
        raise InvalidDataError(
            "The number of endmembers needs finite values, at least two bands, and at least as many pixels "
            f"that are not zero as bands, got an array of shape {np.shape(spectra)}. Give the number."
        )
    pixels = ImagePixels(Cube(values[None] / values.max()), None, math.inf)
    values = pixels.gathered()
    # Corrupt pixels would count as materials.
    first = max(1, _hysime(values.T @ values / len(values)))
    isolated = isolated_pixels(pixels, first)
    values = np.delete(values, np.searchsorted(np.flatnonzero(pixels.mask), isolated), axis=0)
    n = len(values)
    gram, mean = values.T @ values / n, values.mean(axis=0)
    return {
        "HySime": max(1, min(_hysime(gram), n)),
        "NWHFC": max(1, _virtual_dimensionality(gram, mean, n)),
        "eigenvalues": max(1, _above_noise(gram, n)),
    }


def _inverse_gram(gram: FloatArray) -> FloatArray:
    """Return the inverse of the products of the bands, with a ridge where bands depend on one another."""
    return np.asarray(np.linalg.inv(gram + 1e-10 * float(np.trace(gram)) / len(gram) * np.eye(len(gram))))


def _hysime(gram: FloatArray) -> int:
    """Return the number of directions in which the signal exceeds the noise."""
    # The residual of every band on the others is the noise; both follow from the products of the bands.
    inverse = _inverse_gram(gram)
    signal = np.eye(len(gram)) - inverse / np.diagonal(inverse)
    correlation = signal.T @ gram @ signal
    directions = np.linalg.eigh(correlation)[1]
    noise = np.diag(1.0 / np.diagonal(inverse)) + 1e-5 * np.trace(correlation) / len(gram) * np.eye(len(gram))
    power = np.einsum("bd,bd->d", directions, gram @ directions)
    disturbed = np.einsum("bd,bd->d", directions, noise @ directions)
    return int(np.sum(2.0 * disturbed < power))


def _virtual_dimensionality(gram: FloatArray, mean: FloatArray, n_pixels: int) -> int:
    """Return the number of whitened eigenvalues of the correlation that exceed those of the covariance."""
    covariance = gram - np.outer(mean, mean)
    if not np.trace(covariance) > len(mean) * np.finfo(float).eps * np.trace(gram):  # copies, up to rounding
        return 1
    scale = np.sqrt(np.diagonal(_inverse_gram(covariance)))
    whitened = (matrix * np.outer(scale, scale) for matrix in (gram, covariance))
    with_mean, without = (np.linalg.eigvalsh(matrix)[::-1] for matrix in whitened)
    deviation = np.sqrt(2.0 * (with_mean**2 + without**2) / n_pixels)
    return int(np.sum(with_mean - without > -ndtri(FALSE_ALARM) * deviation))


def _above_noise(gram: FloatArray, n_pixels: int) -> int:
    """Return the number of whitened eigenvalues that white noise of the remaining ones would not reach."""
    # The law of the largest eigenvalue is that of Johnstone (2001), Annals of Statistics 29(2).
    scale = np.sqrt(np.diagonal(_inverse_gram(gram)))
    values = np.maximum(np.linalg.eigvalsh(gram * np.outer(scale, scale))[::-1], 0.0)
    for count in range(len(values) - 1):
        rest = len(values) - count
        a, b = math.sqrt(n_pixels - 0.5), math.sqrt(rest - 0.5)
        width = (a + b) * (1.0 / a + 1.0 / b) ** (1.0 / 3.0)
        largest = ((a + b) ** 2 + TRACY_WIDOM * width) / n_pixels
        # Noise beyond the signal; what is rounding has none.
        noise = float(values[count + 1 :].mean())
        if values[count] <= max(largest * noise, 1e-12 * float(values[0])):
            return count
    return len(values)
