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
from nonneg.certificates.bounds import upper
from nonneg.cones.rank_one import cone_rank_one
from nonneg.data import DataMatrix, as_data_matrix
from nonneg.exceptions import InvalidParameterError, NonFiniteDataError, ShapeError
from nonneg.purification.decode import MIDPOINT, NOISE_FACTOR, Decoder, weight_scales
from nonneg.purification.moments import moments_of, regression_target
from nonneg.purification.pseudo_inverse import dependent_feature, pseudo_inverse
from nonneg.purification.samples import spread_rows
from nonneg.solvers import factorize

DOUBLE = float(np.finfo(np.float64).eps)
# The mixing l that the theorems allow, and that from which on the mixing Sigma + E need not be invertible: a
# matrix whose diagonal exceeds the sum of the others in every column is (Gershgorin).
PROVED, SINGULAR = 0.1, 1.0
# A warm start needs no optimum: on 18 planted sets of 8 features, 5 to 200 iterations recovered the same 15.
NMF_ITERATIONS = 50
# Anchors are sought among this many entries of the data, which bounds the cost of the SVD (2048 x 2048).
ANCHOR_ENTRIES = 1 << 22
# Samples are centered where the cosine between a column of ones and their span is below the rounding of a
# mean in single precision; their heights are then nothing but rounding.
CENTERED = 1e-5
# Singular values below this share of the largest are rounding.
NEGLIGIBLE = 1e-10
# Returns which n of some points are anchors; the methods are another family's.
Select: TypeAlias = Callable[[FloatArray, int], IntArray]


@dataclass(frozen=True)
class InitQuality:
    """Quality of an initialization, measured on the data.

    Attributes
    ----------
    level : float
        Estimate of the paper's l: the largest column sum or row sum of the absolute mixing E.
    off_diagonal : array of shape (n_components, n_components)
        Estimate of E: column i contains the shares of the other features in feature i.
    silent : array of int
        Features that no sample is decoded to.
    threshold : array of shape (n_components,)
        The threshold of the decoding.
    """

    level: float
    off_diagonal: FloatArray
    silent: IntArray
    threshold: FloatArray

    @property
    def sentence(self) -> str:
        """The quality in words."""
        if len(self.silent):
            more = f" ({len(self.silent)} such features)" if len(self.silent) > 1 else ""
            return f"Not a warm start: no sample is decoded to feature {self.silent[0]}{more}."
        kind = "good" if self.level <= PROVED else "usable"
        mixed = f"the shares of features in each other sum to up to {upper(self.level, 2)}"
        if self.level < SINGULAR:
            return f"A {kind} warm start: {mixed} (the guarantee is for up to {PROVED:g})."
        return f"Not a warm start: {mixed}. From 1 on, features may be combinations of each other."

    @property
    def usable(self) -> bool:
        """Whether the features are a warm start at all."""
        return self.level < SINGULAR and not len(self.silent)


