"""The data operator and its containers: dense, sparse, GPU, chunked and stored entries, one interface."""

from __future__ import annotations

from typing import Any

from nonneg._arrays import is_dask
from nonneg.data.local import local_matrix
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.io.stored import StoredMatrix

__all__ = ["DataMatrix", "LocalMatrix", "as_data_matrix"]


def as_data_matrix(X: Any, *, weights: Any = None, mask: Any = None) -> DataMatrix:
    """Wrap entries in the container that accepts them, without the checks of `nonneg.data.door.wrap`."""
    if isinstance(X, DataMatrix):
        return X
    if isinstance(X, StoredMatrix):
        from nonneg.data.streamed import StreamedMatrix

        return StreamedMatrix(X, weights=weights, mask=mask)
    if is_dask(X):
        from nonneg.data.chunked import ChunkedMatrix

        return ChunkedMatrix(X, weights=weights, mask=mask)
    return local_matrix(X, weights=weights, mask=mask)
