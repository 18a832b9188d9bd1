"""Column scales: what the columns of X are divided by, and which of them dominate the loss."""

from __future__ import annotations

from collections.abc import Iterator
from operator import methodcaller

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.views import ScaledMatrix
from nonneg.exceptions import InvalidParameterError, UnsupportedInputError

SCALES = ("max", "std", "sum")
# Columns dominate if all of them count like fewer than two equal ones: their effective number is the inverse
# of the sum of their squared shares (Hill 1973, Ecology 54). The largest share is then above a half.
HALF = 0.5


def column_scale(data: DataMatrix, kind: str) -> FloatArray:
    """Return the maximum, standard deviation or sum of the observed entries of every column."""
    if data.is_weighted:
        raise InvalidParameterError(
            f"scale={kind!r} and weights of the entries are given, but both say how much each column counts. "
            "Leave one of them out."
        )
    largest, total, count = np.zeros(data.shape[1]), np.zeros(data.shape[1]), np.zeros(data.shape[1])
    for values, weights in _weighted_rows(data):
        largest = np.maximum(largest, np.where(weights > 0, values, 0.0).max(axis=0))
        total += np.sum(weights * values, axis=0)
        count += weights.sum(axis=0)
    scale = {"max": largest, "sum": total}.get(kind)
    if scale is None:
        mean = total / np.maximum(count, np.finfo(float).tiny)
        squares = sum(
            (np.sum(weights * (values - mean) ** 2, axis=0) for values, weights in _weighted_rows(data)),
            start=np.zeros(data.shape[1]),
        )
        deviation = np.sqrt(squares / np.maximum(count, np.finfo(float).tiny))
        # A column that is constant but for rounding has no deviation, and would outweigh all others.
        scale = np.where(deviation > 1e-9 * largest, deviation, largest)
    # Columns of zeros stay.
    return np.where(scale > 0, scale, 1.0)


def divided_columns(data: DataMatrix, scale: FloatArray | None) -> DataMatrix:
    """Return the data with every column divided by its scale."""
    if scale is None:
        return data
    scaled = ScaledMatrix(_local(data), column_scale=data.to_device(1.0 / scale)).materialized()
    scaled.numpy_out = data.numpy_out
    return scaled


def dominant_columns(data: DataMatrix, beta: float) -> tuple[list[int], float] | None:
    """Return the one or two columns that account for most of the loss, and their share, if there are any."""
    # Each entry counts in a beta-divergence about as much as its power beta: all alike for Itakura-Saito.
    if beta <= 0:
        return None
    sums = data.reduce_rows(methodcaller("column_powers", beta))
    sums = to_float64(sums)
    order = np.argsort(-sums, kind="stable")
    parts = sums[order] / max(float(sums.sum()), np.finfo(float).tiny)
    squares = float(np.sum(parts**2))
    # One or two columns are few only if there are more than twice as many.
    if not squares > HALF or data.shape[1] <= 2 / HALF:  # NaN where powers leave the range
        return None
    n_few = round(1.0 / squares)
    return order[:n_few].tolist(), float(parts[:n_few].sum())


def _weighted_rows(data: DataMatrix) -> Iterator[tuple[FloatArray, FloatArray]]:
    data = _local(data)
    for start, stop in data.row_blocks(1 << 20):
        values = to_float64(data.dense_rows(start, stop))
        weights = np.ones_like(values)
        if data.observed is not None:
            weights = to_float64(data.observed.dense_rows(start, stop))
        if data.weights is not None:
            weights = weights * to_float64(data.weights[start:stop])[:, None]
        yield values, weights


def _local(data: DataMatrix) -> LocalMatrix:
    if isinstance(data, LocalMatrix):
        return data
    raise UnsupportedInputError(
        "scale divides the columns of data in memory, but X is a Dask array or a file that does not fit. "
        "Divide it yourself, for example X / X.max(axis=0), and leave scale out."
    )
