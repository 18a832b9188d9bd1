"""Published estimates of the number of endmembers of an image, and whether they agree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from nonneg._typing import FloatArray
from nonneg.applications.hyperspectral.endmembers import isolated_pixels
from nonneg.applications.hyperspectral.pixels import Block
from nonneg.exceptions import FileFormatError, InvalidDataError

# The probability of a false alarm per direction, as is usual (Chang & Du 2004), and the quantile of the
# Tracy-Widom law of order 1 that belongs to it.
FALSE_ALARM, TRACY_WIDOM = 1e-3, 3.272
NAMES = {"hysime": "HySime", "virtual_dimensionality": "NWHFC", "eigenvalues": "eigenvalues"}


@dataclass(frozen=True)
class EndmemberCount:
    """Estimates of the number of endmembers of an image.

    Attributes
    ----------
    recommended : int or None
        The number that at least two of the three estimates agree on; None if they disagree.
    reason : str
        Why, in a sentence.
    hysime : int
        Directions in which the signal exceeds the noise (Bioucas-Dias & Nascimento 2008).
    virtual_dimensionality : int
        Directions in which the mean differs from zero: noise-whitened Harsanyi-Farrand-Chang (NWHFC; Chang &
        Du 2004).
    eigenvalues : int
        Noise-whitened eigenvalues that exceed those of white noise (Kritchman & Nadler 2009).
    """

    recommended: int | None
    reason: str
    hysime: int
    virtual_dimensionality: int
    eigenvalues: int

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EndmemberCount:
        """Return the estimate again."""
        names = list(cls.__dataclass_fields__)
        if not isinstance(values, Mapping) or set(values) != set(names):
            raise FileFormatError(f"expected {', '.join(names)}, got {values!r}. The file is damaged.")
        numbers = {name: int(values[name]) for name in NAMES}
        agreed = values["recommended"]
        return cls(None if agreed is None else int(agreed), str(values["reason"]), **numbers)

    def as_dict(self) -> dict[str, int | str | None]:
        """Return the numbers and the reason by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def estimate_n_endmembers(spectra: FloatArray) -> EndmemberCount:
    """Estimate the number of endmembers of pixels.

    Parameters
    ----------
    spectra : array of shape (n_pixels, n_bands)
        The pixels, one per row; pixels of zeros do not count.

    Returns
    -------
    EndmemberCount
        What HySime, virtual dimensionality and the eigenvalues say, and the number that two of them agree on.
    """
    values = np.asarray(spectra, dtype=np.float64)
    if values.ndim == 2:
        values = values[values.any(axis=1)]
    if values.ndim != 2 or min(values.shape) < 2 or not np.isfinite(values).all():
        raise InvalidDataError(
            "The number of endmembers needs at least two pixels that are not zero, with two bands and finite "
            f"values, got an array of shape {np.shape(spectra)}. Give the number."
        )
    values = values / values.max()
    # Corrupt pixels would count as materials.
    rows = np.arange(len(values))
    first = max(1, _hysime(values.T @ values / len(values)))
    isolated = isolated_pixels(lambda some: values[some], lambda: [Block(rows, values)], rows, first)
    values = np.delete(values, isolated, axis=0)
    n = len(values)
    gram, mean = values.T @ values / n, values.mean(axis=0)
    numbers = {
        "hysime": max(1, min(_hysime(gram), n)),
        "virtual_dimensionality": max(1, _virtual_dimensionality(gram, mean, n)),
        "eigenvalues": max(1, _above_noise(gram, n)),
    }
    said = ", ".join(f"{NAMES[name]} {number}" for name, number in numbers.items())
    counts = list(numbers.values())
    agreed = next((number for number in counts if counts.count(number) > 1), None)
    if agreed is None:
        return EndmemberCount(None, f"estimates disagree: {said}", **numbers)
    names = [NAMES[name] for name, number in numbers.items() if number == agreed]
    return EndmemberCount(agreed, f"{' and '.join(names)} agree on {agreed} ({said})", **numbers)


def _inverse_gram(gram: FloatArray) -> FloatArray:
    """Return the inverse of the products of the bands, with a ridge where bands depend on one another."""
    return np.asarray(np.linalg.inv(gram + 1e-10 * float(np.trace(gram)) / len(gram) * np.eye(len(gram))))


def _hysime(gram: FloatArray) -> int:
    """Return the number of directions in which the signal exceeds the noise."""
    # Bioucas-Dias & Nascimento (2008), IEEE Trans. Geoscience and Remote Sensing 46(8). The residual of every
    # band on the others is the noise; both follow from the products of the bands.
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
    # Chang & Du (2004), IEEE Trans. Geoscience and Remote Sensing 42(3).
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
    # Kritchman & Nadler (2009), IEEE Trans. Signal Processing 57(10); the law of the largest eigenvalue is
    # that of Johnstone (2001), Annals of Statistics 29(2).
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
