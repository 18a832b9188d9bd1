"""Products E^j P, as many as are needed, and power series of t E times P from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nonneg._typing import Array
from nonneg.transforms.rotations.group import negligible

# Products that there is room for at first.
ROOM = 8


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
            # One product with the weights instead of two passes a term.
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
                grown = np.empty((ROOM if self._stack is None else 2 * j, self.P.size), dtype=self.P.dtype)
                grown[:j] = self.P.reshape(1, -1) if self._stack is None else self._stack
                self._stack = grown
            before, row = self._stack[j - 1].reshape(shape), self._stack[j]
            np.matmul(self.E[0], before, out=row.reshape(shape))
            self._products.append(row)
            self._sizes.append(math.sqrt(float(np.dot(row, row))))
        if self._alone and self._stack is None:
            self._stack = self.P.reshape(1, -1)
