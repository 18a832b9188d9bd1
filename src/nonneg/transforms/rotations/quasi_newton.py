"""One descent over orthogonal matrices: relative gradient, diagonal curvature, retraction and line search.

A matrix P with orthonormal columns is moved by multiplying from the left with a rotation, ``P -> R P``, where
R = exp(t E) or the polar factor of I + t E for a skew direction E.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from array_api_compat import array_namespace, is_numpy_namespace

from nonneg._typing import Array
from nonneg.exceptions import UnknownNameError
from nonneg.transforms.rotations.group import skew_part
from nonneg.transforms.rotations.line_search import LINE_SEARCHES, Point, SearchResult
from nonneg.transforms.rotations.retractions import RETRACTIONS, ExponentialRetraction, PolarRetraction


class RotationObjective(Protocol):
    """A function of matrices with orthonormal columns, as far as the descent needs it; a batch at once."""

    # A point is a tuple of arrays, of which the matrices P of shape (batch, m, p) are the first.

    def at(self, P: Array) -> Point:
        """Return the point of given matrices."""

    def value(self, point: Point) -> Array:
        """Return the values, of shape (batch,)."""

    def gradient(self, point: Point) -> Array:
        """Return G with <G, E> the derivative along exp(t E) P at t = 0, of shape (batch, m, m)."""

    def slope(self, point: Point, velocity: Array) -> Array:
        """Return the derivative for a given change of P, of shape (batch,)."""

    def curvature(self, point: Point) -> Array:
        """Return the diagonal of the quadratic model, symmetric; entries not above zero are not used."""


@dataclass(frozen=True)
class RotationStep:
    """One step of the descent."""

    point: Point  # where it led
    gradient_norm: Array  # Frobenius norm of the skew gradient before the step
    search: SearchResult  # step, value, and whether the search succeeded


def newton_direction(skew: Array, curvature: Array) -> Array:
    """Return the Newton direction of a diagonal quadratic model among skew matrices."""
    xp = array_namespace(skew)
    if is_numpy_namespace(xp):
        return np.divide(skew, -curvature, out=np.zeros_like(skew), where=curvature > 0)
    # Divided by infinity where there is no curvature.
    return -skew / xp.where(curvature > 0, curvature, xp.full_like(curvature, math.inf))


@dataclass(frozen=True)
class _Line:
    """The objective along a retraction."""

    objective: RotationObjective
    retraction: ExponentialRetraction | PolarRetraction

    def at(self, step: Array) -> Point:
        """Return the point at a step."""
        return self.objective.at(self.retraction.at(step))

    def value(self, point: Point) -> Array:
        """Return the values."""
        return self.objective.value(point)

    def slope(self, point: Point, step: Array) -> Array:
        """Return the derivatives by the step."""
        return self.retraction.slope(self.objective, point, step)


def rotation_step(
    objective: RotationObjective,
    point: Point,
    *,
    value: Array | None = None,
    line_search: str = "wolfe",
    retraction: str = "exponential",
    max_trials: int | None = None,
) -> RotationStep:
    """Make one quasi-Newton step."""
    if line_search not in LINE_SEARCHES:
        raise UnknownNameError.of("line_search", line_search, LINE_SEARCHES)
    if retraction not in RETRACTIONS:
        raise UnknownNameError.of("retraction", retraction, RETRACTIONS)
    xp = array_namespace(point[0])
    skew = skew_part(objective.gradient(point))
    direction = newton_direction(skew, objective.curvature(point))
    slope = xp.sum(skew * direction, axis=(1, 2))
    norm = xp.sqrt(xp.sum(skew * skew, axis=(1, 2)))
    value = objective.value(point) if value is None else value
    line = _Line(objective, RETRACTIONS[retraction](direction, point[0]))
    trials = {} if max_trials is None else {"max_trials": max_trials}
    found = LINE_SEARCHES[line_search](line, point, value, slope, **trials)
    return RotationStep(found.point, norm, found)
