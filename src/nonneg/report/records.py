"""Records on disk: one schema for the runs of all commands; JSON for one record, JSON lines for many."""

from __future__ import annotations

import enum
import json
import math
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.exceptions import FileFormatError
from nonneg.report.machine import versions

FORMAT = 2
COMMON = (
    "format", "command", "title", "created", "data", "parameters", "result", "history", "certificate",
    "versions",
)  # fmt: skip
"""What the record of every run holds; `result` includes the time in seconds."""
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "fit": ("image_shape", "examples", "comparison"),
    "rank": (),
    "anchors": ("anchors", "values"),
    "topics": ("topics", "shared_words", "selection", "hierarchy", "over_time", "edits", "inputs"),
    "communities": ("communities", "connectivity", "eigenvalues"),
    "separate": ("sources", "atoms"),
    "unmix": ("endmembers", "library"),
    "consensus": ("ranks", "programs", "clustergram", "density", "groups", "tables"),
    "signatures": ("ranks", "programs", "clustergram", "density", "groups", "tables"),
    "transform": ("model",),
}
"""What the record of a command has in addition."""
# Parameters that no page shows: functions, and arrays as long as the data.
HIDDEN = frozenset({"callback", "vectorizer", "vocabulary"})


def run_record(
    command: str,
    title: str,
    *,
    data: Mapping[str, Any],
    result: Mapping[str, Any],
    estimator: Any = None,
    parameters: Mapping[str, Any] | None = None,
    **sections: Any,
) -> dict[str, Any]:
    """Build the record of a run; parameters, history and certificate are those of the estimator."""
    if set(sections) != set(SECTIONS[command]):
        raise KeyError(f"{command} has the sections {SECTIONS[command]}, got {tuple(sections)}")
    if parameters is None:
        parameters = {} if estimator is None else estimator.get_params()
    record = {
        "format": FORMAT,
        "command": command,
        "title": title,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": data,
        "parameters": {name: value for name, value in parameters.items() if name not in HIDDEN},
        "result": result,
        "history": estimator.history_.as_dict() if hasattr(estimator, "history_") else {},
        "certificate": [_statement(entry) for entry in getattr(estimator, "certificate_", ())],
        "versions": versions(),
    }
    return dict(plain(record | sections))


def _statement(entry: Any) -> dict[str, Any]:
    fields = ("name", "sentence", "number", "threshold", "verdict", "quantities")
    return {name: getattr(entry, name) for name in fields}


def table_facts(table: Any) -> dict[str, Any]:
    """Describe a matrix of samples and features, for `data` of a record."""
    X = table.X
    source = getattr(X, "stored", X)  # a file that does not fit in memory
    stored = getattr(source, "nnz", None)
    missing = stored is None and X.dtype.kind == "f"
    return {
        "source": Path(table.source).name or table.source,
        "shape": X.shape,
        "dtype": str(X.dtype),
        "n_stored": stored,
        "n_missing": X.n_missing if hasattr(X, "n_missing") else int(np.isnan(X).sum()) if missing else 0,
    }


def stop_facts(result: Any) -> dict[str, str]:
    """Say why a run stopped, for `result` of a record."""
    sentence = getattr(result, "stop_sentence", None) or result.stop_reason.value
    return {"name": result.stop_reason.name.lower(), "sentence": sentence}


def read_run(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the record of a run."""
    record = read_record(path)
    command = str(record.get("command"))
    if command not in SECTIONS:
        raise FileFormatError(f"{path} is not the record of a nonneg run: it names no command.")
    if record.get("format") != FORMAT:
        raise FileFormatError(
            f"{path} has the format {record.get('format')}; expected {FORMAT}. Run `nonneg {command}` again."
        )
    if missing := [name for name in (*COMMON, *SECTIONS[command]) if name not in record]:
        raise FileFormatError(f"{path} lacks {', '.join(missing)}. Run `nonneg {command}` again.")
    return record


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
        raise FileFormatError(f"{source}: expected JSON, but {error}. The file may be truncated.") from error
    if not isinstance(value, dict):
        raise FileFormatError(f"{source}: expected a JSON object, got {type(value).__name__}.")
    return value
