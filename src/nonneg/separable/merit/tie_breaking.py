"""Tie-breaking: which anchors are selected where more rows share a row maximum than are needed."""

from __future__ import annotations

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix, as_data_matrix
from nonneg.separable.row_maxima import distinct_rows
from nonneg.separable.weights import anchor_weights

# Row maxima that agree to this fraction are equal up to rounding.
SAME_MAXIMUM = 1e-9
# Distances within SAME_DISTANCE of the largest are tied, and those below NO_DISTANCE of the largest norm are
# zero; both are fractions, above the rounding errors of the mixtures.
SAME_DISTANCE, NO_DISTANCE = 1e-6, 1e-7


def break_ties(
    data: DataMatrix, rows: IntArray, maxima: FloatArray, n_wanted: int, ties: str
) -> tuple[IntArray, int]:
    """Return the rows with the largest maxima, distinct points, with a rule for ties, and the number tied."""
    # The open-loop weights are integers: points that are represented by themselves from the same iteration on
    # have the same maximum to the last digit, and on word correlations the last anchors are tied more often
    # than not. Duplicates, which the lowest index may select together, have distance zero.
    found: IntArray = np.empty(0, dtype=np.intp)
    start = n_tied = 0
    while start < len(rows) and len(found) < n_wanted:
        end = int(np.searchsorted(-maxima, -maxima[start] * (1.0 - SAME_MAXIMUM), side="right"))
        group = rows[start:end]
        n_left = n_wanted - len(found)
        if len(group) > n_left:
            n_tied = len(group)
            if ties == "farthest":
                group = np.sort(group)
                group = np.concatenate([_apart(data, group, found, n_left), group])
        found = distinct_rows(data, np.concatenate([found, group]), min(n_wanted, len(found) + len(group)))
        start = end
    # Candidates are sorted: the result keeps their order.
    return rows[np.isin(rows, found)], n_tied


def _apart(data: DataMatrix, group: IntArray, found: IntArray, n_wanted: int) -> IntArray:
    points = to_float64(data.take_rows(group)).astype(np.float64)
    held = as_data_matrix(points)
    vertices = to_float64(data.take_rows(found)).astype(np.float64)
    # Without anchors, the largest norm comes first, as in successive projections.
    distances = np.linalg.norm(points, axis=1)
    longest = max(distances.max(), np.linalg.norm(vertices, axis=1).max(initial=0.0))
    taken: list[int] = []
    for _ in range(n_wanted):
        if len(vertices):
            weights = to_float64(anchor_weights(held, vertices, sum_to_one=True))
            distances = np.linalg.norm(points - weights @ vertices, axis=1)
        largest = float(distances.max())
        if largest <= NO_DISTANCE * longest:
            break
        taken.append(int(np.argmax(distances >= (1.0 - SAME_DISTANCE) * largest)))
        vertices = np.concatenate([vertices, points[taken[-1] : taken[-1] + 1]])
    return group[taken]
