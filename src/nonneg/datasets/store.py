"""Where real data sets live on this machine: found, checked against known contents, or fetched once.

A data home is a folder with one sub-folder a set::

    data home/
      olivetti_64x64/data.npz
      indian_pines/data.npz
      tdt2/X.npz, labels.npz, class_subsets.npz

A loader looks in the folder that its argument ``data_home`` names, then in that of the environment variable
``NONNEG_DATA``, then in the user's cache. What is in none of them is fetched from its source, made into the
stored form, checked, and kept in ``data_home`` or else in the cache; ``NONNEG_DOWNLOAD=never`` forbids it. No
set is shipped with the package, because most sources state no licence. The table ``sources.json`` says of
every set where it comes from (repository, revision, paths), under which licence, and what it is made into.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import IntArray, MatrixLike, SparseMatrix
from nonneg.datasets.content import Known, differences, read_archive
from nonneg.exceptions import FileFormatError, NonnegError, UnknownNameError

ENVIRONMENT_VARIABLE = "NONNEG_DATA"
DOWNLOAD_VARIABLE = "NONNEG_DOWNLOAD"
MADE = ".made.json"
"""Beside files that were made here: their sha256, for those of which no other is known."""

SOURCES: dict[str, dict[str, Any]] = json.loads(
    resources.files("nonneg.datasets").joinpath("sources.json").read_text(encoding="utf-8")
)
"""By the name of a set: its licence, its sources, and the size and sha256 of each of its files."""

CHECKSUMS: dict[str, str] = {
    f"{name}/{file}": facts["sha256"]
    for name, entry in SOURCES.items()
    for file, facts in entry["files"].items()
    if "sha256" in facts
}
"""The sha256 of files that a loader reads, by the path inside the data home; of a few none is known."""

FILES: tuple[str, ...] = tuple(f"{name}/{file}" for name, entry in SOURCES.items() for file in entry["files"])
"""Every file that a loader reads, by its path inside the data home."""


class DatasetNotFoundError(NonnegError, FileNotFoundError):
    """A real data set is not on this machine, and could not be fetched."""


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
    """Return the folder that holds the data sets."""
    if given is None:
        given = os.environ.get(ENVIRONMENT_VARIABLE) or None
    return None if given is None else Path(given).expanduser()


def user_cache() -> Path:
    """Return the folder in which fetched sets are kept for this user."""
    home = Path.home()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(home / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(home / ".cache")
    return Path(base) / "nonneg"


def homes(given: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders that are looked in, in this order."""
    named = [data_home(given), data_home() if given is not None else None]
    return [folder for folder in named if folder is not None] + [user_cache()]


def downloads_allowed() -> bool:
    """Say whether missing sets may be fetched."""
    return os.environ.get(DOWNLOAD_VARIABLE, "").strip().lower() not in {"never", "no", "off", "0", "false"}


def is_available(name: str, home: str | os.PathLike[str] | None = None) -> bool:
    """Return whether every file of a data set is on this machine; nothing is read or fetched."""
    known = [file for file in FILES if name in (file, file.split("/")[0])]
    if not known:
        raise UnknownNameError.of("name", name, SOURCES)
    return all(any((folder / file).is_file() for folder in homes(home)) for file in known)


def find(file: str, home: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of a file of the store after checking its contents; fetch it where it is missing."""
    if file not in FILES:
        raise UnknownNameError.of("file", file, FILES)
    places = [folder / file for folder in homes(home)]
    for path in places:
        if path.is_file():
            check_contents(path, file)
            return path
    if downloads_allowed():
        # Imported here: this is needed once in the life of a set.
        from nonneg.datasets.acquisition import acquire

        return acquire(file, user_cache() if home is None else Path(home).expanduser())
    looked = " and ".join(str(path) for path in places)
    raise DatasetNotFoundError(
        f"The data set file {file} is not on this machine (looked for {looked}), and {DOWNLOAD_VARIABLE} "
        f"forbids to fetch it. {what_to_put_where(file)}"
    )


def known_arrays(file: str) -> dict[str, Known]:
    """Return what is known of the arrays of a file of the store."""
    name, stored = file.split("/")
    listed = SOURCES[name]["files"][stored].get("arrays", {})
    return {key: Known(dtype, tuple(shape), sha256) for key, (dtype, shape, sha256) in listed.items()}


def check_contents(path: Path, file: str) -> None:
    """Make sure that a file has the known contents."""
    expected = CHECKSUMS.get(file) or _sha256_when_made(path)
    if expected is None:
        return  # nothing is known of it
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found in (expected, _sha256_when_made(path)):
        return
    # The same arrays packed by another version of NumPy are other bytes.
    known = known_arrays(file)
    try:
        same = bool(known) and not differences(read_archive(path), known)
    except FileFormatError:
        same = False
    if not same:
        raise FileFormatError(
            f"{path} is not the expected file: its sha256 is {found}, expected {expected}. It is "
            "damaged or of another version; replace it, or remove it to have it fetched again."
        )


def _sha256_when_made(path: Path) -> str | None:
    """Return the digest that was written down when the file was made on this machine."""
    try:
        made = json.loads((path.parent / MADE).read_text(encoding="utf-8"))
        return str(made[path.name])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def what_to_put_where(file: str) -> str:
    """Say how a file gets onto a machine without a network."""
    checked = f" (sha256 {CHECKSUMS[file]})" if file in CHECKSUMS else ""
    origins = "; ".join(
        f"{source['host']} {source['repository']} at {source['revision']}: {', '.join(source['paths'][:3])}"
        for source in SOURCES[file.split("/")[0]]["sources"]
    )
    return (
        f"To do without, put the file at FOLDER/{file}{checked}, copied from the cache ({user_cache()}) of a "
        f"machine that could fetch it, and pass data_home=FOLDER or set the environment variable "
        f"{ENVIRONMENT_VARIABLE}=FOLDER. The source: {origins}."
    )


def read_arrays(file: str, home: str | os.PathLike[str] | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of an .npz file of the store by name."""
    return read_archive(find(file, home))


def read_sparse(file: str, home: str | os.PathLike[str] | None = None) -> SparseMatrix:
    """Return the sparse matrix of an .npz file of the store."""
    import scipy.sparse

    return scipy.sparse.csr_array(scipy.sparse.load_npz(find(file, home)))


def classes(labels: Any, n_samples: int) -> IntArray:
    """Return the classes of the samples of a set, -1 throughout where the source gives none."""
    if labels is None:
        return np.full(n_samples, -1, dtype=np.intp)
    return np.asarray(labels).astype(np.intp)
