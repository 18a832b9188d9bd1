"""Geodesics of the orthogonal group: transforms between two transforms, whose rows are atoms in any order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
from scipy.optimize import linear_sum_assignment

from nonneg._typing import FloatArray, IntArray

# Entries below the diagonal of a Schur form that are larger belong to a rotation by an angle.
ROTATION = 1e-9


def matched_atoms(transform: FloatArray, reference: FloatArray) -> tuple[FloatArray, IntArray]:
    """Reorder the atoms of a transform, and turn their signs, so that it is near a reference.

    A model does not depend on order and signs of the atoms, but the way from one transform to another does.
    Returns the transform and the places from which its atoms come.
    """
    cosines = transform @ reference.T
    _, order = linear_sum_assignment(-np.abs(cosines.T))
    cosines = cosines[order, np.arange(len(order))]
    signs = np.where(cosines < 0, -1.0, 1.0)
    near = signs[:, None] * transform[order]
    # Only a rotation lies on a geodesic from the identity: turn the atom that is least like its partner.
    if np.linalg.slogdet(near @ reference.T)[0] < 0:
        near[np.argmin(np.abs(cosines))] *= -1.0
    return near, order


def geodesic(reference: FloatArray, transform: FloatArray) -> Callable[[float], FloatArray]:
    """Return the function t -> exp(t log(transform reference')) reference.

    `transform` is what `matched_atoms` returned: its product with the reference's transpose is a rotation.
    """
    # The real Schur form of an orthogonal matrix is made of 1 x 1 and 2 x 2 blocks.
    T, Z = scipy.linalg.schur(transform @ reference.T, output="real")
    planes, half_turns, at = [], [], 0
    while at < len(T):
        if at + 1 < len(T) and abs(T[at + 1, at]) > ROTATION:
            angle = np.arctan2(0.5 * (T[at + 1, at] - T[at, at + 1]), 0.5 * (T[at, at] + T[at + 1, at + 1]))
            planes.append((at, at + 1, float(angle)))
            at += 2
        else:
            if T[at, at] < 0:
                half_turns.append(at)
            at += 1
    # Eigenvalues -1 come in pairs, because the determinant is 1.
    planes += [
        (first, second, np.pi) for first, second in zip(half_turns[::2], half_turns[1::2], strict=True)
    ]

    def at_fraction(t: float) -> FloatArray:
        if t in (0.0, 1.0):
            return np.array(transform if t else reference)
        power = np.eye(len(T))
        for first, second, angle in planes:
            cosine, sine = np.cos(t * angle), np.sin(t * angle)
            power[first, first] = power[second, second] = cosine
            power[first, second], power[second, first] = -sine, sine
        return Z @ power @ Z.T @ reference

    return at_fraction
