"""Records on disk: JSON for one, JSON lines for many; figures and tables are made from them."""

from __future__ import annotations

import enum
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.exceptions import FileFormatError


def plain(value: Any) -> Any:
    """Turn a value into what strict JSON can hold."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    return str(value)


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Write a value as strict JSON."""
    return json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def append_record(path: str | os.PathLike[str], record: Mapping[str, Any]) -> None:
    """Add one record to a file of JSON lines, which is made where it is missing."""
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("a", encoding="utf-8") as stream:
        stream.write(as_json(record) + "\n")


def write_records(path: str | os.PathLike[str], records: Iterable[Mapping[str, Any]]) -> None:
    """Replace a file of JSON lines."""
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f".{place.name}.partial")
    try:
        with partial.open("w", encoding="utf-8") as stream:
            stream.writelines(as_json(record) + "\n" for record in records)
        partial.replace(place)
    finally:
        partial.unlink(missing_ok=True)


def read_records(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read a file of JSON lines."""
    records = []
    with Path(path).open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                records.append(_object(line, f"{path}, line {number}"))
    return records


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a file that holds one JSON object."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise FileFormatError(f"{path} does not exist.") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not text in UTF-8.") from error
    return _object(text, str(path))


def _object(text: str, source: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise FileFormatError(f"{source}: JSON was expected, but {error}. It may be truncated.") from error
    if not isinstance(value, dict):
        raise FileFormatError(f"{source}: a JSON object was expected, {type(value).__name__} came.")
    return value
