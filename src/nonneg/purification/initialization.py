"""Warm starts: checked, assessed on the data, computed from the data, and perturbed from the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import is_non_numpy, to_float64, to_numpy
from nonneg._random import Seed
from nonneg._registry import Entry, Registry
from nonneg._typing import FloatArray, IntArray
from nonneg.cones.rank_one import cone_rank_one
from nonneg.data import DataMatrix, as_data_matrix
from nonneg.exceptions import InvalidParameterError, NonFiniteDataError, ShapeError
from nonneg.purification.decode import MIDPOINT, Decoder, weight_scales
from nonneg.purification.moments import Moments, moments_of_rows, regression_target
from nonneg.purification.pseudo_inverse import dependent_feature, pseudo_inverse
from nonneg.purification.samples import spread_rows
from nonneg.solvers import factorize

DOUBLE = float(np.finfo(np.float64).eps)
# The mixing l that the theorems allow.
PROVED = 0.1
# Estimates of l above it were not seen for any init with l up to 0.8.
HOPELESS = 1.5
# A warm start needs no optimum: on 18 planted sets of 8 features, 5 to 200 iterations recovered the same 15.
NMF_ITERATIONS = 50
# Anchors are sought among this many entries of the data, which bounds the cost of the SVD (2048 x 2048).
ANCHOR_ENTRIES = 1 << 22
# Samples with less weight than this share of the median are not candidates for anchors: noise dominates them.
# On the same sets 0.05 to 0.4 recovered 15 of 18, 0 only 4, and 0.6 only 6.
LOWEST_HEIGHT = 0.2
# Samples are centered where the cosine between a column of ones and their span is below the rounding of a
# mean in single precision; their heights are then nothing but rounding.
CENTERED = 1e-5
# Singular values below this share of the largest are rounding.
NEGLIGIBLE = 1e-10
# The mean sample counts as nonnegative where its negative entries hold less than this share of its squared
# norm, beyond what its standard error explains.
NEGATIVE_SHARE = 0.05
# Centered samples have a mean that is nothing but error: it must be two standard errors long.
SIGNIFICANT = 4.0
# Returns which n of some points are anchors; the methods are another family's.
Select: TypeAlias = Callable[[FloatArray, int], IntArray]


@dataclass(frozen=True)
class InitQuality:
    """What the data say about an initialization.

    Attributes
    ----------
    level : float
        Estimate of the paper's l: the largest column sum or row sum of the absolute mixing E.
    off_diagonal : array of shape (n_components, n_components)
        Estimate of E: column i contains the shares of the other features in feature i.
    worst : int
        The feature with the largest share of others.
    silent : array of int
        Features that no sample is decoded to.
    threshold : array of shape (n_components,)
        The threshold of the decoding.
    """

    level: float
    off_diagonal: FloatArray
    worst: int
    silent: IntArray
    threshold: FloatArray

    @property
    def sentence(self) -> str:
        """The quality in words."""
        if len(self.silent):
            more = f" ({len(self.silent)} such features)" if len(self.silent) > 1 else ""
            return f"Not a warm start: no sample is decoded to feature {self.silent[0]}{more}."
        if self.level <= PROVED:
            return (
                f"A good warm start: the features contain about {self.level:.2g} of each other (the theorems "
                "require 0.1)."
            )
        if self.level <= HOPELESS:
            return (
                f"A usable warm start: the features contain about {self.level:.2g} of each other, feature "
                f"{self.worst} the most. The theorems require 0.1; in experiments features were recovered "
                "from up to 0.4, and from more where the shares are spread over many features."
            )
        spread = np.abs(self.off_diagonal)
        shown = "Not a warm start: decoded with these features, the samples show that "
        if spread.sum(axis=0).max() <= 1.0:  # a feature that is in many others
            return shown + (
                f"the others contain about {self.level:.2g} of feature "
                f"{int(np.argmax(spread.sum(axis=1)))} in all."
            )
        return shown + (
            f"they contain about {self.level:.2g} of each other (feature {self.worst} the most), more than "
            "of themselves."
        )

    @property
    def usable(self) -> bool:
        """Whether the features are a warm start at all."""
        return self.level <= HOPELESS and not len(self.silent)


def init_quality(samples: FloatArray, H: FloatArray, eps: float = DOUBLE) -> InitQuality:
    """Estimate from samples, rounded to `eps`, how much the features hold of each other."""
    # The inverse that amplifies noise least, whichever one the run will use.
    inverse = pseudo_inverse(H, "moore-penrose").inverse
    values = samples @ inverse.T
    # Halved once, as in the second iteration: fewer small weights are cut, which would count as mixing.
    decoder = Decoder(inverse, 0.5 * MIDPOINT * weight_scales(values), "unshifted")
    moments: Moments = moments_of_rows(samples, decoder)
    # Rounding makes a few values positive where all would be negative or zero.
    rounding = np.maximum(1e-9 * np.sqrt((values**2).mean(axis=0)), _rounding(samples, H, inverse, eps))
    silent = np.flatnonzero((moments.active == 0) | (decoder.threshold <= rounding))
    shares = regression_target(H, moments) @ inverse.T
    own = np.diagonal(shares)
    safe = np.where(np.abs(own) > 1e-3, own, 1e-3)
    # In units in which all weights are of one size. Row i of `shares` is the new feature i, which is column i
    # in the paper.
    units = np.maximum(weight_scales(values), 1e-300)
    off_diagonal = -(shares / safe[:, None] * units[:, None] / units).T
    np.fill_diagonal(off_diagonal, 0.0)
    # What a feature without weights contains is not seen.
    off_diagonal[silent] = 0.0
    off_diagonal[:, silent] = 0.0
    sums = np.abs(off_diagonal).sum(axis=0)
    level = max(float(sums.max()), float(np.abs(off_diagonal).sum(axis=1).max()))
    return InitQuality(level, off_diagonal, int(np.argmax(sums)), silent, decoder.threshold)


def _rounding(samples: FloatArray, H: FloatArray, inverse: FloatArray, eps: float) -> FloatArray:
    """Return the size of decoded values that are nothing but rounding of the samples."""
    longest = float(np.linalg.norm(samples, axis=1).max(initial=0.0))
    condition = float(np.linalg.cond(H / np.linalg.norm(H, axis=1, keepdims=True)))
    found: FloatArray = 8.0 * eps * condition * longest * np.linalg.norm(inverse, axis=1)
    return found


def checked_init(init: Any, n_columns: int) -> FloatArray:
    """Return the initial features as a float64 array, or say what is wrong with them."""
    if is_non_numpy(init):
        init = to_numpy(init)
    if sp.issparse(init):
        init = init.toarray()
    try:
        if np.iscomplexobj(init):
            raise TypeError
        H = np.array(init, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameterError(
            f"init must be an array of numbers, one feature per row, got {_described(init)}. "
            "nonneg.PurificationNMF computes one by name."
        ) from None
    if H.ndim != 2 or H.shape[0] < 1 or H.shape[1] != n_columns:
        raise ShapeError(
            f"init must have shape (n_components, {n_columns}), one feature per row and as long as a sample, "
            f"got {H.shape}."
        )
    n, m = H.shape
    if n > m:
        raise ShapeError(
            f"{n} features of length {m} cannot be independent: purification needs n_components <= "
            f"n_features. Use at most {m} features."
        )
    if not np.isfinite(H).all():
        i, j = np.argwhere(~np.isfinite(H))[0]
        raise NonFiniteDataError(f"init must be finite, but entry [{i}, {j}] is {H[i, j]}.")
    empty = np.flatnonzero(np.abs(H).sum(axis=1) == 0)
    if empty.size:
        raise InvalidParameterError(
            f"Feature {empty[0]} of init is all zeros ({empty.size} such features): leave it out, or "
            "initialize it with a sample."
        )
    dependent = dependent_feature(H)
    if dependent is not None:
        raise InvalidParameterError(
            f"The features in init are linearly dependent: feature {dependent} is a combination of the "
            "others, up to rounding. Leave it out, or replace it."
        )
    return H


def _described(value: Any) -> str:
    if isinstance(value, str):
        return repr(value)
    return f"{type(value).__name__} of {value.dtype}" if hasattr(value, "dtype") else type(value).__name__


def initial_features(data: DataMatrix, n: int, init: Any, rng: Seed, select: Select) -> FloatArray:
    """Return the initial features by name, or those given; `select(points, n)` finds anchors among points."""
    if not isinstance(init, str):
        given = checked_init(init, data.shape[1])
        if len(given) != n:
            raise InvalidParameterError(
                f"init has {len(given)} features, but n_components is {n}. Give the same number, or leave "
                f"n_components='auto'."
            )
        return given
    init = INITS.name_of(init)
    if n > min(data.shape):
        raise InvalidParameterError(
            f"n_components={n} is larger than the rank that data with n_samples={data.shape[0]} and "
            f"n_features={data.shape[1]} can have. Use fewer."
        )
    H = INITS[init].run(data, n, rng, select)
    H = np.array(H, dtype=np.float64)
    if not np.abs(H).sum(axis=1).all() or dependent_feature(H) is not None:
        raise InvalidParameterError(
            f"init={init!r} gave features that are zero or dependent: the data have fewer than "
            f"n_components={len(H)} features. Use fewer, or pass features as init."
        )
    return in_unit_weights(spread_rows(data), H)


def _anchors(data: DataMatrix, n: int, rng: Seed, select: Select) -> FloatArray:
    samples = spread_rows(data, ANCHOR_ENTRIES // data.shape[1])
    # In coordinates of the n leading directions, divided by their singular values. There y' S^+ E[y], with
    # S = E[y y'], is positive for every nonnegative combination with independent weights, whatever the signs
    # of the features: dividing by it puts samples on a simplex whose vertices show one feature alone.
    left, sizes, right = np.linalg.svd(samples, full_matrices=False)
    _check_rank(sizes, n, "anchors")
    points = left[:, :n]
    mean = points.mean(axis=0)
    kept = np.arange(len(points))
    vertices = points
    # Centered samples lie on no simplex: there the farthest points are taken as they are.
    if np.linalg.norm(mean) * np.sqrt(len(points)) > CENTERED:
        heights = points @ mean
        # Samples without weight are left out: noise alone, divided by little, looks like a vertex.
        large = np.flatnonzero(heights > LOWEST_HEIGHT * np.median(heights[heights > 0]))
        if len(large) >= n:
            kept, vertices = large, points[large] / heights[large, None]
    chosen = kept[select(vertices, n)]
    return (points[chosen] * sizes[:n]) @ right[:n]


def _check_rank(sizes: FloatArray, n: int, init: str) -> None:
    """Reject data with fewer dimensions than features."""
    if sizes[n - 1] <= NEGLIGIBLE * sizes[0]:
        raise InvalidParameterError(
            f"init={init!r} found {int((sizes > NEGLIGIBLE * sizes[0]).sum())} dimensions in the data, but "
            f"n_components={n}. Use fewer components, or another init."
        )


def _cones(data: DataMatrix, n: int, rng: Seed, select: Select) -> FloatArray:
    return to_float64(cone_rank_one(positive_part(data), n).H)


def _nmf(data: DataMatrix, n: int, rng: Seed, select: Select) -> FloatArray:
    return to_float64(factorize(positive_part(data), n, max_iter=NMF_ITERATIONS, rng=rng).H)


def _auto(data: DataMatrix, n: int, rng: Seed, select: Select) -> FloatArray:
    # NMF uses all samples, also under noise, but cannot find features of both signs.
    if has_nonnegative_mean(spread_rows(data)):
        samples = spread_rows(data, ANCHOR_ENTRIES // data.shape[1])
        # Before NMF, whose superfluous features are dependent or not as rounding has it.
        _check_rank(np.linalg.svd(samples, compute_uv=False), n, "auto")
        H = _nmf(data, n, rng, select)
        if np.abs(H).sum(axis=1).all() and dependent_feature(H) is None:
            return H
    return _anchors(data, n, rng, select)


def has_nonnegative_mean(samples: FloatArray) -> bool:
    """Tell whether the mean sample is positive beyond its standard error, and nowhere negative beyond it."""
    mean, error = samples.mean(axis=0), float((samples.var(axis=0) / len(samples)).sum())
    size, below = float((mean**2).sum()), float((np.minimum(mean, 0.0) ** 2).sum())
    return size > SIGNIFICANT * error and below <= NEGATIVE_SHARE * size + error


INITS: Registry[Entry] = Registry(
    "init",
    {
        "auto": Entry(_auto, "NMF where the mean sample is nonnegative, otherwise anchors"),
        "anchors": Entry(_anchors, "samples that show one feature alone, by successive projections"),
        "cone": Entry(_cones, "directions of circular cones"),
        "nmf": Entry(_nmf, "the components of an NMF"),
    },
)


def positive_part(data: DataMatrix) -> DataMatrix:
    """Return the data with zeros for negative entries; the same object where there are none."""
    if data.extremes()[0] >= 0:
        return data
    held: Any = data
    if data.container == "dask":
        return as_data_matrix(held.array.map_blocks(_clipped), weights=data.weights)
    return as_data_matrix(
        _clipped(held.csr if data.container == "sparse" else held.array), weights=data.weights
    )


def _clipped(entries: Any) -> Any:
    if sp.issparse(entries):
        return entries.maximum(0)
    return array_namespace(entries).clip(entries, min=0.0)


def in_unit_weights(samples: FloatArray, H: FloatArray) -> FloatArray:
    """Scale features so that a typical large weight is one."""
    scales = weight_scales(samples @ pseudo_inverse(H).inverse.T)
    return H * np.where(scales > 0, scales, 1.0)[:, None]
