"""The registry of formats, and the one function that reads any of them."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from nonneg.exceptions import FileFormatError, InvalidParameterError, NonnegError
from nonneg.io.table import (
    Contents,
    Presence,
    ReadOptions,
    Selection,
    Table,
    check_variable,
    checked_table,
    selected_columns,
)


@dataclass(frozen=True)
class Format:
    """A file format: its description, and its reader, which is imported when it is needed."""

    kind: str
    words: str
    reader: str  # module and function
    several: bool = False  # whether a file may hold more than one array, so that `variable` chooses
    opener: str = ""  # the function of `open_matrix` that opens it without reading it

    def read(self, path: Path, options: ReadOptions) -> Contents:
        """Import the reader, and read a file."""
        module, _, name = self.reader.partition(".")
        contents: Contents = getattr(importlib.import_module(f"nonneg.io.{module}"), name)(path, options)
        return contents


Result = TypeVar("Result")
_WHOLE = "open_matrix.read_whole"

ZARR = Format("zarr", "a Zarr array or AnnData store", _WHOLE, several=True, opener="zarr")
TEN_X_FOLDER = Format(
    "10x", "a folder with matrix.mtx, barcodes.tsv and features.tsv", "matrix_market.read_tenx_folder"
)

FORMATS = {
    ".npy": Format("npy", "a NumPy array", "npz.read_npy", opener="npy"),
    ".npz": Format("npz", "NumPy arrays, or a SciPy sparse matrix", "npz.read_npz", several=True),
    ".csv": Format("csv", "comma-separated text", "text.read"),
    ".tsv": Format("tsv", "tab-separated text", "text.read"),
    ".csv.gz": Format("csv", "compressed comma-separated text", "text.read"),
    ".tsv.gz": Format("tsv", "compressed tab-separated text", "text.read"),
    ".mtx": Format("mtx", "a Matrix Market file", "matrix_market.read"),
    ".mtx.gz": Format("mtx", "a compressed Matrix Market file", "matrix_market.read"),
    ".mat": Format("mat", "a MATLAB file", "matlab.read", several=True),
    ".parquet": Format("parquet", "a Parquet file", _WHOLE, opener="parquet"),
    ".h5ad": Format("h5ad", "an AnnData file", _WHOLE, several=True, opener="h5ad"),
    ".h5": Format("10x", "a 10x Genomics HDF5 file", _WHOLE, several=True, opener="hdf5"),
}


def known_suffixes() -> list[str]:
    """List the endings of the files that can be read."""
    return sorted(FORMATS)


def read_table(
    path: str | os.PathLike[str],
    *,
    header: Presence = "auto",
    index: Presence = "auto",
    variable: str | None = None,
    delimiter: str | None = None,
    selection: Selection | None = None,
    highly_variable: bool = False,
) -> Table:
    """Read a table of numbers and its names from a file, or from a folder of 10x Genomics files."""
    # Nothing in a file can run code: arrays of Python objects are refused.
    for name, value in (("header", header), ("index", index)):
        if value not in (True, False, "auto"):
            raise InvalidParameterError(f"{name}={value!r} is not allowed. Expected True, False or 'auto'.")
    if delimiter == r"\t":  # as a shell passes it on
        delimiter = "\t"
    if delimiter is not None and len(delimiter) != 1:
        raise InvalidParameterError(
            f"delimiter={delimiter!r} (--delimiter) is not allowed. Expected one character, or \\t for a tab."
        )
    place = Path(path)
    options = ReadOptions(header, index, variable, delimiter, selection or Selection(), highly_variable)
    found = format_of(place)
    if highly_variable and found.kind not in ("h5ad", "zarr"):
        raise InvalidParameterError(
            f"highly_variable=True (--highly-variable) is for AnnData files, but {place} is {found.words}. "
            "Choose columns by name instead (--columns)."
        )
    check_variable(variable, place, found.words, several=found.several)
    contents = read_with(found, place, lambda: found.read(place, options))
    return checked_table(selected_columns(contents, options.selection, str(place)), str(place), found.kind)


def read_with(found: Format, place: Path, read: Callable[[], Result]) -> Result:
    """Read with an explanation of what goes wrong."""
    try:
        return read()
    except (NonnegError, MemoryError):
        raise
    except PermissionError as error:
        raise FileFormatError(
            f"{place} cannot be opened: permission denied. Make it readable first (chmod u+r)."
        ) from error
    except Exception as error:
        # The libraries below raise whatever their parsers stumble over (zlib.error, KeyError); for a user
        # all of them mean that the file is not what its name says.
        reason = str(error).strip().splitlines()
        raise FileFormatError(
            f"{place} could not be read as {found.words}: {reason[0] if reason else type(error).__name__}. "
            "It may be corrupt or truncated; write it again from its source."
        ) from error


def format_of(path: Path) -> Format:
    """Return the format of a file, or say what is wrong with its path."""
    if path.is_dir():
        return ZARR if path.name.lower().endswith(".zarr") else TEN_X_FOLDER
    if not path.exists():
        if str(path) == "-":
            raise FileFormatError("Standard input is not read: write the data to a file, and give its path.")
        raise FileFormatError(f"{path} does not exist.{_near_files(path)}")
    name = path.name.lower()
    for suffix in sorted(FORMATS, key=len, reverse=True):
        if name.endswith(suffix):
            if path.stat().st_size == 0:
                raise FileFormatError(f"{path} is empty (0 bytes); expected {FORMATS[suffix].words}.")
            return FORMATS[suffix]
    ending = "".join(path.suffixes[-2:]) or "no ending"
    raise FileFormatError(
        f"{path} has an unknown ending ({ending}). Known endings are {', '.join(known_suffixes())}, "
        f"{TEN_X_FOLDER.words}, and a .zarr folder."
    )


def _near_files(path: Path) -> str:
    if not path.parent.is_dir():
        return f" Nor does the folder {path.parent}."
    try:
        beside = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    # Endings are alike anyway: the names before them must be near.
    stems = {name: name.partition(".")[0] for name in beside}
    close = difflib.get_close_matches(path.name.partition(".")[0], set(stems.values()), n=3)
    near = difflib.get_close_matches(path.name, [name for name in beside if stems[name] in close], n=3)
    return f" Did you mean {' or '.join(near)}?" if near else ""
