"""Warm starts by name: features from anchors, from cones, from an NMF, or as given."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._random import Seed
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix, as_data_matrix
from nonneg.data.spectral import to_numpy
from nonneg.exceptions import InvalidParameterError, UnknownNameError
from nonneg.initializers.cone_rank_one import cone_rank_one
from nonneg.purification.decode import weight_scales
from nonneg.purification.pseudo_inverse import dependent_feature, pseudo_inverse
from nonneg.purification.samples import spread_rows
from nonneg.purification.warm_start import checked_features
from nonneg.rank_selection import estimate_rank
from nonneg.separable import select_anchors
from nonneg.solvers import factorize

STARTS = ("anchors", "cone", "nmf")
NMF_PASSES = 50
# Up to this share of the absolute sum negative entries are taken for noise of nonnegative data.
NOISE = 0.25
# The share of the squared norm that points must hold together to be looked at for anchors in noise.
ENERGY = 0.9


def number_of_features(n_components: int | str, init: Any, data: DataMatrix) -> int:
    """Return how many features are looked for.

    Parameters
    ----------
    n_components : int or "auto"
        As the user gave it.
    init : str or array
        A given start decides where the number is "auto".
    data : DataMatrix
        The samples.

    Returns
    -------
    int
        The number.
    """
    if n_components != "auto":
        return int(n_components)
    if not isinstance(init, str):
        return len(init)
    return int(estimate_rank(data).rank)


def features_to_start(data: DataMatrix, n: int, init: Any, rng: Seed) -> FloatArray:
    """Return the warm start that was asked for.

    Parameters
    ----------
    data : DataMatrix
        The samples.
    n : int
        The number of features.
    init : {"anchors", "cone", "nmf"} or array of shape (n, m)
        Where from. For "cone" and "nmf" negative entries of the data count as zeros.
    rng : None, int, Generator, RandomState or SeedSequence
        For starts that draw.

    Returns
    -------
    array of shape (n, m)
        Independent features; those of a named start are scaled so that the weights are about in [0, 1].
    """
    if not isinstance(init, str):
        given = checked_features(init, data.shape[1])
        if len(given) != n:
            raise InvalidParameterError(
                f"init has {len(given)} features, n_components is {n}. Give as many, or leave "
                "n_components='auto'."
            )
        return given
    if init not in STARTS:
        raise UnknownNameError.of("init", init, STARTS)
    if n > min(data.shape):
        raise InvalidParameterError(
            f"n_components={n} is more than the rank of data with n_samples={data.shape[0]} and "
            f"n_features={data.shape[1]} can be. Ask for fewer."
        )
    some = spread_rows(data)
    negative = -float(np.minimum(some, 0.0).sum()) / (float(np.abs(some).sum()) or 1.0)
    if init == "anchors":
        features = to_numpy(data.take_rows(_anchors(data, n, negative)))
    elif init == "cone":
        features = to_numpy(cone_rank_one(_positive(data), n).H)
    else:
        features = to_numpy(factorize(_positive(data), n, max_iter=NMF_PASSES, rng=rng).H)
    return _in_units(some, np.array(features, dtype=np.float64), init)


def _anchors(data: DataMatrix, n: int, negative: float) -> IntArray:
    if negative > NOISE:
        return select_anchors(data, n, method="spa").anchors
    # Of points on a simplex the pure ones are extreme; of points of any length the long ones are. Short points
    # are left out where there is noise: of them it leaves nothing else when all are made equally long.
    energy = None if negative == 0 else ENERGY
    return select_anchors(_positive(data), n, method="spa", normalize="l1", energy=energy).anchors


def _positive(data: DataMatrix) -> DataMatrix:
    """Return the data with zeros for negative entries; the same object where there are none."""
    if data.extremes()[0] >= 0:
        return data
    held: Any = data
    if data.kind == "dask":
        return as_data_matrix(held.array.map_blocks(_clipped))
    return as_data_matrix(_clipped(held.csr if data.kind == "sparse" else held.array))


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
