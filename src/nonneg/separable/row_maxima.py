"""Anchors from row maxima: which rows, and how many."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix


def leading_rows(row_maxima: Any, n_components: int | None = None) -> tuple[IntArray, FloatArray]:
    """Return the rows with the largest maxima."""
    maxima = np.asarray(row_maxima, dtype=np.float64)
    order = np.argsort(-maxima, kind="stable")
    curve = maxima[order]
    if n_components is None:
        # After the last row comes zero: all rows are anchors if that drop is the largest.
        drops = curve - np.append(curve[1:], 0.0)
        n_components = int(np.argmax(drops)) + 1
    return order[:n_components].astype(np.intp), curve


def distinct_rows(data: DataMatrix, rows: IntArray, n_wanted: int) -> IntArray:
    """Return the first rows that are distinct samples: duplicates are not two anchors."""
    seen: set[bytes] = set()
    found: list[int] = []
    for start in range(0, len(rows), n_wanted):
        part = rows[start : start + n_wanted]
        points = np.ascontiguousarray(to_float64(data.take_rows(part)))
        for row, point in zip(part, points, strict=True):
            if len(found) < n_wanted and point.tobytes() not in seen:
                seen.add(point.tobytes())
                found.append(int(row))
        if len(found) == n_wanted:
            break
    return np.asarray(found, dtype=np.intp)
