"""Retractions: curves R(t) P of matrices with orthonormal columns, with rotations R(t) of one skew matrix.

A line search asks for several points of one curve. What they share is computed once: products E^j P while the
rotation is small, else eigenvectors or a tridiagonal form of E'E.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.linalg.lapack import dormqr, dsytrd
from scipy.special import ellipj, ellipk, ellipkm1

from nonneg._compiled import core
from nonneg._lazy import cached_property
from nonneg._threads import BLAS, team_size
from nonneg._typing import Array, FloatArray
from nonneg.transforms.objective import VarianceObjective
from nonneg.transforms.rotations.group import (
    closest_orthogonal,
    identity_like,
    newton_schulz_step,
    norm_bound,
    transposed,
)
from nonneg.transforms.rotations.line_search import Point

# Eigenvalues of E'E are known up to the rounding of the largest. Rotations beyond this lose digits, which a
# Newton-Schulz step brings back.
LARGEST_ACCURATE = 8.0
# The relative error of an inverse root: below the rounding of float64.
ROUNDING = 1e-16
# Columns that LAPACK works on at once: of 8, 16, 32 and 64 the quickest for 200 x 200 matrices.
FORM_BLOCK, REFLECTION_BLOCK = 16, 32
# Products of reflections need LAPACK's own workspace for their triangles.
TRIANGLES = 65 * 64
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
        ones = xp.ones_like(angles)
        small = angles < 1e-8
        sine = xp.where(small, ones, xp.sin(angles) / xp.where(small, ones, angles))
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
        self._form: _Eigenvectors | _Tridiagonal | None = None

    def at(self, step: Array) -> Array:
        """Return the points at given steps."""
        t, longest = step[:, None, None], float(self.xp.max(self.xp.abs(step)))
        n_terms = self._terms.n_terms(longest)
        if n_terms is not None:
            return self._terms.point(t, n_terms)
        # Eigenvalues of E'E are known up to the rounding of the largest. From here on it leaves an error in
        # 1 + t^2 E'E that is not rounding after one Newton-Schulz step, which squares it.
        if (self._terms.norm * longest) ** 4 * float(self.xp.finfo(self.E.dtype).eps) > 1.0:
            return closest_orthogonal(identity_like(self.E) + t * self.E) @ self.P
        if self._form is None:
            form = _Tridiagonal if _Tridiagonal.is_supported(self.E) else _Eigenvectors
            self._form = form(self.E, self.P)
        return self._form.polar(t)


class _Eigenvectors:
    """Functions of E'E applied to P and E P, by its eigenvectors."""

    def __init__(self, E: Array, P: Array) -> None:
        xp = array_namespace(E)
        # One matrix at a time: NumPy then computes half of a symmetric product.
        alone = E.shape[0] == 1
        skew = E[0, ...] if alone else E
        square = transposed(skew) @ skew
        values, self.vectors = xp.linalg.eigh(square[None, ...] if alone else square)
        # The angular velocities, as a column: eigenvalues are not negative but for rounding.
        self.roots = xp.where(values > 0, values, xp.zeros_like(values))[..., None] ** 0.5
        self.coordinates = transposed(self.vectors) @ P
        self.E = E

    @cached_property
    def moved(self) -> Array:
        """Return E times the eigenvectors."""
        return self.E @ self.vectors

    def polar(self, t: Array) -> Array:
        """Return (I + t E) (I + t^2 E'E)^(-1/2) P."""
        root = self.vectors @ (self.coordinates / (1.0 + (t * self.roots) ** 2) ** 0.5)
        return self._refined(root + t * (self.E @ root), t)

    def combined(self, even: Array, odd: Array, t: Array) -> Array:
        """Return even(E'E) P + t E odd(E'E) P."""
        second, (m, p) = odd * self.coordinates, self.coordinates.shape[-2:]
        # Worth a product of full size where P is not narrow.
        turned = self.moved @ second if 2 * p > m else self.E @ (self.vectors @ second)
        return self._refined(self.vectors @ (even * self.coordinates) + t * turned, t)

    def _refined(self, point: Array, t: Array) -> Array:
        return refined(point, float(array_namespace(t).max(t * self.roots)))


