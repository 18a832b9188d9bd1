"""Initial components, found in the subspace of the leading singular vectors, where there is little noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._random import Seed
from nonneg._registry import Entry, Registry
from nonneg._typing import FloatArray
from nonneg.data import DataMatrix, as_data_matrix
from nonneg.minvol.descent import minimize_volume
from nonneg.minvol.dual import mv_dual
from nonneg.minvol.noise import NoiseLevel
from nonneg.minvol.problem import Problem, contrasts
from nonneg.separable.preprocessing import projected
from nonneg.separable.snpa import snpa
from nonneg.separable.vca import vca

# Evenly spaced samples among which the initialization looks; the iterations use all.
MAX_SAMPLES = 20_000
# Iterations in the subspace; they start the search and do not need to converge.
MAX_ITER, TOL = 60, 1e-2
# Objectives that differ by less than this share of the weight are tied, so that rounding does not choose.
TIED = 1e-3


@dataclass(frozen=True)
class Init(Entry):
    """An initialization."""

    seeded: bool = False  # whether it draws random numbers


@dataclass(frozen=True)
class Reduced:
    """Samples in the subspace of the leading singular vectors."""

    points: FloatArray
    basis: FloatArray  # one column per dimension
    k: int
    noise: NoiseLevel
    constraint: str

    @classmethod
    def of(cls, data: DataMatrix, k: int, noise: NoiseLevel, constraint: str) -> Reduced:
        """Reduce samples."""
        points = to_float64(_entries(projected(data, noise.basis)))
        if len(points) > MAX_SAMPLES:
            points = points[np.linspace(0, len(points) - 1, MAX_SAMPLES).astype(np.intp)]
        return cls(points, noise.basis, k, noise, constraint)

    def problem(self) -> Problem:
        """Return the problem of these samples, without signs."""
        return Problem(
            as_data_matrix(self.points),
            lam=self.noise.weight(len(self.points)),
            delta=self.noise.sigma**2,
            nonnegative=False,
            constraint=self.constraint,
        )


def _entries(data: DataMatrix) -> Any:
    return np.concatenate([to_float64(block.dense_rows(0, block.shape[0])) for block in data.local_blocks()])


def initial_components(
    name: str, data: DataMatrix, k: int, noise: NoiseLevel, constraint: str, rng: Seed
) -> FloatArray:
    """Return initial components by the name of an initialization."""
    reduced = Reduced.of(data, k, noise, constraint)
    return INITS.find(name).run(reduced, rng) @ noise.basis.T


def anchors(reduced: Reduced, rng: Seed = None) -> FloatArray:
    """Return the samples that successive nonnegative projections select."""
    # Of a simplex that holds the origin in its plane, plain projections find one vertex less.
    return _completed(reduced, snpa(as_data_matrix(reduced.points), reduced.k).anchors)


def vca_anchors(reduced: Reduced, rng: Seed = None) -> FloatArray:
    """Return the samples that vertex component analysis selects."""
    return _completed(reduced, vca(as_data_matrix(reduced.points), reduced.k, rng=rng).anchors)


def _completed(reduced: Reduced, chosen: Any) -> FloatArray:
    # Data of fewer than k distinct directions: samples in the order of their distance from the mean.
    if len(chosen) < reduced.k:
        spread = np.linalg.norm(reduced.points - reduced.points.mean(axis=0), axis=1)
        rest = [row for row in np.argsort(-spread, kind="stable") if row not in set(chosen)]
        chosen = [*chosen, *rest][: reduced.k]
    rows = reduced.points[np.asarray(chosen, dtype=np.intp)]
    missing = reduced.k - len(rows)
    return np.concatenate([rows, np.repeat(reduced.points.mean(axis=0)[None], missing, axis=0)])


def dual(reduced: Reduced, rng: Seed = None) -> FloatArray:
    """Return the simplex of largest polar volume, from that of the anchors."""
    return dual_from(reduced, anchors(reduced))


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
        found = mv_dual(flat, start, reduced.noise.sigma)
    except np.linalg.LinAlgError:  # the vertices span no simplex
        return H
    return mean + found @ directions.T if np.isfinite(found).all() else H


def _regular(points: FloatArray, vertices: FloatArray) -> FloatArray:
    """Return a simplex that is regular relative to the spread of the points, turned toward given vertices."""
    # Noise makes the simplex of the anchors flat, and facets that are nearly parallel meet far away.
    spread = points.std(axis=0)
    regular = contrasts(len(vertices), "sum-to-one").T
    U, _, Vt = np.linalg.svd(regular.T @ ((vertices - vertices.mean(axis=0)) / spread))
    return regular @ (U @ Vt) * spread


def best(reduced: Reduced, rng: Seed = None) -> FloatArray:
    """Return the result with the smallest objective of MV-Dual and of descents from anchors."""
    # Descents from anchors, which lie inside the simplex, may end in another simplex about as large, such as
    # its reflection, which samples with largest weights near 2 / k nearly fill as well; MV-Dual starts
    # outside, and fails where noise makes the first one flat. The objective says which one is better.
    problem = reduced.problem()
    first = anchors(reduced)
    found = _descended(problem, first)
    proposals = (
        dual_from(reduced, first),
        dual_from(reduced, found[1], regular=False),
        2.0 * found[1].mean(axis=0) - found[1],
    )
    runs = [found, *(_descended(problem, H) for H in proposals)]
    lowest = min(loss for loss, _ in runs)
    return next(H for loss, H in runs if loss <= lowest + TIED * problem.lam)


def _descended(problem: Problem, H: FloatArray) -> tuple[float, FloatArray]:
    run = minimize_volume(problem, H.T, max_iter=MAX_ITER, tol=TOL)
    return run.state.loss, run.state.Ht.T


INITS: Registry[Init] = Registry(
    "init",
    {
        "auto": Init(best, "the best of MV-Dual and of descents from anchors"),
        "mv-dual": Init(dual, "the simplex around the samples whose polar has the largest volume"),
        "snpa": Init(anchors, "samples selected by successive nonnegative projections"),
        "vca": Init(vca_anchors, "samples selected by vertex component analysis", seeded=True),
    },
)
