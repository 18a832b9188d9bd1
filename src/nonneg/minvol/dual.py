"""MV-Dual: the simplex around the samples whose polar has the largest volume.

A facet of a simplex around the origin is a point theta with y'theta = 1; the samples satisfy y'theta <= 1.
The points of all facets span the polar simplex. Its volume is linear in each of them, so that one facet after
the other solves a small concave problem, here by Newton's method; then the origin moves to the centroid.
Samples outside a facet are penalized by their squared distance in units of the noise.

Abdolali, Barbarino & Gillis (2024), SIAM J. Imaging Sciences 17(4).
"""

from __future__ import annotations

import numpy as np

from nonneg._typing import FloatArray
from nonneg.minvol.noise import WEIGHT

MAX_SWEEPS = 60
MAX_NEWTON = 20
# A facet whose next step is shorter than this, or gains less than this, waits for the others.
SHORTEST, GAIN = 1e-2, 1e-4
# The vertices have settled if they move by less than this share of the size of the simplex.
SETTLED = 1e-4
# One facet at a time gets stuck at samples that it touches, unless they give way at first: the noise level
# decays from this share of the spread of the samples.
LARGEST, DECAY = 0.3, 0.8
# The origin keeps at least this share of its mean barycentric weight on every facet, so that the simplex
# stays bounded: with 0.01 it did not for five components at 20 dB.
INSIDE = 0.3


def mv_dual(points: FloatArray, vertices: FloatArray, sigma: float) -> FloatArray:
    """Return the vertices of the simplex around points in k - 1 dimensions, from those of an initial one."""
    center = vertices.mean(axis=0)
    facets = _facets_around(points, vertices, center)
    found = _vertices(facets) + center
    wide = LARGEST * float(points.std(axis=0).min())
    for _ in range(MAX_SWEEPS):
        for place in range(facets.shape[1]):
            facets = _moved(points - center, facets, place, max(sigma, wide))
        before, found = found, _vertices(facets) + center
        center = found.mean(axis=0)
        size = np.linalg.norm(found - center)
        settled = np.linalg.norm(found - before) <= SETTLED * size and wide <= sigma
        if not size < np.inf or settled:
            break
        wide *= DECAY
        facets = _polar(found, center)
    return found


def _barycentric(vertices: FloatArray) -> FloatArray:
    """Return the matrix that takes (y, 1) to the barycentric coordinates of y."""
    return np.linalg.inv(np.vstack([vertices.T, np.ones(len(vertices))]))


def _polar(vertices: FloatArray, center: FloatArray, lowest: FloatArray | float = 0.0) -> FloatArray:
    """Return the facets, moved outward to where barycentric coordinates are `lowest`, one per column."""
    coordinates = _barycentric(vertices)
    heights = coordinates[:, :-1] @ center + coordinates[:, -1] - lowest
    return -(coordinates[:, :-1] / heights[:, None]).T


def _facets_around(points: FloatArray, vertices: FloatArray, center: FloatArray) -> FloatArray:
    coordinates = _barycentric(vertices)
    lowest = (points @ coordinates[:, :-1].T + coordinates[:, -1]).min(axis=0)
    return _polar(vertices, center, np.minimum(lowest, 0.0))


def _vertices(facets: FloatArray) -> FloatArray:
    k = facets.shape[1]
    return np.stack(
        [np.linalg.solve(np.delete(facets, at, axis=1).T, np.ones(k - 1)) for at in range(k)], axis=0
    )


def _moved(points: FloatArray, facets: FloatArray, place: int, sigma: float) -> FloatArray:
    """Return the facets with one of them where the volume of the polar balances the samples outside."""
    n, d = points.shape
    wide = np.vstack([facets, np.ones(d + 1)])
    # The determinant is linear in one column: the row of the inverse times that column.
    along = np.linalg.inv(wide)[place]
    theta = facets[:, place]
    penalty = 1.0 / (2.0 * WEIGHT * n * sigma**2 * float(theta @ theta))

    def value(theta: FloatArray) -> float:
        volume = float(along[:d] @ theta + along[d])
        if volume <= 0:
            return np.inf
        outside = np.maximum(points @ theta - 1.0, 0.0)
        return -np.log(volume) + penalty * float(outside @ outside)

    def bounded(theta: FloatArray) -> bool:
        wide[:d, place] = theta
        return bool(np.linalg.solve(wide, np.eye(d + 1)[:, d]).min() > INSIDE / (d + 1))

    now = value(theta)
    for _ in range(MAX_NEWTON):
        excess = points @ theta - 1.0
        outside = points[excess > 0]
        volume = float(along[:d] @ theta + along[d])
        slope = along[:d] / volume
        gradient = -slope + 2.0 * penalty * (outside.T @ excess[excess > 0])
        hessian = np.outer(slope, slope) + 2.0 * penalty * (outside.T @ outside)
        hessian += 1e-9 * np.trace(hessian) * np.eye(d)
        move = -np.linalg.solve(hessian, gradient)
        promised = float(gradient @ move)
        length, new = 1.0, value(theta + move)
        while not (new <= now + 1e-4 * length * promised and bounded(theta + length * move)):
            length *= 0.5
            if length < SHORTEST:
                return _replaced(facets, place, theta)
            new = value(theta + length * move)
        theta, now = theta + length * move, new
        if -length * promised <= GAIN:
            break
    return _replaced(facets, place, theta)


def _replaced(facets: FloatArray, place: int, theta: FloatArray) -> FloatArray:
    facets = facets.copy()
    facets[:, place] = theta
    return facets
