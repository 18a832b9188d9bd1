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
    search = _Search(vectors)
    all_clusters = np.ones(len(vectors), dtype=bool)
    products, images = _apply(data, labels, vectors, all_clusters)
    units = _powers_of_two(images)
    search.images, n_passes, checks = images / units, 1, 0
    while True:
        moving = search.residuals() > tol
        if not moving.any() or checks >= _CHECKS or n_passes >= max_iter - 1:
            if search.fresh:
                break
            # The images were combined from others: what is returned rests on products of its own.
            search.vectors = np.abs(search.vectors)
            products, images = _apply(data, labels, search.vectors, all_clusters)
            search.restart(images / units)
            n_passes, checks = n_passes + 1, checks + 1
            continue
        directions = search.residual_directions(moving)
        _, images = _apply(data, labels, directions, moving)
        search.advance(moving, directions, images / units)
        n_passes += 1
    squared_values = search.values * units[:, 0]
    return ClusterDirections(search.vectors, squared_values, products, search.residuals(), n_passes)


class _Search:
    """The vectors of all clusters with their images, and the last steps with theirs."""

    def __init__(self, vectors: FloatArray) -> None:
        self.vectors = vectors
        self.images = np.zeros_like(vectors)
        self.steps = np.zeros_like(vectors)
        self.step_images = np.zeros_like(vectors)
        self.fresh = True

    @property
    def values(self) -> FloatArray:
        return np.maximum(_inner(self.vectors, self.images), 0.0)

    def residuals(self) -> FloatArray:
        values = self.values
        norms = np.linalg.norm(self.images - values[:, None] * self.vectors, axis=1)
        return np.divide(norms, values, out=np.zeros_like(norms), where=values > 0)

    def residual_directions(self, moving: Any) -> FloatArray:
        directions = np.zeros_like(self.vectors)
        residuals = self.images[moving] - self.values[moving, None] * self.vectors[moving]
        directions[moving] = _unit(_outside(_unit(residuals), self.vectors[moving]))
        return directions

    def restart(self, images: FloatArray) -> None:
        self.images, self.fresh = images, True
        self.steps[:], self.step_images[:] = 0.0, 0.0

    def advance(self, moving: Any, directions: FloatArray, direction_images: FloatArray) -> None:
        """Take the best vector of three directions in every cluster that moves (Rayleigh-Ritz)."""
        vector, image = self.vectors[moving], self.images[moving]
        direction, direction_image = directions[moving], direction_images[moving]
        step, step_image = self.steps[moving], self.step_images[moving]
        for known, known_image in ((vector, image), (direction, direction_image)):
            share = _inner(step, known)[:, None]
            step, step_image = step - share * known, step_image - share * known_image
        length = np.linalg.norm(step, axis=1)[:, None]
        scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > _LOST)
        span = np.stack([vector, direction, step * scale], axis=1)
        images = np.stack([image, direction_image, step_image * scale], axis=1)
        projected = span @ np.swapaxes(images, 1, 2)
        projected = 0.5 * (projected + np.swapaxes(projected, 1, 2))
        best = np.linalg.eigh(projected)[1][:, :, -1]
        best *= np.where(best[:, :1] < 0, -1.0, 1.0)
        part = best.copy()
        part[:, 0] = 0.0
        self.vectors[moving], self.images[moving] = _combined(best, span, images)
        self.steps[moving], self.step_images[moving] = _combined(part, span, images)
        self.fresh = False


def _combined(weights: FloatArray, span: FloatArray, images: FloatArray) -> tuple[FloatArray, FloatArray]:
    vectors = (weights[:, None, :] @ span)[:, 0]
    length = np.linalg.norm(vectors, axis=1)[:, None]
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return vectors * scale, (weights[:, None, :] @ images)[:, 0] * scale


def _powers_of_two(images: FloatArray) -> FloatArray:
    """Return scales of shape (k, 1) under which squares neither underflow nor overflow."""
    # A power of two changes no digit of what is divided by it.
    largest = np.abs(images).max(axis=1, keepdims=True, initial=0.0)
    exponents = np.where(largest > 0, np.frexp(largest)[1], 0)
    units: FloatArray = np.ldexp(np.ones_like(largest), exponents - 1)
    return units


def _inner(a: FloatArray, b: FloatArray) -> FloatArray:
    products: FloatArray = np.einsum("ij,ij->i", a, b)
    return products


def _unit(rows: FloatArray) -> FloatArray:
    norms = np.linalg.norm(rows, axis=1)[:, None]
    return rows / np.where(norms > 0, norms, 1.0)


def _outside(rows: FloatArray, units: FloatArray) -> FloatArray:
    return rows - _inner(rows, units)[:, None] * units


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
