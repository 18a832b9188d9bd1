"""Where real data sets live on this machine: found, checked against a known sha256, never fetched.

A data home is a folder with one sub-folder a set::

    data home/
      olivetti_64x64/data.npz
      indian_pines/data.npz
      tdt2/X.npz, labels.npz

It is named by the argument ``data_home`` or by the environment variable ``NONNEG_DATA``. No set is shipped
with the package, because most sources state no licence.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import IntArray, MatrixLike, SparseMatrix
from nonneg.exceptions import FileFormatError, NonnegError, UnknownNameError

ENVIRONMENT_VARIABLE = "NONNEG_DATA"

CHECKSUMS = {
    "olivetti_64x64/data.npz": "fe92a96c353f6a8071f3075ca8310cd7a921b1930bcb9b785d19165309d960fa",
    "indian_pines/data.npz": "976d88478d0e018bed40033366c9d74e79d3164b60a182aea659c7a01c178e00",
    "tdt2/X.npz": "0c9321b009accfca5aebf70a7c26f0fa79ac81304b5fc50a0e4b9c6fc197ec14",
    "tdt2/labels.npz": "3fd671e0ad300d701e1a77fd0ed24b791d0ccba0c98b4ec2d8c1c2bab8f18f48",
}
"""The sha256 of every file that a loader reads, by its path inside the data home."""


class DatasetNotFoundError(NonnegError, FileNotFoundError):
    """A real data set is not on this machine."""


@dataclass(frozen=True)
class Dataset:
    """A real data set: one sample a row.

    Attributes
    ----------
    X : array or scipy.sparse.csr_array of shape (n_samples, n_features)
        The entries, nonnegative.
    y : array of int of shape (n_samples,)
        The class of each sample, from 0; -1 where there is none.
    names : tuple of str
        The names of the classes; empty where the source gives none.
    description : str
        What the set is, where it comes from and what was done to it.
    sample_shape : tuple of int or None
        The grid in which the samples lie (the pixels of a scene), if there is one.
    feature_shape : tuple of int or None
        The grid in which the features lie (the pixels of a picture), if there is one.
    """

    X: MatrixLike
    y: IntArray
    names: tuple[str, ...]
    description: str
    sample_shape: tuple[int, ...] | None = None
    feature_shape: tuple[int, ...] | None = None


def data_home(given: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder that holds the data sets.

    Parameters
    ----------
    given : path or None
        None asks the environment variable ``NONNEG_DATA``.

    Returns
    -------
    pathlib.Path or None
        None where neither names a folder; the folder need not exist.
    """
    if given is None:
        given = os.environ.get(ENVIRONMENT_VARIABLE) or None
    return None if given is None else Path(given).expanduser()


def is_available(name: str, home: str | os.PathLike[str] | None = None) -> bool:
    """Say whether every file of a set lies in the data home; the contents are not read.

    Parameters
    ----------
    name : str
        The folder of the set, such as ``"tdt2"``.
    home : path or None
        The data home; None asks ``NONNEG_DATA``.

    Returns
    -------
    bool
        True when the set can be loaded.
    """
    known = [file for file in CHECKSUMS if file.split("/")[0] == name]
    if not known:
        raise UnknownNameError.of("name", name, {file.split("/")[0] for file in CHECKSUMS})
    folder = data_home(home)
    return folder is not None and all((folder / file).is_file() for file in known)


def find(file: str, home: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of a file of the store after checking its contents.

    Parameters
    ----------
    file : str
        The path inside the data home, one of `CHECKSUMS`.
    home : path or None
        The data home; None asks ``NONNEG_DATA``.

    Returns
    -------
    pathlib.Path
        A file whose sha256 is the known one.

    Raises
    ------
    DatasetNotFoundError
        If there is no data home, or the file is not in it.
    FileFormatError
        If the file is there but has other contents.
    """
    if file not in CHECKSUMS:
        raise UnknownNameError.of("file", file, CHECKSUMS)
    folder = data_home(home)
    if folder is None:
        raise DatasetNotFoundError(
            f"The data set file {file!r} is not shipped with nonneg, and no data home is set. Put the file "
            f"at FOLDER/{file} and pass data_home=FOLDER, or set the environment variable "
            f"{ENVIRONMENT_VARIABLE}=FOLDER."
        )
    path = folder / file
    if not path.is_file():
        raise DatasetNotFoundError(
            f"Expected the data set file {path}, and it is not there. Put it there (sha256 "
            f"{CHECKSUMS[file]}), or name another data home by data_home= or by the environment variable "
            f"{ENVIRONMENT_VARIABLE}."
        )
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != CHECKSUMS[file]:
        raise FileFormatError(
            f"{path} is not the expected file: its sha256 is {found}, expected {CHECKSUMS[file]}. It is "
            "damaged or of another version; replace it."
        )
    return path


def read_arrays(file: str, home: str | os.PathLike[str] | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of an .npz file of the store by name.

    Parameters
    ----------
    file : str
        The path inside the data home, one of `CHECKSUMS`.
    home : path or None
        The data home; None asks ``NONNEG_DATA``.

    Returns
    -------
    dict of str to array
        As stored; nothing is unpickled.
    """
    path = find(file, home)
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, zipfile.BadZipFile) as error:
        raise FileFormatError(
            f"{path} cannot be read as an .npz file of plain arrays: {error}. Replace it."
        ) from error


def read_sparse(file: str, home: str | os.PathLike[str] | None = None) -> SparseMatrix:
    """Return the sparse matrix of an .npz file of the store.

    Parameters
    ----------
    file : str
        The path inside the data home, one of `CHECKSUMS`.
    home : path or None
        The data home; None asks ``NONNEG_DATA``.

    Returns
    -------
    scipy.sparse.csr_array
        With the entries' type as stored.
    """
    import scipy.sparse

    return scipy.sparse.csr_array(scipy.sparse.load_npz(find(file, home)))
