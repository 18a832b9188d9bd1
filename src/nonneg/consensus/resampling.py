"""Data of a restart: samples drawn with replacement, or resampled counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import to_float64, to_numpy
from nonneg._typing import FloatArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.data.sparse import SparseArrayMatrix, SparseMatrix, on_host, sparse_array_matrix
from nonneg.data.streamed import copied
from nonneg.data.views import ScaledMatrix
from nonneg.exceptions import InvalidDataError, UnsupportedInputError

RESAMPLING = ("bootstrap", "poisson")
# Counts beyond are whole numbers in name only, and a Poisson draw changes them by less than rounding shows.
_LARGEST_COUNT = 1e15


def check_resampling(data: DataMatrix, kind: str | None) -> None:
    """Reject containers that cannot be resampled, and Poisson draws of what is no count."""
    if kind is None:
        return
    data = on_host(data)
    host = data.numpy_out or data.xp.__name__.split(".")[-1] == "numpy"
    if not isinstance(data, DenseMatrix | SparseMatrix) or not host:
        raise UnsupportedInputError(
            f"resample={kind!r} needs X in memory as a NumPy array or a sparse matrix. Convert X, or use "
            "resample=None."
        )
    if kind == "poisson":
        values = data.csr.data if isinstance(data, SparseMatrix) else to_numpy(_entries(data))
        if np.any(values != np.rint(values)) or data.extremes()[1] > _LARGEST_COUNT:
            raise InvalidDataError(
                "resample='poisson' draws every entry of X from a Poisson distribution with that mean, "
                "which needs counts, but X has entries that are not whole numbers. Pass the counts as they "
                "were measured, or use resample='bootstrap', which draws samples with replacement."
            )


def resampled(
    counts: LocalMatrix,
    scaled: LocalMatrix,
    scale: FloatArray | None,
    kind: str,
    rng: np.random.Generator,
) -> LocalMatrix:
    """Return the scaled data of one restart."""
    if kind == "bootstrap":
        # A sample that is drawn twice counts twice: weights need no copy of the data.
        share = np.ones(scaled.shape[0]) if scaled.weights is None else to_float64(scaled.weights)
        drawn = rng.multinomial(scaled.shape[0], share / share.sum())
        weights = drawn * (share.sum() / scaled.shape[0])
        if isinstance(scaled, SparseArrayMatrix):
            return SparseArrayMatrix(scaled.csr, weights=scaled.to_device(weights))
        return _with_entries(scaled, _entries(scaled), scaled.to_device(weights))
    entries = _entries(counts)
    if isinstance(counts, SparseMatrix):
        entries = entries.copy()
        entries.data = rng.poisson(entries.data).astype(counts.dtype)
        entries.eliminate_zeros()
    else:
        # Drawn on the host, so that a GPU gets the same numbers.
        entries = counts.to_device(rng.poisson(to_numpy(entries)))
    drawn_data = _with_entries(counts, entries, counts.weights)
    if scale is not None:
        drawn_data = ScaledMatrix(drawn_data, column_scale=drawn_data.to_device(1.0 / scale)).materialized()
    if not isinstance(drawn_data, SparseMatrix) or isinstance(scaled, SparseMatrix):
        return drawn_data
    # Sparse counts of the host, where the restarts run.
    if isinstance(scaled, SparseArrayMatrix):
        return sparse_array_matrix(copied(drawn_data.csr, scaled.csr.data.device), drawn_data.weights)
    return DenseMatrix(scaled.to_device(drawn_data.csr.toarray()), scaled.xp, weights=scaled.weights)


def _entries(data: LocalMatrix) -> Any:
    return data.csr if isinstance(data, SparseMatrix) else data.dense_rows(0, data.shape[0])


def _with_entries(like: LocalMatrix, entries: Any, weights: Any) -> LocalMatrix:
    if isinstance(like, SparseMatrix):
        return SparseMatrix(entries, weights=weights)
    return DenseMatrix(entries, like.xp, weights=weights)
