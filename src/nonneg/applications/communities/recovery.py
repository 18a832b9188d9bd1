"""Memberships of all nodes from the rows of the pure ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nonneg._typing import BoolArray, FloatArray
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError, UnknownNameError
from nonneg.separable.weights import anchor_weights

RECOVERIES = ("least-squares", "simplex")
UNREACHED = ("auto", "mean", "uniform", "zero", "nan")
# The authors' limit: a smaller coordinate is rounding.
ROUNDING = 1e-12


class Memberships(NamedTuple):
    """How much every node belongs to every community."""

    values: FloatArray  # rows sum to one, but those of nodes that the eigenvectors do not reach
    reached: BoolArray  # which nodes have a row in the eigenvectors that is more than rounding
    clipped: float  # the share of negative coordinates in the sum of all sizes, before they were set to zero


def recover(vectors: FloatArray, corners: FloatArray, recovery: str = "least-squares") -> Memberships:
    """Return the memberships as coordinates between the pure nodes."""
    if recovery not in RECOVERIES:
        raise UnknownNameError.of("recovery", recovery, RECOVERIES)
    memberships = coordinates(vectors, corners)
    clipped = clipped_fraction(memberships)
    reached = np.abs(memberships).max(axis=1) >= ROUNDING
    if recovery == "simplex":
        memberships = np.asarray(anchor_weights(as_data_matrix(vectors), corners, sum_to_one=True))
        return Memberships(memberships, reached, clipped)
    memberships[memberships < ROUNDING] = 0.0
    sums = memberships.sum(axis=1)
    reached = sums > 0
    memberships /= np.where(reached, sums, 1.0)[:, None]
    return Memberships(memberships, reached, clipped)


def coordinates(vectors: FloatArray, corners: FloatArray) -> FloatArray:
    """Write every row as a combination of the corners."""
    try:
        return np.ascontiguousarray(np.linalg.solve(corners.T, vectors.T).T)
    except np.linalg.LinAlgError as error:
        raise InvalidDataError(
            "The rows of the pure nodes that were found are linearly dependent. Ask for fewer communities, "
            "or choose another method."
        ) from error


def clipped_fraction(memberships: FloatArray) -> float:
    """Return the fraction of the coordinates that lies below zero."""
    total = float(np.abs(memberships).sum())
    return float(-np.minimum(memberships, 0.0).sum()) / total if total > 0 else 0.0


def fill_unreached(found: Memberships, rule: str, usual: str | None = None) -> FloatArray:
    """Give the nodes that the eigenvectors do not reach a membership; "auto" does as usual."""
    rule = (usual or "") if rule == "auto" else rule
    memberships = found.values.copy()
    lost = ~found.reached
    if lost.any() and rule:
        if rule == "mean":
            memberships[lost] = memberships[found.reached].mean(axis=0)
        else:
            memberships[lost] = {"uniform": 1.0 / memberships.shape[1], "zero": 0.0, "nan": np.nan}[rule]
    return memberships
