"""Retractions: curves R(t) P of matrices with orthonormal columns, with rotations R(t) of one skew matrix.

A line search asks for several points of one curve. What they share is computed once: products E^j P while the
rotation is small, else eigenvectors of E'E.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.transforms.objective import VarianceObjective
from nonneg.transforms.rotations.group import newton_schulz_step, norm_bound, transposed
from nonneg.transforms.rotations.line_search import Point

# Eigenvalues of E'E are known up to the rounding of the largest. Rotations beyond this lose digits, which a
# Newton-Schulz step brings back.
LARGEST_ACCURATE = 8.0
# Products of full size up to which a power series is preferred to eigenvectors, which take as long as eight;
# fewer, because a series also reads all its terms.
EIGENVECTOR_PRODUCTS = 6
# A series with more terms is not used.
MOST_TERMS = 60
# Products E^j P that are allocated at first; the number is doubled when more are needed.
ALLOCATED = 8


class ExponentialRetraction:
    """The points exp(t E) P."""

    def __init__(self, E: Array, P: Array) -> None:
        self.xp = array_namespace(E)
        self.E, self.P = E, P
        self._terms = Powers(E, P, lambda j: 1.0 / math.factorial(j))
        self._eigen: _Eigenvectors | None = None

    def at(self, step: Array) -> Array:
        """Return the points at given steps."""
        xp, t = self.xp, step[:, None, None]
        n_terms = self._terms.n_terms(float(xp.max(xp.abs(step))))
        if n_terms is not None:
            return self._terms.point(t, n_terms)
        if self._eigen is None:
            self._eigen = _Eigenvectors(self.E, self.P)
        angles = t * self._eigen.roots
        one = xp.ones_like(angles)
        small = angles < 1e-8
        sine = xp.where(small, one, xp.sin(angles) / xp.where(small, one, angles))
        return self._eigen.combined(xp.cos(angles), sine, t)

    def slope(self, objective: VarianceObjective, point: Point, step: Array) -> Array:
        """Return the derivative of an objective along the retraction."""
        n_terms = None
        if self.P.shape[-1] < self.P.shape[-2]:
            n_terms = self._terms.n_terms(float(self.xp.max(self.xp.abs(step))))
        if n_terms is None:
            return self.xp.sum(objective.gradient(point) * self.E, axis=(1, 2))
        return objective.slope(point, self._terms.velocity(step[:, None, None], n_terms))


class PolarRetraction:
    """R(t) P with R(t) the orthogonal matrix closest to I + t E, its polar factor."""

    def __init__(self, E: Array, P: Array) -> None:
        self.xp = array_namespace(E)
        self.E, self.P = E, P
        # (1 + x) (1 - x^2)^(-1/2): two powers have one coefficient.
        self._terms = Powers(E, P, lambda j: math.comb(2 * (j // 2), j // 2) / 4.0 ** (j // 2))
        self._eigen: _Eigenvectors | None = None

    def at(self, step: Array) -> Array:
        """Return the points at given steps."""
        t = step[:, None, None]
        n_terms = self._terms.n_terms(float(self.xp.max(self.xp.abs(step))))
        if n_terms is not None:
            return self._terms.point(t, n_terms)
        if self._eigen is None:
            self._eigen = _Eigenvectors(self.E, self.P)
        return self._eigen.combined(1.0 / (1.0 + (t * self._eigen.roots) ** 2) ** 0.5, None, t)


class _Eigenvectors:
    """Functions of E'E applied to P and E P, by its eigenvectors."""

    def __init__(self, E: Array, P: Array) -> None:
        xp = array_namespace(E)
        # One matrix at a time: NumPy then computes half of a symmetric product.
        alone = E.shape[0] == 1
        one = E[0, ...] if alone else E
        square = transposed(one) @ one
        values, self.vectors = xp.linalg.eigh(square[None, ...] if alone else square)
        # The angular velocities, as a column: eigenvalues are not negative but for rounding.
        self.roots = xp.where(values > 0, values, xp.zeros_like(values))[..., None] ** 0.5
        self.coordinates = transposed(self.vectors) @ P
        self.E = E
        self.largest = float(xp.max(self.roots))
        # Worth a product of full size where P is not narrow.
        wide = 2 * P.shape[-1] > P.shape[-2]
        self.moved = E @ self.vectors if wide else None

    def combined(self, even: Array, odd: Array | None, t: Array) -> Array:
        """Return even(E'E) P + t E odd(E'E) P; the functions are the same where one is given."""
        first = even * self.coordinates
        second = first if odd is None else odd * self.coordinates
        combined = self.vectors @ first
        if self.moved is not None:
            combined = combined + t * (self.moved @ second)
        elif odd is None:
            combined = combined + t * (self.E @ combined)
        else:
            combined = combined + t * (self.E @ (self.vectors @ second))
        # Small eigenvalues are known up to the rounding of the largest.
        far = self.largest * float(array_namespace(t).max(t)) > LARGEST_ACCURATE
        return newton_schulz_step(combined) if far else combined


