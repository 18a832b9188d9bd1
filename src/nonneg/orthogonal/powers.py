"""Products E^j P, as many as are needed, and Taylor's series of exp(t E) P from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from array_api_compat import device as device_of

from nonneg._typing import Array
from nonneg.orthogonal.group import negligible, taylor_terms

# Products that there is room for at first.
ROOM = 8


class Powers:
    """P, E P, E^2 P and so on.

    Parameters
    ----------
    E : array of shape (batch, m, m)
        Skew matrices.
    P : array of shape (batch, m, p)
        Columns are orthonormal.
    norm : float
        A bound of the spectral norms of E.
    """

    def __init__(self, E: Array, P: Array, norm: float) -> None:
        self.xp = array_namespace(E)
        self.E, self.P, self.norm = E, P, norm
        self._enough = negligible(P.dtype)
        self._products = [P]
        # One problem in NumPy: the products stand under each other, one row each, with their norms.
        self._alone = isinstance(P, np.ndarray) and P.shape[0] == 1
        self._stack: Any = None
        self._sizes: list[float] = []

    def n_terms(self, longest: float, most: float) -> int | None:
        """Return how many terms the exponential needs.

        Parameters
        ----------
        longest : float
            The largest step.
        most : float
            Products that may be made, in units of products of full size.

        Returns
        -------
        int or None
            The power of the last term; None where it would take too many products.
        """
        m, p = self.P.shape[-2:]
        limit = taylor_terms(self.norm * longest, self._enough)
        # Terms that are there already cost nothing.
        if (limit + 1 - len(self._products)) * p > most * m:
            return None
        if not self._alone:
            return limit
        weight = 1.0
        for j in range(1, limit):
            self._make(j)
            weight *= longest / j
            # A bound of the term that comes next, by the one that is there, beside the rounding of P, whose
            # norm is the root of p.
            following = self._sizes[j - 1] * weight * (self.norm * longest / (j + 1))
            if following <= 10.0 * self._enough * math.sqrt(p):
                return j
        return limit

    def series(self, weights: list[float], t: Array, first: int) -> Array:
        """Return the sum of weights times t^j E^(j + first) P.

        Parameters
        ----------
        weights : list of float
            One a term.
        t : array of shape (batch, 1, 1)
            The steps.
        first : int
            The power of the first term.

        Returns
        -------
        array of shape (batch, m, p)
            The sum.
        """
        self._make(len(weights) + first - 1)
        if self._alone:
            # One product with the weights instead of two passes a term.
            step = float(t[0, 0, 0])
            powers = np.asarray([weight * step**j for j, weight in enumerate(weights)], dtype=self.P.dtype)
            return (powers @ self._stack[first : first + len(weights)]).reshape(self.P.shape)
        if self.P.shape[0] == 1:
            stack = self.xp.concat([self.xp.reshape(one, (1, -1)) for one in self._products], axis=0)
            row = [weight * float(t[0, 0, 0]) ** j for j, weight in enumerate(weights)]
            factors = self.xp.asarray([row], dtype=self.P.dtype, device=device_of(self.P))
            return self.xp.reshape(factors @ stack[first : first + len(weights), :], self.P.shape)
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
