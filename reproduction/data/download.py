"""Downloads: verified, and moved into place when complete."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nonneg._optional import import_optional
from nonneg.datasets.store import DatasetNotFoundError


class DownloadError(DatasetNotFoundError):
    """A file could not be downloaded."""


def fetch(address: str, target: Path, *, sha256: str | None = None, git_blob: str | None = None) -> Path:
    """Download a file."""
    pooch = import_optional("pooch", extra="datasets", purpose=f"Downloading {target.name}")
    known = None if sha256 is None else f"sha256:{sha256}"
    try:
        pooch.retrieve(address, known, fname=target.name, path=target.parent)
    except (OSError, ValueError) as error:
        raise DownloadError(f"{address} could not be downloaded: {error}.") from error
    if git_blob is not None:
        # The git blob identifies the file; it is not a safeguard.
        content = target.read_bytes()
        blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()
        if not blob.startswith(git_blob):
            target.unlink()
            raise DownloadError(f"{address} has the git blob {blob}, not {git_blob}: the source changed.")
    return target


@contextlib.contextmanager
def locked(lock: Path) -> Iterator[None]:
    """Hold a file lock, which is released when the process ends."""
    with lock.open("ab") as stream:
        if os.name == "posix":
            fcntl: Any = importlib.import_module("fcntl")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
