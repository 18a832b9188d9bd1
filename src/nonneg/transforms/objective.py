"""The objectives of the rotations: each is a function of the variances alone.

A rotation R moves the transformed frames X to X R'. With v the variances (sums of squares of X over virtual
realizations) an objective F(v) has the relative gradient G = 2 (X F'(v))' X.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.transforms.fused_line_search import WholeSearch, whole_search
from nonneg.transforms.likelihoods import inner_products, sum_of_logs, weighted_rows
from nonneg.transforms.local_fit import LocalFit, serves
from nonneg.transforms.rotations.line_search import Point
from nonneg.transforms.rotations.quasi_newton import symmetric_curvature
from nonneg.transforms.row_products import frames_and_variances, weighted_sums


@dataclass(frozen=True)
class VarianceObjective(ABC):
    """An objective of rotations; points are (P, X, V): transform, transformed frames and their variances."""

    data: Any  # the frames
    eps0: float  # added to the variances

    @abstractmethod
    def weights(self, V: Array) -> Array:
        """Return the derivative by each variance."""

    def at(self, P: Array) -> Point:
        """Return the point of given transforms."""
        return P, *frames_and_variances(P, self.data)

    @abstractmethod
    def curvature_parts(self, point: Point) -> tuple[Array, float, float]:
        """Return what the curvature is made of."""

    def curvature(self, point: Point) -> Array:
        """Return the diagonal of the quadratic model."""
        return symmetric_curvature(*self.curvature_parts(point))

    def gradient(self, point: Point) -> Array:
        """Return the relative gradient."""
        P, X, V = point
        xp = array_namespace(X)
        if P.shape[1] == P.shape[2]:
            return xp.matrix_transpose(weighted_rows(X, self.weights(V), 2.0, self.data)) @ X
        # X = rows P': the sum over rows is shorter this way.
        return self.forces(point) @ xp.matrix_transpose(P)

    def forces(self, point: Point) -> Array:
        """Return the derivative by P."""
        P, X, V = point
        return weighted_sums(P, X, self.weights(V), self.data, self.eps0)

    def slope(self, point: Point, velocity: Array) -> Array:
        """Return the derivative for a given change of P."""
        return inner_products(self.forces(point), velocity)

    def _of_search(self) -> dict[str, Any] | None:
        """Return what a kernel needs to know for a search; None where there is no kernel."""
        return None

    def whole_search(self, search: str, retraction: str) -> WholeSearch | None:
        """Return what makes a search in one operation."""
        known = self._of_search()
        return None if known is None else whole_search(self.data, search, retraction, **known)


@dataclass(frozen=True)
class FitObjective(VarianceObjective):
    """C as a function of the transform (41 to 45): the factors stand still."""

    inverse_model: Array  # 1 / (W H + eps0)

    def local(self, point: Point) -> LocalFit | None:
        """Return C near a point, for a search."""
        if type(self) is not FitObjective or not serves(self.data, point, self.eps0):
            return None
        weights = (2.0 * self.data.largest_entry**2 * self.inverse_model).astype("float32")
        return LocalFit(self.data, weights, point[0], self.forces(point), self.value(point))

    def _of_search(self) -> dict[str, Any] | None:
        return {"inverse": self.inverse_model} if type(self) is FitObjective else None

    def value(self, point: Point) -> Array:
        """Return C up to what does not depend on the transform."""
        return inner_products(point[2], self.inverse_model)

    def weights(self, V: Array) -> Array:
        """Return the derivative by each variance."""
        return self.inverse_model

    def curvature_parts(self, point: Point) -> tuple[Array, float, float]:
        """Return the parts of the curvature (44)."""
        return products_of(self.inverse_model, point[2]), 0.0, 0.0


@dataclass(frozen=True)
class DivergenceObjective(FitObjective):
    """I as a function of the transform: the original TL-NMF, which has no likelihood (Remark 2)."""

    def value(self, point: Point) -> Array:
        """Return I up to what does not depend on the transform."""
        V = point[2]
        xp = array_namespace(V)
        return xp.sum(V * self.inverse_model - xp.log(V + self.eps0), axis=(1, 2))

    def weights(self, V: Array) -> Array:
        """Return the derivative by each variance."""
        return self.inverse_model - 1.0 / (V + self.eps0)

    def curvature_parts(self, point: Point) -> tuple[Array, float, float]:
        """Return those of a positive curvature: that of C, and for the logarithm that of one realization."""
        V = point[2]
        return products_of(self.inverse_model + 1.0 / (V + self.eps0), V), 0.0, 0.0


@dataclass(frozen=True)
class DiagonalityObjective(VarianceObjective):
    """L as a function of the transform (46 to 50)."""

    # The variances whose weights were asked for last, and these.
    latest: list[tuple[Array, Array]] = field(default_factory=list, repr=False, compare=False)

    def _of_search(self) -> dict[str, Any]:
        return {"eps0": self.eps0}

    def value(self, point: Point) -> Array:
        """Return L without its constant."""
        return sum_of_logs(point[2], self.eps0)

    def weights(self, V: Array) -> Array:
        """Return the derivative by each variance."""
        # Gradient and curvature ask for those of the same point.
        if not self.latest or self.latest[0][0] is not V:
            self.latest[:] = [(V, 1.0 / (V + self.eps0))]
        return self.latest[0][1]

    def curvature_parts(self, point: Point) -> tuple[Array, float, float]:
        """Return the parts of the curvature (49) less one, which is zero on the diagonal."""
        V = point[2]
        twice = 2.0 * self.data.n_frames
        rounding = 8.0 * float(array_namespace(V).finfo(V.dtype).eps)
        return products_of(self.weights(V), V + self.eps0), twice, twice * rounding


def products_of(weights: Array, V: Array) -> Array:
    """Return ``weights' V``."""
    return array_namespace(V).matrix_transpose(weights) @ V
