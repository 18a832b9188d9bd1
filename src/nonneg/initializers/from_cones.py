"""The start from cones: the factors of clustering and rank-one NMF, with their zeros filled where needed."""

from __future__ import annotations

import numpy as np

from nonneg._random import Seed
from nonneg._typing import Array, LeftArray
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.initializers.cluster_directions import leading_directions
from nonneg.initializers.cone_clustering import cone_clusters
from nonneg.kernels.portable.cones import own_columns

_FILL_LEFT = 0.1  # of a row's own entry, in the other columns of W: less, and updates take long to leave
_FILL_RIGHT = 0.01  # of a direction's mean entry, in the place of its zeros
_TOL = 1e-4  # of the directions: their errors are then exact to 1e-8


def cone_start(
    data: DataMatrix, k: int, *, rng: Seed = None, positive: bool = True
) -> tuple[LeftArray, Array]:
    """Return the factors of clustering and rank-one NMF as a start.

    Parameters
    ----------
    data : DataMatrix
        The data; row weights count like repetitions, missing entries count as zeros.
    k : int
        The number of components.
    rng : None, int, Generator, RandomState or SeedSequence
        Not used: the first centroid is the row farthest from the mean direction. All starts have it. For
        other first centroids, or the best of several, give the factors of `cone_rank_one` as W and H.
    positive : bool
        Whether zeros are filled. The factors are a fixed point of multiplicative updates (Lemma 15), which
        cannot leave it while there are zeros; solvers that can, start from the factors as they are.

    Returns
    -------
    W : left-like array of shape (n_rows, k)
        The projection of each row on the direction of its cluster, and a tenth of it in the other columns
        (zeros if not `positive`). Rows of zeros stay.
    B : array of shape (n_columns, k)
        The directions, unit columns; zeros are filled with a hundredth of the column's mean if `positive`.
        Where the data have fewer than k directions, which is no error here, the further columns are the mean
        of those found.

    References
    ----------
    .. [1] Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, Algorithm 2 and Lemma 15.
    """
    clusters = cone_clusters(data, k)
    n_found = len(clusters.centroid_indices)
    found = leading_directions(data, clusters.labels, clusters.centroids, tol=_TOL)
    B = np.empty((data.shape[1], k))
    B[:, :n_found] = found.directions.T
    if n_found < k:
        mean = found.squared_values @ found.directions if n_found else np.ones(data.shape[1])
        B[:, n_found:] = (mean / np.linalg.norm(mean))[:, None]
    if positive:
        B = np.maximum(B, _FILL_RIGHT * B.mean(axis=0))
    (W,), _ = data.row_pass(
        _left, clusters.labels, found.products, k=k, share=_FILL_LEFT if positive else 0.0
    )
    return W, data.place(B)


def _left(
    block: LocalMatrix, labels: Array, products: Array, *, k: int, share: float
) -> tuple[tuple[Array], tuple[()]]:
    xp = block.xp
    W = own_columns(labels, products, k)
    if share:
        lost = xp.logical_and(labels >= 0, products <= 0)
        if bool(xp.any(lost)):
            # Rows that share no feature with the direction of their cluster: their norm stands for the rest.
            products = xp.where(lost, xp.sqrt(block.squared_row_norms())[:, None], products)
        W = xp.where(W > 0, W, share * products)
    return (W,), ()
