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

import os
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import IntArray, SparseMatrix
from nonneg.datasets.catalog import (
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
    user_cache,
)
from nonneg.datasets.content import read_archive
from nonneg.datasets.dataset import Dataset, DatasetNotFoundError, Recording
from nonneg.exceptions import UnknownNameError

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
    "read_arrays",
    "read_sparse",
    "user_cache",
]


def find(file: str, home: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of a file of the store after checking its contents; fetch it where it is missing."""
    if file not in FILES:
        raise UnknownNameError.of("file", file, FILES)
    path = look_up(file, home)
    if path is not None:
        return path
    if downloads_allowed():
        # Imported here: this is needed once in the life of a set.
        from nonneg.datasets.acquisition import acquire

        return acquire(file, download_folder(home))
    looked = " and ".join(str(folder / file) for folder in homes(home))
    raise DatasetNotFoundError(
        f"The data set file {file} is not on this machine (looked for {looked}), and {DOWNLOAD_VARIABLE} "
        f"forbids fetching it. {offline_instructions(file)}"
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
