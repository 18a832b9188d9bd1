"""C, L and I, also as functions of the transform: each depends on the variances alone.

A rotation R moves the transformed frames X to X R'. With v the variances (sums of squares of X over virtual
realizations) an objective F(v) has the relative gradient G = 2 (X F'(v))' X.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._compiled import core
from nonneg._threads import ENTRY, team_size
from nonneg._typing import Array
from nonneg.kernels import frame_rows
from nonneg.transforms.rotations.line_search import Point


def variances(X: Array, data: Any) -> Array:
    """Return the sums of squares over virtual realizations."""
    return frame_rows.sums_of_squares(X, data.n_frames, *data.row_ranges)


def likelihood(V: Array, eps0: float) -> Array:
    """Return L, the criterion of joint diagonalization (13)."""
    return V.shape[1] * V.shape[2] + sum_of_logs(V, eps0)


def sum_of_logs(V: Array, eps0: float) -> Array:
    """Return the sum of log(V + eps0)."""
    xp = array_namespace(V)
    return xp.sum(xp.log(V + eps0), axis=(1, 2))


def divergence(V: Array, inverse: Array, eps0: float) -> Array:
    """Return I, the Itakura-Saito divergence (14)."""
    xp = array_namespace(V)
    ratio = (V + eps0) * inverse
    return xp.sum(ratio - xp.log(ratio) - 1.0, axis=(1, 2))


def full_objective(V: Array, inverse: Array, eps0: float) -> Array:
    """Return C, from its own definition (4)."""
    xp = array_namespace(V)
    return xp.sum((V + eps0) * inverse - xp.log(inverse), axis=(1, 2))


def objectives(V: Array, inverse: Array, eps0: float) -> tuple[Array, Array, Array]:
    """Return C, L and I with one logarithm of the variances and one of the model."""
    xp = array_namespace(V)
    V = xp.broadcast_to(V, inverse.shape)
    compiled = core()
    if compiled is not None and all(
        isinstance(a, np.ndarray) and a.dtype == np.float64 for a in (V, inverse)
    ):
        measures, model = np.empty((3, len(V))), np.ascontiguousarray(inverse)
        compiled.objectives(np.ascontiguousarray(V), eps0, model, measures, team_size(ENTRY * V.size))
        return measures[0], measures[1], measures[2]
    shifted = V + eps0
    logs, model_logs = xp.log(shifted), xp.log(inverse)
    shifted *= inverse  # the ratio of variances and model
    shifted -= model_logs
    C = xp.sum(shifted, axis=(1, 2))
    shifted -= logs
    shifted -= 1.0
    size = V.shape[1] * V.shape[2]
    return C, size + xp.sum(logs, axis=(1, 2)), xp.sum(shifted, axis=(1, 2))


@dataclass(frozen=True)
class VarianceObjective(ABC):
    """An objective of rotations; points are (P, X, V): transform, transformed frames and their variances."""

    data: Any  # the frames
    eps0: float  # added to the variances

    @abstractmethod
    def value(self, point: Point) -> Array:
        """Return the values, up to what does not depend on the transform."""

    @abstractmethod
    def weights(self, V: Array) -> Array:
        """Return the derivative by each variance."""

    @abstractmethod
    def curvature(self, point: Point) -> Array:
        """Return the diagonal of the quadratic model."""

    def at(self, P: Array) -> Point:
        """Return the point of given transforms."""
        X = self.data.rows @ array_namespace(P).matrix_transpose(P)
        return P, X, variances(X, self.data)

    def gradient(self, point: Point) -> Array:
        """Return the relative gradient."""
        P, X, V = point
        xp = array_namespace(X)
        if P.shape[1] == P.shape[2]:
            return xp.matrix_transpose(self._weighted(X, V)) @ X
        # X = rows P': the sum over rows is shorter this way.
        return self.derivative(point) @ xp.matrix_transpose(P)

    def derivative(self, point: Point) -> Array:
        """Return the derivative by P."""
        _, X, V = point
        return array_namespace(X).matrix_transpose(self._weighted(X, V)) @ self.data.rows

    def slope(self, point: Point, velocity: Array) -> Array:
        """Return the derivative for a given change of P."""
        return array_namespace(velocity).sum(self.derivative(point) * velocity, axis=(1, 2))

    def _weighted(self, X: Array, V: Array) -> Array:
        return frame_rows.weighted_rows(X, 2.0 * self.weights(V), self.data.row_ranges[1])


@dataclass(frozen=True)
class FitObjective(VarianceObjective):
    """C as a function of the transform (41 to 45), with fixed factors."""

    inverse_model: Array  # 1 / (W H + eps0)

    def value(self, point: Point) -> Array:
        """Return C up to what does not depend on the transform."""
        return array_namespace(point[2]).sum(point[2] * self.inverse_model, axis=(1, 2))

    def weights(self, V: Array) -> Array:
        """Return the derivative by each variance."""
        return self.inverse_model

    def curvature(self, point: Point) -> Array:
        """Return the curvature (44)."""
        return _symmetric_products(self.inverse_model, point[2])


@dataclass(frozen=True)
class DiagonalityObjective(VarianceObjective):
    """L as a function of the transform (46 to 50)."""

    # The variances whose weights were asked for last, and these.
    latest: list[tuple[Array, Array]] = field(default_factory=list, repr=False, compare=False)

    def value(self, point: Point) -> Array:
        """Return L without its constant."""
        return sum_of_logs(point[2], self.eps0)

    def weights(self, V: Array) -> Array:
        """Return the derivative by each variance."""
        # Gradient and curvature ask for those of the same point.
        if not self.latest or self.latest[0][0] is not V:
            self.latest[:] = [(V, 1.0 / (V + self.eps0))]
        return self.latest[0][1]

    def curvature(self, point: Point) -> Array:
        """Return the curvature (49) less one, which is zero on the diagonal; zero where rounding is left."""
        V = point[2]
        xp = array_namespace(V)
        twice = 2.0 * self.data.n_frames
        curvature = _symmetric_products(self.weights(V), V + self.eps0) - twice
        rounding = 8.0 * float(xp.finfo(V.dtype).eps)
        return xp.where(curvature > twice * rounding, curvature, xp.zeros_like(curvature))


def _symmetric_products(weights: Array, V: Array) -> Array:
    """Return ``weights' V`` plus its transpose."""
    xp = array_namespace(V)
    products = xp.matrix_transpose(weights) @ V
    return products + xp.matrix_transpose(products)
