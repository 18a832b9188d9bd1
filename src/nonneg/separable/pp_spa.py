"""Pseudo-point SPA: project, replace every sample by the mean of its neighborhood, and run SPA.

Jin, Ke, Moryoussef, Tang & Wang (2024), "Improved algorithm and bounds for successive projection", ICLR.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nonneg._ties import first_largest
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.iteration import History
from nonneg.kernels import clock
from nonneg.separable.reduced_points import MIN_NEIGHBORS, lifted, neighborhoods, reduced_points, spread
from nonneg.separable.result import SelectionResult
from nonneg.separable.smoothed import averaged_result, extreme_rows
from nonneg.separable.spa import spa
from nonneg.separable.translated_spa import best_lift

# Pseudo-points are formed for this many of the most extreme samples per vertex. A pseudo-point is within the
# radius of its sample, so that the others hardly ever have the largest residual.
N_CANDIDATES = 32


def pp_spa(
    data: DataMatrix,
    n_components: int,
    *,
    radius: float | str = "auto",
    min_neighbors: int | str = "auto",
) -> SelectionResult:
    """Run lifted successive projections on means of neighborhoods, without isolated samples."""
    # The radius of a neighborhood is `NOISE_RADIUS` times the noise within the span; the paper fixes it by
    # hand. The constant that the paper appends to the points, one, becomes that of `lifted_spa`, which has
    # the unit of the data.
    if n_components == 1:
        return replace(spa(data, 1), method="pp-spa")
    few = MIN_NEIGHBORS if min_neighbors == "auto" else int(min_neighbors)
    reduced = reduced_points(data, n_components, min_neighbors=few)
    points = reduced.points
    size = reduced.noise_radius if radius == "auto" else float(radius)
    k = min(n_components, points.shape[1] + 1)
    started, history = clock.seconds(), History()
    first = _pseudo_vertices(points, k, size, np.zeros(points.shape[1]), spread(points))[0]
    lift = best_lift(first) if len(first) > 1 else (np.zeros(points.shape[1]), spread(points))
    vertices, members, scores = _pseudo_vertices(points, k, size, *lift)
    for at, score in enumerate(scores):
        history.record(at + 1, clock.seconds() - started, {"score": score})
    facts = {"radius": size, "noise": reduced.noise, "aggregate": "mean"}
    return averaged_result(reduced, vertices, members, "pp-spa", scores, history, n_components, facts)


def _pseudo_vertices(
    points: FloatArray, k: int, radius: float, origin: FloatArray, height: float
) -> tuple[FloatArray, list[IntArray], list[float]]:
    left = lifted(points, origin, height)
    n_candidates = min(N_CANDIDATES, len(points)) if radius > 0 else 1
    vertices: list[FloatArray] = []
    members: list[IntArray] = []
    scores: list[float] = []
    for _ in range(k):
        squares = np.einsum("ij,ij->i", left, left)
        if n_candidates == 1:
            extreme = np.array([first_largest(squares)])
        else:
            extreme = np.sort(np.argpartition(-squares, n_candidates - 1)[:n_candidates])
        groups = neighborhoods(points, points[extreme], radius)
        # The residual of a mean is the mean of the residuals.
        means = np.stack([left[rows].mean(axis=0) for rows in groups])
        sizes = np.einsum("ij,ij->i", means, means)
        best = int(first_largest(sizes))
        if not sizes[best] > 1e-24 * (height**2 + np.einsum("ij,ij->i", points, points).max()):
            break
        direction = means[best] / math.sqrt(sizes[best])
        vertices.append(points[groups[best]].mean(axis=0))
        along = left[groups[best]] @ direction
        members.append(groups[best][extreme_rows(along, len(along))])
        scores.append(math.sqrt(sizes[best]))
        left = left - np.outer(left @ direction, direction)
    return np.asarray(vertices).reshape(-1, points.shape[1]), members, scores
