"""Tables that readers return, and what a caller may ask of a reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from nonneg._arrays import checked_indices
from nonneg._typing import SparseMatrix
from nonneg.exceptions import DataTypeError, FileFormatError, InvalidParameterError, UnknownNameError

Presence: TypeAlias = bool | Literal["auto"]
"""Presence of a header or an index column: yes, no, or look and decide."""


@dataclass(frozen=True)
class ReadOptions:
    """Options of a reader; each reader uses those of its format."""

    header: Presence = "auto"
    index: Presence = "auto"
    variable: str | None = None  # which array of a file with several
    delimiter: str | None = None
    highly_variable: bool = False  # of an AnnData file: only the variables that are marked so
    # Columns by name, or by position from 0.
    columns: tuple[str, ...] | None = None  # the features; None for all
    drop: tuple[str, ...] = ()  # columns to leave out
    label: str | None = None  # the column of labels, which is not a feature
    known: tuple[str, ...] = ()  # features of a model: columns of other names may contain text

    def __post_init__(self) -> None:
        if self.delimiter == r"\t":  # as a shell passes it on
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise InvalidParameterError(
                f"delimiter={self.delimiter!r} (--delimiter) is not allowed. Expected one character, or \\t "
                "for a tab."
            )

    @property
    def mentioned(self) -> tuple[str, ...]:
        """The columns that the user speaks of."""
        return (*(self.columns or ()), *self.drop, *([] if self.label is None else [self.label]))

    def places(
        self, names: Sequence[str] | None, n_columns: int, source: str
    ) -> tuple[list[int], int | None]:
        """Return the positions of the features in the order of the file, and of the labels."""
        label = None if self.label is None else _place(self.label, names, n_columns, "column", source)
        chosen = list(range(n_columns))
        if self.columns is not None:
            chosen = sorted({_place(one, names, n_columns, "--columns", source) for one in self.columns})
        elif names is not None:
            chosen = [at for at, name in enumerate(names) if name in self.known] or chosen
        left_out = {_place(one, names, n_columns, "--drop", source) for one in self.drop} | {label}
        columns = [at for at in chosen if at not in left_out]
        if not columns:
            raise InvalidParameterError(
                f"--columns, --drop and a column of classes leave none of the {n_columns} columns of "
                f"{source}. Leave at least one as a feature."
            )
        return columns, label


def _place(word: str, names: Sequence[str] | None, n_columns: int, option: str, source: str) -> int:
    if names is not None and word in names:
        return list(names).index(word)
    if word.isdecimal() and int(word) < n_columns:
        return int(word)
    position = f"a position from 0 to {n_columns - 1}"
    if names is None:
        raise InvalidParameterError(f"{option} {word}: {source} has no column names. Give {position}.")
    raise UnknownNameError.of(option, word, names, other=position)


def check_variable(variable: str | None, path: Path, words: str, *, several: bool) -> None:
    """Reject a choice among several arrays if a file contains only one, rather than ignore it."""
    if variable is not None and not several:
        raise InvalidParameterError(
            f"variable={variable!r} (--variable) chooses among the arrays of a .npz, .mat or HDF5 file. "
            f"{path} is {words} and contains only one: leave it out."
        )


def choose_array(arrays: Mapping[str, Any], variable: str | None, source: str, *, cube: bool = False) -> Any:
    """Pick the array that is meant: that of the name, or the only one that can hold data."""
    numeric = {name: array for name, array in arrays.items() if array.dtype.kind in "buif"}
    listing = ", ".join(
        f"{name} ({' x '.join(map(str, array.shape)) or 'scalar'})" for name, array in numeric.items()
    )
    if variable is not None:
        if variable not in arrays:
            raise FileFormatError(f"{source} contains no variable {variable!r}. It contains: {listing}.")
        return arrays[variable]
    if not arrays:
        raise FileFormatError(f"{source} contains no numeric array.")
    # Labels, scalars and vectors often lie beside the data; MATLAB gives all of them two dimensions. An image
    # cube is no table, but it may be what is meant, so that a matrix beside it is not taken.
    candidates = [
        name
        for name, array in numeric.items()
        if (array.ndim == 3 if cube else sum(length > 1 for length in array.shape) > 1)
    ]
    # Where none is numeric, the caller says what it is.
    if len(numeric or arrays) == 1:
        candidates = list(numeric or arrays)
    if len(candidates) != 1:
        raise FileFormatError(
            f"{source} contains several variables: {listing}. Choose one with variable='NAME' (--variable "
            "NAME)."
        )
    return arrays[candidates[0]]


@dataclass(frozen=True)
class Table:
    """A data matrix with the names of its rows and columns."""

    X: Any  # the entries: a NumPy array, or CSR or CSC
    row_names: Sequence[str] | None = None  # one name per row
    column_names: Sequence[str] | None = None  # one name per column
    source: str = ""  # the path the table was read from
    kind: str = ""  # the format, such as ``"csv"``
    labels: Sequence[str] | None = None  # one label per row, from a column that is not in X
    label_name: str | None = None  # what that column is called
    lines: Sequence[int] | None = None  # of a text: the line of every row, from 1

    def transposed(self) -> Table:
        """Exchange rows and columns."""
        if self.labels is not None:
            raise InvalidParameterError(
                "A column of classes needs samples in rows, but --transpose turns columns into rows. Leave "
                "one of the two out."
            )
        X = self.X.T if sparse.issparse(self.X) else np.ascontiguousarray(self.X.T)
        return Table(X, self.column_names, self.row_names, self.source, self.kind)


def check_two_axes(shape: Sequence[int], source: str) -> None:
    """Reject an array with another number of axes than a table has."""
    if len(shape) != 2:
        raise FileFormatError(
            f"{source} contains an array of shape {tuple(shape)}; expected a table with two dimensions, one "
            "sample per row: X.reshape(len(X), -1) makes a row of each image; save that."
        )


def checked_table(table: Table, source: str, kind: str) -> Table:
    """Reject what is not a table of numbers, and check that the names fit the entries."""
    X = table.X
    if X.dtype.kind not in "buif":
        what = {"c": "complex numbers", "U": "text", "S": "text", "O": "objects"}.get(X.dtype.kind, "records")
        raise DataTypeError(
            f"{source} contains {what} (dtype {X.dtype}); expected real numbers. "
            "Save the numeric part on its own."
        )
    check_two_axes(X.shape, source)
    if 0 in X.shape:
        raise FileFormatError(
            f"{source} contains an empty table of shape {tuple(X.shape)}; expected at least one row and one "
            f"column."
        )
    if sparse.issparse(X):
        X = X if X.format in ("csr", "csc") else X.tocsr()
        with sound_sparse(source):
            checked_indices(X)
        if not X.has_canonical_format:
            if X.dtype.kind in "iu":
                X = X.astype(np.float64)  # small integers would wrap around where entries are added up
            X.sum_duplicates()
    if X.dtype.kind == "b":
        X = X.astype(np.uint8)

    sides = {"row_names": 0, "column_names": 1, "labels": 0}
    names = {name: getattr(table, name) for name in sides if getattr(table, name) is not None}
    for name, one in names.items():
        if len(one) != X.shape[sides[name]]:
            raise FileFormatError(
                f"{source} has {X.shape[sides[name]]} {('rows', 'columns')[sides[name]]} but {len(one)} "
                "names for them. It may be truncated; write it again from its source."
            )
        names[name] = tuple(map(str, one))
    return replace(table, X=X, source=source, kind=kind, **names)


def compressed_matrix(
    data: Any, indices: Any, indptr: Any, shape: tuple[int, int], *, by_rows: bool, source: str
) -> SparseMatrix:
    """Build a CSR or CSC matrix from stored arrays, after a check of every index."""
    build = sparse.csr_array if by_rows else sparse.csc_array
    with sound_sparse(source):
        if any(part.ndim != 1 or part.dtype.kind not in "iu" for part in (indices, indptr)):
            raise ValueError("indices and indptr must be integers in one dimension")
        matrix = build((data, indices, indptr), shape=shape)
        checked_indices(matrix)
    return matrix


@contextmanager
def sound_sparse(source: Any) -> Iterator[None]:
    """Explain what SciPy stumbles over while it builds and checks a sparse matrix."""
    try:
        yield
    except FileFormatError:
        raise
    except Exception as error:
        raise FileFormatError(
            f"{source} contains no sound sparse matrix, but one with missing parts or impossible indices: "
            f"{error.__cause__ or error}. Write it again from its source."
        ) from error
