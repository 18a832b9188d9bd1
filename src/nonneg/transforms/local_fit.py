"""C near a transform: its change along a search, whose second-order part is made in single precision.

While the factors stand still C = <P, A P> / 2 with A P = 2 (X / (W H + eps0))' rows linear in P. With D the
change of the transform the change of C is <D, A P0> + <D, A D> / 2. The first part comes with the gradient.
The second one is made in single precision, far finer than what a search decides about. The point taken
is then made anew in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.descent.line_search import Point
from nonneg.kernels import frame_rows

# Operations of a product with the rows from which the change pays.
LEAST_WORK = 1 << 22
# Weights beyond this leave the range of single precision.
LARGEST_WEIGHT = 1e25


@dataclass(frozen=True)
class LocalFit:
    """C as a function of the transform near one, as far as a search needs it; points are (P, A P, C).

    Attributes
    ----------
    data : WorkingFrames
        The frames.
    weights : array of float32 of shape (1, n_frames, m)
        2 / (W H + eps0), for rows whose largest entry is 1.
    transform, forces : array of shape (1, m, p)
        P0 and A P0.
    first : array of shape (1,)
        C there.
    """

    data: Any
    weights: FloatArray
    transform: FloatArray
    forces: FloatArray
    first: FloatArray

    @property
    def start(self) -> Point:
        """The point of P0."""
        return self.transform, self.forces, self.first

    def at(self, P: FloatArray) -> Point:
        """Return the point of a transform.

        Parameters
        ----------
        P : array of shape (1, m, p)
            Rows are atoms, in the coordinates of the frames.

        Returns
        -------
        tuple of array
            P, A P and C.
        """
        change = P - self.transform
        rows = self.data.single_rows
        X = rows @ change[0].astype(np.float32).T
        weighted = frame_rows.weighted_rows(
            X[None], self.weights, np.float32(1.0), self.data.starts, self.data.counts
        )
        bent = (weighted[0].T @ rows)[None].astype(np.float64)
        value = self.first + (np.vdot(change, self.forces) + 0.5 * np.vdot(change, bent))
        return P, self.forces + bent, value

    def value(self, point: Point) -> FloatArray:
        """Return C up to what does not depend on the transform.

        Parameters
        ----------
        point : tuple of array
            P, A P and C.

        Returns
        -------
        array of shape (1,)
            The value.
        """
        found: FloatArray = point[2]
        return found

    def gradient(self, point: Point) -> FloatArray:
        """Return the relative gradient.

        Parameters
        ----------
        point : tuple of array
            P, A P and C.

        Returns
        -------
        array of shape (1, m, m)
            A P P'.
        """
        return (point[1][0] @ point[0][0].T)[None]

    def slope(self, point: Point, velocity: FloatArray) -> FloatArray:
        """Return the derivative for a given change of P.

        Parameters
        ----------
        point : tuple of array
            P, A P and C.
        velocity : array of shape (1, m, p)
            The change.

        Returns
        -------
        array of shape (1,)
            ``<A P, velocity>``.
        """
        return np.asarray([np.vdot(point[1], velocity)])


def serves(data: Any, point: Point, eps0: float) -> bool:
    """Tell whether a search is quicker with the change.

    Parameters
    ----------
    data : FrameCovariances or WorkingFrames
        The frames.
    point : tuple of array
        P, X and V.
    eps0 : float
        Added to the model.

    Returns
    -------
    bool
        For one run in NumPy's float64 with many rows.
    """
    P, X, V = point
    return (
        hasattr(data, "single_rows")
        and frame_rows.serves(X)
        and frame_rows.serves(V)
        and P.shape[2] < P.shape[1]
        and X.size * P.shape[2] >= LEAST_WORK
        and data.largest_entry**2 <= LARGEST_WEIGHT * eps0
    )