def init_quality(samples: FloatArray, H: FloatArray, eps: float = DOUBLE) -> InitQuality:
    """Estimate from samples, rounded to `eps`, how much the features hold of each other."""
    # The inverse that amplifies noise least, whichever one the run will use.
    inverse = pseudo_inverse(H, "moore-penrose").inverse
    values = samples @ inverse.T
    # Halved once, as in the second iteration: fewer small weights are cut, which would count as mixing.
    decoder = Decoder(inverse, 0.5 * MIDPOINT * weight_scales(values), "unshifted")
    moments = moments_of(as_data_matrix(samples), decoder, np.zeros(len(H)))
    # Rounding makes a few values positive where all would be negative or zero.
    longest = float(np.linalg.norm(samples, axis=1).max(initial=0.0))
    condition = float(np.linalg.cond(H / np.linalg.norm(H, axis=1, keepdims=True)))
    rounding = 8.0 * eps * condition * longest * np.linalg.norm(inverse, axis=1)
    rounding = np.maximum(1e-9 * np.sqrt((values**2).mean(axis=0)), rounding)
    silent = np.flatnonzero((moments.active == 0) | (decoder.threshold <= rounding))
    mixing = regression_target(H, moments) @ inverse.T
    own = np.diagonal(mixing)
    safe = np.where(np.abs(own) > 1e-3, own, 1e-3)
    # In units in which all weights are of one size. Row i of `mixing` is the new feature i, which is column i
    # in the paper.
    units = np.maximum(weight_scales(values), 1e-300)
    off_diagonal = -(mixing / safe[:, None] * units[:, None] / units).T
    np.fill_diagonal(off_diagonal, 0.0)
    # What a feature without weights contains is not seen.
    off_diagonal[silent] = 0.0
    off_diagonal[:, silent] = 0.0
    level = max(float(np.abs(off_diagonal).sum(axis=axis).max()) for axis in (0, 1))
    return InitQuality(level, off_diagonal, silent, decoder.threshold)


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
    except (TypeError, ValueError, OverflowError):
        described = repr(init) if isinstance(init, str) else type(init).__name__
        raise InvalidParameterError(
            f"init must be an array of numbers, one feature per row, got {described}. "
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


def initial_features(data: DataMatrix, n: int, init: Any, rng: Seed, select: Select) -> FloatArray:
    """Return the initial features by name, or those given; `select(points, n)` finds anchors among points."""
    if not isinstance(init, str):
        H = checked_init(init, data.shape[1])
        if len(H) != n:
            raise InvalidParameterError(
                f"init has {len(H)} features, but n_components is {n}. Give the same number, or leave "
                f"n_components='auto'."
            )
        return H
    init = INITS.name_of(init)
    if n > min(data.shape):
        raise InvalidParameterError(
            f"n_components={n} is larger than the rank that data with n_samples={data.shape[0]} and "
            f"n_features={data.shape[1]} can have. Use fewer."
        )
    H = INITS[init].run(data, n, rng, select)
    if not H.any(axis=1).all() or dependent_feature(H) is not None:
        raise InvalidParameterError(
            f"init={init!r} gave features that are zero or dependent: the data have fewer than "
            f"n_components={len(H)} features. Use fewer, or pass features as init."
        )
    # Scaled so that a typical large weight is one.
    scales = weight_scales(spread_rows(data) @ pseudo_inverse(H).inverse.T)
    return H * np.where(scales > 0, scales, 1.0)[:, None]


def _anchors(data: DataMatrix, n: int, rng: Seed, select: Select) -> FloatArray:
    samples = spread_rows(data, ANCHOR_ENTRIES // data.shape[1])
    # In coordinates of the n leading directions, divided by their singular values. There y' S^+ E[y], with
    # S = E[y y'], is positive for every nonnegative combination with independent weights, whatever the signs
    # of the features: dividing by it puts samples on a simplex whose vertices show one feature alone.
    left, sizes, right = np.linalg.svd(samples, full_matrices=False)
    if sizes[n - 1] <= NEGLIGIBLE * sizes[0]:
        raise InvalidParameterError(
            f"The data have {int((sizes > NEGLIGIBLE * sizes[0]).sum())} dimensions, but n_components={n}. "
            "Use fewer components, or another init."
        )
    points = left[:, :n]
    mean = points.mean(axis=0)
    rows = np.arange(len(points))
    vertices = points
    # Centered samples lie on no simplex: there the farthest points are taken as they are.
    if np.linalg.norm(mean) * np.sqrt(len(points)) > CENTERED:
        heights = points @ mean
        # Samples without weight are left out: noise alone, divided by little, looks like a vertex. The other
        # directions show how large the noise is.
        noise = np.linalg.norm(sizes[n:]) / np.sqrt(len(samples) * max(len(sizes) - n, 1))
        least = NOISE_FACTOR * float(np.linalg.norm(noise * mean / sizes[:n]))
        large = np.flatnonzero(heights > max(least, NEGLIGIBLE * float(heights.mean())))
        if len(large) >= n:
            rows, vertices = large, points[large] / heights[large, None]
    chosen = rows[select(vertices, n)]
    return (points[chosen] * sizes[:n]) @ right[:n]


def _cones(data: DataMatrix, n: int, rng: Seed, select: Select) -> FloatArray:
    return to_float64(cone_rank_one(positive_part(data), n).H)


def _nmf(data: DataMatrix, n: int, rng: Seed, select: Select) -> FloatArray:
    return to_float64(factorize(positive_part(data), n, max_iter=NMF_ITERATIONS, rng=rng).H)


def _auto(data: DataMatrix, n: int, rng: Seed, select: Select) -> FloatArray:
    # Anchors need samples that show one feature alone, NMF needs features of one sign: the mixing that the
    # samples show decides.
    samples, proposals = spread_rows(data), [_anchors(data, n, rng, select), _nmf(data, n, rng, select)]
    usable = [H for H in proposals if H.any(axis=1).all() and dependent_feature(H) is None]
    qualities = [init_quality(samples, H) for H in usable]
    best = min(range(len(usable)), key=lambda at: (len(qualities[at].silent), qualities[at].level), default=0)
    return (usable or proposals)[best]


INITS: Registry[Entry] = Registry(
    "init",
    {
        "auto": Entry(_auto, "anchors or NMF, whichever the samples show to be mixed less"),
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
