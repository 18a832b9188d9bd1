"""Samples in fewer dimensions: products with leading singular vectors, in the container of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._ties import vector_signs
from nonneg._typing import Array
from nonneg.data import DataMatrix, LocalMatrix, as_data_matrix
from nonneg.data.spectral import leading_vectors


def mean_row(data: DataMatrix) -> Any:
    """Return the mean of the samples."""
    _, (total,) = data.map_reduce_rows(_sum_rows, n_out=0)
    return to_float64(total)[:, 0] / data.shape[0]


def _sum_rows(block: LocalMatrix) -> tuple[tuple[()], tuple[Array]]:
    xp = block.xp
    ones = xp.ones((block.shape[0], 1), dtype=block.dtype, device=_device(block))
    return (), (xp.astype(block.transposed_times(ones), xp.float64),)


def _device(block: LocalMatrix) -> Any:
    array = getattr(block, "array", None)
    return array.device if block.container == "array" and array is not None else None


def projected(data: DataMatrix, basis: Any, *, offset: Any = None) -> DataMatrix:
    """Return the projected samples (x - offset) basis."""
    basis = np.asarray(basis, dtype=np.float64)
    shift = None if offset is None else data.to_device((offset @ basis)[None, :])
    (points,), _ = data.map_reduce_rows(_reduced, basis=data.to_device(basis), shift=shift)
    return as_data_matrix(points)


def _reduced(block: LocalMatrix, *, basis: Array, shift: Array | None) -> tuple[tuple[Array], tuple[()]]:
    points = block.times(basis)
    return (points if shift is None else points - shift,), ()


def principal_directions(data: DataMatrix, k: int, *, centered: bool) -> tuple[Any, Any]:
    """Return the leading directions of the samples, and their mean if it is subtracted."""
    # The centered data are never formed. With few features the covariance is decomposed; otherwise the
    # leading directions are computed in the span of k + 1 leading singular vectors and the mean, which
    # contains them if the data have at most k + 1 dimensions.
    if not centered:
        return leading_vectors(data, k), None
    mean = mean_row(data)
    n, m = data.shape
    span = leading_vectors(data, min(n, m, k + 1 if m > 500 else m))
    wide = np.linalg.qr(np.column_stack([span, mean]))[0] if span.shape[1] < m else span
    points = projected(data, wide, offset=mean)
    inner = leading_vectors(points, min(k, *points.shape))
    directions = wide @ inner
    # The signs of the inner directions depend on those of the columns of `wide`, which are arbitrary.
    return directions * vector_signs(directions), mean
