"""A hyperspectral image: pixels that mix a few smooth spectra."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.datasets.dataset import PlantedData
from nonneg.exceptions import InvalidParameterError, UnknownNameError


def scene_like(
    height: int = 145,
    width: int = 145,
    n_bands: int = 200,
    n_materials: int = 16,
    *,
    noise: float = 0.04,
    spectra: str = "random",
    purity: float = 1.0,
    brightness: float = 0.1,
    snr: float | None = None,
    n_corrupt: int = 0,
    rng: Seed = None,
    dtype: npt.DTypeLike = np.float64,
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
    spectra : {"random", "land-cover"}, default "random"
        "random": a common continuum with bumps and dips. "land-cover": vegetation, water, soil, road,
        roofs and dry grass in turn, as reflectances from 400 to 2500 nm. Water is dark: its norm is about a
        tenth of that of the others.
    purity : float, default 1.0
        The largest abundance that a material may have in a pixel, above 1 / n_materials.
    brightness : float, default 0.1
        Standard deviation of the logarithm of the brightness, which varies smoothly over the image.
    snr : float, optional
        Add white noise with this signal-to-noise ratio in decibels, instead of `noise`.
    n_corrupt : int, default 0
        Number of pixels, drawn at random, that are replaced by random entries, up to twice as large as the
        largest entry. Their rows of `W` are zero.
    rng : None, int or numpy.random.Generator
        Random number generator or seed.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    PlantedData
        `X` of shape (height * width, n_bands) with one pixel per row, the spectra as `H`, the abundances
        times the pixel's brightness as `W`, and the most abundant material as `labels`. Random spectra are
        sensor counts, about 1000 to 9000.
    """
    if spectra not in SPECTRA:
        raise UnknownNameError.of("spectra", spectra, SPECTRA)
    if not 1.0 / n_materials < purity <= 1.0 and n_materials > 1:
        raise InvalidParameterError(
            f"purity must be above 1 / n_materials = {1 / n_materials:.3g} and at most 1, got {purity!r}."
        )
    rng = generator(rng)
    H = SPECTRA[spectra](n_materials, n_bands, rng)
    abundances = _at_most(_abundances(n_materials, height, width, rng), purity)
    light = np.exp(brightness * _smooth_fields(1, height, width, rng)[0])
    W = abundances * light[:, None]
    X = W @ H
    if snr is None:
        X += X.mean(axis=0) * (rng.standard_normal(X.shape) @ _noise_root(n_bands, noise))
    else:
        X += np.sqrt(np.mean(X**2) / 10.0 ** (snr / 10.0)) * rng.standard_normal(X.shape)
    if n_corrupt:
        bad = rng.choice(len(X), n_corrupt, replace=False)
        X[bad] = X.max() * rng.uniform(0.5, 2.0, (n_corrupt, 1)) * rng.random((n_corrupt, n_bands))
        W[bad] = 0.0
    np.maximum(X, 0.0, out=X)
    return PlantedData(
        X=X.astype(dtype), H=H.astype(dtype), W=W.astype(dtype), labels=abundances.argmax(axis=1)
    )


def _at_most(abundances: FloatArray, purity: float) -> FloatArray:
    """Move pixels that are purer toward the even mixture."""
    even = 1.0 / abundances.shape[1]
    above = abundances.max(axis=1, keepdims=True) > purity
    share = (purity - even) / np.maximum(abundances.max(axis=1, keepdims=True) - even, 1e-300)
    return np.where(above, even + (abundances - even) * share, abundances)


def _land_covers(count: int, n_bands: int, rng: np.random.Generator) -> FloatArray:
    """Return reflectances of vegetation, water, soil, road, roofs and dry grass in turn, with variety."""
    nm = np.linspace(400.0, 2500.0, n_bands)

    def step(place: float, width: float) -> FloatArray:
        return np.asarray(1.0 / (1.0 + np.exp(-(nm - place) / width)))

    def dip(place: float, width: float, depth: float) -> FloatArray:
        return 1.0 - depth * np.exp(-0.5 * ((nm - place) / width) ** 2)

    def vary(value: float) -> float:
        return value * float(np.exp(0.15 * rng.standard_normal()))

    found = []
    for at in range(count):
        kind = at % 6
        line: FloatArray
        if kind == 0:  # vegetation: a green peak, the red edge, and the absorption of leaf water
            green = vary(0.06) * np.exp(-0.5 * ((nm - 550.0) / 40.0) ** 2)
            edge = vary(0.42) * step(rng.uniform(705.0, 725.0), 14.0) * np.exp(-(nm - 750.0) / vary(1900.0))
            leaf = dip(1450.0, 70.0, vary(0.6)) * dip(1940.0, 90.0, min(0.95, vary(0.75)))
            line = (vary(0.035) + green + edge) * leaf
        elif kind == 1:  # water: dark, and darker toward the infrared
            line = vary(0.012) + vary(0.07) * np.exp(-(nm - 400.0) / vary(220.0))
        elif kind == 2:  # soil: rises, with iron, water and clay
            line = vary(0.08) + vary(0.38) * (1.0 - np.exp(-(nm - 380.0) / vary(650.0)))
            line = line * dip(900.0, 90.0, vary(0.1)) * dip(1930.0, 50.0, vary(0.2))
            line = line * dip(2200.0, 35.0, vary(0.12))
        elif kind == 3:  # road: flat
            line = vary(0.14) + vary(0.06) * (nm - 400.0) / 2100.0 * dip(2310.0, 60.0, vary(0.2))
        elif kind == 4:  # roof: bright, with a broad step
            line = vary(0.12) + vary(0.4) * step(rng.uniform(560.0, 640.0), 45.0) * dip(1200.0, 250.0, 0.2)
        else:  # dry grass: a weak red edge, cellulose and lignin
            line = vary(0.09) + vary(0.16) * step(rng.uniform(690.0, 710.0), 25.0)
            line = (line + vary(0.12) * step(1000.0, 160.0)) * dip(1450.0, 60.0, vary(0.2))
            line = line * dip(2100.0, 70.0, vary(0.3)) * dip(2310.0, 40.0, vary(0.25))
        found.append(line)
    return np.stack(found)


def _spectra(count: int, n_bands: int, rng: np.random.Generator) -> FloatArray:
    """Return a common decaying continuum times a few broad bumps and dips per material."""
    bands = np.linspace(0.0, 1.0, n_bands)
    continuum = 1000.0 + 4000.0 * np.exp(-2.5 * bands)
    n_bumps = 6
    centers, widths = rng.random((count, n_bumps)), rng.uniform(0.04, 0.2, size=(count, n_bumps))
    heights = 0.2 * rng.standard_normal((count, n_bumps))
    bumps = np.exp(-0.5 * ((bands - centers[..., None]) / widths[..., None]) ** 2)
    return continuum * np.exp(np.einsum("mb,mbt->mt", heights, bumps))


SPECTRA = {"random": _spectra, "land-cover": _land_covers}
"""The kinds of spectra of a generated image."""


def _abundances(count: int, height: int, width: int, rng: np.random.Generator) -> FloatArray:
    """Return abundances that sum to one in every pixel and vary smoothly over the image."""
    logits = 4.0 * _smooth_fields(count, height, width, rng).T
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _noise_root(n_bands: int, level: float) -> FloatArray:
    """Return the matrix that gives independent numbers the noise's covariance between bands."""
    distance = np.abs(np.subtract.outer(np.arange(n_bands), np.arange(n_bands)))
    covariance = 0.97 * 0.9**distance + 0.03 * (distance == 0)
    return level * np.linalg.cholesky(covariance).T


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
