"""Initial components, found in the subspace of the leading singular vectors, where there is little noise.

MV-Dual is the simplex around the samples whose polar has the largest volume. A facet of a simplex around the
origin is a point theta with y'theta = 1; the samples satisfy y'theta <= 1. The points of all facets span the
polar simplex. Its volume is linear in each of them, so that one facet after the other solves a small concave
problem, here by Newton's method; then the origin moves to the centroid. Samples outside a facet are penalized
by their squared distance in units of the noise.

Abdolali, Barbarino & Gillis (2024), SIAM J. Imaging Sciences 17(4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonneg._typing import FloatArray
from nonneg.data import DataMatrix, as_data_matrix
from nonneg.minvol.descent import minimize_volume
from nonneg.minvol.noise import WEIGHT, NoiseLevel
from nonneg.minvol.problem import Problem, contrasts
from nonneg.separable.preprocessing import gathered, projected
from nonneg.separable.snpa import snpa

INITS = ("auto", "mv-dual")
"""The best of MV-Dual and of descents from anchors, or MV-Dual alone."""
# Evenly spaced samples among which the initialization looks; the iterations use all.
MAX_SAMPLES = 20_000
# Iterations in the subspace; they start the search and do not need to converge.
MAX_ITER, TOL = 60, 1e-2
# Objectives that differ by less than this share of the weight are tied, so that rounding does not choose.
TIED = 1e-3
# MV-Dual: sweeps over the facets, and Newton steps for each.
MAX_SWEEPS, MAX_NEWTON = 60, 20
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


@dataclass(frozen=True)
class Reduced:
    """Samples in the subspace of the leading singular vectors."""

    points: FloatArray
    k: int
    noise: NoiseLevel
    constraint: str


def initial_components(name: str, data: DataMatrix, k: int, noise: NoiseLevel, constraint: str) -> FloatArray:
    """Return initial components by the name of an initialization."""
    points = gathered(projected(data, noise.basis))
    if len(points) > MAX_SAMPLES:
        points = points[np.linspace(0, len(points) - 1, MAX_SAMPLES).astype(np.intp)]
    reduced = Reduced(points, k, noise, constraint)
    H = anchors(reduced)
    return (best(reduced, H) if name == "auto" else dual_from(reduced, H)) @ noise.basis.T


def anchors(reduced: Reduced) -> FloatArray:
    """Return the samples that successive nonnegative projections select."""
    # Of a simplex that holds the origin in its plane, plain projections find one vertex less.
    chosen = list(snpa(as_data_matrix(reduced.points), reduced.k).anchors)
    if len(chosen) < reduced.k:
        # Data of fewer than k distinct directions: samples in the order of their distance from the mean.
        spread = np.linalg.norm(reduced.points - reduced.points.mean(axis=0), axis=1)
        rest = [row for row in np.argsort(-spread, kind="stable") if row not in set(chosen)]
        chosen = [*chosen, *rest][: reduced.k]
    rows = reduced.points[np.asarray(chosen, dtype=np.intp)]
    missing = reduced.k - len(rows)
    return np.concatenate([rows, np.repeat(reduced.points.mean(axis=0)[None], missing, axis=0)])


def dual_from(reduced: Reduced, H: FloatArray, *, regular: bool = True) -> FloatArray:
    """Return the simplex of largest polar volume, from a regular one turned toward some vertices."""
    k, points = reduced.k, reduced.points
    if reduced.constraint == "at-most-one" or k < 2 or points.shape[1] < k - 1 or len(points) < k:
        # The polar of a simplex with a fixed vertex, or of a flat one, is not bounded.
        return H
    mean = points.mean(axis=0)
    directions = np.linalg.svd(points - mean, full_matrices=False)[2][: k - 1].T
    flat = (points - mean) @ directions
    # Samples that fill fewer directions, such as copies of one, have no simplex around them.
    if not np.linalg.norm(flat[:, -1]) > 1e-12 * np.linalg.norm(points):
        return H
    start = _regular(flat, (H - mean) @ directions) if regular else (H - mean) @ directions
    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # noise wider than the simplex: not finite
            vertices = mv_dual(flat, start, reduced.noise.sigma)
    except np.linalg.LinAlgError:  # the vertices span no simplex
        return H
    return mean + vertices @ directions.T if np.isfinite(vertices).all() else H


def _regular(points: FloatArray, vertices: FloatArray) -> FloatArray:
    """Return a simplex that is regular relative to the spread of the points, turned toward given vertices."""
    # Noise makes the simplex of the anchors flat, and facets that are nearly parallel meet far away.
    spread = points.std(axis=0)
    regular = contrasts(len(vertices), "sum-to-one").T
    U, _, Vt = np.linalg.svd(regular.T @ ((vertices - vertices.mean(axis=0)) / spread))
    return regular @ (U @ Vt) * spread


def best(reduced: Reduced, first: FloatArray) -> FloatArray:
    """Return the result with the smallest objective of MV-Dual and of descents from anchors."""
    # Descents from anchors, which lie inside the simplex, may end in another simplex about as large, such as
    # its reflection, which samples with largest weights near 2 / k nearly fill as well; MV-Dual starts
    # outside, and fails where noise makes the first one flat. The objective says which one is better.
    points, noise = reduced.points, reduced.noise
    problem = Problem(
        as_data_matrix(points), lam=noise.weight(len(points)), delta=noise.sigma**2, nonnegative=False,
        constraint=reduced.constraint,
    )  # fmt: skip
    descended = _descended(problem, first)
    proposals = (
        dual_from(reduced, first),
        dual_from(reduced, descended[1], regular=False),
        2.0 * descended[1].mean(axis=0) - descended[1],
    )
    runs = [descended, *(_descended(problem, H) for H in proposals)]
    lowest = min(loss for loss, _ in runs)
    return next(H for loss, H in runs if loss <= lowest + TIED * problem.lam)


def _descended(problem: Problem, H: FloatArray) -> tuple[float, FloatArray]:
    run = minimize_volume(problem, H.T, max_iter=MAX_ITER, tol=TOL)
    return run.state.loss, run.state.Ht.T


def mv_dual(points: FloatArray, vertices: FloatArray, sigma: float) -> FloatArray:
    """Return the vertices of the simplex around points in k - 1 dimensions, from those of an initial one."""
    center = vertices.mean(axis=0)
    coordinates = _barycentric(vertices)
    lowest = (points @ coordinates[:, :-1].T + coordinates[:, -1]).min(axis=0)
    facets = _polar(vertices, center, np.minimum(lowest, 0.0))
    corners = _vertices(facets) + center
    wide = LARGEST * float(points.std(axis=0).min())
    for _ in range(MAX_SWEEPS):
        for place in range(facets.shape[1]):
            facets = _moved(points - center, facets, place, max(sigma, wide))
        before, corners = corners, _vertices(facets) + center
        center = corners.mean(axis=0)
        size = np.linalg.norm(corners - center)
        settled = np.linalg.norm(corners - before) <= SETTLED * size and wide <= sigma
        if not size < np.inf or settled:
            break
        wide *= DECAY
        facets = _polar(corners, center)
    return corners


def _barycentric(vertices: FloatArray) -> FloatArray:
    """Return the matrix that takes (y, 1) to the barycentric coordinates of y."""
    return np.linalg.inv(np.vstack([vertices.T, np.ones(len(vertices))]))


def _polar(vertices: FloatArray, center: FloatArray, lowest: FloatArray | float = 0.0) -> FloatArray:
    """Return the facets, moved outward to where barycentric coordinates are `lowest`, one per column."""
    coordinates = _barycentric(vertices)
    heights = coordinates[:, :-1] @ center + coordinates[:, -1] - lowest
    return -(coordinates[:, :-1] / heights[:, None]).T


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
        while length >= SHORTEST and not (
            new <= now + 1e-4 * length * promised and bounded(theta + length * move)
        ):
            length *= 0.5
            new = value(theta + length * move)
        if length < SHORTEST:
            break
        theta, now = theta + length * move, new
        if -length * promised <= GAIN:
            break
    facets = facets.copy()
    facets[:, place] = theta
    return facets
