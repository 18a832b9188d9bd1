"""Formats of files: one table of their readers, and the functions that read or open any of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from nonneg._arguments import checked_path
from nonneg.exceptions import FileFormatError, InvalidParameterError, NonnegError, UnknownNameError
from nonneg.io import hdf5, matlab, matrix_market, npz, text
from nonneg.io.memory import checked_memory
from nonneg.io.stored import ParquetRows, StoredMatrix, memmap_rows
from nonneg.io.table import ReadOptions, Table, check_variable, checked_table

Result = TypeVar("Result")


@dataclass(frozen=True)
class Format:
    """A file format: its description, its reader, and what opens it without reading it."""

    kind: str
    words: str
    read: Callable[[Path, ReadOptions], Table] | None = None
    open: Callable[[Path, ReadOptions], StoredMatrix] | None = None
    several: bool = False  # whether a file may hold more than one array, so that `variable` chooses
    has_columns: bool = False  # whether columns are chosen as they are read: the others may contain text


def read_table(path: str | os.PathLike[str], **options: Any) -> Table:
    """Read a table of numbers and its names from a file, or from a folder of 10x Genomics files.

    The options are those of `ReadOptions`. Nothing in a file can run code: arrays of Python objects are
    refused.
    """
    place, checked = checked_path(path), ReadOptions(**options)
    form = _format_for(place, checked)
    table = read_with(form.words, place, lambda: _read(form, place, checked))
    return checked_table(table, str(place), form.kind)


def _format_for(path: Path, options: ReadOptions) -> Format:
    """Return the format of a file that can do what is asked of it."""
    form = format_of(path)
    check_variable(options.variable, path, form.words, several=form.several)
    if options.highly_variable and form.kind not in ("h5ad", "zarr"):
        raise InvalidParameterError(
            f"highly_variable=True (--highly-variable) is for AnnData files, but {path} is {form.words}. "
            "Leave it out."
        )
    if options.mentioned and not form.has_columns:
        raise InvalidParameterError(
            f"--columns, --drop and columns of classes are for text and Parquet files, but {path} is "
            f"{form.words}. Choose its columns in Python, and save them."
        )
    return form


def _read(form: Format, path: Path, options: ReadOptions) -> Table:
    if form.read is not None:
        return form.read(path, options)
    assert form.open is not None
    with form.open(path, options) as stored:
        X = stored.read_stored(0, stored.shape[0])
        return Table(
            X, stored.row_names, stored.column_names, labels=stored.labels, label_name=stored.label_name
        )


def read_with(words: str, place: Path, read: Callable[[], Result]) -> Result:
    """Read with an explanation of what goes wrong."""
    try:
        return read()
    except (NonnegError, MemoryError):
        raise
    except Exception as error:
        # The libraries below raise whatever their parsers stumble over (zlib.error, KeyError); for a user
        # all of them mean that the file is not what its name says.
        reason = str(error).strip().splitlines()
        raise FileFormatError(
            f"{place} could not be read as {words}: {reason[0] if reason else type(error).__name__}. "
            "If it is corrupt or truncated, write it again from its source."
        ) from error


def open_matrix(
    path: str | os.PathLike[str],
    *,
    variable: str | None = None,
    memory: int | str | None = None,
    dtype: str | None = None,
) -> StoredMatrix:
    """Open a matrix on disk, to be read by blocks of rows.

    Parameters
    ----------
    path : str or path
        A ``.npy`` file, a Zarr array or AnnData store (a folder that ends in ``.zarr``), an ``.h5ad`` file, a
        10x Genomics or other HDF5 file (``.h5``), or a Parquet file.
    variable : str, optional
        Which array of a file that contains several, such as ``"layers/counts"`` of an ``.h5ad`` file or the
        path of a dataset in an HDF5 file.
    memory : int or str, optional
        How much memory a fit may use, in bytes or as text such as ``"2GB"``. A matrix that fits is read
        whole. None is half of the memory of the machine (or of the container it runs in).
    dtype : {"float32", "float64"}, optional
        Convert the entries to this type, block by block. None keeps float32, and converts everything
        else to float64.

    Returns
    -------
    StoredMatrix
        What `NMF.fit` and `factorize` take as X.

    See Also
    --------
    nonneg.NMF : The estimator.
    nonneg.factorize : The function behind it.

    Notes
    -----
    A matrix that is stored by columns (CSC) must fit in `memory`; store a larger one as CSR.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib
    >>> from nonneg import NMF, open_matrix
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "X.npy"
    >>> np.save(path, np.random.default_rng(0).random((300, 20), dtype=np.float32))
    >>> X = open_matrix(path, memory="16kB")
    >>> X.fits()
    False
    >>> NMF(3, max_iter=5, tol=0).fit(X).components_.shape
    (3, 20)
    """
    if dtype is not None:
        UnknownNameError.check("dtype", dtype, ("float32", "float64"))
    stored = open_stored(checked_path(path), ReadOptions(variable=variable), memory)
    if dtype is not None:
        stored.converted_dtype = np.dtype(dtype)
    return stored


def open_stored(path: Path, options: ReadOptions, memory: Any) -> StoredMatrix:
    """Open a file as its ending says, with what the caller knows about it."""
    form = _format_for(path, options)
    opener = form.open
    if opener is None:
        raise FileFormatError(
            f"{path} is {form.words}, which can only be read whole. To read it block by block, write it as "
            ".npy, .zarr, .h5ad or .parquet."
        )
    memory = checked_memory(memory)
    stored = read_with(form.words, path, lambda: opener(path, options))
    stored.memory = memory
    return stored


def as_stored(X: Any) -> StoredMatrix | None:
    """Return an array on disk as a matrix that is read by rows; None for arrays in memory.

    Takes what `open_matrix` returns, `numpy.memmap`, Zarr arrays, HDF5 datasets, groups of either in
    AnnData's sparse encoding, and the sparse datasets of an AnnData object in backed mode.
    """
    if isinstance(X, StoredMatrix):
        return X
    if isinstance(X, np.memmap):
        return memmap_rows(X) if X.ndim == 2 and X.dtype.kind in "biuf" else None
    library = type(X).__module__.partition(".")[0]
    if library == "anndata" and hasattr(X, "group") and hasattr(X, "format"):
        X = X.group
        library = type(X).__module__.partition(".")[0]
    if library not in ("h5py", "zarr") or not (hdf5.is_group(X) or hasattr(X, "shape")):
        return None
    name = getattr(getattr(X, "file", None), "filename", None) or str(getattr(X, "store", "")) or library
    return hdf5.node_rows(X, str(name))


ZARR = Format("zarr", "a Zarr array or AnnData store", open=hdf5.open_zarr, several=True)
TEN_X_FOLDER = Format(
    "10x", "a folder with matrix.mtx, barcodes.tsv and features.tsv", matrix_market.read_tenx_folder
)
TEXT = Format("csv", "a table in plain text", text.read, has_columns=True)
FORMATS = {
    ".npy": Format("npy", "a NumPy array", open=lambda path, options: memmap_rows(npz.map_array(path))),
    ".npz": Format("npz", "NumPy arrays, or a SciPy sparse matrix", npz.read_npz, several=True),
    **dict.fromkeys((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"), TEXT),
    **dict.fromkeys((".mtx", ".mtx.gz"), Format("mtx", "a Matrix Market file", matrix_market.read)),
    ".mat": Format("mat", "a MATLAB file", matlab.read, several=True),
    ".parquet": Format("parquet", "a Parquet file", open=ParquetRows, has_columns=True),
    ".h5ad": Format("h5ad", "an AnnData file", open=hdf5.open_h5ad, several=True),
    ".h5": Format("10x", "a 10x Genomics HDF5 file", open=hdf5.open_hdf5, several=True),
}


def format_of(path: Path) -> Format:
    """Return the format of a file, or say what is wrong with its path."""
    if path.is_dir():
        return ZARR if path.name.lower().endswith(".zarr") else TEN_X_FOLDER
    if not path.exists():
        folder = "" if path.parent.is_dir() else f" Nor does the folder {path.parent}."
        raise FileFormatError(f"{path} does not exist.{folder}")
    name = path.name.lower()
    for suffix in sorted(FORMATS, key=len, reverse=True):
        if name.endswith(suffix):
            if path.stat().st_size == 0:
                raise FileFormatError(f"{path} is empty (0 bytes); expected {FORMATS[suffix].words}.")
            return FORMATS[suffix]
    ending = "".join(path.suffixes[-2:]) or "no ending"
    raise FileFormatError(
        f"{path} has an unknown ending ({ending}). Known endings are {', '.join(sorted(FORMATS))}, "
        f"{TEN_X_FOLDER.words}, and a .zarr folder."
    )
