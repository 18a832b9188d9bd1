"""Warm starts: checked, judged from the data, and made from the truth for studies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import is_non_numpy, to_numpy
from nonneg._random import Seed, generator
from nonneg._typing import FloatArray, IntArray
from nonneg.exceptions import InvalidParameterError, NonFiniteDataError, ShapeError, UnknownNameError
from nonneg.purification.decode import Decoder, first_threshold, weight_scales
from nonneg.purification.moments import Moments, moments_of_rows
from nonneg.purification.pseudo_inverse import dependent_feature, pseudo_inverse
from nonneg.purification.update import regression_target

PROVED, HOPELESS = 0.1, 1.5
"""The mixing l that the theorems allow, and an estimate above those seen for any start of up to 0.8."""

SIGNS = ("both", "positive", "negative")


@dataclass(frozen=True)
class StartQuality:
    """What the data say about features to start from."""

    # Estimate of the paper's l: the larger one of the largest column sum and the largest row sum of the
    # mixing.
    level: float
    off_diagonal: FloatArray  # estimate of E: column i holds the shares of other features in feature i
    worst: int  # the feature with the largest share of others
    silent: IntArray  # features that no sample is decoded to
    threshold: FloatArray  # the threshold that was chosen for the decoding

    @property
    def sentence(self) -> str:
        """The judgement in words."""
        if len(self.silent):
            return (
                f"Not a warm start: no sample is decoded to feature {self.silent[0]} "
                f"({len(self.silent)} such features)."
            )
        if self.level <= PROVED:
            return (
                f"A good warm start: the features hold about {self.level:.2g} of each other (the theorems "
                "ask for 0.1)."
            )
        if self.level <= HOPELESS:
            return (
                f"A usable warm start: the features hold about {self.level:.2g} of each other, feature "
                f"{self.worst} "
                "the most. The theorems ask for 0.1; in experiments starts of up to 0.4 were recovered from, "
                "and worse ones whose shares are spread over many features."
            )
        return (
            "Not a warm start: decoded with these features, the samples say that they hold about "
            f"{self.level:.2g} "
            f"of each other (feature {self.worst} the most), more than of their own."
        )

    @property
    def usable(self) -> bool:
        """Whether the features are a warm start at all."""
        return self.level <= HOPELESS and not len(self.silent)


def start_quality(samples: FloatArray, features: FloatArray) -> StartQuality:
    """Estimate from samples how much the features hold of each other."""
    # The inverse with the least noise in it, whichever one the run will use.
    inverse = pseudo_inverse(features, "moore-penrose").inverse
    values = samples @ inverse.T
    decoder = Decoder(inverse, first_threshold(values), "unshifted")
    moments: Moments = moments_of_rows(samples, decoder)
    # Rounding makes a few values positive where all would be negative or zero.
    rounding = 1e-9 * np.sqrt((values**2).mean(axis=0))
    silent = np.flatnonzero((moments.active == 0) | (decoder.threshold <= rounding))
    shares = regression_target(features, moments) @ inverse.T
    own = np.diagonal(shares)
    safe = np.where(np.abs(own) > 1e-3, own, 1e-3)
    # In units in which all weights are of one size. Row i of `shares` is the new feature i, which is column i
    # in the paper.
    units = np.maximum(weight_scales(values), 1e-300)
    off_diagonal = -(shares / safe[:, None] * units[:, None] / units).T
    np.fill_diagonal(off_diagonal, 0.0)
    sums = np.abs(off_diagonal).sum(axis=0)
    level = max(float(sums.max()), float(np.abs(off_diagonal).sum(axis=1).max()))
    return StartQuality(level, off_diagonal, int(np.argmax(sums)), silent, decoder.threshold)


def checked_features(features: Any, n_columns: int) -> FloatArray:
    """Return features to start from as a float64 array, or say what is wrong with them."""
    if is_non_numpy(features):
        features = to_numpy(features)
    if sp.issparse(features):
        features = features.toarray()
    try:
        if np.iscomplexobj(features):
            raise TypeError
        given = np.array(features, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameterError(
            f"Features are an array of numbers, one feature a row, got {_described(features)}. "
            "nonneg.PurificationNMF finds some to start from by name."
        ) from None
    if given.ndim != 2 or given.shape[0] < 1 or given.shape[1] != n_columns:
        raise ShapeError(
            f"Expected features of shape (n, {n_columns}), one a row and as long as a sample, got "
            f"{given.shape}."
        )
    n, m = given.shape
    if n > m:
        raise ShapeError(
            f"{n} features of length {m} cannot be independent: purification needs n <= m. Use at most {m} "
            "features."
        )
    if not np.isfinite(given).all():
        i, j = np.argwhere(~np.isfinite(given))[0]
        raise NonFiniteDataError(
            f"Feature {i} has the entry {given[i, j]} at {j}: all must be finite numbers."
        )
    empty = np.flatnonzero(np.abs(given).sum(axis=1) == 0)
    if empty.size:
        raise InvalidParameterError(
            f"Feature {empty[0]} is all zeros ({empty.size} such features): leave it out, or start it from a "
            "sample."
        )
    dependent = dependent_feature(given)
    if dependent is not None:
        raise InvalidParameterError(
            f"The features are linearly dependent: feature {dependent} is a combination of the others, up to "
            "rounding. Leave it out, or start it elsewhere."
        )
    return given


def _described(value: Any) -> str:
    if isinstance(value, str):
        return repr(value)
    return f"{type(value).__name__} of {value.dtype}" if hasattr(value, "dtype") else type(value).__name__


def perturbed_features(
    true: Any,
    level: float = 0.1,
    *,
    signs: str = "both",
    diagonal: float = 0.0,
    outside: float = 0.0,
    rng: Seed = None,
) -> FloatArray:
    """Return A* (Sigma + E) + N with a mixing of given size: a warm start for studies, assumption (A3)."""
    if signs not in SIGNS:
        raise UnknownNameError.of("signs", signs, SIGNS)
    if not 0 <= level < np.inf or not 0 <= diagonal < 1 or not 0 <= outside < np.inf:
        raise InvalidParameterError(
            f"Expected level >= 0, 0 <= diagonal < 1 and outside >= 0, got {level}, {diagonal} and {outside}."
        )
    rng = generator(rng)
    H = np.asarray(true, dtype=np.float64)
    if H.ndim != 2:
        raise ShapeError(f"Expected true features of shape (n, m), one a row, got {H.shape}.")
    n, m = H.shape
    if outside > 0 and n >= m:
        raise InvalidParameterError(
            f"{n} features of length {m} leave nothing outside their span. Use outside=0, or longer features."
        )
    E = rng.random((n, n))
    flips = rng.choice([-1.0, 1.0], size=(n, n))
    E = E * flips if signs == "both" else E if signs == "positive" else -E
    np.fill_diagonal(E, 0.0)
    size = max(np.abs(E).sum(axis=0).max(), np.abs(E).sum(axis=1).max())
    mixed = np.diag(rng.uniform(1.0 - diagonal, 1.0 + diagonal, n)) + (E * (level / size) if size > 0 else E)
    start: FloatArray = mixed.T @ H
    if outside > 0:
        N = rng.normal(size=(n, m))
        basis = np.linalg.qr(H.T)[0]
        N -= (N @ basis) @ basis.T
        start = start + N * (outside / np.abs(N).sum(axis=1, keepdims=True))
    return start
