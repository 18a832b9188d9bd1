"""Initialization from cones: the factors of clustering and rank-one NMF, with the directions moved apart."""

from __future__ import annotations

import numpy as np

from nonneg._random import Seed
from nonneg._typing import Array, SampleArray
from nonneg.cones.clustering import cone_clusters
from nonneg.cones.directions import leading_directions
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.kernels.cluster_products.array_api import one_hot

_APART = 0.7  # the fraction of the mean direction that is subtracted from each
_FILL = 0.01  # the lowest entry, as a fraction of the mean entry of a direction
# No published values: `python -m benchmarks --only cone_init` measures what the pair brings.
_TOL = 1e-4  # of the directions: their errors are then exact to 1e-8


def cone_init(data: DataMatrix, k: int, *, rng: Seed = None) -> tuple[SampleArray, Array]:
    """Return the factors of clustering and rank-one NMF, with the directions moved apart."""
    # The pair of the rank-one factorizations itself is a fixed point of multiplicative updates (Lemma 15) and
    # a place that other solvers leave slowly: each direction lies amid its rows, so that no row wants a
    # positive share of another one. With directions farther apart the rows lie inside of them. The two
    # changes undo one another (no entry of W H changes where none of Ht is cut off), so that the error stays
    # that of the pair.
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, Algorithm 2 and Lemma 15.
    clusters = cone_clusters(data, k)
    n_found = len(clusters.centroid_indices)
    found = leading_directions(data, clusters.labels, clusters.centroids, tol=_TOL)
    directions = found.directions if n_found else np.full((1, data.shape[1]), data.shape[1] ** -0.5)
    mean = directions.mean(axis=0)
    Ht = np.empty((data.shape[1], k))
    Ht[:, :n_found] = (found.directions - _APART * mean).T
    Ht[:, n_found:] = mean[:, None]
    level = np.append(directions.mean(axis=1), np.full(k, mean.mean()))[:k]
    # With Ht (I - a/n 11') for the directions, the inverse I + a / (n (1 - a)) 11' belongs to W.
    share = _APART / (max(n_found, 1) * (1.0 - _APART))
    (W,), _ = data.map_reduce_rows(_w_rows, clusters.labels, found.products, k=k, share=share)
    return W, data.to_device(np.maximum(Ht, _FILL * level))


def _w_rows(
    block: LocalMatrix, labels: Array, products: Array, *, k: int, share: float
) -> tuple[tuple[Array], tuple[()]]:
    xp = block.xp
    lost = xp.logical_and(labels >= 0, products <= 0)
    if bool(xp.any(lost)):
        # Rows that share no feature with the direction of their cluster: their norm stands for the rest.
        products = xp.where(lost, xp.sqrt(block.squared_row_norms())[:, None], products)
    return (one_hot(labels, products, k) + share * products,), ()
