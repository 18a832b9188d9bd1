"""Vertices of a selection: samples, or averages of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.separable.result import SelectionResult

AGGREGATES = ("mean", "median")


def vertices_of(data: DataMatrix, found: SelectionResult) -> Array:
    """Return the vertices, one per row, in the array type of the data."""
    return data.take_rows(found.anchors) if found.components is None else data.to_device(found.components)


def aggregated(rows: FloatArray, aggregate: str) -> FloatArray:
    """Return the mean of some samples, or their median feature by feature."""
    return np.median(rows, axis=0) if aggregate == "median" else rows.mean(axis=0)


def averaged_rows(data: DataMatrix, members: Sequence[IntArray], aggregate: str) -> FloatArray:
    """Return one average per group of samples, in float64."""
    return np.stack([aggregated(to_float64(data.take_rows(rows)), aggregate) for rows in members])


def averaged_norms(data: DataMatrix, members: Sequence[IntArray], norm: str, aggregate: str) -> FloatArray:
    """Return the average norm of each group of samples."""
    order = int(norm[1:])
    sizes = [np.linalg.norm(to_float64(data.take_rows(rows)), ord=order, axis=1) for rows in members]
    return np.stack([aggregated(size, aggregate) for size in sizes])


def in_range(components: Any, data: DataMatrix) -> Array:
    """Return averages in the array type of the data; those of nonnegative samples are not negative."""
    host = to_float64(components)
    if (host < 0).any() and data.extremes()[0] >= 0:
        host = np.clip(host, 0.0, None)
    return data.to_device(host)
