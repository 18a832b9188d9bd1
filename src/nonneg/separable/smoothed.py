"""Smoothed methods: every vertex is an average of the samples that are extreme along one direction.

Nadisic, Gillis & Kervazo, "Smoothed separable nonnegative matrix factorization", arXiv:2110.05528: SSPA and
SVCA. The idea of averaging is that of ALLS, Bhattacharyya & Kannan (2020), SODA.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from nonneg._random import Seed, generator
from nonneg._ties import first_largest, rounded
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.iteration import History, StopReason
from nonneg.separable.reduced_points import (
    ReducedPoints,
    lifted,
    neighbor_counts,
    reduced_points,
    residual_steps,
    spread,
)
from nonneg.separable.result import SelectionResult
from nonneg.separable.spa import spa
from nonneg.separable.vertices import aggregated

# ``direction(points, basis)`` returns the unit vector of the next vertex, orthogonal to those before.
Direction: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray | None]


def smoothed_spa(
    data: DataMatrix,
    n_components: int,
    *,
    n_members: int | str = "auto",
    depth: float = 0.0,
    aggregate: str = "median",
    lift: bool = True,
) -> SelectionResult:
    """Average the samples with the largest products with the largest residual, vertex after vertex (SSPA)."""
    search = _Search("smoothed-spa", _largest_residual, both_ends=False, aggregate=aggregate)
    return _smoothed(data, n_components, search, n_members, depth, lift)


def smoothed_vca(
    data: DataMatrix,
    n_components: int,
    *,
    n_members: int | str = "auto",
    depth: float = 0.0,
    aggregate: str = "median",
    lift: bool = True,
    rng: Seed = None,
) -> SelectionResult:
    """Average the samples with the largest products with a random direction, vertex after vertex (SVCA)."""
    draws = generator(rng)

    def direction(points: FloatArray, basis: FloatArray) -> FloatArray | None:
        drawn = draws.standard_normal((points.shape[1],))
        for _ in range(2):
            drawn = drawn - basis @ (basis.T @ drawn)
        return drawn / float(np.linalg.norm(drawn))

    search = _Search("smoothed-vca", direction, both_ends=True, aggregate=aggregate)
    return _smoothed(data, n_components, search, n_members, depth, lift)


def _largest_residual(points: FloatArray, basis: FloatArray) -> FloatArray | None:
    left = points - (points @ basis) @ basis.T
    squares = np.einsum("ij,ij->i", left, left)
    best = first_largest(squares)
    # What is left of points in the span of the vertices is rounding.
    if not squares[best] > 1e-20 * np.einsum("ij,ij->i", points, points).max():
        return None
    return left[best] / math.sqrt(squares[best])


@dataclass(frozen=True)
class _Search:
    method: str
    direction: Direction
    both_ends: bool  # whether the samples at the other end of a direction count as well
    aggregate: str
    p: int = 1  # the number of samples that are averaged
    # Of these, those that lie below this share of the extreme ones are left out, but for a few.
    lowest: float = -math.inf
    few: int = 1


def _smoothed(
    data: DataMatrix,
    n_components: int,
    search: _Search,
    n_members: int | str,
    depth: float,
    lift: bool,
) -> SelectionResult:
    if n_components == 1:
        return replace(spa(data, 1), method=search.method)
    reduced = reduced_points(data, n_components, affine=lift)
    started, history = time.perf_counter(), History()
    first, p = _smoothed_vertices(reduced, n_components, search, n_members, depth, lift)
    if not first:  # all samples are equal
        return replace(spa(data, 1), method=search.method)
    members = [rows for rows, _ in first]
    scores = [score for _, score in first]
    for at, score in enumerate(scores):
        history.record(at + 1, time.perf_counter() - started, {"score": score})
    averages = _averages(reduced.points, first, search.aggregate)
    facts = {"n_members": p, "aggregate": search.aggregate, "noise": reduced.noise}
    return averaged_result(reduced, averages, members, search.method, scores, history, n_components, facts)


def smoothed_members(reduced: ReducedPoints, n_vertices: int, depth: float) -> list[IntArray]:
    """Return the samples whose median is a vertex of smoothed SPA, in the rows of the points."""
    search = _Search("smoothed-spa", _largest_residual, both_ends=False, aggregate="median")
    return [rows for rows, _ in _smoothed_vertices(reduced, n_vertices, search, "auto", depth, True)[0]]


def _smoothed_vertices(
    reduced: ReducedPoints, n_vertices: int, search: _Search, n_members: int | str, depth: float, lift: bool
) -> tuple[list[tuple[IntArray, float]], int]:
    """Return the samples of each vertex with their place along its direction, and how many are averaged."""
    points = reduced.points
    # Fewer dimensions than asked for: as many vertices as these can have.
    k = min(n_vertices, points.shape[1] + lift)
    if n_members == "auto":
        p = automatic_members(reduced, k, depth, lift)
        if depth > 0:
            # Where samples are sparse around a vertex, as around a dark one among normalized samples, this
            # number of them would reach twice as deep.
            few = min(p, math.ceil(math.log(len(points))))
            search = replace(search, lowest=1.0 - 2.0 * depth, few=few)
    else:
        p = min(int(n_members), len(points))
    search = replace(search, p=p)
    if not lift:
        return _vertices(points, k, search), p
    first = _vertices(lifted(points, 0.0, spread(points)), k, search)
    if len(first) > 1:
        averages = _averages(points, first, search.aggregate)
        first = _vertices(lifted(points, *best_lift(averages)), k, search)
    return first, p


def _averages(points: FloatArray, found: list[tuple[IntArray, float]], aggregate: str) -> FloatArray:
    return np.stack([aggregated(points[rows], aggregate) for rows, _ in found])


def best_lift(vertices: Any) -> tuple[Any, float]:
    """Return the translation and the constant that condition some vertices best."""
    # Barbarino & Gillis (2024), arXiv:2411.16195. Around their mean, the K vertices have K - 1 singular
    # values that are not zero; the constant c adds sqrt(K) c. The smallest c that does not lower the smallest
    # one leaves the largest norm smallest.
    origin = vertices.mean(axis=0)
    values = np.linalg.svd(vertices - origin, compute_uv=False)
    return origin, float(values[len(vertices) - 2]) / float(np.sqrt(len(vertices)))


def automatic_members(reduced: ReducedPoints, k: int, depth: float, lift: bool) -> int:
    """Return how many samples noise cannot tell from a vertex: the median over the vertices of SPA."""
    points = reduced.points
    n = len(points)
    if reduced.noise == 0.0:
        return 1
    steps = lifted(points, 0.0, spread(points)) if lift else points
    picks = np.array([first_largest(squares) for squares in residual_steps(steps, k)])
    near = float(np.median(neighbor_counts(points, points[picks], reduced.noise_radius)))
    # At most a quarter of an even share of the samples.
    return int(np.clip(max(near, even_members(n, k, depth)), 1, max(1, n // (4 * k))))


def even_members(n_samples: int, k: int, depth: float) -> float:
    """Return how many samples lie within a depth from a vertex, as a share of the way to the others."""
    # Of samples that fill a simplex evenly. With a depth, and a hundred samples for each, no vertex rests on
    # fewer than log n of them.
    few = min(math.log(n_samples), n_samples / 100.0)
    return max(n_samples * depth ** (k - 1), few) if depth > 0 else 0.0


def _vertices(points: FloatArray, k: int, search: _Search) -> list[tuple[IntArray, float]]:
    """Return the samples of each vertex and how far they lie along its direction."""
    basis = np.zeros((points.shape[1], 0))
    found: list[tuple[IntArray, float]] = []
    for _ in range(k):
        unit = search.direction(points, basis)
        if unit is None:
            break
        along = points @ unit
        rows = extreme_rows(along, search.p)
        if search.both_ends:
            others = extreme_rows(-along, search.p)
            # The vertices so far lie at zero.
            if abs(np.median(along[rows])) < abs(np.median(along[others])):
                rows = others
        lengths = np.abs(along[rows])
        near = int(np.sum(lengths >= search.lowest * lengths[search.few // 2]))
        rows = rows[: max(search.few, near)]
        new = _beyond(aggregated(points[rows], search.aggregate), basis)
        if new is None:
            # The samples of an earlier vertex again, one of which lies beyond their average.
            rows = rows[:1]
            new = _beyond(points[rows[0]], basis)
        if new is None:
            break
        basis = np.column_stack([basis, new])
        found.append((rows, float(np.abs(np.median(along[rows])))))
    return found


def _beyond(vertex: FloatArray, basis: FloatArray) -> FloatArray | None:
    """Return the direction of a vertex that is orthogonal to a basis; None where it lies in its span."""
    new = vertex
    for _ in range(2):
        new = new - basis @ (basis.T @ new)
    length = float(np.linalg.norm(new))
    return new / length if length > 1e-12 * float(np.linalg.norm(vertex)) else None


def extreme_rows(along: FloatArray, p: int) -> IntArray:
    """Return the places of the p largest numbers, of tied ones the first."""
    values = rounded(along)
    if p < len(values):
        level = np.partition(values, len(values) - p)[len(values) - p]
        some = np.flatnonzero(values >= level)
    else:
        some = np.arange(len(values))
    return some[np.lexsort((some, -values[some]))][:p]


def averaged_result(
    reduced: ReducedPoints,
    vertices: FloatArray,
    members: list[IntArray],
    method: str,
    scores: list[float],
    history: History,
    n_wanted: int,
    facts: dict[str, Any],
) -> SelectionResult:
    """Return the result of a method that averages; of the members of a vertex the most extreme is first."""
    complete = len(vertices) == n_wanted
    return SelectionResult(
        anchors=reduced.rows[_distinct_extremes(members)],
        method=method,
        history=history,
        scores=np.asarray(scores),
        n_iter=len(vertices),
        stop_reason=StopReason.FOUND if complete else StopReason.EXHAUSTED,
        components=reduced.in_features(vertices),
        members=tuple(reduced.rows[rows] for rows in members),
        n_passes=len(vertices),
        facts=facts | {"isolated": reduced.isolated},
    )


def _distinct_extremes(members: list[IntArray]) -> IntArray:
    # The most extreme sample is more often a pure one than the sample nearest to the average. None stands for
    # two vertices.
    taken: list[int] = []
    for rows in members:
        free = [int(row) for row in rows if int(row) not in taken]
        taken.append(free[0] if free else int(rows[0]))
    return np.asarray(taken, dtype=np.intp)