def refined(point: Array, angle: float) -> Array:
    """Remove the error of large rotations: small eigenvalues have the rounding of the largest."""
    return newton_schulz_step(point) if angle > LARGEST_ACCURATE else point


class _Tridiagonal:
    """Functions of E'E applied to P by its tridiagonal form Q T Q': compiled, for one matrix of float64."""

    def __init__(self, E: FloatArray, P: FloatArray) -> None:
        self.E, m = E[0], E.shape[1]
        # Transposed, the symmetric matrix has LAPACK's order and is not copied.
        form, self.diagonal, self.beside, self.scales, _ = dsytrd(
            (self.E.T @ self.E).T, lower=1, lwork=FORM_BLOCK * m, overwrite_a=1
        )
        # Q leaves the first coordinate alone; what it does with the others is a product of reflections.
        self.reflections = np.asfortranarray(form[1:, :-1])
        self.coordinates = self._reflected(P[0].copy(), "N")
        sizes = np.abs(self.beside)
        rows = np.abs(self.diagonal) + np.append(sizes, 0.0) + np.append(0.0, sizes)
        self.squared_norm = float(rows.max())

    @staticmethod
    def is_supported(E: Array) -> bool:
        """Tell whether E is one matrix of NumPy's float64, and the core is there."""
        alone = isinstance(E, np.ndarray) and E.dtype == np.float64 and len(E) == 1 and E.shape[1] > 1
        return alone and core() is not None

    def polar(self, t: FloatArray) -> FloatArray:
        """Return (I + t E) (I + t^2 E'E)^(-1/2) P."""
        step = float(t[0, 0, 0])
        square = step * step
        shifts, scales = inverse_root_nodes(1.0 + square * self.squared_norm)
        solutions = np.empty_like(self.coordinates)
        core().sum_of_solutions(
            *(square * self.diagonal, square * self.beside, 1.0 + shifts, scales),
            *(self.coordinates, solutions, team_size(BLAS * solutions.size * len(shifts))),
        )
        root = self._reflected(solutions, "T")
        point = (root + step * (self.E @ root))[None, ...]
        return refined(point, step * math.sqrt(self.squared_norm))

    def _reflected(self, A: FloatArray, transpose: str) -> FloatArray:
        """Return Q'A for "N", Q A for "T", in place: what LAPACK sees is the transpose."""
        work = REFLECTION_BLOCK * A.shape[1] + TRIANGLES
        A[1:] = dormqr("R", transpose, self.reflections, self.scales, A.T[:, 1:], work, overwrite_c=1)[0].T
        return A


def inverse_root_nodes(largest: float) -> tuple[FloatArray, FloatArray]:
    """Return shifts s_j and scales c_j with A^(-1/2) = sum of c_j (A + s_j I)^-1, for spectra from 1 on."""
    # The trapezoidal rule after a change of variables by elliptic functions: method 3 of Hale, Higham &
    # Trefethen (2008), Computing A^alpha, log(A), and related matrix functions by contour integrals.
    # A hair above 1, where the elliptic functions are those of the circle.
    small = 1.0 / max(largest, 1.0 + 1e-12)
    period = float(ellipkm1(small))
    n = math.ceil(-math.log(ROUNDING) * period / (2.0 * math.pi * float(ellipk(small))))
    # The second half of the nodes follows from the first, where no digits are lost.
    half = (n + 1) // 2
    sine, cosine, delta, _ = ellipj((np.arange(half) + 0.5) * period / n, 1.0 - small)
    shifts = (sine / cosine) ** 2
    scales = 2.0 * period / (math.pi * n) * delta / cosine**2
    mirrored = 1.0 / (small * shifts[: n - half])
    return (
        np.concatenate([shifts, mirrored]),
        np.concatenate([scales, scales[: n - half] * mirrored * math.sqrt(small)]),
    )


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
