"""Retractions: curves R(t) P of matrices with orthonormal columns, with rotations R(t) of one skew matrix.

A line search asks for several points of one curve. What they share is computed once: products E^j P while the
rotation is small, powers of E, eigenvectors of E'E, or its tridiagonal form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from array_api_compat import array_namespace

from nonneg._typing import Array, FloatArray
from nonneg.kernels.shifted_tridiagonal import sum_of_solutions
from nonneg.transforms.rotations.group import (
    TAYLOR_NORM,
    negligible,
    newton_schulz_step,
    norm_bound,
    taylor_18,
    taylor_terms,
    transposed,
)

# Eigenvalues of E'E are known up to the rounding of the largest. Rotations beyond this lose digits, which a
# Newton-Schulz step brings back.
LARGEST_ACCURATE = 8.0
# The relative error of an inverse root: below the rounding of float64.
ROUNDING = 1e-16
# Products of full size up to which a power series is preferred to eigenvectors, or to a tridiagonal form. For
# 200 x 200 matrices on an ARM core these take 7.6 and 3.7 ms, a product 0.9 ms; less than the ratios, because
# a series also reads all its terms.
EIGENVECTOR_PRODUCTS = 6
TRIDIAGONAL_PRODUCTS = 4
# For smaller matrices eigenvectors are as quick as the tridiagonal form.
SMALLEST_TRIDIAGONAL = 24
# Where eigenvalues differ more, the nodes of the inverse root lose digits that matter.
LARGEST_RATIO = 1e8
# Columns that LAPACK works on at once: of 16, 32 and 64 the quickest for 200 x 200 matrices on an ARM core.
# Products of reflections need workspace for their triangles too: without LAPACK's own number it is slow.
FORM_BLOCK, REFLECTION_BLOCK, REFLECTION_WORKSPACE = 16, 32, 65 * 64
# Products E^j P that are allocated at first; the number is doubled when more are needed.
ALLOCATED = 8


class SlopedObjective(Protocol):
    """What a retraction asks of an objective: two forms of its gradient at a point."""

    def gradient(self, point: tuple[Array, ...]) -> Array:
        """Return G with <G, E> the derivative along exp(t E) P at t = 0, of shape (batch, m, m)."""

    def slope(self, point: tuple[Array, ...], velocity: Array) -> Array:
        """Return the derivative for a given change of P, of shape (batch,)."""


class ExponentialRetraction:
    """The points exp(t E) P."""

    def __init__(self, E: Array, P: Array) -> None:
        self.xp = array_namespace(E)
        self.E, self.P = E, P
        self._norm = norm_bound(E)
        self._terms = Powers(E, P, self._norm, lambda j: 1.0 / math.factorial(j))
        self._enough = negligible(P.dtype)
        self._square: Any = None
        self._powers: Any = None
        self._eigen: Any = None

    def at(self, step: Array) -> Array:
        """Return the points at given steps."""
        t = step[:, None, None]
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
        squarings = _squarings(self._norm * longest)
        if squarings <= 1 and self._eigen is None:
            return self._by_powers(t, squarings)
        return self._by_eigenvectors(t)

    def slope(self, objective: SlopedObjective, point: tuple[Array, ...], step: Array) -> Array:
        """Return the derivative of an objective along the retraction."""
        n_terms = None
        if self.P.shape[-1] < self.P.shape[-2]:
            n_terms = self._n_terms(float(self.xp.max(self.xp.abs(step))))
        if n_terms is None:
            return self.xp.sum(objective.gradient(point) * self.E, axis=(1, 2))
        return objective.slope(point, self._terms.velocity(step[:, None, None], n_terms))

    def _n_terms(self, longest: float) -> int | None:
        limit = taylor_terms(self._norm * longest, self._enough)
        return self._terms.n_terms(longest, limit, EIGENVECTOR_PRODUCTS)

    def _by_powers(self, t: Array, squarings: int) -> Array:
        if self._powers is None:
            cube = self._square @ self.E
            self._powers = self.E, self._square, cube, cube @ cube
        t = t * 2.0**-squarings
        R = taylor_18(*(t**j * power for j, power in zip((1, 2, 3, 6), self._powers, strict=True)))
        return R @ (R @ self.P) if squarings else R @ self.P

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


class PolarRetraction:
    """R(t) P with R(t) the orthogonal matrix closest to I + t E, its polar factor."""

    def __init__(self, E: Array, P: Array) -> None:
        self.xp = array_namespace(E)
        self.E, self.P = E, P
        self._norm = norm_bound(E)
        self._enough = negligible(P.dtype)
        self._eigen: Any = None
        self._tridiagonal: _Tridiagonal | None = None
        # (1 + x) (1 - x^2)^(-1/2): two powers have one coefficient.
        self._terms = Powers(E, P, self._norm, lambda j: math.comb(2 * (j // 2), j // 2) / 4.0 ** (j // 2))
        self._affordable = TRIDIAGONAL_PRODUCTS if _Tridiagonal.is_supported(E) else EIGENVECTOR_PRODUCTS

    def at(self, step: Array) -> Array:
        """Return the points at given steps."""
        t = step[:, None, None]
        longest = float(self.xp.max(self.xp.abs(step)))
        limit = 2 * _binomial_terms(self._norm * longest, self._enough) + 1
        n_terms = self._terms.n_terms(longest, limit, self._affordable)
        if n_terms is not None:
            return self._terms.point(t, n_terms)
        if _Tridiagonal.is_supported(self.E) and (form := self._form()).is_accurate(float(step[0])):
            return form.polar(float(step[0]))
        eigen = self._eigenvectors()
        scale = 1.0 / (1.0 + (t * eigen.roots) ** 2) ** 0.5
        return eigen.combined(scale, None, t)

    def slope(self, objective: SlopedObjective, point: tuple[Array, ...], step: Array) -> Array:
        """Return the derivative of an objective along the retraction."""
        t = step[:, None, None]
        if _Tridiagonal.is_supported(self.E):
            velocity = self._form().polar_velocity(point[0], float(step[0]))
        else:
            vectors, roots = self._eigenvectors().vectors, self._eigenvectors().roots
            turned = (transposed(vectors) @ point[0]) / (1.0 + (t * roots) ** 2)
            velocity = self.E @ (vectors @ turned)
        return objective.slope(point, velocity)

    def _form(self) -> _Tridiagonal:
        if self._tridiagonal is None:
            self._tridiagonal = _Tridiagonal(self.E[0, ...], self.P[0, ...])
        return self._tridiagonal

    def _eigenvectors(self) -> _Eigenvectors:
        if self._eigen is None:
            # One matrix at a time: NumPy then computes half of a symmetric product.
            alone = self.E.shape[0] == 1
            E = self.E[0, ...] if alone else self.E
            square = transposed(E) @ E
            self._eigen = _Eigenvectors(square[None, ...] if alone else square, self.E, self.P)
        found: _Eigenvectors = self._eigen
        return found


RETRACTIONS: dict[str, type[ExponentialRetraction] | type[PolarRetraction]] = {
    "exponential": ExponentialRetraction,
    "polar": PolarRetraction,
}
"""The retractions by name."""


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
        far = self.largest * float(array_namespace(t).max(t)) > LARGEST_ACCURATE
        return newton_schulz_step(found) if far else found


class _Tridiagonal:
    """Functions of E'E applied to P by its tridiagonal form Q T Q'; for one matrix of NumPy's float64."""

    def __init__(self, E: FloatArray, P: FloatArray) -> None:
        from scipy.linalg.lapack import dsytrd

        self.E = E
        # Transposed, the symmetric matrix has LAPACK's order and is not copied.
        square = (E.T @ E).T
        form, self.diagonal, self.beside, self.scales, _ = dsytrd(
            square, lower=1, lwork=FORM_BLOCK * len(E), overwrite_a=1
        )
        # Q leaves the first coordinate alone; what it does with the others is a product of reflections.
        self.reflections = np.asfortranarray(form[1:, :-1])
        self.coordinates = self.reflected(P, "T")
        sizes = np.abs(self.beside)
        rows = np.abs(self.diagonal) + np.append(sizes, 0.0) + np.append(0.0, sizes)
        self.squared_norm = float(rows.max())

    @staticmethod
    def is_supported(E: Any) -> bool:
        """Tell whether E is one matrix of NumPy's float64 that is not small."""
        one = isinstance(E, np.ndarray) and E.dtype == np.float64 and E.shape[0] == 1
        return one and E.shape[1] >= SMALLEST_TRIDIAGONAL

    def reflected(self, A: FloatArray, transpose: str) -> FloatArray:
        """Return Q A, or Q'A where `transpose` is "T"."""
        from scipy.linalg.lapack import dormqr

        found = np.array(A, order="C")
        work = REFLECTION_BLOCK * A.shape[1] + REFLECTION_WORKSPACE
        found[1:] = dormqr("L", transpose, self.reflections, self.scales, A[1:], work)[0]
        return found

    def solutions(
        self, coordinates: FloatArray, t: float, shifts: FloatArray, scales: FloatArray
    ) -> FloatArray:
        """Return Q times the sum of scales (shifts + t^2 T)^-1 times coordinates."""
        squared = t * t
        found = sum_of_solutions(squared * self.diagonal, squared * self.beside, shifts, scales, coordinates)
        return self.reflected(found, "N")

    def is_accurate(self, t: float) -> bool:
        """Tell whether the inverse root at this step is exact to rounding."""
        return t * t * self.squared_norm < LARGEST_RATIO

    def polar(self, t: float) -> FloatArray:
        """Return (I + t E) (I + t^2 E'E)^(-1/2) P, with an axis of one problem."""
        largest = t * t * self.squared_norm
        shifts, scales = inverse_root_nodes(1.0 + largest, ROUNDING)
        found = self.solutions(self.coordinates, t, 1.0 + shifts, scales)
        found = (found + t * (self.E @ found))[None, ...]
        return newton_schulz_step(found) if largest > LARGEST_ACCURATE**2 else found

    def polar_velocity(self, point: FloatArray, t: float) -> FloatArray:
        """Return E (I + t^2 E'E)^-1 times a point, with an axis of one problem."""
        coordinates = self.reflected(point[0, ...], "T")
        return (self.E @ self.solutions(coordinates, t, np.ones(1), np.ones(1)))[None, ...]


