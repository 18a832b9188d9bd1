"""C near a transform: its change along a search, whose second-order part is made in single precision.

While the factors stand still C = <P, A P> / 2 with A P = 2 (X / (W H + eps0))' rows linear in P. With D the
change of the transform the change of C is <D, A P0> + <D, A D> / 2. The first part comes with the gradient.
The second one is made in single precision, far finer than what a search decides about, and only for what
earlier trials do not tell. The point taken is then made anew in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.kernels import frame_rows
from nonneg.transforms.rotations.line_search import Point

# Operations of a product with the rows from which the change pays.
LEAST_WORK = 1 << 22
# What is left out of the change of C is at most this share of it, and mostly a ten-thousandth of that.
NEGLIGIBLE_SHARE = 1e-4
# Weights beyond this leave the range of single precision.
LARGEST_WEIGHT = 1e25


@dataclass(frozen=True)
class LocalFit:
    """C as a function of the transform near one, as far as a search needs it; points are (P, A P, C)."""

    data: Any  # the frames
    weights: FloatArray  # 2 / (W H + eps0), for rows whose largest entry is 1
    transform: FloatArray  # P0 and A P0
    forces: FloatArray
    first: FloatArray  # C there
    # Orthonormal directions and A times them, of former trials.
    known: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)

    @property
    def start(self) -> Point:
        """The point of P0."""
        return self.transform, self.forces, self.first

    def at(self, P: FloatArray) -> Point:
        """Return the point of a transform."""
        change = P - self.transform
        rest, bent, turned = change, np.zeros_like(P), np.zeros_like(P)
        # Twice: the directions of former trials are nearly those of this one.
        for direction, image in 2 * self.known:
            share = np.vdot(direction, rest)
            rest = rest - share * direction
            bent += share * image
        linear = np.vdot(change, self.forces)
        quadratic = 0.5 * (np.vdot(change, bent) + np.vdot(rest, bent))
        if self.known and self.bound(rest) <= NEGLIGIBLE_SHARE * abs(linear + quadratic):
            # A is symmetric: what is left out is the product of the rest with itself alone.
            for direction, image in self.known:
                turned += np.vdot(rest, image) * direction
            return P, self.forces + bent + turned, self.first + (linear + quadratic)
        size = float(np.sqrt(np.vdot(rest, rest)))
        if size > 0.0:
            direction = rest / size
            self.known.append((direction, self.image(direction)))
            bent += size * self.known[-1][1]
        return P, self.forces + bent, self.first + (linear + 0.5 * np.vdot(change, bent))

    def image(self, direction: FloatArray) -> FloatArray:
        """Return A times a direction, from single precision."""
        rows = self.data.single_rows
        X = rows @ direction[0].astype(np.float32).T
        weighted = frame_rows.weighted_rows(
            X[None], self.weights, np.float32(1.0), self.data.starts, self.data.counts
        )
        found: FloatArray = (weighted[0].T @ rows)[None].astype(np.float64)
        return found

    def bound(self, change: FloatArray) -> float:
        """Bound <D, A D> / 2."""
        traces = self.data.single_sizes @ self.weights[0]
        return float(0.5 * (traces @ np.einsum("ab,ab->a", change[0], change[0])))

    def value(self, point: Point) -> FloatArray:
        """Return C up to what does not depend on the transform."""
        found: FloatArray = point[2]
        return found

    def gradient(self, point: Point) -> FloatArray:
        """Return the relative gradient."""
        return (point[1][0] @ point[0][0].T)[None]

    def slope(self, point: Point, velocity: FloatArray) -> FloatArray:
        """Return the derivative for a given change of P."""
        return np.asarray([np.vdot(point[1], velocity)])


def serves(data: Any, point: Point, eps0: float) -> bool:
    """Tell whether a search is quicker with the change."""
    P, X, V = point
    return (
        hasattr(data, "starts")
        and frame_rows.serves(X)
        and frame_rows.serves(V)
        and P.shape[2] < P.shape[1]
        and X.size * P.shape[2] >= LEAST_WORK
        and data.largest_entry**2 <= LARGEST_WEIGHT * eps0
    )
