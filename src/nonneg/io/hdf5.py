"""What the readers of HDF5 files share: opening, text, sparse groups."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg.exceptions import FileFormatError

_WALK_SECONDS = 120.0
# Attributes and small arrays of at most a thousand nodes: groups of other tools may hold many more.
_WALK = """
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (5, 6))  # a loop without end, however loaded the machine is
except ImportError:
    pass
try:
    import h5py
except ImportError:
    sys.exit()  # it was put on the path by other means: read without this check
left = [1000]
def attempt(function, *args):
    try:
        return function(*args)
    except Exception:
        return None  # a broken link or an exotic type: whether it matters shows where it is read
def walk(node, depth):
    left[0] -= 1
    for name in attempt(list, node.attrs) or ():
        attempt(node.attrs.get, name)
    if isinstance(node, h5py.Dataset):
        if node.size is not None and node.size * node.dtype.itemsize <= 1 << 20:
            attempt(node.__getitem__, ())
    elif depth < 4:
        for name in attempt(list, node) or ():
            found = attempt(node.get, name)
            if found is not None and left[0] > 0:
                attempt(walk, found, depth + 1)
with h5py.File(sys.argv[1], "r") as file:
    walk(file, 0)
"""


@contextmanager
def opened(path: Path, purpose: str) -> Iterator[Any]:
    """Open an HDF5 file for reading, and close it afterwards."""
    with open_checked(path, purpose) as file:
        yield file


def open_checked(path: Path, purpose: str) -> Any:
    """Open an HDF5 file for reading, if it is sound."""
    h5py = import_optional("h5py", extra="formats", purpose=purpose)
    if not h5py.is_hdf5(path):
        raise FileFormatError(
            f"{path} is not an HDF5 file, or its beginning is damaged. Write it again from its source."
        )
    status = path.stat()
    _check_structure(path.absolute(), status.st_size, status.st_mtime_ns)
    return h5py.File(path, "r")


@functools.lru_cache(maxsize=64)
def _check_structure(path: Path, size: int, changed: int) -> None:
    """Walk through the file in another process: HDF5 crashes or hangs on some damaged ones.

    Once for a file, which is opened several times: for its names, its size and its entries.
    """
    # About 0.2 s. The data themselves are read here alone.
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _WALK, str(path)],
            timeout=_WALK_SECONDS,
            check=False,
            capture_output=True,
        )
    except subprocess.TimeoutExpired as error:
        raise FileFormatError(
            f"{path} is damaged, or its disk is slow: its structure could not be read within "
            f"{_WALK_SECONDS:g} s. Write it again from its source."
        ) from error
    except OSError:
        return  # an embedded Python has no executable to start
    if done.returncode not in (0, 1):  # 1: an exception, which reading it here will raise, too
        raise FileFormatError(
            f"{path} is damaged: HDF5 crashed or did not end while reading it. Write it again from its "
            "source."
        )


def is_group(node: Any) -> bool:
    """Tell a group from a dataset."""
    return hasattr(node, "keys")


def text_of(values: Any) -> list[str]:
    """Turn stored text, bytes or numbers into strings."""
    return [
        value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        for value in np.asarray(values).tolist()
    ]


def unique_names(names: list[str], identifiers: list[str]) -> list[str]:
    """Keep readable names apart: one that occurs twice gets its identifier behind it."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return [
        name if counts[name] == 1 else f"{name} ({identifier})"
        for name, identifier in zip(names, identifiers, strict=True)
    ]
