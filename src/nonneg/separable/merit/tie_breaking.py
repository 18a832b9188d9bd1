"""Which anchors are taken where more rows have the same largest coefficient than are wanted."""

from __future__ import annotations

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix, as_data_matrix
from nonneg.separable.row_maxima import distinct_rows
from nonneg.separable.weights import anchor_weights

# Row maxima within this share of one another are the same number but for rounding.
SAME_MAXIMUM = 1e-9
# Distances within this share of the largest are as good; below that share of the longest point there is none.
SAME_DISTANCE, NO_DISTANCE = 1e-6, 1e-7


def break_ties(
    data: DataMatrix, rows: IntArray, maxima: FloatArray, n_wanted: int, ties: str
) -> tuple[IntArray, int]:
    """Return the rows with the largest maxima, different points, with a rule for the last places."""
    # The open-loop weights are whole numbers: points that are represented by themselves from the same
    # iteration on have the same maximum to the last digit, and on word correlations the last anchors lie in
    # such a tie more often than not. Twins, which the lowest index may take together, are no distance apart.
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
    # Candidates are in order: what was found keeps it.
    return rows[np.isin(rows, found)], n_tied


def _apart(data: DataMatrix, group: IntArray, found: IntArray, n_wanted: int) -> IntArray:
    points = to_float64(data.take_rows(group)).astype(np.float64)
    held = as_data_matrix(points)
    corners = to_float64(data.take_rows(found)).astype(np.float64)
    # Of none the mixtures are nowhere: as in successive projections the longest point comes first.
    distances = np.linalg.norm(points, axis=1)
    longest = max(distances.max(), np.linalg.norm(corners, axis=1).max(initial=0.0))
    taken: list[int] = []
    for _ in range(n_wanted):
        if len(corners):
            weights = to_float64(anchor_weights(held, corners, sum_to_one=True))
            distances = np.linalg.norm(points - weights @ corners, axis=1)
        largest = float(distances.max())
        if largest <= NO_DISTANCE * longest:
            break
        taken.append(int(np.argmax(distances >= (1.0 - SAME_DISTANCE) * largest)))
        corners = np.concatenate([corners, points[taken[-1] : taken[-1] + 1]])
    return group[taken]
