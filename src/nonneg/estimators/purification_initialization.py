"""Warm starts by name: features from anchors, from cones, from an NMF, or as given."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import to_float64
from nonneg._random import Seed
from nonneg._typing import FloatArray
from nonneg.cones.rank_one import cone_rank_one
from nonneg.data import DataMatrix, as_data_matrix
from nonneg.exceptions import InvalidParameterError, UnknownNameError
from nonneg.purification.decode import weight_scales
from nonneg.purification.pseudo_inverse import dependent_feature, pseudo_inverse
from nonneg.purification.samples import spread_rows
from nonneg.purification.warm_start import checked_features
from nonneg.rank_selection import estimate_rank
from nonneg.separable import select_anchors
from nonneg.solvers import factorize

INITS = ("anchors", "cone", "nmf")
ALIASES = {"cr1": "cone"}
NMF_PASSES = 50
# Anchors are looked for among so many entries of the data.
START_ENTRIES = 1 << 22
# Samples with less weight than this share of the middle one are no anchors.
LOWEST_HEIGHT = 0.2
# Samples are centered where the cosine between a column of ones and their span is below the rounding of a
# mean in single precision; their heights are then nothing but rounding.
CENTERED = 1e-5


def number_of_features(n_components: int | str, init: Any, data: DataMatrix) -> int:
    """Return how many features are looked for."""
    if n_components != "auto":
        return int(n_components)
    if not isinstance(init, str):
        return len(init)
    return int(estimate_rank(data).rank)


def features_to_start(data: DataMatrix, n: int, init: Any, rng: Seed) -> FloatArray:
    """Return the warm start that was asked for."""
    if not isinstance(init, str):
        given = checked_features(init, data.shape[1])
        if len(given) != n:
            raise InvalidParameterError(
                f"init has {len(given)} features, n_components is {n}. Give as many, or leave "
                "n_components='auto'."
            )
        return given
    init = ALIASES.get(init, init)
    if init not in INITS:
        raise UnknownNameError.of("init", init, INITS)
    if n > min(data.shape):
        raise InvalidParameterError(
            f"n_components={n} is more than the rank of data with n_samples={data.shape[0]} and "
            f"n_features={data.shape[1]} can be. Ask for fewer."
        )
    if init == "anchors":
        features = _from_anchors(spread_rows(data, START_ENTRIES // data.shape[1]), n)
    elif init == "cone":
        features = to_float64(cone_rank_one(_positive(data), n).H)
    else:
        features = to_float64(factorize(_positive(data), n, max_iter=NMF_PASSES, rng=rng).H)
    return _in_units(spread_rows(data), np.array(features, dtype=np.float64), init)


def _from_anchors(samples: FloatArray, n: int) -> FloatArray:
    # In coordinates of the n leading directions, divided by their sizes. There y' S^+ E[y], with S = E[y y'],
    # is positive for every nonnegative weight of independent ones, whatever the signs of the features:
    # dividing by it puts samples on a simplex whose corners show one feature alone.
    left, sizes, right = np.linalg.svd(samples, full_matrices=False)
    if sizes[n - 1] <= 1e-10 * sizes[0]:
        raise InvalidParameterError(
            f"init='anchors' found {int((sizes > 1e-10 * sizes[0]).sum())} dimensions in the data, and "
            f"n_components={n} "
            "features were asked for. Ask for fewer, or use another init."
        )
    points = left[:, :n]
    mean = points.mean(axis=0)
    kept = np.arange(len(points))
    corners = points
    # Centered samples lie on no simplex: of those the farthest are taken as they are.
    if np.linalg.norm(mean) * np.sqrt(len(points)) > CENTERED:
        heights = points @ mean
        # Samples without weight are left out: noise alone, divided by little, looks like a corner.
        large = np.flatnonzero(heights > LOWEST_HEIGHT * np.median(heights[heights > 0]))
        if len(large) >= n:
            kept, corners = large, points[large] / heights[large, None]
    chosen = kept[select_anchors(corners, n, method="spa").anchors]
    return (points[chosen] * sizes[:n]) @ right[:n]


def _positive(data: DataMatrix) -> DataMatrix:
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
    return array_namespace(entries).clip(entries, min=0)


def _in_units(samples: FloatArray, features: FloatArray, init: str) -> FloatArray:
    empty = np.abs(features).sum(axis=1) == 0
    if empty.any() or dependent_feature(features) is not None:
        raise InvalidParameterError(
            f"init={init!r} gave features that are zero or dependent: the data have fewer features than "
            f"n_components={len(features)}. Ask for fewer, or give features."
        )
    scales = weight_scales(samples @ pseudo_inverse(features).inverse.T)
    return features * np.where(scales > 0, scales, 1.0)[:, None]
