"""The smallest simplex around the pixels whatever their brightness: volume on a plane, misfit to the cone.

Dividing pixels by their sums would magnify the noise of dark ones. Instead a pixel is compared with the cone
of the endmembers, in the units of the image, where all pixels have the same noise. The endmembers lie on one
plane, that of first endmembers with their brightness: on it, mixtures have the abundances as coordinates, and
a dark endmember is a vertex like others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from nonneg._typing import FloatArray
from nonneg.data import as_data_matrix
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.minvol.descent import State, minimize_volume
from nonneg.minvol.initialization import MAX_SAMPLES, Reduced, best, dual_from
from nonneg.minvol.noise import WEIGHT as EVEN_WEIGHT
from nonneg.minvol.noise import NoiseLevel
from nonneg.minvol.problem import Fit, Problem

# Twice the weight of `minvol.noise.WEIGHT`: pixels crowd near the facets, where materials are absent. Chosen
# on generated scenes (the study `unmixing`, choosing draws).
WEIGHT = 0.5
# Starts are compared on this number of pixels, in fewer iterations.
N_COMPARED, MAX_ITER_COMPARED, TOL_COMPARED = 1500, 40, 1e-2
MAX_ITER, TOL = 60, 3e-3
# Pixels darker than this share of the median say little about the other starts, which divide by brightness.
DARK = 0.2
N_LIT = 2
# Objectives that differ by less than this share of the weight are tied, so that rounding does not choose.
TIED = 1e-3
# Starts are tried until the lowest objective is reached twice, up to this share of the weight; the last ones
# are turned at random. With six materials and no pure pixels two starts missed the lowest in 1 of 12 images.
AGREE, N_TURNED = 5e-3, 6


@dataclass(frozen=True)
class Plane:
    """The plane of the endmembers in the subspace of the pixels."""

    normal: FloatArray  # products with it are the brightness of a pixel
    origin: FloatArray
    directions: FloatArray  # orthonormal, one per column

    @classmethod
    def of(cls, endmembers: FloatArray) -> Plane:
        """Return the plane of as many endmembers as the subspace has dimensions."""
        normal = np.linalg.solve(endmembers, np.ones(len(endmembers)))
        size = float(np.linalg.norm(normal))
        # Householder's reflection of the first axis onto the normal.
        axis = normal / size
        mirror = axis.copy()
        mirror[0] += 1.0 if axis[0] >= 0 else -1.0
        reflection = np.eye(len(axis)) - 2.0 * np.outer(mirror, mirror) / float(mirror @ mirror)
        return cls(normal, axis / size, reflection[:, 1:])

    def inside(self, spectra: FloatArray) -> FloatArray:
        """Return coordinates on the plane, of spectra scaled to lie on it."""
        # The origin has none of the directions in it.
        return spectra / (spectra @ self.normal)[:, None] @ self.directions

    def outside(self, coordinates: FloatArray) -> FloatArray:
        """Return the points with these coordinates."""
        return coordinates @ self.directions.T + self.origin


@dataclass(frozen=True)
class ConeProblem(Problem):
    """Minimum volume on a plane; `Ht` holds coordinates on it, one endmember per column."""

    points: FloatArray
    plane: Plane

    @classmethod
    def of(cls, points: FloatArray, plane: Plane, noise: float, weight: float = WEIGHT) -> ConeProblem:
        """Return the problem with a weight of the volume that follows from the noise."""
        lam = weight * len(points) * noise**2
        return cls(as_data_matrix(points), lam, noise**2, False, "sum-to-one", points, plane)

    def fit(self, Ht: FloatArray, W: FloatArray | None = None) -> Fit:
        """Return the best weights, which are the abundances times the brightness."""
        H = self.plane.outside(Ht.T)
        W = cone_weights(self.points, H, start=W)
        left = self.points - W @ H
        loss = 0.5 * (float(np.sum(left * left)) + self.lam * self.log_volume(Ht))
        misfit = self.plane.directions.T @ (left.T @ W)
        return Fit(W, W.T @ W, misfit, self._curvature(Ht), loss)


def cone_weights(points: FloatArray, H: FloatArray, *, start: FloatArray | None = None) -> FloatArray:
    """Return the nonnegative weights of some vectors that fit points best."""
    return np.asarray(nonnegative_least_squares(SharedGram(H @ H.T), points @ H.T, start=start))


def evenly_lit(points: FloatArray, vertices: FloatArray) -> FloatArray:
    """Give every endmember the brightness of the pixels that it dominates."""
    for _ in range(N_LIT):
        weights = cone_weights(points, vertices)
        light = (weights * np.linalg.norm(vertices, axis=1)).argmax(axis=1)
        sums = weights.sum(axis=1)
        scale = [
            float(np.median(sums[light == at])) if (light == at).any() else 1.0 for at in range(len(vertices))
        ]
        vertices = vertices * np.clip(scale, 0.2, 5.0)[:, None]
    return vertices


@dataclass(frozen=True)
class SmallestSimplex:
    """Endmembers of minimum volume for several weights of the volume, from the best of several starts."""

    points: FloatArray
    plane: Plane
    noise: float
    start: FloatArray  # coordinates on the plane
    # Whether pixels are divided by their brightness: it is a sum of many bands and has little noise, while
    # the nearest point of a cone may have any brightness. With dark materials the cone is better.
    divided: bool

    @classmethod
    def near(
        cls, points: FloatArray, first: FloatArray, plane: Plane, noise: float, *, divided: bool
    ) -> SmallestSimplex:
        """Start from endmembers that are nearly right."""
        return cls(_evenly(points, MAX_SAMPLES), plane, noise, plane.inside(first), divided)

    @classmethod
    def anywhere(
        cls,
        points: FloatArray,
        first: FloatArray,
        plane: Plane,
        sums: FloatArray,
        noise: float,
        *,
        divided: bool,
    ) -> SmallestSimplex:
        """Choose among several starts; products with `sums` are the sums of the bands of a pixel."""
        some = _evenly(points, N_COMPARED)
        # At twice the weight, the lowest simplex of six vertices was another one in some images.
        weight = EVEN_WEIGHT if divided else WEIGHT
        problem = cls(some, plane, noise, plane.inside(first), divided)._problem(weight)
        lights = [some @ sums] if divided else [some @ sums, some @ plane.normal]
        runs: list[State] = []
        for start in chain([plane.inside(first)], _other_starts(some, plane, lights, noise)):
            runs.append(minimize_volume(problem, start.T, max_iter=MAX_ITER_COMPARED, tol=TOL_COMPARED).state)
            lowest, *rest = sorted(run.loss for run in runs)
            if rest and rest[0] <= lowest + AGREE * problem.lam:
                break
        best_run = next(run for run in runs if run.loss <= lowest + TIED * problem.lam)
        return cls(_evenly(points, MAX_SAMPLES), plane, noise, best_run.Ht.T, divided)

    def at(self, weight: float) -> FloatArray:
        """Return the endmembers for a weight of the volume."""
        run = minimize_volume(self._problem(weight), self.start.T, max_iter=MAX_ITER, tol=TOL)
        return self.plane.outside(run.state.Ht.T)

    def _problem(self, weight: float) -> Problem:
        if not self.divided:
            return ConeProblem.of(self.points, self.plane, self.noise, weight)
        light = self.points @ self.plane.normal
        usual = float(np.median(light))
        bright = self.plane.inside(self.points[light > DARK * usual])
        variance = (self.noise / usual) ** 2
        return Problem(as_data_matrix(bright), weight * len(bright) * variance, variance, False, "sum-to-one")


def _other_starts(
    points: FloatArray, plane: Plane, lights: Sequence[FloatArray], noise: float
) -> Iterator[FloatArray]:
    """Yield simplices around pixels divided by their brightness: the best of `minvol`, then turned ones."""
    k = points.shape[1]
    found: list[Reduced] = []
    for light in lights:
        usual = float(np.median(light))
        bright = points[light > DARK * usual] / light[light > DARK * usual][:, None]
        if usual > 0 and len(bright) > k:
            level = NoiseLevel(noise / usual, True, np.eye(k))
            found.append(Reduced(bright, level.basis, k, level, "sum-to-one"))
    rng = np.random.default_rng(0)
    turned = (dual_from(found[0], rng.standard_normal((k, k))) for _ in range(N_TURNED if found else 0))
    for vertices in chain(map(best, found), turned):
        if np.isfinite(vertices).all() and (vertices @ plane.normal > 0).all():
            yield plane.inside(vertices)


def _evenly(points: FloatArray, n: int) -> FloatArray:
    if len(points) <= n:
        return points
    return points[np.linspace(0, len(points) - 1, n).astype(np.intp)]
