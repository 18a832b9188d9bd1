"""Real data sets on this machine: found, verified against known contents, or downloaded once.

A data home is a folder with one subfolder per data set::

    data home/
      olivetti_64x64/data.npz
      indian_pines/data.npz
      tdt2/X.npz, labels.npz, class_subsets.npz

A loader searches the folder given as ``data_home``, then that of the environment variable ``NONNEG_DATA``,
then the user's cache. What is in none of them is downloaded from its source, converted, verified, and kept in
``data_home`` or else in the cache; ``NONNEG_DOWNLOAD=never`` forbids this. No data set is shipped with the
package, because most sources state no license. The table ``sources.json`` has the source of every data set
(repository, revision, paths), its license, and the files that it is converted to.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import IntArray, SparseMatrix
from nonneg.datasets.dataset import Dataset, Recording
from nonneg.datasets.store import DatasetNotFoundError, read_archive, user_cache
from nonneg.exceptions import UnknownNameError
from reproduction.data.catalog import (
    DOWNLOAD_VARIABLE,
    ENVIRONMENT_VARIABLE,
    FILES,
    SOURCES,
    download_folder,
    downloads_allowed,
    homes,
    is_available,
    look_up,
    offline_instructions,
)

__all__ = [
    "DOWNLOAD_VARIABLE",
    "ENVIRONMENT_VARIABLE",
    "SOURCES",
    "Dataset",
    "DatasetNotFoundError",
    "Recording",
    "classes",
    "downloads_allowed",
    "find",
    "homes",
    "is_available",
    "read_archive",
    "read_arrays",
    "read_sparse",
    "user_cache",
]


def find(file: str, home: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of a file after verifying its contents; download it where it is missing."""
    if file not in FILES:
        raise UnknownNameError.of("file", file, FILES)
    path = look_up(file, home)
    if path is not None:
        return path
    if downloads_allowed():
        # Imported here: this is needed once per data set.
        from reproduction.data.acquisition import acquire

        return acquire(file, download_folder(home))
    looked = " and ".join(str(folder / file) for folder in homes(home))
    raise DatasetNotFoundError(
        f"The data set file {file} is not on this machine (searched {looked}), and {DOWNLOAD_VARIABLE} "
        f"forbids fetching it. {offline_instructions(file)}"
    )


def read_arrays(file: str, home: str | os.PathLike[str] | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of an .npz file by name."""
    return read_archive(find(file, home))


def read_sparse(file: str, home: str | os.PathLike[str] | None = None) -> SparseMatrix:
    """Return the sparse matrix of an .npz file."""
    import scipy.sparse

    return scipy.sparse.csr_array(scipy.sparse.load_npz(find(file, home)))


def classes(labels: Any, n_samples: int) -> IntArray:
    """Return the classes of the samples, -1 throughout where the source gives none."""
    if labels is None:
        return np.full(n_samples, -1, dtype=np.intp)
    return np.asarray(labels).astype(np.intp)
