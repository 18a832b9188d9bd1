"""Catalogs of single base substitutions: the 96 channels by name, in COSMIC's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._arrays import checked_indices
from nonneg._typing import FloatArray
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
    as_data_errors,
)

SUBSTITUTIONS = ("C>A", "C>G", "C>T", "T>A", "T>C", "T>G")
CHANNELS = tuple(
    f"{left}[{change}]{right}" for change in SUBSTITUTIONS for left in "ACGT" for right in "ACGT"
)
"""COSMIC's names of the 96 channels of single base substitutions (SBS), in COSMIC's order."""

SUBSTITUTION_COLORS = {
    "C>A": "#03bcee",
    "C>G": "#5a5a5a",
    "C>T": "#e32926",
    "T>A": "#bdbcbc",
    "T>C": "#a1cf64",
    "T>G": "#edb6c2",
}
"""The colors that papers on mutational signatures use; black is dark gray, for dark pages."""

_PLACES = {name: at for at, name in enumerate(CHANNELS)}


def read_catalog(X: Any) -> tuple[FloatArray, list[str] | None]:
    """Return counts with samples in rows and COSMIC's order in columns, and the names of samples."""
    table, samples = _by_channels(X, "counts")
    return _checked(table), samples


def _by_channels(X: Any, what: str) -> tuple[Any, list[str] | None]:
    """Return a table with COSMIC's order of the channels in columns, and the names of its rows.

    A data frame names its channels, in rows (COSMIC's layout, 96 x n) or in columns, in any order. An array
    has the 96 channels of COSMIC's order in rows or, if it does not have 96 rows, in columns.
    """
    if hasattr(X, "columns") and not hasattr(X, "index"):
        raise DataTypeError(
            f"Expected {what} as an array, or as a pandas.DataFrame with mutation types as index or columns; "
            "got a frame without an index. Pass X.to_pandas(), with set_index of the column of types."
        )
    if hasattr(X, "columns"):
        names = [[str(name).strip() for name in axis] for axis in (X.index, X.columns)]
        known = [sum(name in _PLACES for name in axis) for axis in names]
        in_rows = known[0] >= known[1]
        table = X.to_numpy()
        return (table.T if in_rows else table)[:, _places(names[not in_rows])], names[in_rows]
    with as_data_errors():
        table = checked_indices(X).toarray() if hasattr(X, "toarray") else np.asarray(X)
    if table.ndim != 2 or len(CHANNELS) not in table.shape:
        raise ShapeError(
            f"Expected {what} of 96 mutation types x n, as in COSMIC's tables, or n x 96, got an array of "
            f"shape {table.shape}."
        )
    return table.T if table.shape[0] == len(CHANNELS) else table, None


def _places(names: Sequence[str]) -> Any:
    """Return where each channel of COSMIC's order stands, or say which names are wrong."""
    places = {name: at for at, name in enumerate(names)}
    missing = [name for name in CHANNELS if name not in places]
    strange = [name for name in names if name not in _PLACES]
    if missing or strange or len(places) < len(names):
        twice = sorted({name for name in names if list(names).count(name) > 1})
        problems = [
            f"{len(words)} {what} ({', '.join(words[:4])}{', ...' if len(words) > 4 else ''})"
            for what, words in (("missing", missing), ("unknown", strange), ("repeated", twice))
            if words
        ]
        raise InvalidDataError(
            "Expected the 96 channels of single base substitutions by COSMIC's names, such as A[C>A]A, in "
            f"rows or columns: {'; '.join(problems)}. Rename or leave out the others."
        )
    return np.array([places[name] for name in CHANNELS])


def _checked(counts: Any, channels: Sequence[str] = CHANNELS) -> FloatArray:
    try:
        values = np.ascontiguousarray(counts, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidDataError("Expected counts of mutations as numbers; the table contains text.") from error
    if not np.isfinite(values).all():
        i, j = np.argwhere(~np.isfinite(values))[0]
        raise NonFiniteDataError(f"Sample {i}, channel {channels[j]} is {values[i, j]}: expected a count.")
    if values.size and values.min() < 0:
        i, j = np.argwhere(values < 0)[0]
        raise NegativeDataError(f"Sample {i}, channel {channels[j]} is {values[i, j]:g}: expected a count.")
    if np.any(values != np.rint(values)):
        i, j = np.argwhere(values != np.rint(values))[0]
        raise InvalidDataError(
            f"Sample {i}, channel {channels[j]} is {values[i, j]:g}, but counts of mutations are integers. "
            f"Pass counts, not fractions or rates."
        )
    return values


def read_signatures(table: Any) -> tuple[FloatArray, list[str]]:
    """Return reference signatures, one per row and summing to one, and their names."""
    values, names = _by_channels(table, "reference signatures")
    return _normalized(values), names or [str(at) for at in range(len(values))]


def _normalized(table: Any) -> FloatArray:
    values = np.asarray(table, dtype=np.float64)
    sums = values.sum(axis=1, keepdims=True)
    if not np.isfinite(values).all() or values.min() < 0 or not (sums > 0).all():
        raise InvalidDataError("Expected reference signatures of nonnegative numbers, none of them all zero.")
    return values / sums


def read_aligned(X: Any, reference: Any) -> tuple[FloatArray, FloatArray, list[str], list[str]]:
    """Return counts and signatures with the same channels in columns, names of samples and of signatures.

    Data frames of other contexts than the 96 have the channels that both name, in rows or columns.
    """
    if hasattr(X, "columns") and hasattr(reference, "columns"):
        axes = [(frame.index, frame.columns) for frame in (X, reference)]
        words = [[{str(name).strip() for name in axis} for axis in pair] for pair in axes]
        common = {(i, j): words[0][i] & words[1][j] for i in (0, 1) for j in (0, 1)}
        (i, j), shared = max(common.items(), key=lambda item: len(item[1]))
        if shared and not shared <= set(CHANNELS):
            tables, names = [], []
            for frame, axis in ((X, i), (reference, j)):
                table = frame.T if axis else frame  # channels in rows
                table = table.set_axis([str(name).strip() for name in table.index], axis=0)
                lost = sorted(set(table.index) ^ shared) + list(table.index[table.index.duplicated()])
                if lost:
                    raise InvalidDataError(
                        "Expected the same channels in the catalog and in the reference, each once: "
                        f"{len(lost)} are not ({', '.join(lost[:4])}{', ...' if len(lost) > 4 else ''})."
                    )
                tables.append(table.loc[sorted(shared)].to_numpy().T)
                names.append([str(name).strip() for name in table.columns])
            return _checked(tables[0], sorted(shared)), _normalized(tables[1]), names[0], names[1]
    counts, samples = read_catalog(X)
    signatures, known = read_signatures(reference)
    return counts, signatures, samples or [str(at) for at in range(len(counts))], known
