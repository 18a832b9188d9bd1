"""What the readers of HDF5 files share: opening, text, sparse groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg.exceptions import FileFormatError


@contextmanager
def opened(path: Path, purpose: str) -> Iterator[Any]:
    """Open an HDF5 file for reading."""
    h5py = import_optional("h5py", extra="formats", purpose=purpose)
    if not h5py.is_hdf5(path):
        raise FileFormatError(
            f"{path} is not an HDF5 file, or its beginning is damaged. Write it again from its source."
        )
    with h5py.File(path, "r") as file:
        yield file


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