class Powers:
    """P, E P, E^2 P and so on."""

    def __init__(self, E: Array, P: Array, norm: float, weight: Callable[[int], float]) -> None:
        self.E, self.P, self.norm, self.weight = E, P, norm, weight
        self._enough = negligible(P.dtype)
        self._products = [P]
        # One problem in NumPy: the products stand under each other, one row each, with their norms.
        self._alone = isinstance(P, np.ndarray) and P.shape[0] == 1
        self._stack: Any = None
        self._sizes: list[float] = []

    def n_terms(self, longest: float, limit: int, most: float) -> int | None:
        """Return how many terms of the series matter."""
        m, p = self.P.shape[-2:]
        # Terms that are there already cost nothing.
        if (limit + 1 - len(self._products)) * p > most * m:
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
        found, power = weights[0] * self._products[first], t
        for weight, term in zip(weights[1:], self._products[first + 1 :], strict=False):
            found = found + (weight * power) * term
            power = power * t
        return found

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


def inverse_root_nodes(largest: float, enough: float) -> tuple[FloatArray, FloatArray]:
    """Return shifts s and scales c with A^(-1/2) = sum_j c_j (A + s_j I)^-1."""
    # The trapezoidal rule after a change of variables by elliptic functions: method 3 of Hale, Higham &
    # Trefethen (2008), Computing A^alpha, log(A), and related matrix functions by contour integrals.
    from scipy.special import ellipj, ellipk, ellipkm1

    # A hair above 1, where the elliptic functions are those of the circle.
    small = 1.0 / max(largest, 1.0 + 1e-12)
    period = float(ellipkm1(small))
    n = math.ceil(-math.log(enough) * period / (2.0 * math.pi * float(ellipk(small))))
    # The second half of the nodes follows from the first, where no digits are lost.
    half = (n + 1) // 2
    sine, cosine, delta, _ = ellipj((np.arange(half) + 0.5) * period / n, 1.0 - small)
    shifts = (sine / cosine) ** 2
    scales = 2.0 * period / (math.pi * n) * delta / cosine**2
    kept = n - half
    mirrored = 1.0 / (small * shifts[:kept])
    return (
        np.concatenate([shifts, mirrored]),
        np.concatenate([scales, scales[:kept] * mirrored * math.sqrt(small)]),
    )


def _squarings(norm: float) -> int:
    return max(0, math.ceil(math.log2(norm / TAYLOR_NORM))) if norm > TAYLOR_NORM else 0


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
