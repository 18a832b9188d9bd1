"""Noise of the bands of an image, and pixels that are corrupt."""

from __future__ import annotations

import numpy as np

from nonneg._typing import BoolArray, FloatArray
from nonneg.applications.hyperspectral.pixels import ImagePixels

# Directions beside the endmembers in which half of the pixels may vary without making the other half suspect.
N_SPARE = 4
# Runs of consecutive pixels that are kept together, so that objects of a few pixels fall into one half.
RUN = 7
# A pixel is corrupt if what it leaves is larger than that of the median pixel by this factor, whether it is
# measured in the unit of the image or relative to the pixel. Normal noise of 50 bands never exceeds 2.
CORRUPT = 6.0
N_ROUNDS = 3
# Bands are divided by their noise if that of the noisiest tenth is larger than that of the quietest tenth by
# this factor, and if it is larger than rounding; measured on this many pixels.
UNEVEN, MEASURED, MAX_PIXELS = 3.0, 1e-4, 20_000
# The rest is white noise if the first direction beyond the endmembers has at most this multiple of it; where
# the materials vary by more, dividing by the noise would magnify that.
WHITE = 2.0


def inverse_gram(gram: FloatArray) -> FloatArray:
    """Return the inverse of the products of the bands, with a ridge where bands depend on one another."""
    scale = float(np.trace(gram)) / len(gram)
    return np.asarray(np.linalg.inv(gram + 1e-10 * (scale if scale > 0 else 1.0) * np.eye(len(gram))))


def band_noise(gram: FloatArray, n_pixels: int) -> FloatArray:
    """Return the standard deviation of the noise in each band: what the other bands do not predict."""
    # Bioucas-Dias & Nascimento (2008), IEEE Trans. Geoscience and Remote Sensing 46(8): multiple regression.
    # The residual of band b on the others has the variance 1 / (n (R^-1)_bb), with the Gram matrix R / n.
    n_free = max(1, n_pixels - len(gram) + 1)
    return np.sqrt(1.0 / (np.maximum(np.diagonal(inverse_gram(gram)), 1e-300) * n_free))


def noise_scale(spectra: FloatArray, n_endmembers: int, whiten: bool | str) -> FloatArray | None:
    """Return what to divide the bands by, or None where noise is even enough or too small to measure."""
    if whiten is False:
        return None
    step = max(1, len(spectra) // MAX_PIXELS)
    some = np.asarray(spectra[::step], dtype=np.float64)
    some = some[usual_pixels(some, n_endmembers)]
    if len(some) < 2 * some.shape[1]:
        return None
    gram = some.T @ some
    noise = band_noise(gram, len(some))
    sizes = np.sqrt(np.mean(some**2, axis=0))
    measured = float(np.median(noise)) > MEASURED * float(np.median(sizes))
    low, high = np.quantile(noise, (0.1, 0.9))
    if not measured or (
        whiten == "auto" and not (high >= UNEVEN * low and _white(gram, noise, len(some), n_endmembers))
    ):
        return None
    scale = np.maximum(noise, 0.1 * float(np.median(noise)))
    # Spectra keep their size.
    return np.asarray(scale / np.median(scale))


def _white(gram: FloatArray, noise: FloatArray, n_pixels: int, n_endmembers: int) -> bool:
    """Tell whether bands divided by their noise have white noise beside the signal, and not variety."""
    values = np.linalg.eigvalsh(gram / np.outer(noise, noise))[::-1] / n_pixels
    # White noise has variance one in every direction, up to the error of that many pixels (Geman 1980).
    edge = 1.0 + np.sqrt(len(gram) / n_pixels)
    return bool(values[min(n_endmembers, len(values) - 1)] <= (WHITE * edge) ** 2)


def usual_pixels(spectra: FloatArray, n_endmembers: int) -> BoolArray:
    """Tell which pixels lie in the directions in which other pixels vary; corrupt ones do not."""
    # The directions come from the other half of the pixels: a corrupt pixel does not explain itself. Pixels
    # that are brighter than the median count as much as the median one.
    values = np.asarray(spectra, dtype=np.float64)
    n, m = values.shape
    n_directions = min(n_endmembers + N_SPARE, m - 1)
    usual = np.ones(n, dtype=bool)
    first = (np.arange(n) // RUN) % 2 == 0
    if min(first.sum(), n - first.sum()) < 4 * n_directions or n_directions < 1:
        return usual
    norms = np.linalg.norm(values, axis=1)
    limited = values * np.minimum(1.0, np.median(norms) / np.where(norms > 0, norms, 1.0))[:, None]
    for _ in range(N_ROUNDS):
        left = np.zeros(n)
        for half in (first, ~first):
            some = limited[half & usual]
            directions = np.linalg.eigh(some.T @ some)[1][:, -n_directions:]
            others = values[~half]
            left[~half] = np.linalg.norm(others - (others @ directions) @ directions.T, axis=1)
        relative = float(np.median(left / np.where(norms > 0, norms, 1.0)))
        # Differences of rounding are no noise.
        floor = 1e-6 * norms
        found = left <= CORRUPT * np.maximum(np.median(left), relative * norms) + floor
        if (found == usual).all():
            break
        usual = found
    return usual


def smoothed_spectra(pixels: ImagePixels, spectra: FloatArray, window: int) -> FloatArray:
    """Average each pixel with those of a square window around it, as far as they are used."""
    from scipy.ndimage import uniform_filter

    rows, columns, _ = pixels.cube.shape
    image = np.zeros((rows, columns, spectra.shape[1]))
    image[pixels.mask] = spectra
    size = (window, window)
    share = uniform_filter(pixels.mask.astype(np.float64), size, mode="constant")
    sums = uniform_filter(image, (*size, 1), mode="constant")
    return np.asarray(sums[pixels.mask] / share[pixels.mask][:, None]).astype(spectra.dtype)
