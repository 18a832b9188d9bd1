"""AnnData and data frames as data: which matrix, which variables, and the names of both sides.

The anndata library is not imported: whoever passes such an object has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    ShapeError,
    UnknownNameError,
)
from nonneg.io.hdf5 import HIGHLY_VARIABLE
from nonneg.io.read import as_stored

_N_SHOWN = 5


@dataclass(frozen=True, eq=False)
class AnnDataMatrix:
    """A matrix of an AnnData object; `nonneg.integrations.anndata.matrix` makes it."""

    adata: Any
    layer: str | None = None  # None for X
    use_highly_variable: bool | None = False  # None: if there is such a column

    @property
    def shape(self) -> tuple[int, int]:
        """Observations and chosen variables."""
        variables = self.variables()
        return int(self.adata.n_obs), int(self.adata.n_vars) if variables is None else int(variables.size)

    @property
    def place(self) -> str:
        """Place of the entries, as a user would type it."""
        return "adata.X" if self.layer is None else f"adata.layers[{self.layer!r}]"

    def variables(self) -> Any:
        """Return the indices of the chosen variables, None for all."""
        highly, columns = self.use_highly_variable, self.adata.var
        if highly is None:
            highly = HIGHLY_VARIABLE in columns
        if not highly:
            return None
        if HIGHLY_VARIABLE not in columns:
            raise InvalidParameterError(
                f"use_highly_variable=True, but adata.var has no column {HIGHLY_VARIABLE!r} (columns: "
                f"{_some(columns.columns) or 'none'}). Run scanpy.pp.highly_variable_genes first, or leave "
                "use_highly_variable out."
            )
        variables = np.flatnonzero(columns[HIGHLY_VARIABLE].isin([True]))
        if variables.size == 0:
            raise InvalidDataError(
                f"adata.var[{HIGHLY_VARIABLE!r}] is True for none of {len(columns)} variables. Choose some, "
                "or pass use_highly_variable=False."
            )
        return variables

    def stored(self) -> Any:
        """Return the entries of all variables, as AnnData holds them."""
        if self.layer is None:
            entries = self.adata.X
            if entries is None:
                raise InvalidDataError(
                    f"adata.X is None. {self._layers()} Pass layer='NAME' for one of them."
                )
            return entries
        if self.layer not in self.adata.layers:
            raise UnknownNameError.of("layer", self.layer, self._layer_names(), other="None for X")
        return self.adata.layers[self.layer]

    def advice(self) -> str:
        """Say what to do about negative entries."""
        return (
            f"{self.place} looks like the result of scanpy.pp.scale or another step that centers genes. Pass "
            f"counts or log-normalized values from before it: layer='NAME' of "
            f"nonneg.integrations.anndata.matrix or nonneg.integrations.scanpy.nmf. {self._layers()}"
        )

    def _layer_names(self) -> list[str]:
        # From version 0.13 on, AnnData lists X among the layers, under the key None.
        return [str(name) for name in self.adata.layers if name is not None]

    def _layers(self) -> str:
        names = ", ".join(map(repr, self._layer_names()))
        return f"Layers: {names}." if names else "There are no layers."


@dataclass(frozen=True, eq=False)
class Annotated:
    """Entries with the names of their rows and columns."""

    entries: Any
    row_names: Any
    column_names: Any
    source: AnnDataMatrix


def is_anndata(X: Any) -> bool:
    """Tell an AnnData object, or a view of one, from everything else."""
    return all(hasattr(type(X), name) for name in ("obs_names", "var_names", "layers", "obsm", "varm"))


def annotated_matrix(X: Any, *, names: Sequence[str] | None = None, who: str = "") -> Annotated | None:
    """Return the matrix that an AnnData object stands for; `names` are the variables that a fit has seen."""
    if is_anndata(X):
        X = AnnDataMatrix(X)
    if isinstance(X, Annotated):
        return X
    if not isinstance(X, AnnDataMatrix):
        return None
    index = X.adata.var_names
    columns = X.variables() if names is None else _places(index, names, who)
    entries = X.stored()
    if (on_disk := as_stored(entries)) is not None:  # backed mode
        entries = on_disk
        if columns is not None:
            entries.select(np.asarray(columns, dtype=np.int64))
    elif columns is not None:
        entries = entries[:, columns]
    return Annotated(entries, X.adata.obs_names, index if columns is None else index[columns], X)


def _places(index: Any, names: Sequence[str], who: str) -> Any:
    # The variables of the fit, wherever they are now: a fit to the highly variable genes takes all of them.
    if list(index) == list(names):
        return None
    if not index.is_unique:
        raise ShapeError(
            "adata.var_names are not unique, so the variables of the fit cannot be found by name. Call "
            "adata.var_names_make_unique() before the fit and here."
        )
    places = index.get_indexer(names)
    lost = [name for name, place in zip(names, places, strict=True) if place < 0]
    if lost:
        raise ShapeError(
            f"{who} was fitted to {len(names)} variables, but adata lacks {len(lost)} of them "
            f"({_some(lost)}). Give an object with the variables of the fit; their order does not matter."
        )
    return places


def _some(names: Any) -> str:
    listed = [repr(str(name)) for name in names]
    rest = f" and {len(listed) - _N_SHOWN} more" if len(listed) > _N_SHOWN else ""
    return ", ".join(listed[:_N_SHOWN]) + rest


def frame_labels(X: Any, *, unique: bool = False) -> tuple[Any, Any] | None:
    """Return the labels of rows and columns of a data frame, whose columns must be numeric."""
    if not (hasattr(X, "iloc") and hasattr(X, "dtypes") and len(getattr(X, "shape", ())) == 2):
        return None
    if unique and not X.columns.is_unique:
        name = X.columns[X.columns.duplicated()][0]
        raise InvalidDataError(
            f"Expected a data frame with distinct column names, got {name!r} more than once. Rename its "
            "columns, or pass X.to_numpy()."
        )
    bad: dict[Any, Any] = {}  # columns with a cell that is no number, and the first such cell
    for column, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        if getattr(dtype, "kind", "O") in "OUSMm":  # which may be text, objects, dates and durations
            wrong = [cell for cell in zip(X.index, X.iloc[:, column], strict=True) if not _is_number(cell[1])]
            bad |= {name: wrong[0]} if wrong else {}
    if bad:
        (name, (row, value)), *_ = bad.items()
        what = "text" if isinstance(value, str) else f"objects of type {type(value).__name__}"
        raise DataTypeError(
            f"X contains {what}: row {row!r}, column {name!r} is {value!r}. Expected numbers; convert it, or "
            f"leave it out, for example X.drop(columns={name if len(bad) == 1 else [*bad]!r})."
        )
    return X.index, X.columns


def check_labels(labels: tuple[Any, Any] | None, table: Any, name: str) -> None:
    """Reject a data frame for the entries of X if its labels are others; numbers of rows are none."""
    axes = getattr(table, "axes", ()) if hasattr(table, "iloc") else ()
    for side, own, other in zip(("row", "column"), labels or (), axes, strict=False):
        named = own is not None and "RangeIndex" not in (type(own).__name__, type(other).__name__)
        if named and list(own) != list(other):
            raise InvalidDataError(f"The {side}s of {name} are not those of X. Sort them, or pass an array.")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None or type(value).__name__ == "NAType"  # missing, in columns of objects
    return True
