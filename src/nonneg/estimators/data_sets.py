"""Several data sets as users pass them: lists, dicts, or one array with the data set of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import to_numpy
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.annotated import AnnDataMatrix, is_anndata
from nonneg.estimators._base import FactorizingEstimator, input_data
from nonneg.exceptions import InvalidDataError, InvalidParameterError, ShapeError, UnsupportedInputError


@dataclass(frozen=True)
class DataSets:
    """Data sets with their names."""

    names: list[str]
    matrices: list[DataMatrix]
    form: str  # "one", "list", "dict" or "rows": how they came, and how weights are returned
    rows: list[Any] | None = None  # where the rows of each were, for one array

    @property
    def anonymous(self) -> bool:
        """Whether one data set came without a name."""
        return self.form == "one"

    @property
    def shape(self) -> tuple[int, int]:
        """Samples of all data sets, and features."""
        return sum(one.shape[0] for one in self.matrices), self.matrices[0].shape[1]

    def joined(self, weights: list[Any]) -> Any:
        """Return the weights of the data sets in the form of the data."""
        if self.form in ("list", "dict"):
            return list(weights) if self.form == "list" else dict(zip(self.names, weights, strict=True))
        if self.rows is None:
            return weights[0]
        plain = [to_numpy(one) for one in weights]
        W = np.empty((sum(map(len, plain)), plain[0].shape[1]), dtype=plain[0].dtype)
        for rows, one in zip(self.rows, plain, strict=True):
            W[rows] = one
        return self.matrices[0].to_sample_array(W)


def data_sets_of(
    estimator: FactorizingEstimator,
    X: Any,
    batch: Any,
    batch_key: str | None,
    *,
    reset: bool,
    sample_weight: Any = None,
) -> DataSets:
    """Validate several data sets; those after the first have its features."""
    by_name = isinstance(X, Mapping) and not sp.issparse(X)  # sparse matrices by keys are mappings too
    several = by_name or (isinstance(X, list | tuple) and len(X) > 0 and all(_is_matrix(one) for one in X))
    if batch_key is not None:
        batch = _labels_of(X, batch, batch_key)
    if not several:
        data = input_data(estimator, X, reset=reset, sample_weight=sample_weight)
        return DataSets(["0"], [data], "one") if batch is None else _split(data, batch)
    if batch is not None:
        raise InvalidParameterError("batch is for one array; a list or dict already separates the data sets.")
    names = [str(name) for name in X] if by_name else [str(at) for at in range(len(X))]
    given = list(X.values()) if by_name else list(X)
    if not given:
        raise InvalidDataError("Expected at least one data set, got none.")
    known = getattr(estimator, "batch_names_", None)
    if not reset and not by_name and known is not None:
        if len(given) != len(known):
            raise ShapeError(
                f"A list has the data sets of the fit in their order: expected {len(known)}, got "
                f"{len(given)}. Pass one array with batch='NAME', or a dict by name."
            )
        names = list(known)
    weights: list[Any] = [None] * len(given)
    if sample_weight is not None:
        lengths = [one.shape[0] for one in given]
        sample_weight = np.asarray(sample_weight)
        if len(sample_weight) != sum(lengths):
            raise ShapeError(
                f"sample_weight.shape == {sample_weight.shape}, expected ({sum(lengths)},): one weight per "
                "sample, data set after data set."
            )
        weights = np.split(sample_weight, np.cumsum(lengths)[:-1])
    matrices = [
        input_data(estimator, one, reset=reset and at == 0, sample_weight=own)
        for at, (one, own) in enumerate(zip(given, weights, strict=True))
    ]
    return DataSets(names, matrices, "dict" if by_name else "list")


def _is_matrix(X: Any) -> bool:
    return is_anndata(X) or isinstance(X, AnnDataMatrix) or len(getattr(X, "shape", ())) == 2


def _labels_of(X: Any, batch: Any, key: str) -> Any:
    if batch is not None:
        raise InvalidParameterError("batch and batch_key mean the same: pass only one of them.")
    adata = X.adata if isinstance(X, AnnDataMatrix) else X
    if not is_anndata(adata):
        raise InvalidParameterError("batch_key names a column of adata.obs, but X is not an AnnData object.")
    if key not in adata.obs:
        columns = ", ".join(map(repr, map(str, adata.obs.columns)))
        raise InvalidParameterError(
            f"batch_key={key!r} is not a column of adata.obs. Columns: {columns or 'none'}."
        )
    return np.asarray(adata.obs[key].astype(str))


def _split(data: DataMatrix, batch: Any) -> DataSets:
    if isinstance(batch, str) or np.ndim(batch) == 0:
        return DataSets([str(batch)], [data], "rows")
    labels = np.asarray([str(one) for one in np.asarray(batch).tolist()])
    if labels.shape != (data.shape[0],):
        raise ShapeError(f"batch has {labels.size} labels, but X has {data.shape[0]} samples.")
    names = sorted(set(labels.tolist()))
    if len(names) == 1:
        return DataSets(names, [data], "rows")
    if not isinstance(data, LocalMatrix):
        raise UnsupportedInputError(
            "batch splits X by rows, but X is not in memory. Pass a list with one array per data set."
        )
    rows = [np.flatnonzero(labels == name) for name in names]
    return DataSets(names, [data.select(own) for own in rows], "rows", rows)