class Powers:
    """The series of weights times t^j E^j P; the products are made as they are needed."""

    def __init__(self, E: Array, P: Array, weight: Callable[[int], float]) -> None:
        self.E, self.P, self.weight = E, P, weight
        self.norm = norm_bound(E)
        self._enough = 1e-17 if "64" in str(P.dtype) else 1e-8
        self._products = [P]
        # One problem in NumPy: the products stand under each other, one row each, with their norms.
        self._alone = isinstance(P, np.ndarray) and P.shape[0] == 1
        self._stack: Any = None
        self._sizes: list[float] = []

    def n_terms(self, longest: float) -> int | None:
        """Return how many terms of the series matter; None where eigenvectors are cheaper."""
        m, p = self.P.shape[-2:]
        norm = self.norm * longest
        terms = (j for j in range(1, MOST_TERMS) if self.weight(j + 1) * norm ** (j + 1) <= self._enough)
        limit = next(terms, None) if norm < 1e3 else None
        # Terms that are there already cost nothing.
        if limit is None or (limit + 1 - len(self._products)) * p > EIGENVECTOR_PRODUCTS * m:
            return None
        if not self._alone:
            return limit
        for j in range(1, limit):
            self._make(j)
            # A bound of the term that comes next, by the one that is there, beside the rounding of P, whose
            # norm is the root of p.
            following = self.weight(j + 1) * self.norm * self._sizes[j - 1] * longest ** (j + 1)
            if following <= 10.0 * self._enough * math.sqrt(p):
                return j
        return limit

    def point(self, t: Array, n_terms: int) -> Array:
        """Return the series."""
        return self._series([self.weight(j) for j in range(n_terms + 1)], t, 0)

    def velocity(self, t: Array, n_terms: int) -> Array:
        """Return the derivative of the series by t."""
        return self._series([j * self.weight(j) for j in range(1, n_terms + 1)], t, 1)

    def _series(self, weights: list[float], t: Array, first: int) -> Array:
        """Return the sum of weights times t^j E^(j + first) P."""
        self._make(len(weights) + first - 1)
        if self._alone:
            # One product with the weights instead of two passes per term.
            step = float(t[0, 0, 0])
            powers = np.asarray([weight * step**j for j, weight in enumerate(weights)], dtype=self.P.dtype)
            return (powers @ self._stack[first : first + len(weights)]).reshape(self.P.shape)
        series, power = weights[0] * self._products[first], t
        for weight, term in zip(weights[1:], self._products[first + 1 :], strict=False):
            series = series + (weight * power) * term
            power = power * t
        return series

    def _make(self, last: int) -> None:
        """Make products up to a power."""
        while len(self._products) <= last:
            if not self._alone:
                self._products.append(self.E @ self._products[-1])
                continue
            j, shape = len(self._products), self.P.shape[1:]
            if self._stack is None or j == len(self._stack):
                grown = np.empty(
                    (ALLOCATED if self._stack is None else 2 * j, self.P.size), dtype=self.P.dtype
                )
                grown[:j] = self.P.reshape(1, -1) if self._stack is None else self._stack
                self._stack = grown
            before, row = self._stack[j - 1].reshape(shape), self._stack[j]
            np.matmul(self.E[0], before, out=row.reshape(shape))
            self._products.append(row)
            self._sizes.append(math.sqrt(float(np.dot(row, row))))
        if self._alone and self._stack is None:
            self._stack = self.P.reshape(1, -1)
