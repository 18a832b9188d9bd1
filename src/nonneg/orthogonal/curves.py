"""Curves of matrices with orthonormal columns, R(t) P, for rotations R(t) made of one skew matrix.

A search asks for several points of one curve. What they share is computed once: products E^j P while the
rotation is small, powers of E, or the eigenvectors of -E^2, of which cosine, sine and the polar factor are
functions.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.orthogonal.group import (
    exponential,
    norm_bound,
    polar,
    polar_velocity,
    polished,
    taylor_18,
    taylor_terms,
    transposed,
)

# The degree-18 polynomial is exact to rounding up to this norm.
LARGEST_TAYLOR = 1.09
# Products of full size that eigenvectors cost about as much as.
EIGENVECTOR_PRODUCTS = 6
# The binomial series of the polar factor is used up to this norm.
LARGEST_SERIES = 0.25


class Curve(Protocol):
    """Points and velocities along rotations in one direction."""

    def at(self, step: Array) -> Array:
        """Return R(t) P, for one t a problem."""

    def slope(self, gradient: Array, step: Array) -> Array:
        """Return the derivative of a function by t, from its relative gradient at the points."""


class _Shared:
    """What the points of a curve have in common."""

    def __init__(self, E: Array, P: Array, *, reads: bool) -> None:
        self.xp = array_namespace(E)
        self.E, self.P, self.reads = E, P, reads
        self.norm = norm_bound(E) if reads else math.inf
        self.products = [P]
        self._square: Any = None
        self._eigen: Any = None

    def action(self, n_terms: int) -> list[Array]:
        """Return P, E P, E^2 P and so on."""
        while len(self.products) <= n_terms:
            self.products.append(self.E @ self.products[-1])
        return self.products

    @property
    def square(self) -> Array:
        """E^2; it gives a better bound of the norm."""
        if self._square is None:
            self._square = self.E @ self.E
            if self.reads:
                fourth = self.xp.sum(self._square * self._square, axis=(-2, -1))
                # Eigenvalues come in pairs.
                self.norm = min(self.norm, float(self.xp.max((0.5 * fourth) ** 0.25)))
        return self._square

    @property
    def eigen(self) -> tuple[Array, Array, Array]:
        """Eigenvalues of -E^2, not negative, their vectors, and P in these."""
        if self._eigen is None:
            values, vectors = self.xp.linalg.eigh(-0.5 * (self.square + transposed(self.square)))
            values = self.xp.where(values > 0, values, self.xp.zeros_like(values))
            self._eigen = values[..., None], vectors, transposed(vectors) @ self.P
        return self._eigen

    def series(self, step: Array, weights: list[float]) -> Array:
        """Return the sum of weights times (t E)^j P."""
        terms = self.action(len(weights) - 1)
        t = step[:, None, None]
        found, power = weights[0] * terms[0], t
        for weight, term in zip(weights[1:], terms[1:], strict=False):
            found = found + (weight * power) * term
            power = power * t
        return found


class ExponentialCurve:
    """exp(t E) P.

    Parameters
    ----------
    E : array of shape (batch, m, m)
        Skew matrices.
    P : array of shape (batch, m, p)
        Columns are orthonormal.
    reads : bool
        Whether norms may be read to choose the cheapest way.
    """

    def __init__(self, E: Array, P: Array, *, reads: bool = True) -> None:
        self._shared = _Shared(E, P, reads=reads)
        self._powers: Any = None

    def at(self, step: Array) -> Array:
        """Return the points at given steps.

        Parameters
        ----------
        step : array of shape (batch,)
            The values of t.

        Returns
        -------
        array of shape (batch, m, p)
            With orthonormal columns.
        """
        shared = self._shared
        E, P, xp = shared.E, shared.P, shared.xp
        t = step[:, None, None]
        if not shared.reads:
            return exponential(t * E, reads=False) @ P
        m, p = P.shape[-2:]
        longest = float(xp.max(xp.abs(step)))
        n_terms = taylor_terms(shared.norm * longest, P.dtype)
        # Terms that are there already cost nothing.
        if (n_terms - len(shared.products) + 1) * p <= EIGENVECTOR_PRODUCTS * m:
            return shared.series(step, [1.0 / math.factorial(j) for j in range(n_terms + 1)])
        square = shared.square
        halvings = _halvings(shared.norm * longest)
        if halvings <= 1 and shared._eigen is None:
            if self._powers is None:
                cube = square @ E
                self._powers = E, square, cube, cube @ cube
            s = t * 2.0**-halvings
            R = taylor_18(*(s**j * power for j, power in zip((1, 2, 3, 6), self._powers, strict=True)))
            return R @ (R @ P) if halvings else R @ P
        values, vectors, coordinates = shared.eigen
        angles = t * values**0.5
        small = angles < 1e-8
        sine = xp.where(
            small, xp.ones_like(angles), xp.sin(angles) / xp.where(small, xp.ones_like(t), angles)
        )
        found = vectors @ (xp.cos(angles) * coordinates) + t * (E @ (vectors @ (sine * coordinates)))
        return polished(found)

    def slope(self, gradient: Array, step: Array) -> Array:
        """Return the derivative of a function along the curve.

        Parameters
        ----------
        gradient : array of shape (batch, m, m)
            Its relative gradient at the points.
        step : array of shape (batch,)
            Their t.

        Returns
        -------
        array of shape (batch,)
            ``<gradient, E>``.
        """
        return self._shared.xp.sum(gradient * self._shared.E, axis=(1, 2))


class PolarCurve:
    """The matrix with orthonormal columns that the polar factor of I + t E makes of P.

    Parameters
    ----------
    E : array of shape (batch, m, m)
        Skew matrices.
    P : array of shape (batch, m, p)
        Columns are orthonormal.
    reads : bool
        Whether norms may be read to choose the cheapest way.
    """

    def __init__(self, E: Array, P: Array, *, reads: bool = True) -> None:
        self._shared = _Shared(E, P, reads=reads)

    def at(self, step: Array) -> Array:
        """Return the points at given steps.

        Parameters
        ----------
        step : array of shape (batch,)
            The values of t.

        Returns
        -------
        array of shape (batch, m, p)
            (I + t E) (I - t^2 E^2)^(-1/2) P.
        """
        shared = self._shared
        E, P, xp = shared.E, shared.P, shared.xp
        t = step[:, None, None]
        if not shared.reads:
            return polar(t * E, reads=False) @ P
        weights = _polar_weights(shared.norm * float(xp.max(xp.abs(step))), P.dtype)
        if weights is not None and (len(weights) - len(shared.products)) * P.shape[-1] <= (
            EIGENVECTOR_PRODUCTS * P.shape[-2]
        ):
            return shared.series(step, weights)
        values, vectors, coordinates = shared.eigen
        half = vectors @ (coordinates / (1.0 + t * t * values) ** 0.5)
        return polished(half + t * (E @ half))

    def slope(self, gradient: Array, step: Array) -> Array:
        """Return the derivative of a function along the curve.

        Parameters
        ----------
        gradient : array of shape (batch, m, m)
            Its relative gradient at the points.
        step : array of shape (batch,)
            Their t.

        Returns
        -------
        array of shape (batch,)
            ``<gradient, K>`` with d/dt R = K R, K = E (I - t^2 E^2)^-1.
        """
        shared = self._shared
        t = step[:, None, None]
        if shared.reads:
            values, vectors, _ = shared.eigen
            velocity = shared.E @ (vectors @ (transposed(vectors) / (1.0 + t * t * values)))
        else:
            velocity = polar_velocity(shared.E, step, polar(t * shared.E, reads=False))
        return shared.xp.sum(gradient * velocity, axis=(1, 2))


CURVES: dict[str, type[ExponentialCurve] | type[PolarCurve]] = {
    "exponential": ExponentialCurve,
    "polar": PolarCurve,
}
"""The ways from a skew matrix to rotations."""


def _halvings(norm: float) -> int:
    return max(0, math.ceil(math.log2(norm / LARGEST_TAYLOR))) if norm > LARGEST_TAYLOR else 0


def _polar_weights(norm: float, dtype: Any) -> list[float] | None:
    """Return the coefficients of (1 + x) (1 - x^2)^(-1/2) up to rounding, or None where they are many."""
    if not norm <= LARGEST_SERIES:
        return None
    enough = 1e-17 if "64" in str(dtype) else 1e-8
    weights, even, j = [1.0, 1.0], 1.0, 1
    while even * norm ** (2 * (j - 1)) > enough and j < 40:
        even *= (2 * j - 1) / (2 * j)
        weights += [even, even]
        j += 1
    return weights
