"""A hyperspectral image: pixels that mix a few smooth spectra."""

from __future__ import annotations

import numpy as np
from scipy.linalg import toeplitz
from scipy.special import softmax

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.datasets.dataset import PlantedData, check_numbers
from nonneg.exceptions import InvalidParameterError


def scene_like(
    height: int = 145,
    width: int = 145,
    n_bands: int = 200,
    n_materials: int = 16,
    *,
    noise: float = 0.04,
    purity: float = 1.0,
    brightness: float = 0.1,
    snr: float | None = None,
    rng: Seed = None,
) -> PlantedData:
    """Return the pixels of a hyperspectral image, each a mixture of smooth spectra.

    Parameters
    ----------
    height : int, default 145
        Rows of the image.
    width : int, default 145
        Columns of the image.
    n_bands : int, default 200
        Length of a spectrum.
    n_materials : int, default 16
        Number of spectra.
    noise : float, default 0.04
        Standard deviation of the noise relative to each band's mean; most of it is shared by neighboring
        bands.
    purity : float, default 1.0
        The largest abundance that a material may have in a pixel, above 1 / n_materials.
    brightness : float, default 0.1
        Standard deviation of the logarithm of the brightness, which varies smoothly over the image.
    snr : float, optional
        Add white noise with this signal-to-noise ratio in decibels, instead of `noise`.
    rng : None, int or numpy.random.Generator
        Random number generator or seed.

    Returns
    -------
    PlantedData
        `X` of shape (height * width, n_bands) with one pixel per row, the spectra as `H`, the abundances
        times the pixel's brightness as `W`, and the most abundant material as `labels`. Entries are sensor
        counts, about 1000 to 9000.
    """
    check_numbers(scene_like, locals())
    if not 1.0 / n_materials < purity <= 1.0 and n_materials > 1:
        raise InvalidParameterError(
            f"purity must be above 1 / n_materials = {1 / n_materials:.3g} and at most 1, got {purity!r}."
        )
    rng = generator(rng)
    H = _spectra(n_materials, n_bands, rng)
    # Abundances that vary smoothly over the image.
    abundances = _at_most(softmax(4.0 * _smooth_fields(n_materials, height, width, rng).T, axis=1), purity)
    light = np.exp(brightness * _smooth_fields(1, height, width, rng)[0])
    W = abundances * light[:, None]
    X = W @ H
    if snr is None:
        covariance = 0.97 * toeplitz(0.9 ** np.arange(n_bands)) + 0.03 * np.eye(n_bands)
        root = noise * np.linalg.cholesky(covariance).T
        X += X.mean(axis=0) * (rng.standard_normal(X.shape) @ root)
    else:
        X += np.sqrt(np.mean(X**2) / 10.0 ** (snr / 10.0)) * rng.standard_normal(X.shape)
    np.maximum(X, 0.0, out=X)
    return PlantedData(X=X, H=H, W=W, labels=abundances.argmax(axis=1))


def _at_most(abundances: FloatArray, purity: float) -> FloatArray:
    """Move pixels that are purer toward the even mixture."""
    even = 1.0 / abundances.shape[1]
    above = abundances.max(axis=1, keepdims=True) > purity
    share = (purity - even) / np.maximum(abundances.max(axis=1, keepdims=True) - even, 1e-300)
    return np.where(above, even + (abundances - even) * share, abundances)


def _spectra(count: int, n_bands: int, rng: np.random.Generator) -> FloatArray:
    """Return a common decaying continuum times a few broad bumps and dips per material."""
    bands = np.linspace(0.0, 1.0, n_bands)
    continuum = 1000.0 + 4000.0 * np.exp(-2.5 * bands)
    n_bumps = 6
    centers, widths = rng.random((count, n_bumps)), rng.uniform(0.04, 0.2, size=(count, n_bumps))
    heights = 0.2 * rng.standard_normal((count, n_bumps))
    bumps = np.exp(-0.5 * ((bands - centers[..., None]) / widths[..., None]) ** 2)
    return continuum * np.exp(np.einsum("mb,mbt->mt", heights, bumps))


def _smooth_fields(count: int, height: int, width: int, rng: np.random.Generator) -> FloatArray:
    """Return random fields of unit variance as rows, smooth over about a twelfth of the scene."""
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :]
    reach = max(height, width) / 12.0
    filtered = np.exp(-2.0 * (np.pi * reach) ** 2 * (rows**2 + columns**2) / 4.0)
    white = np.fft.rfft2(rng.standard_normal((count, height, width)))
    fields = np.fft.irfft2(white * filtered, s=(height, width)).reshape(count, height * width)
    fields -= fields.mean(axis=1, keepdims=True)
    spread = fields.std(axis=1, keepdims=True)
    return fields / np.where(spread > 0, spread, 1.0)
