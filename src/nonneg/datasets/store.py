"""Store of real data sets: folders that are searched, and a cache for downloads.

A loader searches the folder passed as ``data_home``, then that of the environment variable ``NONNEG_DATA``,
for ``NAME/FILE``. What is in neither is downloaded from its source once, verified, and kept in the user's
cache; ``NONNEG_DOWNLOAD=never`` forbids this. No data set is shipped with the package, because most sources
state no license.
"""

from __future__ import annotations

import os
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from nonneg._arguments import checked_path
from nonneg._optional import import_optional
from nonneg.exceptions import FileFormatError, NonnegError

ENVIRONMENT_VARIABLE = "NONNEG_DATA"
DOWNLOAD_VARIABLE = "NONNEG_DOWNLOAD"

Home: TypeAlias = str | os.PathLike[str] | None
"""A folder of data sets, as passed to a loader."""


class DatasetNotFoundError(NonnegError, FileNotFoundError):
    """A real data set is not on this machine, and could not be downloaded."""


@dataclass(frozen=True)
class Source:
    """A file on another machine."""

    address: str
    sha256: str

    @property
    def name(self) -> str:
        """The last part of its address."""
        return self.address.rsplit("/", 1)[-1]


def look_up(file: str, data_home: Home = None) -> Path | None:
    """Return the path of ``NAME/FILE`` in the first folder that has it; None where none has."""
    given = None if data_home is None else checked_path(data_home, "data_home must be the path of a folder")
    named = (given, os.environ.get(ENVIRONMENT_VARIABLE))
    paths = (Path(folder).expanduser() / file for folder in named if folder)
    return next((path for path in paths if path.is_file()), None)


def user_cache() -> Path:
    """Return the folder that caches what belongs to this user."""
    home = Path.home()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(home / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(home / ".cache")
    return Path(base) / "nonneg"


def retrieve(source: Source, folder: str) -> Path:
    """Return the path of a downloaded file; download and verify it where it is not in the cache."""
    target = user_cache() / folder
    forbidden = os.environ.get(DOWNLOAD_VARIABLE, "").strip().lower() in {"never", "no", "off", "0", "false"}
    if forbidden and not (target / source.name).is_file():
        raise DatasetNotFoundError(
            f"{folder} is in no folder of data sets, and {DOWNLOAD_VARIABLE} forbids the download of "
            f"{source.address}. Pass data_home=FOLDER or set {ENVIRONMENT_VARIABLE}=FOLDER, where FOLDER "
            f"contains {folder}."
        )
    pooch = import_optional("pooch", extra="datasets", purpose=f"Downloading {folder}")
    try:
        path = pooch.retrieve(source.address, f"sha256:{source.sha256}", fname=source.name, path=target)
    except (OSError, ValueError) as error:  # no connection, no permission to write, other contents
        raise DatasetNotFoundError(
            f"{source.address} could not be downloaded to {target}: {error} Offline, copy it there from "
            "another machine."
        ) from error
    return Path(path)


def read_archive(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of an .npz file by name; nothing is unpickled."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FileFormatError(
            f"{path} cannot be read as an .npz file of plain arrays: {error}. Replace it."
        ) from error
