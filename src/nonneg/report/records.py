"""Record of a run: what it was about, what it produced, and the files that hold it."""

from __future__ import annotations

import enum
import json
import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._version import __version__
from nonneg.exceptions import FileFormatError

FORMAT = 3
RESULT, MODEL, REPORT = "result.json", "model.npz", "report.html"
NAMES = "names.json"
"""Names of the rows and columns, where a fit had them."""
# Parameters that no page shows: functions, and arrays as long as the data.
HIDDEN = frozenset({"callback", "vectorizer", "vocabulary"})

Writer = Callable[[Path], Any]


@dataclass
class Record:
    """What a run produced; `result.json` holds all but `files`, `shown` and `model`."""

    command: str
    title: str
    answer: str  # the result in one sentence
    lead: str  # data, method and time in a few sentences
    tiles: Mapping[str, Any]  # the few numbers that stand on top
    data: dict[str, Any]
    result: dict[str, Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    history: dict[str, Any] = field(default_factory=dict)
    certificate: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)  # what this command has in addition
    hints: Sequence[str] = ()  # what a user may want to change
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = field(default_factory=lambda: versions())
    files: dict[str, Writer] = field(default_factory=dict, repr=False)
    shown: dict[str, Any] = field(default_factory=dict, repr=False)  # arrays that the page draws
    model: Any = field(default=None, repr=False)  # the fitted estimator; None if there is nothing to save

    def as_dict(self) -> dict[str, Any]:
        """Return the contents of result.json."""
        own = {name: getattr(self, name) for name in _STORED}
        return dict(plain({"format": FORMAT, **own, **self.details}))


_STORED = (
    "command", "title", "answer", "lead", "tiles", "created", "data", "parameters", "result", "history",
    "certificate", "hints", "versions",
)  # fmt: skip


def of_estimator(model: Any) -> dict[str, Any]:
    """Return the fields of a record that every estimator has."""
    history = getattr(model, "history_", None)
    names = ("name", "sentence", "number", "threshold", "verdict", "quantities")
    return {
        "parameters": shown_parameters(model.get_params()),
        "history": {} if history is None else history.as_dict(),
        "certificate": [
            {name: getattr(entry, name) for name in names} for entry in getattr(model, "certificate_", ())
        ],
        "model": model,
    }


def shown_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out functions, and arrays as long as the data."""
    return {name: value for name, value in parameters.items() if name not in HIDDEN}


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


def run_facts(model: Any, result: Any, seconds: float) -> dict[str, Any]:
    """Say how long a run took and why it stopped, for `result` of a record."""
    sentence = getattr(result, "stop_sentence", None) or result.stop_reason.value
    reason = {"name": result.stop_reason.name.lower(), "sentence": sentence}
    return {"n_iter": model.n_iter_, "stop_reason": reason, "seconds": seconds}


def versions() -> dict[str, str]:
    """Return the versions of the libraries that take part in a run."""
    libraries = {name: _version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"nonneg": __version__, "python": platform.python_version(), **libraries}


_version = cache(metadata.version)  # it looks through all that is installed


def read_record(path: str | os.PathLike[str]) -> Record:
    """Read the record of a run."""
    content = read_object(path)
    command = content.get("command")
    if not isinstance(command, str):
        raise FileFormatError(f"{path} is not the record of a nonneg run: it names no command.")
    if content.get("format") != FORMAT:
        raise FileFormatError(
            f"{path} has the format {content.get('format')}; expected {FORMAT}. Run `nonneg {command}` again."
        )
    if missing := [name for name in _STORED if name not in content]:
        raise FileFormatError(f"{path} lacks {', '.join(missing)}. Run `nonneg {command}` again.")
    own = (*_STORED, "format", "files")
    details = {name: value for name, value in content.items() if name not in own}
    return Record(**{name: content[name] for name in _STORED}, details=details)


def read_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a file that holds one JSON object."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path}: expected JSON, but {error}. The file may be truncated.") from error
    if not isinstance(value, dict):
        raise FileFormatError(f"{path}: expected a JSON object, got {type(value).__name__}.")
    return value


def plain(value: Any) -> Any:
    """Turn a value into what strict JSON in UTF-8 can hold."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean(str(key)): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    return clean(str(value))


def clean(text: str) -> str:
    """Replace bytes of a file name that are not UTF-8, which Python keeps as lone surrogates."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if not text.isascii() else text


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Write a value as strict JSON."""
    return json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def read_names(folder: Path, shape: tuple[int | None, int]) -> tuple[list[str] | None, list[str] | None]:
    """Read the names of samples and features that a command wrote."""
    content = read_object(folder / NAMES) if (folder / NAMES).is_file() else {}
    names = (content.get("rows"), content.get("columns"))
    for side_names, side, what in zip(names, shape, ("samples", "features"), strict=True):
        if side is None or side_names is None:
            continue
        if not isinstance(side_names, list) or len(side_names) != side:
            raise FileFormatError(
                f"{folder / NAMES}: expected a list of the names of {side} {what}. Run the command again."
            )
    return names
