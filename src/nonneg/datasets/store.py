"""Where real data sets live on this machine: found, checked against a known sha256, never fetched.

A data home is a folder with one sub-folder a set::

    data home/
      olivetti_64x64/data.npz
      indian_pines/data.npz
      tdt2/X.npz, labels.npz, class_subsets.npz

It is named by the argument ``data_home`` or by the environment variable ``NONNEG_DATA``. No set is shipped
with the package, because most sources state no licence. The table ``sources.json`` says of every set where it
comes from (repository, revision, paths), under which licence, and which files it is made into.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import IntArray, MatrixLike, SparseMatrix
from nonneg.exceptions import FileFormatError, NonnegError, UnknownNameError

ENVIRONMENT_VARIABLE = "NONNEG_DATA"

SOURCES: dict[str, dict[str, Any]] = json.loads(
    resources.files("nonneg.datasets").joinpath("sources.json").read_text(encoding="utf-8")
)
"""By the name of a set: its licence, its sources, and the size and sha256 of each of its files."""

CHECKSUMS: dict[str, str] = {
    f"{name}/{file}": facts["sha256"]
    for name, entry in SOURCES.items()
    for file, facts in entry["files"].items()
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
        The entries, nonnegative; the adjacency matrix of a graph, whose samples are its nodes.
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
    sample_names : tuple of str
        The names of the samples; empty where the source gives none.
    feature_names : tuple of str
        The names of the features (the words of a vocabulary); empty where the source gives none.
    extras : mapping of str to Any
        What else the source gives; the loader says what.
    """

    X: MatrixLike
    y: IntArray
    names: tuple[str, ...]
    description: str
    sample_shape: tuple[int, ...] | None = None
    feature_shape: tuple[int, ...] | None = None
    sample_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Recording:
    """A recorded or made sound.

    Attributes
    ----------
    signals : array of shape (n_realizations, n_samples)
        The sound, one recording a row.
    rate : int
        Samples a second.
    sources : array of shape (n_sources, n_realizations, n_samples) or None
        The signals that were added up, where they are known.
    description : str
        What it is, where it comes from and what was done to it.
    """

    signals: np.ndarray[Any, Any]
    rate: int
    sources: np.ndarray[Any, Any] | None
    description: str


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
        The folder of the set, such as ``"tdt2"``, or one of its files, such as ``"tdt2/X.npz"``.
    home : path or None
        The data home; None asks ``NONNEG_DATA``.

    Returns
    -------
    bool
        True when the set can be loaded.
    """
    known = [file for file in CHECKSUMS if name in (file, file.split("/")[0])]
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


def classes(labels: Any, n_samples: int) -> IntArray:
    """Return the classes of the samples of a set, -1 throughout where the source gives none.

    Parameters
    ----------
    labels : array of int or None
        As stored, from 0.
    n_samples : int
        How many samples there are.

    Returns
    -------
    array of int of shape (n_samples,)
        The field `y` of a `Dataset`.
    """
    if labels is None:
        return np.full(n_samples, -1, dtype=np.intp)
    return np.asarray(labels).astype(np.intp)
