"""Endmembers of images as they are: dark materials, corrupt pixels, with pure pixels or without.

Several searches for pure pixels differ in how far they trust the brightness of a pixel; the one whose
endmembers explain the pixels best, with the smallest volume, is kept. What it leaves, in units of the noise,
tells whether there are pure pixels. The smallest simplex around the pixels and the edges of their crowd
follow where they are better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from nonneg._ties import fixed_vectors
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.hyperspectral.cone_volume import (
    WEIGHT,
    Plane,
    SmallestSimplex,
    cone_weights,
    evenly_lit,
)
from nonneg.applications.hyperspectral.facets import facets_at_edges
from nonneg.applications.hyperspectral.noise import usual_pixels
from nonneg.applications.hyperspectral.statements import BOTH, EDGES, PURE, VOLUME, pure_statement
from nonneg.applications.hyperspectral.subspace import Subspace
from nonneg.certificates.certificate import Certificate
from nonneg.iteration import History, StopReason
from nonneg.kernels import clock
from nonneg.minvol.noise import WEIGHT as EVEN_WEIGHT
from nonneg.separable.reduced_points import ReducedPoints
from nonneg.separable.result import SelectionResult
from nonneg.separable.smoothed import smoothed_members
from nonneg.separable.vertices import aggregated

AUTO = "auto"
# Pixels within this share of the way from a vertex to the others are averaged, more of them in larger images:
# the variety within a material exceeds the noise. Chosen on generated scenes (draws 1000 to 1009 of the study
# robust-anchors, which do not report) and Moffett Field.
PURE_DEPTH = 0.15
# What is added to the brightness by which pixels are divided, in units of their noise: the more, the less
# noise of dark pixels is magnified, and the more of the brightness is left.
OFFSETS = (("sum", 1.0), ("norm", 3.0), ("sum", 4.0), ("norm", 10.0))
# Pixels that are all at pure ones leave half a square of the noise per facet. A search that leaves no more is
# kept; another one replaces it if the squares of what it leaves are smaller by the factor BETTER.
ALL_PURE, BETTER = 0.71, 0.8
DARKEST = 0.02  # pixels below this share of the median brightness do not take part in a search
# What mixtures of the purest pixels leave, over what they would leave if these were pure and the rest noise.
# Up to the first value there are pure pixels, from the second on there are none; in between, the endmembers
# are averages of both answers. The first pair is for images with many pixels near the vertices, the second
# for few (the shares of CROWD), the third for dark materials, whose brightness is known less well, and for
# materials that vary by more than noise, around which the smallest simplex is far too large. Chosen on draws
# 1075 to 1134 and from 3000 to 8059 of the study `unmixing`.
EXCESS, EXCESS_SPARSE, EXCESS_DARK_OR_VARIED = (1.25, 1.4), (1.0, 1.4), (2.2, 2.5)
CROWD = (0.15, 0.3)
N_SIMULATED = 10_000  # pixels
# If so many pixels are near the vertices, noise is small, and both answers are good. The averages of pure
# pixels lie rather inside, the smallest simplex rather outside: it gets this share (same draws).
LARGE_CROWD, LEAST_SHARE = (0.35, 0.45), 0.25
# How far pixels lie outside a facet, as a ratio of mean square and mean in units of the noise: 1.06 if they
# fill the simplex evenly, 1.25 if they crowd on the facet. Below, the simplex is too large. The limit for
# images with dark materials was chosen on draws 1020 to 1039 of the study `unmixing`.
OUTSIDE_RATIO, OUTSIDE_RATIO_DARK = 1.25, 1.4
N_OCTAVES = 3  # the weight of the volume changes by at most this many
# The weight of the volume there: variety drives pixels out of the simplex in few directions, and so by more
# than noise of the same size (choosing draws of the study `unmixing`).
WEIGHT_VARIED = 4.0 * WEIGHT
# Materials have spectra of their own outside of the leading directions if noise explains less than a fifth of
# what the averages of their pixels have there. Samson and Moffett Field: at most a tenth; noise that
# neighboring bands share: half or more.
OWN_SPECTRA = 0.8
# A material is dark if it has less than this share of the light of the brightest one: by the purest pixels of
# both, and by all pixels in which they dominate, whose light varies less from pixel to pixel.
DARK_MATERIAL, DARK_PIXELS = 0.25, 0.5
# The brightness of endmembers follows from the pixels if none has less than this share of the brightest one.
DIM = 0.2
# Pixels are near a vertex beyond this abundance. If more than CROWDED of them are, as in images with areas of
# one material, the smallest simplex is too large at the vertices, and the edges of the crowds are better. The
# second share is for materials that vary by more than noise, which blurs the edges. Edges that lie outside
# the crowds, with less than CROWD_KEPT of them near their vertices, are wrong (draws 1075 to 1104 and 5000 to
# 5029).
NEAR_VERTEX, CROWDED, CROWDED_VARIED, CROWD_KEPT = 0.9, 0.15, 0.25, 0.9
# How far a vertex may lie from the average of its pure pixels: in deviations of the noise, and as a share of
# the way to the next material.
CLOSE_NOISE, CLOSE_SHARE = 6.0, 0.2


@dataclass(frozen=True)
class Found:
    """Endmembers in the subspace."""

    how: str
    vertices: FloatArray
    members: list[IntArray] | None = None  # the pixels that each one is the average of


def robust_endmembers(
    spectra: FloatArray, k: int, *, ones: FloatArray | None = None
) -> SelectionResult | None:
    """Find endmembers; None if the pixels are too few or have too few dimensions."""
    # Products with `ones` are the sums of the bands, for pixels in leading directions.
    started, history = clock.seconds(), History()
    usual = np.flatnonzero(usual_pixels(spectra, k))
    ones = np.ones(spectra.shape[1]) if ones is None else ones
    space = Subspace.of(np.asarray(spectra[usual], dtype=np.float64), k, ones)
    if space is None or k == 1 or len(usual) < 10 * k:
        return None
    first = _pure_pixels(space, k)
    if first is None:
        return None
    misfit = _misfit(space, first.vertices)
    # Nothing is expected to be left if all pixels are deep inside.
    excess = misfit / max(_expected_misfit(space, first.vertices), 1e-12)
    limit, share = _volume_share(space, first.vertices, excess)
    if share < 1.0:
        found, components = _from_pure_pixels(spectra, usual, space, first, ones)
    if share > 0.0:
        volume = _smallest_simplex(space, first.vertices)
        around = volume.vertices @ space.basis.T
        components = around if share == 1.0 else _blended(components, around, share)
        found = volume if share == 1.0 else Found(BOTH, components @ space.basis, first.members)
    if found is not first:  # averages of pure pixels have the brightness of these
        components = components * _brightness(space, found.vertices)[:, None]
    history.record(1, clock.seconds() - started, {"misfit": misfit})
    members = found.members
    if members is None:
        weights = cone_weights(space.points, found.vertices)
        members = [order[:1] for order in np.argsort(-weights, axis=0, kind="stable").T]
    return SelectionResult(
        anchors=usual[np.array([rows[0] for rows in members])],
        method=AUTO,
        components=components,
        history=history,
        n_iter=1,
        stop_reason=StopReason.FOUND,
        certificate=Certificate((pure_statement(misfit, excess, limit, found.how),)),
        facts={
            "how": found.how,
            "misfit": misfit,
            "excess": excess,
            "noise": space.noise,
            "isolated": np.setdiff1d(np.arange(len(spectra)), usual),
        },
    )


def _from_pure_pixels(
    spectra: FloatArray, usual: IntArray, space: Subspace, first: Found, ones: FloatArray
) -> tuple[Found, FloatArray]:
    """Return averages of pure pixels, corrected by another fit where that is better, and their spectra."""
    if space.varied and _crowded(space, first.vertices):
        # Areas of one material that varies: averages of the pixels as they are, in all directions, unless
        # noise explains the rest and the edges confirm the pure pixels.
        groups: list[IntArray] = [usual[rows] for rows in first.members or ()]
        averages, share = _average_spectra(spectra, groups, ones, space.basis)
        found = first if share >= OWN_SPECTRA else _corrected(space, first, all_near=True)
        return found, averages if found is first else found.vertices @ space.basis.T
    found = first if space.exact else _corrected(space, first)
    return found, found.vertices @ space.basis.T


def _blended(pure: FloatArray, volume: FloatArray, share: float) -> FloatArray:
    """Average the directions of two sets of endmembers, with the lengths of the first."""
    lengths = np.linalg.norm(pure, axis=1, keepdims=True)
    one, other = pure / lengths, volume / np.linalg.norm(volume, axis=1, keepdims=True)
    return ((1.0 - share) * one + share * other[linear_sum_assignment(-one @ other.T)[1]]) * lengths


def _brightness(space: Subspace, vertices: FloatArray) -> FloatArray:
    """Return factors of the endmembers with which the weights of pixels sum to one as nearly as possible.

    Angles do not tell the brightness of an endmember, but abundances depend on it. The light of a pixel
    varies for other reasons as well, but if these have nothing to do with what it is made of, least squares
    find the right factors.
    """
    weights = cone_weights(space.points, vertices)
    inverse = np.linalg.lstsq(weights, np.ones(len(weights)), rcond=None)[0]
    known = inverse.min() > DIM * inverse.max()
    return 1.0 / inverse if known else np.ones(len(vertices))


def _average_spectra(
    spectra: FloatArray, members: list[IntArray], ones: FloatArray, basis: FloatArray
) -> tuple[FloatArray, float]:
    """Return the medians of groups of pixels, and which share of what lies outside is more than noise.

    The medians are those of the pixels divided by their brightness, times that of the group; outside is what
    is outside the leading directions.
    """
    found, shares = [], []
    for rows in members:
        some = np.asarray(spectra[rows], dtype=np.float64)
        light = some @ ones
        scaled = some / light[:, None]
        median = aggregated(scaled, "median")
        inside = (median @ basis) @ basis.T
        outside = median - inside
        # Outside of the leading directions a material has its own spectrum, or there is noise: what noise
        # alone would leave in the median is taken off (James & Stein, 1961). The variance of a median is
        # pi / 2 times that of a mean.
        rest = scaled - (scaled @ basis) @ basis.T
        variance = 0.5 * math.pi * float(rest.var(axis=0).sum()) / max(1, len(rows) - 1)
        size = float(outside @ outside)
        kept = max(0.0, 1.0 - variance / size) if size > 0 else 0.0
        shares.append(kept)
        found.append((inside + kept * outside) * float(np.median(light)))
    return np.stack(found), float(np.mean(shares))


def _pure_pixels(space: Subspace, k: int) -> Found | None:
    """Return the best of several searches for pure pixels."""
    best, lowest = None, math.inf
    for one in _searches(space, k):
        misfit = _misfit(space, one.vertices)
        if best is None or misfit**2 < BETTER * lowest**2:
            best, lowest = one, misfit
        if lowest <= ALL_PURE:
            break
    return best


def _searches(space: Subspace, k: int) -> Iterator[Found]:
    norms = np.linalg.norm(space.points, axis=1)
    sums = space.points @ space.sums
    sums = sums * (np.median(norms) / np.median(sums))
    unit = 0.0 if space.exact else space.noise * math.sqrt(k)
    sizes = [(sums if of == "sum" else norms) + offset * unit for of, offset in OFFSETS]
    # Pixels without noise are divided by their sums, which keeps mixtures between the endmembers.
    sizes = [*(sizes if unit else sizes[:1]), np.full(len(norms), np.median(norms))]
    for size in sizes:
        usual = float(np.median(size))
        bright = np.flatnonzero(size > DARKEST * usual)
        points = space.points[bright] / size[bright, None]
        origin = points.mean(axis=0)
        values, directions = np.linalg.eigh((points - origin).T @ (points - origin))
        directions = fixed_vectors(values[::-1][: k - 1], directions[:, ::-1][:, : k - 1])
        if directions.shape[1] < k - 1:
            continue
        noise = 0.0 if space.exact else space.noise / usual
        flat = ReducedPoints((points - origin) @ directions, bright, directions, origin, noise)
        members = smoothed_members(flat, k, PURE_DEPTH)
        if len(members) < k:
            continue
        vertices = np.stack([aggregated(flat.points[rows], "median") for rows in members])
        light = np.array([float(np.median(size[bright[rows]])) for rows in members])
        yield Found(PURE, flat.in_features(vertices) * light[:, None], [bright[rows] for rows in members])


def _misfit(space: Subspace, vertices: FloatArray) -> float:
    """Return what the cone of some vertices leaves, in noise deviations per facet."""
    left = space.points - cone_weights(space.points, vertices) @ vertices
    return math.sqrt(float(np.sum(left * left)) / (len(left) * max(1, len(vertices) - 1))) / space.noise


def _expected_misfit(space: Subspace, vertices: FloatArray) -> float:
    """Return the misfit of the same mixtures of the vertices with new noise."""
    # It depends on the angles at the vertices and on how many pixels are near them.
    chosen = np.linspace(0, len(space.points) - 1, N_SIMULATED).astype(np.intp)
    mixed = cone_weights(space.points[chosen], vertices) @ vertices
    noise = np.random.default_rng(0).standard_normal(mixed.shape)
    return _misfit(replace(space, points=mixed + space.noise * noise), vertices)


def _volume_share(space: Subspace, vertices: FloatArray, excess: float) -> tuple[float, float]:
    """Return the excess from which the smallest simplex prevails, and its share in the answer."""
    limits, least = EXCESS_DARK_OR_VARIED, 0.0
    if not space.varied and not _has_dark(space, vertices):
        crowd = _crowd(space, vertices)
        low, high = (float(np.interp(crowd, CROWD, ends)) for ends in zip(EXCESS_SPARSE, EXCESS, strict=True))
        limits, least = (low, high), LEAST_SHARE * float(np.interp(crowd, LARGE_CROWD, (0.0, 1.0)))
    return 0.5 * (limits[0] + limits[1]), max(least, float(np.interp(excess, limits, (0.0, 1.0))))


def _has_dark(space: Subspace, vertices: FloatArray) -> bool:
    light = vertices @ space.sums
    if light.min() > DARK_MATERIAL * light.max():
        return False
    light = evenly_lit(space.points, vertices) @ space.sums
    return not light.min() > DARK_PIXELS * light.max()


def _lit(space: Subspace, vertices: FloatArray) -> FloatArray:
    """Return vertices with the brightness of pixels: where none is dark, all have the same."""
    if _has_dark(space, vertices):
        return evenly_lit(space.points, vertices)
    usual = float(np.median(space.points @ space.sums))
    return vertices * (usual / (vertices @ space.sums))[:, None]


def _smallest_simplex(space: Subspace, vertices: FloatArray) -> Found:
    """Return the smallest simplex around the pixels, whose weight follows from how far they lie outside."""
    dark, lit = _has_dark(space, vertices), _lit(space, vertices)
    simplex = SmallestSimplex.anywhere(
        space.points, lit, Plane.of(lit), space.sums, space.noise, divided=not dark
    )
    weight = _volume_weight(space, simplex, OUTSIDE_RATIO_DARK if dark else OUTSIDE_RATIO)
    return Found(VOLUME, simplex.at(weight if dark else _shrunk(weight)))


def _corrected(space: Subspace, first: Found, all_near: bool = False) -> Found:
    """Return averages of pure pixels corrected by the smallest simplex or by the edges of their crowd."""
    lit = _lit(space, first.vertices)
    plane = Plane.of(lit)
    crowded = _crowded(space, lit)
    divided = not crowded and not _has_dark(space, first.vertices)
    simplex = SmallestSimplex.near(space.points, lit, plane, space.noise, divided=divided)
    vertices = simplex.at(WEIGHT_VARIED if space.varied else WEIGHT)
    if crowded:
        vertices = facets_at_edges(space.points, vertices, plane.normal, space.noise)
        if _crowd(space, vertices) < CROWD_KEPT * _crowd(space, lit):
            return first
    corrected = _averaged(space, lit, vertices, all_near)
    return first if corrected is None else Found(EDGES if crowded else BOTH, corrected, first.members)


def _volume_weight(space: Subspace, simplex: SmallestSimplex, ratio: float) -> float:
    """Return the weight of the volume that leaves pixels outside as noise does."""

    def excess(weight: float) -> float:
        return math.log(max(_outside_ratio(space, simplex.at(weight)), 1e-3) / ratio)

    # The ratio grows with the weight: octaves until it is passed, then by interpolation.
    weight, rest = WEIGHT, excess(WEIGHT)
    rising = rest < 0
    for _ in range(N_OCTAVES):
        other = weight * (2.0 if rising else 0.5)
        there = excess(other)
        if (there < 0) != rising:
            return float(weight * (other / weight) ** (rest / (rest - there)))
        weight, rest = other, there
    return weight


def _shrunk(weight: float) -> float:
    """Move a measured weight toward that of evenly spread pixels, the more the nearer it is."""
    # Half of an octave is left of one: chosen on draws 1020 to 1034 of the study `unmixing`.
    octaves = math.log2(weight / EVEN_WEIGHT)
    return float(EVEN_WEIGHT * 2.0 ** (octaves**3 / (octaves**2 + 1.0)))


def _crowd(space: Subspace, vertices: FloatArray) -> float:
    """Return the share of the pixels that are near the vertices."""
    weights = cone_weights(space.points, vertices)
    return float(np.mean(weights.max(axis=1) > NEAR_VERTEX * weights.sum(axis=1)))


def _crowded(space: Subspace, vertices: FloatArray) -> bool:
    return _crowd(space, vertices) >= (CROWDED_VARIED if space.varied else CROWDED)


def _averaged(
    space: Subspace, pure: FloatArray, found: FloatArray, all_near: bool = False
) -> FloatArray | None:
    """Average vertices with those of another fit that are near; None if none is, or not all that must be."""
    # Averages of nearly pure pixels lie inside the simplex, the others rather outside.
    gaps = np.linalg.norm(pure[:, None, :] - found[None, :, :], axis=2)
    rows, columns = linear_sum_assignment(gaps)
    apart = np.linalg.norm(pure[:, None, :] - pure[None, :, :], axis=2)
    np.fill_diagonal(apart, np.inf)
    allowed = CLOSE_SHARE * apart.min(axis=1)
    if not all_near:
        allowed = allowed + CLOSE_NOISE * space.noise * math.sqrt(len(pure))
    near = gaps[rows, columns] <= allowed[rows]
    if not near.any() or (all_near and not near.all()):
        return None
    return np.where(near[:, None], 0.5 * (pure[rows] + found[columns]), pure[rows])


def _outside_ratio(space: Subspace, vertices: FloatArray) -> float:
    left = np.linalg.norm(space.points - cone_weights(space.points, vertices) @ vertices, axis=1)
    total = float(left.sum())
    return float(left @ left) / total / space.noise if total > 0 else 0.0
