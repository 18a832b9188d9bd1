"""Slow versions of what concerns cones, each written from the definition."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import minimize, nnls

from nonneg._arrays import to_numpy
from nonneg.cones.geometry.size_angle import size_angles


def unit_rows(points):
    """Return the rows scaled to unit length."""
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def cones_of_clusters(data, labels, k):
    """The smallest cones around clusters by the code under test, which begins with the mean directions."""
    blocks = [to_numpy(block.dense_rows(0, block.shape[0])) for block in data.local_blocks()]
    rows = np.concatenate(blocks).astype(np.float64)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    rows = rows if data.weights is None else rows * to_numpy(data.weights)[:, None]
    means = np.stack([rows[labels == cluster].sum(axis=0) for cluster in range(k)])
    return size_angles(data, data.to_sample_array(labels[:, None]), means)


def points_in_cones(axes, labels, sizes, rng, mean_squares):
    """Draw points of the paper's section VI-A in cones of different sizes, which may leave the orthant."""
    angles = rng.uniform(0, sizes[labels])[:, None]
    around = rng.standard_normal((len(labels), axes.shape[1]))
    around -= np.sum(around * axes[labels], axis=1, keepdims=True) * axes[labels]
    units = np.cos(angles) * axes[labels] + np.sin(angles) * unit_rows(around)
    return units * np.sqrt(mean_squares[labels] * rng.standard_exponential(len(labels)))[:, None]


def greedy_clusters(X, k, first=0):
    """Algorithm 1: the labels of farthest-first clusters, without any row of zeros among X."""
    units = unit_rows(X)
    centroids = [first]
    while len(centroids) < k:
        centroids.append(int(np.argmin((units @ units[centroids].T).max(axis=1))))
    return np.argmax(units @ units[centroids].T, axis=1)


def rank_one_error(X, labels):
    """Algorithm 2: the relative error of the best direction of every cluster, by singular values."""
    left = 0.0
    for label in np.unique(labels):
        left += np.square(np.linalg.svd(X[labels == label], compute_uv=False)[1:]).sum()
    return np.sqrt(left / np.square(X).sum())


def smallest_cone_by_enumeration(points):
    """Return the angle of the smallest cone, by trying all pairs and triples of points in space."""
    units = unit_rows(points)
    best = np.pi
    for size in (1, 2, 3):
        for few in combinations(range(len(units)), size):
            some = units[list(few)]
            # The axis with equal cosines to all of them, within their span.
            axis = some.T @ np.linalg.lstsq(some @ some.T, np.ones(size), rcond=None)[0]
            length = np.linalg.norm(axis)
            if length > 0:
                best = min(best, np.arccos(np.clip(units @ (axis / length), -1, 1).min()))
    return best


def smallest_cone_by_programming(points):
    """Return the axis and the angle of the smallest cone, by a general solver of equation (16)."""
    units = unit_rows(points)
    start = units.mean(axis=0)
    start /= (units @ start).min()
    found = minimize(
        lambda u: u @ u,
        start,
        jac=lambda u: 2 * u,
        constraints={"type": "ineq", "fun": lambda u: units @ u - 1, "jac": lambda u: units},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    length = np.linalg.norm(found.x)
    return found.x / length, np.arccos(1 / length)


def smallest_cone_by_least_distance(points):
    """Return axis, angle and the points on the boundary, by Lawson and Hanson's algorithm LDP for (16).

    The shortest u with units @ u >= 1 is a residual of the nonnegative least-squares problem with the points
    as columns, above a row of ones.
    """
    units = unit_rows(points)
    system = np.vstack([units.T, np.ones(len(units))])
    target = np.zeros(len(system))
    target[-1] = 1.0
    weights, _ = nnls(system, target)
    left = system @ weights - target
    u = -left[:-1] / left[-1]
    length = np.linalg.norm(u)
    return u / length, np.arccos(1 / length), np.flatnonzero(weights)
