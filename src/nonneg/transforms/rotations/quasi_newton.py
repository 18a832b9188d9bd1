"""One descent over orthogonal matrices: relative gradient, diagonal curvature, retraction and line search.

A matrix P with orthonormal columns is moved by multiplying from the left with a rotation, ``P -> R P``, where
R = exp(t E) or the polar factor of I + t E for a skew direction E.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from array_api_compat import array_namespace, is_numpy_namespace

from nonneg._typing import Array
from nonneg.exceptions import UnknownNameError
from nonneg.kernels import skew_directions
from nonneg.transforms.rotations.group import skew_part
from nonneg.transforms.rotations.line_search import SEARCHES, Point, SearchOutcome
from nonneg.transforms.rotations.retractions import CURVES, ExponentialCurve, PolarCurve


class RotationObjective(Protocol):
    """A function of matrices with orthonormal columns, as far as the descent needs it; a batch at once."""

    # A point is a tuple of arrays, of which the matrices P of shape (batch, m, p) are the first. An objective
    # may have ``curvature_parts(point) -> products, less, least`` from which `symmetric_curvature` makes the
    # curvature, ``local(point)``: something that stands for it in one search, or None; the point that the
    # search takes is made anew; and ``whole_search(search, retraction)``: a function that makes a whole
    # search without being read, ``found(point, direction, value, slope, max_trials) -> SearchOutcome``, or
    # None.

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
    gradient_norm: Array  # frobenius norm of the skew gradient before the step
    search: SearchOutcome  # step, value, and whether the search succeeded


def newton_direction(skew: Array, curvature: Array) -> Array:
    """Return the skew direction that a diagonal quadratic model prefers."""
    xp = array_namespace(skew)
    if is_numpy_namespace(xp):
        return np.divide(skew, -curvature, out=np.zeros_like(skew), where=curvature > 0)
    # Divided by infinity where there is no curvature.
    return -skew / xp.where(curvature > 0, curvature, xp.full_like(curvature, math.inf))


@dataclass(frozen=True)
class _Line:
    """The objective along a curve."""

    objective: RotationObjective
    curve: ExponentialCurve | PolarCurve

    def at(self, step: Array) -> Point:
        """Return the point at a step."""
        return self.objective.at(self.curve.at(step))

    def value(self, point: Point) -> Array:
        """Return the values."""
        return self.objective.value(point)

    def slope(self, point: Point, step: Array) -> Array:
        """Return the derivatives by the step."""
        return self.curve.slope(self.objective, point, step)


def rotation_step(
    objective: RotationObjective,
    point: Point,
    *,
    value: Array | None = None,
    search: str = "wolfe",
    retraction: str = "exponential",
    max_trials: int | None = None,
    reads: bool = True,
) -> RotationStep:
    """Make one quasi-Newton step."""
    if search not in SEARCHES:
        raise UnknownNameError.of("search", search, SEARCHES)
    if retraction not in CURVES:
        raise UnknownNameError.of("retraction", retraction, CURVES)
    local = objective.local(point) if reads and hasattr(objective, "local") else None
    gradient = objective.gradient(point) if local is None else local.gradient(local.start)
    direction, slope, norm, bound = _direction(objective, point, gradient, reads=reads)
    whole = None if reads else getattr(objective, "whole_search", _no_search)(search, retraction)
    if whole is not None and max_trials is not None:
        outcome = whole(point, direction, objective.value(point), slope, max_trials)
        return RotationStep(outcome.point, norm, outcome)
    curve = CURVES[retraction](direction, point[0], reads=reads, norm=bound)
    line = _Line(objective if local is None else local, curve)
    options = {} if max_trials is None else {"max_trials": max_trials}
    if local is not None:
        value = local.value(local.start)
    elif value is None:
        value = objective.value(point)
    outcome = SEARCHES[search](line, point, value, slope, reads=reads, **options)
    if local is not None and outcome.point is not point:
        outcome = replace(outcome, point=objective.at(outcome.point[0]))
    return RotationStep(outcome.point, norm, outcome)


def _no_search(search: str, retraction: str) -> None:
    """Stand for an objective that leaves its searches to the descent."""


def _direction(
    objective: RotationObjective, point: Point, gradient: Array, *, reads: bool
) -> tuple[Array, Array, Array, float | None]:
    """Return the direction, its slope, the norm of the skew gradient, and a bound of the direction's norm."""
    parts = getattr(objective, "curvature_parts", None)
    if parts is not None and reads:
        products, less, least = parts(point)
        if skew_directions.serves(gradient, products):
            return skew_directions.skew_direction(gradient, products, less, least)
        curvature = symmetric_curvature(products, less, least)
    else:
        curvature = objective.curvature(point)
    xp = array_namespace(gradient)
    skew = skew_part(gradient)
    direction = newton_direction(skew, curvature)
    slope = xp.sum(skew * direction, axis=(1, 2))
    return direction, slope, xp.sqrt(xp.sum(skew * skew, axis=(1, 2))), None


def symmetric_curvature(products: Array, less: float, least: float) -> Array:
    """Return ``products + products' - less`` where it is above a number, else 0."""
    xp = array_namespace(products)
    found = products + xp.matrix_transpose(products)
    if less:
        found = found - less
    return xp.where(found > least, found, xp.zeros_like(found)) if least else found
