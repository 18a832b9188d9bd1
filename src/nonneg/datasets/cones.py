"""Points in circular cones around equiangular directions (Liu & Tan, the cr1-nmf paper, section VI-A)."""

from __future__ import annotations

import numpy as np

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.datasets.dataset import PlantedData, check_numbers
from nonneg.exceptions import InvalidParameterError

# Draws with a negative entry are rejected; where this many fail, the angle is too large.
MAX_DRAWS = 100
# In the paper the angle between two axes exceeds four times the size angle by this (section VI-A).
EXTRA_ANGLE = 0.01


def circular_cones(
    n_samples: int = 10_000,
    n_features: int = 1600,
    n_cones: int = 40,
    *,
    size_angle: float = 0.2,
    rng: Seed = None,
) -> PlantedData:
    """Return points in circular cones that are far apart.

    Parameters
    ----------
    n_samples : int, default 10000
        Number of points.
    n_features : int, default 1600
        Length of a point.
    n_cones : int, default 40
        Number of cones, which all have as many points on average.
    size_angle : float, default 0.2
        The largest angle between a point and the axis of its cone, in radians. The angle between any two axes
        is ``4 size_angle + 0.01``, as the paper's geometric assumption requires.
    rng : None, int or numpy.random.Generator
        Random number generator or seed.

    Returns
    -------
    PlantedData
        `X`, the axes as `H` (unit rows), and the cone of each point as `labels`. `W` is None.

    Notes
    -----
    The angle of a point to the axis of its cone is drawn uniformly from ``(0, size_angle)``, its length from
    a Rayleigh distribution; the squared lengths have the means 1, 2, 3, ... cone by cone. Directions at that
    angle are uniform on the circle of the first unit vector, moved to the axis by a Householder reflection;
    negative entries are set to zero and the length is restored.

    References
    ----------
    .. [1] Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, Theorem 6 and section VI-A.
    """
    check_numbers(circular_cones, locals())
    if size_angle == 0:
        raise InvalidParameterError("size_angle must be a number above 0, got 0.")
    rng = generator(rng)
    axes = equiangular_directions(n_cones, n_features, 4 * size_angle + EXTRA_ANGLE, rng=rng)
    labels = rng.integers(n_cones, size=n_samples)
    radii = np.sqrt((1.0 + labels) * rng.standard_exponential(n_samples))
    angles = rng.uniform(0.0, size_angle, size=n_samples)
    X = rng.standard_normal((n_samples, n_features))
    X[:, 0] = 0.0
    X *= (np.sin(angles) / np.linalg.norm(X, axis=1))[:, None]
    X[:, 0] = np.cos(angles)
    for k, axis in enumerate(axes):
        rows = np.flatnonzero(labels == k)
        X[rows] = _reflected(X[rows], axis)
    np.maximum(X, 0.0, out=X)
    X *= (radii / np.linalg.norm(X, axis=1))[:, None]
    return PlantedData(X=X, H=axes, labels=labels)


def equiangular_directions(
    n_directions: int, n_features: int, angle: float, *, rng: Seed = None
) -> FloatArray:
    """Return nonnegative unit vectors, one per row, with equal pairwise angles in (0, pi / 2].

    The first is proportional to 0.5 plus uniform numbers. Each other one is the shortest vector with this
    cosine to the ones before, plus a vector orthogonal to all of them with entry 1 where the first part is
    smallest, scaled to unit length.
    """
    rng = generator(rng)
    for _ in range(MAX_DRAWS):
        directions = _draw_directions(n_directions, n_features, np.cos(angle), rng)
        if directions is not None:
            return directions
    raise InvalidParameterError(
        f"{MAX_DRAWS} draws did not give {n_directions} nonnegative vectors of length {n_features} at "
        f"{angle:.4g} radians from one another. Use a smaller angle, fewer vectors or more features."
    )


def _draw_directions(count: int, length: int, cosine: float, rng: np.random.Generator) -> FloatArray | None:
    """Return the directions, or None when an entry came out negative."""
    rows = np.zeros((count, length))
    first = rng.random(length) + 0.5
    rows[0] = first / np.linalg.norm(first)
    for k in range(1, count):
        known = rows[:k]
        gram = known @ known.T
        shortest = np.linalg.solve(gram, np.full(k, cosine)) @ known
        lowest = int(np.argmin(shortest))
        free = -np.linalg.solve(gram, known[:, lowest]) @ known
        free[lowest] += 1.0
        room = 1.0 - shortest @ shortest
        # `free[lowest]` is the squared length of the projection: without it there is no direction left.
        if room <= 0 or free[lowest] <= 1e-12:
            return None
        rows[k] = shortest + np.sqrt(room / (free @ free)) * free
        if rows[k].min() < 0:
            return None
    return rows


def _reflected(points: FloatArray, axis: FloatArray) -> FloatArray:
    """Return the points mapped by the reflection that takes the first unit vector to `axis`."""
    mirror = -axis
    mirror[0] += 1.0
    squared = mirror @ mirror
    if squared == 0:
        return points
    return points - np.multiply.outer((2.0 / squared) * (points @ mirror), mirror)
