"""The self-dictionary problem restricted to a working set of rows, solved by ADMM in Gram form.

Minimize 0.5 ||X - X_S C||^2 + lam sum_n max_l c_nl over C >= 0 with columns that sum to one. One variable of
the splitting has columns that sum to one and minimizes the quadratic part, with one small matrix for all
columns; the other has nonnegative entries and capped rows (`kernels.row_caps`). An iteration is one product
of the s x s matrix with an s x N one, or two with an s x M matrix where there are few features. Boyd, Parikh,
Chu, Peleato & Eckstein, "Distributed optimization and statistical learning via the alternating direction
method of multipliers" (2011), sections 3.3, 3.4 and 4.2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from array_api_compat import array_namespace

from nonneg._arrays import numpy_dtype, to_device
from nonneg._threads import parallel_for
from nonneg._typing import Array, FloatArray
from nonneg.kernels.row_caps import cap_rows

# Over-relaxation of 1.5 to 1.8 is what Boyd et al. (section 3.4.3) report to work well.
RELAX = 1.7
# Bounds are computed after this number of iterations: a computation costs about two iterations.
CHECK = 10
MOST_ITERATIONS = 1000
# The parameter rho is balanced (Boyd et al., section 3.4.1, with relative residuals) until this iteration;
# ADMM converges with a fixed one.
BALANCED = 200
# Columns that a product takes at a time, whatever the number of threads.
COLUMNS = 1024


@dataclass(frozen=True)
class Splitting:
    """Where ADMM stands: the variables, which the next solution begins with."""

    split: Array  # Z: nonnegative, with capped rows
    dual: Array  # U, the scaled dual variable
    caps: Array  # the caps of the rows
    rho: float

    @classmethod
    def of(cls, split: Array, rho: float) -> Splitting:
        """Begin with given coefficients."""
        xp = array_namespace(split)
        return cls(split, xp.zeros_like(split), xp.max(split, axis=1), rho)

    def rows(self, kept: Any, n_new: int) -> Splitting:
        """Return the splitting with some rows kept and new rows of zeros at the end."""
        xp = array_namespace(self.split)
        index = to_device(np.flatnonzero(kept), self.split)

        def extended(array: Array) -> Array:
            some = xp.take(array, index, axis=0)
            shape = (n_new, *array.shape[1:])
            return xp.concat([some, xp.zeros(shape, dtype=array.dtype, device=array.device)], axis=0)

        return Splitting(extended(self.split), extended(self.dual), extended(self.caps), self.rho)


@dataclass(frozen=True)
class RestrictedBounds:
    """An upper and a lower bound on the minimum of the restricted problem."""

    upper: float
    lower: float


@dataclass(frozen=True)
class Projection:
    """The matrix of the first variable: dense, or I - QQ'."""

    matrix: Array
    thin: bool  # whether `matrix` is Q

    def times(self, array: Array) -> Array:
        """Multiply from the left."""
        return array - self.matrix @ (self.matrix.T @ array) if self.thin else self.matrix @ array


