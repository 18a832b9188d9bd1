"""The part of a cluster that decides its smallest cone: a few points, their weights, the axis they make."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, IntArray
from nonneg.cones.geometry.farthest import ROUNDING
from nonneg.leastsquares.simplex import simplex_least_squares

# Rows of which so few entries are nonzero are kept sparse.
_SPARSE_BELOW = 0.2


class ClusterHull:
    """Unit points of one cluster and the smallest ball around them."""

    # The center of the smallest ball is the nearest point of the hull to the origin, along the axis of the
    # smallest cone, and the ball's radius is the sine of the cone's angle. In terms of the differences d to
    # any reference, the weights minimize |sum w d|^2 - sum w |d|^2 on the simplex, and any weights give a
    # lower bound of the squared radius.

    def __init__(self, amid: FloatArray) -> None:
        length = float(np.linalg.norm(amid))
        self.reference = amid / length if length > 0 else np.eye(1, len(amid))[0]
        self.axis: FloatArray = self.reference
        self.rows: IntArray = np.zeros(0, dtype=np.intp)
        self.weights: FloatArray = np.zeros(0)
        # Differences to the reference, or the points themselves (a reference of zero) where they are sparse.
        self.points: Any = np.zeros((0, len(amid)))
        self.lower_angle = 0.0
        self.angle = math.inf
        self.best_axis = self.axis
        self.best_sums: FloatArray = np.zeros(2)

    @property
    def boundary(self) -> IntArray:
        """The rows with a positive weight, in ascending order."""
        return np.sort(self.rows[self.weights > 0])

    def compare(self, chord: float, tol: float, sums: FloatArray) -> bool:
        """Take note of the distance of the cluster's farthest point from the current axis."""
        if chord < 0:
            self.angle, self.best_sums = 0.0, np.zeros(2)
            self.best_axis = np.zeros_like(self.axis)
            return False
        angle = 2.0 * math.asin(min(1.0, chord / 2.0))
        if angle < self.angle:
            self.angle, self.best_axis, self.best_sums = angle, self.axis, sums
        return self.angle > self.lower_angle * (1.0 + tol) + ROUNDING

    def add(self, rows: IntArray, points: FloatArray) -> None:
        """Let points join those that have a weight; of several that are alike only the first."""
        fresh = ~np.isin(rows, self.rows)
        rows, points = rows[fresh], points[fresh]
        if not len(rows):
            return
        units = points / np.linalg.norm(points, axis=1, keepdims=True)
        distinct = _distinct(units - self.axis)
        rows, units = rows[distinct], units[distinct]
        if not len(self.rows) and np.count_nonzero(units) < _SPARSE_BELOW * units.size:
            self.reference = np.zeros_like(self.reference)
            self.points = sp.csr_array(self.points)
        if sp.issparse(self.points):
            self.points = sp.csr_array(sp.vstack([self.points, sp.csr_array(units)]))
        else:
            self.points = np.concatenate([self.points, units - self.reference])
        self.rows = np.concatenate([self.rows, rows])
        self.weights = np.concatenate([self.weights, np.zeros(len(rows))])

    def solve(self) -> bool:
        """Find the smallest ball around the points at hand, and let go of those inside it."""
        gram = self.points @ self.points.T
        gram = gram.toarray() if sp.issparse(gram) else gram
        squares = np.diagonal(gram).copy()
        known = bool(self.weights.any())
        start = self.weights[None, :] if known else None
        weights = simplex_least_squares(gram, 0.5 * squares[None, :], start=start)[0]
        center = self.points.T @ weights
        radius = math.sqrt(max(0.0, float(weights @ squares - center @ center)))
        lower = math.asin(min(1.0, radius))
        grown = lower > self.lower_angle or not known
        kept = weights > 0
        self.rows, self.weights, self.points = self.rows[kept], weights[kept], self.points[kept]
        self.lower_angle = max(lower, self.lower_angle)
        axis = self.reference + center
        length = float(np.linalg.norm(axis))
        # The hull contains the origin: the points fill more than a half space, which only signed data can do.
        if length > 0:
            self.axis = axis / length
        return grown and length > 0


def _distinct(differences: FloatArray) -> IntArray:
    """Return the first of each group of equal rows: duplicates would share a weight."""
    # Rows are alike when their products with one vector are; others that are taken for them come again.
    products = differences @ np.cos(np.arange(1.0, differences.shape[1] + 1.0))
    scale = float(np.abs(products).max(initial=0.0))
    _, first = np.unique(np.round(products / (scale or 1.0), 9), return_index=True)
    return np.sort(first)
