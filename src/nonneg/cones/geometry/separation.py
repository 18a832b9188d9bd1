"""Cones around axes: how far apart they are, and whether they lie in the nonnegative orthant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonneg._typing import FloatArray


@dataclass(frozen=True)
class ConeSeparation:
    """Angles between axes compared with the size angles of the cones."""

    smallest_between: float  # the smallest angle between two axes, in radians; infinite for a single cone
    required: float  # three times the largest size angle plus the second largest: the right side of (3)
    # Whether the geometric assumption (2), equivalently (3), holds: `smallest_between` > `required`.
    holds: bool
    widest_within: float  # twice the largest size angle: no two points of the same cone are farther apart
    # The smallest angle between two axes less the size angles of these two: no two points of different cones
    # are nearer.
    narrowest_gap: float
    # The two cones with the smallest angle between their axes; empty for a single cone.
    pairs: tuple[int, ...]

    @property
    def clusters_are_exact(self) -> bool:
        """Whether points of one cone are nearer to one another than to any point of another cone."""
        # This is what the proof of Lemma 1 takes from (2), and it may hold where (2) does not: then too the
        # greedy clustering returns these cones from any first point.
        return self.holds or self.widest_within < self.narrowest_gap


def angles_between(axes: FloatArray) -> FloatArray:
    """Return the angles between unit vectors."""
    angles: FloatArray = np.arccos(np.clip(axes @ axes.T, -1.0, 1.0))
    # The cosine of a small angle has lost it: where cosines are near 1, the length of the chord has not.
    for i, j in np.argwhere(np.triu(angles < 0.1, k=1)):
        chord = float(np.linalg.norm(axes[i] - axes[j]))
        angles[i, j] = angles[j, i] = 2.0 * np.arcsin(min(1.0, chord / 2.0))
    np.fill_diagonal(angles, 0.0)
    return angles


def cone_separation(axes: FloatArray, angles: FloatArray) -> ConeSeparation:
    """Test the geometric assumption (2) on given cones."""
    # Where the cones found about clusters satisfy (2), the greedy clustering returns these clusters from any
    # first point (Lemma 1), and no other clustering into as many cones satisfies (2). Where they do not, the
    # data may still satisfy (2) with other cones around the same clusters: the smallest cone around some
    # points of a cone has a smaller angle, but its axis lies elsewhere, and may lie nearer to another.
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, equations (2) and (3), Lemma 1.
    if len(angles) < 2:
        widest = 2.0 * float(angles.max(initial=0.0))
        return ConeSeparation(np.inf, 1.5 * widest, True, widest, np.inf, ())
    between = angles_between(axes)
    np.fill_diagonal(between, np.inf)
    second, first = np.sort(angles)[-2:]
    required = float(3 * first + second)
    nearest = np.unravel_index(int(np.argmin(between)), between.shape)
    gaps = between - angles[:, None] - angles[None, :]
    smallest = float(between[nearest])
    pair = tuple(sorted(int(i) for i in nearest))
    return ConeSeparation(
        smallest, required, smallest > required, 2.0 * float(first), float(gaps.min()), pair
    )


def largest_angles_in_orthant(axes: FloatArray) -> FloatArray:
    """Return the size angles of the widest cones around the axes that lie in the nonnegative orthant."""
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, Lemma 10.
    return np.arcsin(np.clip(axes.min(axis=1), 0.0, 1.0))