class RestrictedProblem:
    """The problem over the rows of a working set."""

    def __init__(self, rows: FloatArray, cross: Array, square: float, lam: float) -> None:
        # `rows` are the points X_S in float64 on the host, `cross` is X_S X' in the dtype of the iterations,
        # `square` the squared norm of X; all relative to the center.
        self.rows, self.cross, self.square, self.lam = rows, cross, square, lam
        self.xp: Any = array_namespace(cross)
        s, m = rows.shape
        # Products with two thin matrices take fewer operations than with one that is s x s.
        self.thin = 2 * (m + 1) < s
        self._left = self._given(rows if self.thin else rows @ rows.T)

    def solve(self, begin: Splitting, enough: Callable[[RestrictedBounds], bool]) -> tuple[Splitting, int]:
        """Iterate until the bounds are good enough; return the splitting and the number of iterations."""
        split, dual, caps, rho = begin.split, begin.dual, begin.caps, begin.rho
        xp = self.xp
        split, dual, caps = (xp.asarray(array, copy=True) for array in (split, dual, caps))
        matrix, offset = self._factored(rho)
        product, difference = xp.empty_like(split), split - dual
        for n_iter in range(1, MOST_ITERATIONS + 1):
            self._times(matrix, difference, product)
            primal, change, size, dual_size = cap_rows(
                offset, product, split, dual, caps, relax=RELAX, tau=self.lam / rho
            )
            product, difference = difference, product
            if n_iter % CHECK:
                continue
            if enough(self.bounds(split, dual, rho)):
                return Splitting(split, dual, caps, rho), n_iter
            if n_iter < BALANCED:
                # Both residuals are squared and relative.
                ratio = primal * dual_size / max(change * size, 1e-300)
                factor = float(np.clip(ratio**0.25, 0.2, 5.0))
                if not 0.5 < factor < 2.0:
                    rho *= factor
                    dual /= factor
                    matrix, offset = self._factored(rho)
                    difference = split - dual
        return Splitting(split, dual, caps, rho), MOST_ITERATIONS

    def bounds(self, split: Array, dual: Array, rho: float) -> RestrictedBounds:
        """Bound the minimum from both sides by the current iterate, up to rounding."""
        parts, xp = [], self.xp

        def work(start: int, stop: int) -> list[tuple[Any, ...]]:
            return [self._part(split, dual, rho, some) for some in _columns(start, stop, self._step)]

        if isinstance(split, np.ndarray):
            lists = parallel_for(work, split.shape[1], chunk_size=COLUMNS, operations=float(split.size))
            parts = [part for one in lists for part in one]
        else:
            parts = work(0, split.shape[1])
        quadratic, linear, levels = (sum(float(part[i]) for part in parts) for i in range(3))
        tops = parts[0][3]
        for part in parts[1:]:
            tops = xp.maximum(tops, part[3])
        fit = 0.5 * quadratic - linear + 0.5 * self.square
        return RestrictedBounds(
            upper=fit + self.lam * float(xp.sum(tops)), lower=levels - (linear - self.square) - fit
        )

    @property
    def _step(self) -> int:
        # Elsewhere than in host memory large blocks are quick.
        return COLUMNS if isinstance(self.cross, np.ndarray) else max(1, (1 << 26) // len(self.rows))

    def _part(self, split: Array, dual: Array, rho: float, some: slice) -> tuple[Any, ...]:
        xp = self.xp
        weights = normalized(split[:, some])
        cross = self.cross[:, some]
        image = self._left @ (self._left.T @ weights) if self.thin else self._left @ weights
        slopes = image - cross + rho * xp.clip(dual[:, some], 0.0, None)
        levels = xp.sum(xp.min(slopes, axis=0), dtype=xp.float64)
        sums = (xp.sum(weights * array, dtype=xp.float64) for array in (image, cross))
        return (*sums, levels, xp.max(weights, axis=1))

    def _given(self, array: FloatArray) -> Array:
        return to_device(array.astype(numpy_dtype(self.cross.dtype)), self.cross)

    def _factored(self, rho: float) -> tuple[Projection, Array]:
        # C = argmin 0.5 c'Gc - b'c + 0.5 rho ||c - w||^2 with 1'c = 1 is P (b + rho w) + share, with P the
        # inverse of G + rho I, projected along its image a of the ones. Returned are rho P and P b + share.
        s, m = self.rows.shape
        if self.thin:
            # rho (G + rho I)^-1 = I - QQ' with Q = X_S L'^-1 and LL' = X_S'X_S + rho I.
            factor = np.linalg.cholesky(self.rows.T @ self.rows + rho * np.eye(m))
            q = scipy.linalg.solve_triangular(factor, self.rows.T, lower=True).T
            image = (np.ones(s) - q @ q.sum(axis=0)) / rho
            share = image / image.sum()
            matrix = np.column_stack([q, np.sqrt(rho * image.sum()) * share])
        else:
            inverse = np.linalg.inv(self.rows @ self.rows.T + rho * np.eye(s))
            inverse = 0.5 * (inverse + inverse.T)
            image = inverse.sum(axis=1)
            share = image / image.sum()
            matrix = rho * (inverse - np.outer(image, share))
        projected = Projection(self._given(matrix), self.thin)
        offset = self.xp.empty_like(self.cross)
        self._times(projected, self.cross, offset)
        offset /= rho
        offset += self._given(share)[:, None]
        return projected, offset

    def _times(self, matrix: Projection, array: Array, out: Array) -> None:
        def work(start: int, stop: int) -> None:
            for some in _columns(start, stop, self._step):
                out[:, some] = matrix.times(array[:, some])

        if isinstance(out, np.ndarray):
            operations = 2.0 * matrix.matrix.shape[1] * float(out.size)
            parallel_for(work, out.shape[1], chunk_size=COLUMNS, operations=operations)
        else:
            work(0, out.shape[1])


def normalized(split: Array) -> Array:
    """Return nonnegative columns divided by their sums; a column of zeros becomes constant."""
    xp = array_namespace(split)
    sums = xp.sum(split, axis=0)
    empty = sums <= 0
    weights = split / xp.where(empty, xp.ones_like(sums), sums)
    return xp.where(empty[None, :], xp.full_like(weights, 1.0 / split.shape[0]), weights)


def first_rho(rows: FloatArray) -> float:
    """Return a first parameter of ADMM in the unit of the quadratic part, given the points."""
    # The mean diagonal of the Gram matrix: on planted data at 10 to 60 dB, balancing changes it by a factor
    # of 30 at most.
    return max(float(np.sum(rows * rows)) / len(rows), 1e-300)


def _columns(start: int, stop: int, step: int) -> Iterator[slice]:
    return (slice(first, min(first + step, stop)) for first in range(start, stop, step))
