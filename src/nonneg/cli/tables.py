"""Tables of the command line: which columns, which labels, and errors that name line and column."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonneg.cli import terminal
from nonneg.exceptions import InvalidParameterError, NegativeDataError, NonFiniteDataError

if TYPE_CHECKING:
    from nonneg.io import Table

READING = """
--[no-]header: whether the first line contains names (default: detect)
--[no-]index: whether the first column contains names (default: detect)
--delimiter CHAR: separator of the cells of a text file (default: detect)
--columns NAME,...+: use these columns only, by name or by position from 0; may be repeated
--drop NAME,...+: leave these columns out, by name or by position from 0; may be repeated
--variable NAME: which array of a .npz, .mat, .h5ad or 10x .h5 file to read
--layer NAME: which layer of an .h5ad file to read (default: X)
--highly-variable: read only the variables that an .h5ad file marks as highly variable
--transpose: transpose the data: samples must be rows
--dtype float32|float64: convert the entries first
""".strip()
"""Options that say how a file is read."""
LABEL = "--label-column NAME: column of known classes, by name or position from 0: compared, not factorized"
MEMORY = """
--memory SIZE: memory to use, such as 2GB (default: half of the machine's); a larger .npy, .zarr, .h5ad, .h5
    or .parquet file is read block by block in every iteration
""".strip()
H5AD = "--write-h5ad FILE: also write a copy of the .h5ad input with weights, components and certificate"


def check_h5ad(options: argparse.Namespace) -> None:
    """Reject an impossible --write-h5ad before any work."""
    if options.write_h5ad is None:
        return
    from nonneg._optional import import_optional
    from nonneg.integrations.anndata import check_target

    check_target(options.file, options.write_h5ad)
    if options.transpose:
        raise InvalidParameterError("--write-h5ad and --transpose cannot be combined. Leave one of them out.")
    import_optional("anndata", extra="singlecell", purpose="--write-h5ad")


def write_h5ad(options: argparse.Namespace, model: Any, W: Any, names: Sequence[str] | None) -> list[Path]:
    """Write the copy, if it was asked for."""
    if options.write_h5ad is None:
        return []
    from nonneg.integrations import anndata

    params = {"layer": options.layer, "use_highly_variable": options.highly_variable}
    anndata.write_h5ad(options.file, options.write_h5ad, model, W, feature_names=names, params=params)
    return [options.write_h5ad]


def read_input(
    options: argparse.Namespace, *, signed: bool = False, infinite: bool = False, names: Sequence[str] = ()
) -> Table:
    """Read the file as the options say, with negative and infinite entries or not; `names` are known."""
    from nonneg.io import read_table
    from nonneg.report.words import counted

    table = _streamed_table(options, signed=signed)
    if table is not None:
        return table
    table = read_table(options.file, **_reading(options), known=() if options.transpose else tuple(names))
    if options.transpose:
        table = table.transposed()
    else:
        _check_entries(table, options, signed=signed, infinite=infinite)
    if options.dtype is not None:
        table = replace(table, X=table.X.astype(options.dtype, copy=False))
    rows, columns = table.X.shape
    named = ["" if names is None else " (named)" for names in (table.row_names, table.column_names)]
    labels = "" if table.labels is None else f", labels from {table.label_name}"
    if hasattr(options, "label_column") and 2 * len(set(table.row_names or range(rows))) <= rows:
        terminal.note("note: names of samples repeat; if they are classes, --label-column NAME compares them")
    terminal.progress(
        f"read {table_name(table)}: {counted(rows, 'sample')}"
        f"{named[0]} x {counted(columns, 'feature')}{named[1]}, {table.X.dtype}{labels}"
    )
    return table


def read_uncertainty(options: argparse.Namespace, table: Table) -> Any:
    """Read the standard deviations, in the order of the data; infinite where there is none."""
    if options.uncertainty is None:
        return None
    import numpy as np

    if hasattr(table.X, "stored") or getattr(options, "scheduler", None) is not None:
        raise InvalidParameterError("--uncertainty needs data that fit in memory, on this machine.")
    same = argparse.Namespace(**{**vars(options), "file": options.uncertainty})
    read = read_input(same, signed=True, infinite=True, names=table.column_names or ())
    if not isinstance(read.X, np.ndarray):
        raise InvalidParameterError("--uncertainty needs a table of all entries, dense and in memory.")
    S, names = np.where(np.isnan(read.X), np.inf, read.X), read.column_names
    if names is not None and table.column_names is not None:
        if set(names) != set(table.column_names):
            raise InvalidParameterError("The columns of --uncertainty are not those of the data.")
        S = S[:, [names.index(name) for name in table.column_names]]
    if table.row_names is not None and read.row_names not in (None, table.row_names):
        raise InvalidParameterError("The rows of --uncertainty are not those of the data, in their order.")
    return S


def _streamed_table(options: argparse.Namespace, *, signed: bool) -> Table | None:
    """Open a file that does not fit in memory, and check it in its first pass; None for all others."""
    import numpy as np

    from nonneg.data.door import Request, wrap
    from nonneg.io.memory import checked_memory, written_bytes
    from nonneg.io.read import format_of, open_stored
    from nonneg.io.table import ReadOptions, Table
    from nonneg.solvers.registry import beta_of

    if not hasattr(options, "memory"):
        return None
    memory, path = checked_memory(options.memory), options.file
    form = format_of(path)
    # Other formats can only be read whole, which is said where the memory was given.
    too_large = options.memory is not None and path.is_file() and path.stat().st_size > memory
    if form.open is None and not too_large:
        return None
    stored = open_stored(path, ReadOptions(**_reading(options)), memory)
    if stored.fits():
        stored.close()
        return None
    terminal.progress(
        f"{path.name} ({written_bytes(stored.n_bytes)}) does not fit in {written_bytes(memory)}: it is "
        "read block by block"
    )
    if options.transpose or getattr(options, "label_column", None):
        raise InvalidParameterError(
            f"{'--transpose' if options.transpose else '--label-column'} needs the whole table in memory, "
            f"and {path.name} does not fit in {written_bytes(memory)}. Leave it out, or allow more with "
            "--memory."
        )
    if options.dtype is not None:
        stored.converted_dtype = np.dtype(options.dtype)
    beta = beta_of(getattr(options, "loss", None) or "frobenius")
    request = Request(
        missing=getattr(options, "missing", None) or "error", signed=signed, positive=beta <= 0,
        who="a nonnegative factorization", verbose=int(not options.quiet),
    )  # fmt: skip
    return Table(wrap(stored, request), stored.row_names, stored.column_names, str(path), form.kind)


def stored_reader(options: argparse.Namespace) -> Any:
    """Return a function that reads a range of rows of the file, wherever it is called."""
    return partial(_read_stored, options.file.resolve(), _reading(options), options.dtype)


def _read_stored(path: Path, reading: dict[str, Any], dtype: str | None, start: int, stop: int) -> Any:
    import numpy

    from nonneg.io.read import open_stored
    from nonneg.io.table import ReadOptions

    with open_stored(path, ReadOptions(**reading), None) as stored:
        stored.converted_dtype = None if dtype is None else numpy.dtype(dtype)
        return stored.read_rows(start, stop)


def name_features(model: Any, names: Sequence[str] | None) -> None:
    """Let a model know the names of its features, by which `nonneg transform` finds them in other data."""
    import numpy as np

    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)


def table_name(table: Table) -> str:
    """Name the data as a person would."""
    return Path(table.source).name or table.source


def _reading(options: argparse.Namespace) -> dict[str, Any]:
    columns = _listed(options.columns)
    variable = options.variable
    if options.layer is not None:
        if variable is not None or options.file.suffix != ".h5ad":
            raise InvalidParameterError(
                "--layer names a layer of an .h5ad file. Name other arrays with --variable; "
                "give one of the two."
            )
        variable = f"layers/{options.layer}"
    return {
        "header": "auto" if options.header is None else options.header,
        "index": "auto" if options.index is None else options.index,
        "variable": variable,
        "highly_variable": options.highly_variable,
        "delimiter": options.delimiter,
        "columns": columns or None,
        "drop": _listed(options.drop),
        "label": getattr(options, "label_column", None),
    }


def _listed(lists: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for words in lists or () for name in words.split(",") if name.strip())


def _check_entries(table: Table, options: argparse.Namespace, *, signed: bool, infinite: bool) -> None:
    """Reject missing, infinite and negative entries by line and column, before any work."""
    import numpy as np
    from scipy import sparse

    values = table.X.data if sparse.issparse(table.X) else table.X
    masked = getattr(options, "missing", None) == "mask"
    lost = (np.isnan(values) & (not masked)) | (np.isinf(values) & (not infinite))
    bad = lost if lost.any() or signed else values < 0
    if not bad.any():
        return
    # Of a compressed matrix the stored order is that of its coordinates.
    places = sparse.coo_array(table.X).coords if sparse.issparse(table.X) else np.indices(values.shape)
    rows, columns = (side[bad] for side in places)
    value = float(values[bad][0])
    names = [str(at) if table.column_names is None else table.column_names[at] for at in np.unique(columns)]
    several = f" ({len(rows)} such entries in all)" if len(rows) > 1 else ""
    where = _named(table, int(rows[0]), int(columns[0]))
    plural = "s" * (len(names) > 1)
    few = len(names) <= max(1, values.shape[1] // 4)  # else it would cost too much of the table
    drop = f"or leave the column{plural} out" + (
        f" with --drop {shlex.quote(','.join(names))}" if few else ""
    )
    if lost.any():
        what, remedy = f"is {value}", "Correct it"
        if np.isnan(value):
            ignored = ", ignore missing entries with --missing mask" * hasattr(options, "missing")
            what, remedy = "is missing", f"Fill it in{ignored}"
        raise NonFiniteDataError(f"{where} {what}{several}. {remedy}, {drop}.")
    keep = ", keep noise below zero with --negative keep" * hasattr(options, "negative")
    remedy = f"Correct it, undo centering, leave the cell empty if it marks a missing entry{keep}, {drop}"
    if table.kind == "h5ad":
        remedy = (
            "This looks like the result of scanpy.pp.scale. Choose counts or log-normalized values with "
            "--layer NAME (or --variable raw/X), or write a file from before that step"
        )
    raise NegativeDataError(
        f"{where} is {value:g}{several}, and a nonnegative factorization needs entries of at least 0. "
        f"{remedy}."
    )


def _named(table: Table, row: int, column: int) -> str:
    where = f"row {row} (from 0)" if table.lines is None else f"line {table.lines[row]}"
    if table.row_names is not None:
        where += f" ({table.row_names[row]!r})"
    name = f"column {column}" if table.column_names is None else f"column {table.column_names[column]!r}"
    return f"{table.source}, {where}, {name}: the entry"
