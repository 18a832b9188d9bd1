"""Initialization `cr1`: the factors of clustering and rank-one NMF."""

from __future__ import annotations

import numpy as np

from nonneg._random import Seed
from nonneg._typing import Array, SampleArray
from nonneg.cones.clustering import cone_clusters
from nonneg.cones.directions import leading_directions
from nonneg.data.matrix import DataMatrix, LocalMatrix, rows_only
from nonneg.kernels.cluster_products import one_hot

_TOL = 1e-4  # of the directions: their errors are then exact to 1e-8


def cr1_init(data: DataMatrix, k: int, *, rng: Seed = None) -> tuple[SampleArray, Array]:
    """Return directions of clusters as H' and perturbed rank-one coefficients as W, both of the same norm."""
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, Algorithm 2 and Section VI-B1. The
    # pair itself is a fixed point of multiplicative updates (Lemma 15), so the paper perturbs the
    # coefficients; its programs add the mean of the positive ones to all.
    clusters = cone_clusters(data, k)
    pairs = leading_directions(data, clusters.labels, clusters.centroids, tol=_TOL)
    n_clusters = len(clusters.centroid_indices)
    directions = pairs.directions if n_clusters else np.full((1, data.shape[1]), data.shape[1] ** -0.5)
    # Where the samples have fewer directions than k, the mean direction stands for the others.
    Ht = np.repeat(directions.mean(axis=0)[:, None], k, axis=1)
    Ht[:, :n_clusters] = directions[:n_clusters].T
    total, count, squares = data.reduce_rows(_positive_sums, pairs.products)
    mean = float(total) / max(float(count), 1.0)
    # Stopping rules add up the gradients of both: with the unit of X in one of them alone, the sum would have
    # none, and the number of iterations would depend on the unit.
    of_W = float(squares) + 2.0 * mean * float(total) + mean**2 * k * data.total_weight()
    scale = float(np.sqrt(np.sqrt(np.sum(Ht**2) / of_W))) if of_W > 0 else 1.0  # exact for powers of four
    rows = clusters.labels, pairs.products
    W = data.map_rows(_coefficients, *rows, k=k, mean=mean, scale=scale)
    return W, data.to_device(Ht / scale)


def _positive_sums(block: LocalMatrix, products: Array) -> tuple[Array, ...]:
    xp = block.xp
    positive = xp.astype(products > 0, xp.float64)
    powers = positive * products, positive, positive * products**2
    return tuple(xp.sum(block.weighted(power)) for power in powers)


@rows_only
def _coefficients(
    block: LocalMatrix, labels: Array, products: Array, *, k: int, mean: float, scale: float
) -> Array:
    return (one_hot(labels, products, k) + mean) * scale
