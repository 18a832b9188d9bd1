"""The leading direction of every cluster at once: rank-one NMF of each (Liu & Tan, Lemma 3).

The best rank-one approximation of a nonnegative matrix is nonnegative, so that it is the rank-one NMF. Its
direction is the leading eigenvector of v -> X_c' diag(weights) X_c v. All clusters advance together, one pass
over the data per iteration: each takes the best vector in the span of its vector, the residual and the last
step (locally optimal conjugate gradients), which needs about the square root of the iterations of the power
method where two singular values are close.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.kernels.cluster_products import cluster_products

_POSITIVE_PART = 0.01  # of the initial vectors, so that they are orthogonal to no nonnegative vector
_CHECKS = 4  # how often a solution may fail the check with products of its own
_LOST = 1e-6  # norm of a unit vector after projection below which only rounding is left


@dataclass(frozen=True)
class ClusterDirections:
    """The leading singular pair of every cluster."""

    directions: FloatArray  # unit rows, nonnegative (float64, on the host)
    squared_values: FloatArray  # the squared leading singular values; 0 for a cluster without rows
    products: SampleArray  # each row's product with the direction of its cluster; 0 for rows of no cluster
    residuals: FloatArray  # norms of A v - s^2 v, relative to s^2
    n_passes: int  # passes over the data


def leading_directions(
    data: DataMatrix, labels: SampleArray, start: Array, *, tol: float = 1e-10, max_iter: int = 300
) -> ClusterDirections:
    """Return the leading directions of all clusters."""
    tol = max(tol, 100.0 * float(data.xp.finfo(data.dtype).eps))
    vectors = _unit(_unit(to_float64(start)) + _POSITIVE_PART / data.shape[1] ** 0.5)
    all_clusters = np.ones(len(vectors), dtype=bool)
    products, images = _apply(data, labels, vectors, all_clusters)
    units = _powers_of_two(images)
    search = _Search(vectors, images / units)
    n_passes, checks = 1, 0
    while True:
        moving = search.residuals > tol
        if not moving.any() or checks >= _CHECKS or n_passes >= max_iter - 1:
            if search.fresh:
                break
            # The images were combined from others: what is returned rests on products of its own.
            vectors = np.abs(search.vectors)
            products, images = _apply(data, labels, vectors, all_clusters)
            search = _Search(vectors, images / units)
            n_passes, checks = n_passes + 1, checks + 1
            continue
        _, images = _apply(data, labels, search.residual_directions(moving), moving)
        search.advance(moving, images / units)
        n_passes += 1
    squared_values = search.values * units[:, 0]
    return ClusterDirections(search.vectors.copy(), squared_values, products, search.residuals, n_passes)


class _Search:
    """Of every cluster: the vector, the direction of its residual and the last step, and their images."""

    def __init__(self, vectors: FloatArray, images: FloatArray) -> None:
        self.rows = np.zeros((len(vectors), 6, vectors.shape[1]))
        self.span, self.images = self.rows[:, :3], self.rows[:, 3:]
        self.fresh = True  # no step was taken: the images are products with the data
        self._move_to(slice(None), vectors, images)

    @property
    def vectors(self) -> FloatArray:
        """The unit vectors, a row for each cluster."""
        return self.span[:, 0]

    def _move_to(self, moving: Any, vectors: FloatArray, images: FloatArray) -> None:
        self.span[moving, 0], self.images[moving, 0] = vectors, images
        self.values = np.maximum(_inner(self.span[:, 0], self.images[:, 0]), 0.0)
        self.remainders = self.images[:, 0] - self.values[:, None] * self.span[:, 0]
        self.norms = np.sqrt(_inner(self.remainders, self.remainders))
        self.residuals = np.divide(
            self.norms, self.values, out=np.zeros_like(self.norms), where=self.values > 0
        )

    def residual_directions(self, moving: Any) -> FloatArray:
        """Return the unit directions of the residuals, orthogonal to the vectors."""
        directions = self.remainders[moving] / self.norms[moving, None]
        vectors = self.span[moving, 0]
        directions -= _inner(directions, vectors)[:, None] * vectors
        self.span[moving, 1] = _unit(directions)
        return self.span[:, 1]

    def advance(self, moving: Any, direction_images: FloatArray) -> None:
        """Take the best vector of three directions in every cluster that moves (Rayleigh-Ritz)."""
        self.images[moving, 1] = direction_images[moving]
        rows = self.rows if moving.all() else self.rows[moving]
        span, images = rows[:, :3], rows[:, 3:]
        products = span @ np.swapaxes(rows, 1, 2)
        # The first two directions are orthonormal; the last step becomes so by coefficients.
        shares = products[:, 2, :3]
        left = shares[:, 2] - shares[:, 0] ** 2 - shares[:, 1] ** 2
        basis = np.zeros((len(rows), 3, 3))
        basis[:, 0, 0] = basis[:, 1, 1] = basis[:, 2, 2] = 1.0
        basis[:, 2, :2] = -shares[:, :2]
        basis[:, 2] *= np.where(left > _LOST**2, 1.0 / np.sqrt(np.maximum(left, _LOST**2)), 0.0)[:, None]
        projected = basis @ products[:, :, 3:] @ np.swapaxes(basis, 1, 2)
        best = np.linalg.eigh(0.5 * (projected + np.swapaxes(projected, 1, 2)))[1][:, :, -1]
        best *= np.where(best[:, :1] < 0, -1.0, 1.0)
        # The vectors, and the steps: their parts outside of the last vectors.
        weights = np.stack([best, best * [0.0, 1.0, 1.0]], axis=1) @ basis
        both = weights @ span
        lengths = np.sqrt(_inner(both, both))[:, :, None]
        scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        both *= scale
        both_images = (scale * weights) @ images
        self.span[moving, 2], self.images[moving, 2] = both[:, 1], both_images[:, 1]
        self._move_to(moving, both[:, 0], both_images[:, 0])
        self.fresh = False


def _powers_of_two(images: FloatArray) -> FloatArray:
    """Return scales of shape (k, 1) under which squares neither underflow nor overflow."""
    # A power of two changes no digit of what is divided by it.
    largest = np.abs(images).max(axis=1, keepdims=True, initial=0.0)
    exponents = np.where(largest > 0, np.frexp(largest)[1], 0)
    units: FloatArray = np.ldexp(np.ones_like(largest), exponents - 1)
    return units


def _inner(a: FloatArray, b: FloatArray) -> FloatArray:
    products: FloatArray = np.vecdot(a, b)
    return products


def _unit(rows: FloatArray) -> FloatArray:
    norms = np.linalg.norm(rows, axis=1)[:, None]
    return rows / np.where(norms > 0, norms, 1.0)


def _apply(
    data: DataMatrix, labels: SampleArray, vectors: FloatArray, active: Any
) -> tuple[SampleArray, FloatArray]:
    (products,), (sums,) = data.map_reduce_rows(_cluster_products, labels, vectors=vectors, active=active)
    return products, to_float64(sums)


def _cluster_products(
    block: LocalMatrix, labels: Array, *, vectors: FloatArray, active: Any
) -> tuple[tuple[Array], tuple[Array]]:
    products, sums = cluster_products(block, labels, vectors, active)
    return (products,), (sums,)
