"""Curves of matrices with orthonormal columns, R(t) P, for rotations R(t) made of one skew matrix.

A search asks for several points of one curve. What they share is computed once: products E^j P while the
rotation is small, powers of E, or the eigenvectors of a symmetric matrix of which cosine and sine, or the
polar factor, are functions.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from array_api_compat import array_namespace

from nonneg._typing import Array, FloatArray
from nonneg.kernels.skew_tridiagonal import serves, skew_tridiagonal
from nonneg.transforms.rotations.group import (
    exponential,
    negligible,
    norm_bound,
    polar,
    polar_velocity,
    polished,
    taylor_18,
    taylor_terms,
    transposed,
)
from nonneg.transforms.rotations.inverse_root import LARGEST_RATIO, inverse_root_nodes
from nonneg.transforms.rotations.powers import Powers

# The degree-18 polynomial is exact to rounding up to this norm.
LARGEST_TAYLOR = 1.09
# Rotations that are larger lose digits, which are brought back.
LARGEST_UNPOLISHED = 8.0
# The error of an inverse root.
ROUNDING = 1e-16
# Products of full size that eigenvectors cost about as much as.
EIGENVECTOR_PRODUCTS = 6
# The same of a tridiagonal form and what is done with it.
TRIDIAGONAL_PRODUCTS = 3


class SlopedObjective(Protocol):
    """What a curve asks of an objective: two forms of its gradient at a point."""

    def gradient(self, point: tuple[Array, ...]) -> Array:
        """Return G with <G, E> the derivative along exp(t E) P at t = 0, of shape (batch, m, m)."""

    def slope(self, point: tuple[Array, ...], velocity: Array) -> Array:
        """Return the derivative for a given change of P, of shape (batch,)."""


class Curve(Protocol):
    """Points and slopes along rotations in one direction."""

    def at(self, step: Array) -> Array:
        """Return R(t) P, for one t a problem."""

    def slope(self, objective: SlopedObjective, point: tuple[Array, ...], step: Array) -> Array:
        """Return the derivative of an objective by t at its point there."""


class ExponentialCurve:
    """The points exp(t E) P."""

    def __init__(self, E: Array, P: Array, *, reads: bool = True, norm: float | None = None) -> None:
        self.xp = array_namespace(E)
        self.E, self.P, self.reads = E, P, reads
        self._norm = _known_norm(E, reads, norm)
        self._terms = Powers(E, P, self._norm, lambda j: 1.0 / math.factorial(j))
        self._enough = negligible(P.dtype)
        self._square: Any = None
        self._powers: Any = None
        self._eigen: Any = None

    def at(self, step: Array) -> Array:
        """Return the points at given steps."""
        t = step[:, None, None]
        if not self.reads:
            return exponential(t * self.E, reads=False) @ self.P
        longest = float(self.xp.max(self.xp.abs(step)))
        n_terms = self._n_terms(longest)
        if n_terms is not None:
            return self._terms.point(t, n_terms)
        if self._square is None:
            self._square = self.E @ self.E
            # A better bound of the norm: eigenvalues come in pairs.
            fourth = self.xp.sum(self._square * self._square, axis=(-2, -1))
            self._norm = min(self._norm, float(self.xp.max((0.5 * fourth) ** 0.25)))
            self._terms.norm = self._norm
        halvings = _halvings(self._norm * longest)
        if halvings <= 1 and self._eigen is None:
            return self._by_powers(t, halvings)
        return self._by_eigenvectors(t)

    def slope(self, objective: SlopedObjective, point: tuple[Array, ...], step: Array) -> Array:
        """Return the derivative of an objective along the curve."""
        n_terms = None
        if self.reads and self.P.shape[-1] < self.P.shape[-2]:
            n_terms = self._n_terms(float(self.xp.max(self.xp.abs(step))))
        if n_terms is None:
            return self.xp.sum(objective.gradient(point) * self.E, axis=(1, 2))
        return objective.slope(point, self._terms.velocity(step[:, None, None], n_terms))

    def _n_terms(self, longest: float) -> int | None:
        limit = taylor_terms(self._norm * longest, self._enough)
        return self._terms.n_terms(longest, limit, EIGENVECTOR_PRODUCTS)

    def _by_powers(self, t: Array, halvings: int) -> Array:
        if self._powers is None:
            cube = self._square @ self.E
            self._powers = self.E, self._square, cube, cube @ cube
        t = t * 2.0**-halvings
        R = taylor_18(*(t**j * power for j, power in zip((1, 2, 3, 6), self._powers, strict=True)))
        return R @ (R @ self.P) if halvings else R @ self.P

    def _by_eigenvectors(self, t: Array) -> Array:
        xp = self.xp
        if self._eigen is None:
            self._eigen = _Eigenvectors(-0.5 * (self._square + transposed(self._square)), self.E, self.P)
        eigen = self._eigen
        angles = t * eigen.roots
        one = xp.ones_like(angles)
        small = angles < 1e-8
        sine = xp.where(small, one, xp.sin(angles) / xp.where(small, one, angles))
        return eigen.combined(xp.cos(angles), sine, t)


class PolarCurve:
    """R(t) P with R(t) the orthogonal matrix closest to I + t E, its polar factor."""

    def __init__(self, E: Array, P: Array, *, reads: bool = True, norm: float | None = None) -> None:
        self.xp = array_namespace(E)
        self.E, self.P, self.reads = E, P, reads
        self._norm = _known_norm(E, reads, norm)
        self._enough = negligible(P.dtype)
        self._eigen: Any = None
        self._tridiagonal: Any = None
        # (1 + x) (1 - x^2)^(-1/2): two powers have one coefficient.
        self._terms = Powers(E, P, self._norm, lambda j: math.comb(2 * (j // 2), j // 2) / 4.0 ** (j // 2))
        self._affordable = TRIDIAGONAL_PRODUCTS if serves(E) else EIGENVECTOR_PRODUCTS

    def at(self, step: Array) -> Array:
        """Return the points at given steps."""
        t = step[:, None, None]
        if not self.reads:
            return polar(t * self.E, reads=False) @ self.P
        longest = float(self.xp.max(self.xp.abs(step)))
        limit = 2 * _binomial_terms(self._norm * longest, self._enough) + 1
        n_terms = self._terms.n_terms(longest, limit, self._affordable)
        if n_terms is not None:
            return self._terms.point(t, n_terms)
        if serves(self.E) and (form := self._form()).serves(float(step[0])):
            return form.at(float(step[0]))
        eigen = self._eigenvectors()
        scale = 1.0 / (1.0 + (t * eigen.roots) ** 2) ** 0.5
        return eigen.combined(scale, None, t)

    def slope(self, objective: SlopedObjective, point: tuple[Array, ...], step: Array) -> Array:
        """Return the derivative of an objective along the curve."""
        t = step[:, None, None]
        if not self.reads:
            velocity = polar_velocity(self.E, polar(t * self.E, reads=False)) @ point[0]
        elif serves(self.E):
            velocity = self._form().velocity(point[0], float(step[0]))
        else:
            vectors, roots = self._eigenvectors().vectors, self._eigenvectors().roots
            turned = (transposed(vectors) @ point[0]) / (1.0 + (t * roots) ** 2)
            velocity = self.E @ (vectors @ turned)
        return objective.slope(point, velocity)

    def _form(self) -> _PolarForm:
        if self._tridiagonal is None:
            self._tridiagonal = _PolarForm(self.E[0, ...], self.P[0, ...])
        found: _PolarForm = self._tridiagonal
        return found

    def _eigenvectors(self) -> _Eigenvectors:
        if self._eigen is None:
            # One matrix at a time: NumPy then computes half of a symmetric product.
            alone = self.E.shape[0] == 1
            E = self.E[0, ...] if alone else self.E
            square = transposed(E) @ E
            self._eigen = _Eigenvectors(square[None, ...] if alone else square, self.E, self.P)
        found: _Eigenvectors = self._eigen
        return found


CURVES: dict[str, type[ExponentialCurve] | type[PolarCurve]] = {
    "exponential": ExponentialCurve,
    "polar": PolarCurve,
}
"""The ways from a skew matrix to rotations."""


class _Eigenvectors:
    """Functions of -E^2 applied to P and E P, by its eigenvectors."""

    def __init__(self, negative_square: Array, E: Array, P: Array) -> None:
        xp = array_namespace(E)
        values, self.vectors = xp.linalg.eigh(negative_square)
        # The angular velocities, as a column: eigenvalues are not negative but for rounding.
        self.roots = xp.where(values > 0, values, xp.zeros_like(values))[..., None] ** 0.5
        self.coordinates = transposed(self.vectors) @ P
        self.E = E
        self.largest = float(xp.max(self.roots))
        # Worth a product of full size where P is not narrow.
        wide = 2 * P.shape[-1] > P.shape[-2]
        self.moved = E @ self.vectors if wide else None

    def combined(self, even: Array, odd: Array | None, t: Array) -> Array:
        """Return even(-E^2) P + t E odd(-E^2) P; the functions are the same where one is given."""
        first = even * self.coordinates
        second = first if odd is None else odd * self.coordinates
        found = self.vectors @ first
        if self.moved is not None:
            found = found + t * (self.moved @ second)
        elif odd is None:
            found = found + t * (self.E @ found)
        else:
            found = found + t * (self.E @ (self.vectors @ second))
        # Small eigenvalues are known up to the rounding of the largest.
        far = self.largest * float(array_namespace(t).max(t)) > LARGEST_UNPOLISHED
        return polished(found) if far else found


class _PolarForm:
    """Polar factors by a tridiagonal form of E: (I + t T) (I - t^2 T^2)^(-1/2) is a sum of inverses."""

    def __init__(self, E: FloatArray, P: FloatArray) -> None:
        self.form, self.p = skew_tridiagonal(E), P.shape[1]
        self.coordinates = self._turned(P)
        self.norm = self.form.norm_bound()

    def serves(self, t: float) -> bool:
        """Tell whether the inverse root at this step is exact to rounding."""
        return (t * self.norm) ** 2 < LARGEST_RATIO

    def at(self, t: float) -> FloatArray:
        """Return R(t) P, with an axis of one problem."""
        shifts, scales = inverse_root_nodes(1.0 + (t * self.norm) ** 2, ROUNDING)
        return self._moved(self.coordinates, t, 1.0 + shifts, scales, own=1.0)

    def velocity(self, point: FloatArray, t: float) -> FloatArray:
        """Return E (I - t^2 E^2)^-1 times a point, for t that is not 0, with an axis of one problem."""
        return self._moved(self._turned(point[0, ...]), t, np.ones(1), np.full(1, 1.0 / t), own=0.0)

    def _turned(self, P: FloatArray) -> FloatArray:
        """Return a matrix in the coordinates of the form."""
        panels = self.form.panels(P)
        self.form.turn(panels, back=False)
        return panels

    def _moved(
        self, panels: FloatArray, t: float, shifts: FloatArray, scales: FloatArray, *, own: float
    ) -> FloatArray:
        """Return a function of E times what has given coordinates, with an axis of one problem."""
        moved = self.form.solutions(panels, t, shifts, scales, own=own)
        self.form.turn(moved, back=True)
        return self.form.matrix(moved, self.p)[None, ...]


def _known_norm(E: Array, reads: bool, norm: float | None) -> float:
    if not reads:
        return math.inf
    return norm_bound(E) if norm is None else norm


def _halvings(norm: float) -> int:
    return max(0, math.ceil(math.log2(norm / LARGEST_TAYLOR))) if norm > LARGEST_TAYLOR else 0


def _binomial_terms(norm: float, enough: float) -> int:
    """Return how many terms of (1 - x^2)^(-1/2) after the first matter up to a norm below 1."""
    if norm >= 1.0:
        return 60
    n_terms, weight, size = 0, 1.0, 1.0
    while n_terms < 60 and weight * size > enough:
        n_terms += 1
        weight *= (2 * n_terms - 1) / (2 * n_terms)
        size *= norm * norm
    return n_terms
