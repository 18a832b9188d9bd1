"""Recovery bounds of successive projections and its variants, evaluated at the vertices found.

The theorems are about a model X = H W + N with a sample at every vertex and noise of norm at most eps per
sample. Here W are the vertices found, and eps is what mixtures of them leave of the samples; every sentence
says so. The distance from the span of the vertices would not do: it may be zero for samples outside the hull.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import Array, FloatArray, IntArray
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.separable.result import SelectionResult
from nonneg.separable.translated_spa import best_lift

NAME = "recovery-bound"
# Entries of sparse samples up to which mixtures are subtracted from them: seconds.
MOST_ENTRIES = 1 << 30


@dataclass(frozen=True)
class Bound:
    """An error bound: up to what noise it holds, and the error per unit of noise."""

    limit: float
    factor: float
    sigma_min: float
    longest: float


def spa_bound(vertices: FloatArray) -> Bound:
    """Return the bound of successive projections for vertices in the rows."""
    # Gillis & Vavasis (2014), Theorem 3: eps < sigma min(1 / (2 sqrt(K - 1)), 1/4) / (1 + 80 R^2 / sigma^2)
    # gives an error of at most eps (1 + 80 R^2 / sigma^2), with R the largest norm of a vertex.
    k = len(vertices)
    values = np.linalg.svd(vertices, compute_uv=False)
    longest = float(np.linalg.norm(vertices, axis=1).max())
    sigma = float(values[-1]) if k <= vertices.shape[1] else 0.0
    if not sigma > 1e-12 * longest:
        return Bound(0.0, math.inf, sigma, longest)
    factor = 1.0 + 80.0 * (longest / sigma) ** 2
    return Bound(sigma * min(1.0 / (2.0 * math.sqrt(max(1, k - 1))), 0.25) / factor, factor, sigma, longest)


def lifted_bound(vertices: FloatArray) -> Bound:
    """Return the same for vertices that are translated and lifted: where weights sum to one."""
    # A translation and a constant change neither the weights nor the noise (Barbarino & Gillis 2024).
    origin, height = best_lift(vertices)
    return spa_bound(np.column_stack([vertices - origin, np.full(len(vertices), height)]))


def translated_bound(vertices: FloatArray) -> Bound:
    """Return the same for successive projections from the first vertex as origin."""
    # Relative to the first vertex found, the others are K - 1 vertices whose weights sum to at most one. The
    # noise grows by the error of the first vertex.
    first = first_vertex_bound(vertices)
    others = spa_bound(vertices[1:] - vertices[0])
    share = 1.0 + first.factor
    factor = max(first.factor, share * others.factor)
    return Bound(min(first.limit, others.limit / share), factor, others.sigma_min, others.longest)


def first_vertex_bound(vertices: FloatArray) -> Bound:
    """Return the bound for the first vertex of successive projections, better by a condition number."""
    # With d the smallest distance of two vertices (the origin among them) and R the largest norm, a sample
    # x = h W + n of norm at least R - eps has ||h W|| >= R - 2 eps. The variance sum_j h_j ||w_j - h W||^2 is
    # at most R^2 - (R - 2 eps)^2 <= 4 R eps and at least (1 - max h) d^2 / 2: max h >= 1 - 8 R eps / d^2. For
    # eps <= d^2 / (16 R) this is at least 1/2. The mean of the others is within sqrt(4 R eps / (h - h^2)) of
    # that vertex then, and ||x - w|| <= eps (1 + 8 R / d): of the order of Barbarino & Gillis (2024).
    points = np.concatenate([vertices, np.zeros((1, vertices.shape[1]))])
    gaps = np.linalg.norm(points[:, None, :] - points[None, :, :], axis=2)
    nearest = float(np.min(gaps + np.where(np.eye(len(points)) > 0, np.inf, 0.0)))
    longest = float(np.linalg.norm(vertices, axis=1).max())
    if not nearest > 1e-12 * longest:
        return Bound(0.0, math.inf, nearest, longest)
    return Bound(nearest**2 / (16.0 * longest), 1.0 + 8.0 * longest / nearest, nearest, longest)


BOUNDS: dict[str, tuple[Callable[[FloatArray], Bound], str]] = {
    "spa": (spa_bound, "successive projections (Gillis & Vavasis 2014, Theorem 3)"),
    "translated-spa": (translated_bound, "translated SPA (Barbarino & Gillis 2024)"),
    "lifted-spa": (lifted_bound, "translated and lifted SPA (Barbarino & Gillis 2024)"),
    "pp-spa": (lifted_bound, "pseudo-point SPA (Jin et al. 2024), by way of lifted SPA"),
}


def bound_statement(found: SelectionResult, vertices: FloatArray, points: DataMatrix) -> Statement | None:
    """State the recovery bound of a method; None where there is none."""
    n_samples, n_features = points.shape
    if found.n_components < 2:
        return None
    if found.method in ("smoothed-spa", "smoothed-vca") and "noise" in found.facts:
        return _averaged_noise(found, vertices, n_samples)
    if found.method not in BOUNDS:
        return None
    if points.container == "sparse" and n_samples * n_features > MOST_ENTRIES:
        return None
    function, name = BOUNDS[found.method]
    noise = mixture_noise(points, vertices, sum_to_one=found.method != "spa")
    if found.components is not None:  # averages are rounded to the precision of the data
        eps: Any = points.xp.finfo(points.dtype).eps
        noise += float(eps) * float(np.linalg.norm(vertices, axis=1).max())
    if found.method == "pp-spa" and found.facts:
        noise = _pseudo_point_noise(found, noise, len(vertices), n_samples)
    bound = function(vertices)
    quantities = {
        "noise": noise, "noise_limit": bound.limit, "sigma_min": bound.sigma_min, "longest": bound.longest,
    }  # fmt: skip
    rests = "with the vertices found, and what mixtures of them leave of the samples as noise"
    error = noise * bound.factor
    if noise < bound.limit:
        sentence = (
            f"If every vertex has a sample, {name} finds all within {error:.4g} of the true ones, for noise "
            f"of norm up to {noise:.4g} per sample ({rests}); the limit is {bound.limit:.4g}."
        )
        return Statement(NAME, sentence, error, bound.longest, Verdict.HOLDS, quantities)
    sentence = (
        f"The guarantee of {name} is for noise of norm below {bound.limit:.4g} per sample, but {noise:.4g} "
        f"is left ({rests}): it says nothing here."
    )
    return Statement(NAME, sentence, None, bound.limit, Verdict.NOT_VERIFIABLE, quantities)


def mixture_noise(points: DataMatrix, vertices: FloatArray, *, sum_to_one: bool) -> float:
    """Return a bound on the distance of a sample from the mixtures of vertices, in one pass."""
    # The least-squares weights are moved into the simplex; any weights in it give a bound. Without
    # `sum_to_one` their sum is at most one.
    origin = vertices.mean(axis=0) if sum_to_one else np.zeros(vertices.shape[1])
    inverse = np.linalg.pinv(vertices - origin)
    _, (found,) = points.map_reduce_rows(
        _left_by_mixtures,
        n_out=0,
        origin=points.to_device(origin),
        inverse=points.to_device(inverse),
        vertices=points.to_device(vertices),
        sum_to_one=sum_to_one,
    )
    noise, longest = np.max(found, axis=0)
    # Each entry of a mixture is a sum of products.
    return float(noise) + 4.0 * len(vertices) * float(np.finfo(np.float64).eps) * float(longest)


def _left_by_mixtures(
    block: LocalMatrix, *, origin: Array, inverse: Array, vertices: Array, sum_to_one: bool
) -> tuple[tuple[()], tuple[list[Any]]]:
    xp, found = block.xp, [(0.0, 0.0)]
    origin, inverse, vertices = (xp.astype(each, xp.float64) for each in (origin, inverse, vertices))
    equal = 1.0 / vertices.shape[0] if sum_to_one else 0.0
    for start, stop in block.row_blocks(1 << 20):
        rows = xp.astype(block.dense_rows(start, stop), xp.float64)
        weights = (rows - origin) @ inverse + equal
        weights = xp.where(weights > 0, weights, xp.zeros_like(weights))
        sums = xp.sum(weights, axis=1)[:, None]
        if sum_to_one:  # all are zero where a sample is so far off that its weights are rounding
            weights = xp.where(sums > 0, weights, xp.full_like(weights, equal))
        sums = xp.where(sums > (0 if sum_to_one else 1), sums, xp.ones_like(sums))
        left = rows - weights / sums @ vertices
        squares = [xp.max(xp.sum(each * each, axis=1)) for each in (left, rows)]
        found.append((math.sqrt(float(squares[0])), math.sqrt(float(squares[1]))))
    return (), ([tuple(np.max(found, axis=0).tolist())],)


def _pseudo_point_noise(found: SelectionResult, left: float, k: int, n_samples: int) -> float:
    # A pseudo-point is within the radius of its sample, and that within the noise of its mixture.
    within = math.sqrt(k - 1) + math.sqrt(2.0 * math.log(n_samples))
    return float(found.facts["radius"]) + max(left, float(found.facts["noise"]) * within)


def _averaged_noise(found: SelectionResult, vertices: FloatArray, n_samples: int) -> Statement:
    # The mean of the rows of N in a set of p has a norm of at most ||N||_2 / sqrt(p): the lemma behind subset
    # smoothing (Bhattacharyya & Kannan 2020). ||N||_2 is that of normal noise.
    noise, p = float(found.facts["noise"]), int(found.facts["n_members"])
    largest = noise * (math.sqrt(n_samples) + math.sqrt(vertices.shape[1]))
    size = float(np.linalg.norm(vertices - vertices.mean(axis=0), axis=1).max())
    number = largest / math.sqrt(p)
    sentence = (
        f"Every vertex is an average of {p} samples, in which no noise of spectral norm {largest:.4g} "
        f"(estimated outside the span of the vertices) exceeds {number:.4g}; the vertices are up to "
        f"{size:.4g} from their mean. The published guarantee (SVCA; none for SSPA) requires noise smaller "
        f"by a power of the number of vertices and is not evaluated."
    )
    quantities = {"noise": noise, "n_members": p, "size": size}
    return Statement(NAME, sentence, number, size, Verdict.NOT_VERIFIABLE, quantities)


def isolated_statement(rows: IntArray) -> Statement:
    """State which samples were set aside because they are far from all others."""
    if not len(rows):
        sentence = "No extreme sample is isolated from all others."
        return Statement("isolated-samples", sentence, 0.0, 0.0, Verdict.HOLDS)
    named = ", ".join(str(row) for row in rows[:5]) + (", ..." if len(rows) > 5 else "")
    sentence = (
        f"{len(rows)} samples far from all others were set aside ({named}): corrupt, or of a component that "
        f"occurs in one or two samples."
    )
    return Statement("isolated-samples", sentence, float(len(rows)), 0.0, Verdict.FAILS)
