"""How many endmembers an image has: HySime, virtual dimensionality, and what two halves confirm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from nonneg._typing import FloatArray
from nonneg.applications.hyperspectral.noise import RUN, inverse_gram, usual_pixels
from nonneg.exceptions import FileFormatError, InvalidDataError, NonnegError
from nonneg.metrics import spectral_angles
from nonneg.separable.select import select_anchors

# The probability of a false alarm per direction, as is usual (Chang & Du 2004).
FALSE_ALARM = 1e-3
MAX_ENDMEMBERS = 12
"""The largest number that two halves are asked to confirm."""
# Two halves confirm endmembers that agree within this angle, in degrees: more than noise leaves, and less
# than two materials differ. Chosen on generated images.
SAME_ANGLE = 2.0
# The first direction beyond the endmembers has this multiple of the noise at most if the rest is noise.
FLAT = 1.3
# Pixels whose directions beyond the endmembers hold less of them have no noise.
EXACT = 1e-9
MAX_PIXELS = 20_000


@dataclass(frozen=True)
class EndmemberCount:
    """How many endmembers an image has.

    Attributes
    ----------
    recommended : int
        The number to use.
    reason : str
        Why, in a sentence.
    hysime : int
        Directions in which the signal exceeds the noise (Bioucas-Dias & Nascimento 2008).
    virtual_dimensionality : int
        Directions in which the mean differs from zero: noise-whitened Harsanyi-Farrand-Chang (NWHFC).
    hfc : int
        The same without whitening (Harsanyi, Farrand & Chang 1994).
    confirmed : int
        The largest number of endmembers that both halves of the pixels agree on.
    """

    recommended: int
    reason: str
    hysime: int
    virtual_dimensionality: int
    hfc: int
    confirmed: int

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EndmemberCount:
        """Return the estimate again."""
        names = list(cls.__dataclass_fields__)
        if not isinstance(values, Mapping) or set(values) != set(names):
            raise FileFormatError(f"expected {', '.join(names)}, got {values!r}. The file is damaged.")
        numbers = {name: int(values[name]) for name in names if name != "reason"}
        return cls(reason=str(values["reason"]), **numbers)

    def as_dict(self) -> dict[str, int | str]:
        """Return the numbers and the reason by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def estimate_n_endmembers(spectra: FloatArray) -> EndmemberCount:
    """Estimate the number of endmembers of pixels.

    Parameters
    ----------
    spectra : array of shape (n_pixels, n_bands)
        The pixels, one per row. Corrupt pixels are set aside.

    Returns
    -------
    EndmemberCount
        A recommendation with its reason, and what HySime, virtual dimensionality and two halves of the pixels
        say.
    """
    values = np.asarray(spectra, dtype=np.float64)
    if values.ndim != 2 or min(values.shape) < 2:
        raise InvalidDataError(
            "The number of endmembers needs at least two pixels with two bands, got an array of shape "
            f"{values.shape}. Give the number."
        )
    kept = values[usual_pixels(values, MAX_ENDMEMBERS)]
    n, m = kept.shape
    gram, mean = kept.T @ kept / n, kept.mean(axis=0)
    signal = max(1, min(hysime(gram), n, m))
    confirmed = _confirmed(kept)
    found = {
        "hysime": signal,
        "virtual_dimensionality": virtual_dimensionality(gram, mean, n, whiten=True),
        "hfc": virtual_dimensionality(gram, mean, n, whiten=False),
        "confirmed": confirmed,
    }
    if signal <= confirmed or _is_flat(gram, n, signal):
        number = signal
        reason = f"HySime finds {_counted(signal, 'direction')} of signal, and what is left looks like noise"
    else:
        number = confirmed
        reason = (
            f"two halves of the pixels agree on {_counted(confirmed, 'endmember')} within {SAME_ANGLE:g} "
            f"degrees; the {signal} directions of signal that HySime finds include variation within materials"
        )
    return EndmemberCount(recommended=number, reason=reason, **found)


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def hysime(gram: FloatArray) -> int:
    """Return the number of directions in which the signal exceeds the noise."""
    # Bioucas-Dias & Nascimento (2008), IEEE Trans. Geoscience and Remote Sensing 46(8). The residual of every
    # band on the others is the noise; both follow from the products of the bands.
    inverse = inverse_gram(gram)
    residual = inverse / np.diagonal(inverse)
    signal = np.eye(len(gram)) - residual
    correlation = signal.T @ gram @ signal
    directions = np.linalg.eigh(correlation)[1]
    noise = np.diag(1.0 / np.diagonal(inverse)) + 1e-5 * np.trace(correlation) / len(gram) * np.eye(len(gram))
    power = np.einsum("bd,bd->d", directions, gram @ directions)
    disturbed = np.einsum("bd,bd->d", directions, noise @ directions)
    return int(np.sum(2.0 * disturbed < power))


def virtual_dimensionality(gram: FloatArray, mean: FloatArray, n_pixels: int, *, whiten: bool) -> int:
    """Return the number of eigenvalues of the correlation that exceed those of the covariance."""
    # Chang & Du (2004), IEEE Trans. Geoscience and Remote Sensing 42(3).
    covariance = gram - np.outer(mean, mean)
    if whiten:
        scale = np.sqrt(np.diagonal(inverse_gram(covariance)))
        gram, covariance = gram * np.outer(scale, scale), covariance * np.outer(scale, scale)
    with_mean, without = (np.linalg.eigvalsh(matrix)[::-1] for matrix in (gram, covariance))
    deviation = np.sqrt(2.0 * (with_mean**2 + without**2) / n_pixels)
    return int(np.sum(with_mean - without > -ndtri(FALSE_ALARM) * deviation))


def _is_flat(gram: FloatArray, n_pixels: int, n_endmembers: int) -> bool:
    """Tell whether the first direction beyond the signal is one of noise."""
    total = np.linalg.eigvalsh(gram)[::-1]
    if float(np.maximum(total[n_endmembers:], 0.0).sum()) <= EXACT * float(total.sum()):
        return True
    scale = np.sqrt(np.diagonal(inverse_gram(gram)))
    values = np.linalg.eigvalsh(gram * np.outer(scale, scale))[::-1][n_endmembers:]
    if not len(values):
        return True
    # The largest one of independent noise (Geman 1980), relative to their mean.
    edge = (1.0 + math.sqrt(len(gram) / n_pixels)) ** 2
    return bool(values[0] <= FLAT**2 * edge * np.mean(values))


def _confirmed(spectra: FloatArray) -> int:
    """Return the number of endmembers up to which two halves of the pixels agree."""
    step = max(1, len(spectra) // MAX_PIXELS)
    some = spectra[::step]
    some = some[some.any(axis=1)]
    first = (np.arange(len(some)) // RUN) % 2 == 0
    halves = [some[first], some[~first]]
    largest = min(MAX_ENDMEMBERS, some.shape[1], min(map(len, halves)) // 10)
    for number in range(2, largest + 1):
        try:
            found = [
                select_anchors(half, number, method="smoothed-spa", normalize="l1").components
                for half in halves
            ]
        except NonnegError:  # fewer endmembers explain all pixels of a half
            return number - 1
        if any(one is None or len(one) < number for one in found):
            return number - 1
        angles = spectral_angles(np.asarray(found[0]), np.asarray(found[1]))
        # Each has its own twin.
        if max(angles.min(axis=0).max(), angles.min(axis=1).max()) > SAME_ANGLE:
            return number - 1
    return max(1, largest)
