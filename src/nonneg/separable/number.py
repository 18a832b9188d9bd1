"""Which rows are the anchors, and how many, given the largest coefficient of every row."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray


def leading_rows(row_maxima: Any, n_anchors: int | None = None) -> tuple[IntArray, FloatArray]:
    """Return the rows with the largest maxima.

    Parameters
    ----------
    row_maxima : array of shape (n,)
        The largest coefficient of every row.
    n_anchors : int, optional
        How many; by default up to the largest drop of the sorted maxima, the first of equal ones.

    Returns
    -------
    anchors : array of int
        The rows, largest maximum first, of equal ones the lowest index first.
    curve : array of shape (n,)
        The maxima, largest first.
    """
    maxima = np.asarray(row_maxima, dtype=np.float64)
    order = np.argsort(-maxima, kind="stable")
    curve = maxima[order]
    if n_anchors is None:
        # After the last row comes nothing: all rows are anchors if that drop is the largest.
        drops = curve - np.append(curve[1:], 0.0)
        n_anchors = int(np.argmax(drops)) + 1
    return order[:n_anchors].astype(np.intp), curve
