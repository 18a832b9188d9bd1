"""Record of a run and the folder of its files, complete before they replace those of an earlier run."""

from __future__ import annotations

import base64
import json
import math
import os
import platform
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from nonneg._version import __version__
from nonneg.exceptions import FileFormatError, NonnegError, NonnegWarning, OutputError

FORMAT = 5
RESULT, MODEL, REPORT = "result.json", "model.npz", "report.html"
_VERSIONS = {"nonneg": __version__, "python": platform.python_version(), "numpy": np.__version__}
_VERSIONS |= {"scipy": scipy.__version__, "scikit-learn": sklearn.__version__}
# Parameters that no page shows: functions, and arrays as long as the data.
_HIDDEN = frozenset({"callback", "vectorizer", "vocabulary"})

Writer = Callable[[Path], Any]


@dataclass
class Record:
    """Output of a run; result.json holds all but the last three fields, and the page shows no more."""

    command: str
    title: str
    answer: str  # the result in one sentence
    tiles: Sequence[str]  # which numbers of data and result stand on top
    data: dict[str, Any]
    result: dict[str, Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    history: dict[str, Any] = field(default_factory=dict)
    certificate: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)  # what this command has in addition
    hints: Sequence[str] = ()  # what a user may want to change
    table: Sequence[Mapping[str, Any]] = ()  # the main result, for terminal and page
    sections: Sequence[Any] = ()  # of the page: a heading and blocks each, or nothing
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = field(default_factory=lambda: dict(_VERSIONS))
    remarks: Sequence[Any] = field(default=(), repr=False)  # texts and tables that the terminal adds
    files: dict[str, Writer] = field(default_factory=dict, repr=False)
    model: Any = field(default=None, repr=False)  # the fitted estimator; None if there is nothing to save

    def as_dict(self) -> dict[str, Any]:
        """Return the contents of result.json."""
        own = {name: getattr(self, name) for name in _STORED}
        return dict(plain({"format": FORMAT, **own, **self.details}))


_STORED = [one.name for one in fields(Record) if one.repr and one.name != "details"]


def block(kind: str, /, **content: Any) -> dict[str, Any]:
    """Return a block of a section that is more than a text or rows of a table."""
    return {"block": kind, **content}


def of_estimator(model: Any) -> dict[str, Any]:
    """Return the fields of a record that every estimator has."""
    history = getattr(model, "history_", None)
    return {
        "parameters": {name: value for name, value in model.get_params().items() if name not in _HIDDEN},
        "history": {} if history is None else history.as_dict(),
        "certificate": [statement.as_dict() for statement in getattr(model, "certificate_", ())],
        "model": model,
    }


def picked(source: Any, *names: str) -> dict[str, Any]:
    """Return attributes by name, without the last underscore of fitted ones."""
    return {name.removesuffix("_"): getattr(source, name) for name in names}


def table_facts(table: Any) -> dict[str, Any]:
    """Describe a matrix of samples and features, for `data` of a record."""
    X, missing = table.X, getattr(table.X, "n_missing", None)  # of a file that does not fit in memory
    if missing is None:
        missing = 0 if hasattr(X, "nnz") or X.dtype.kind != "f" else int(np.isnan(X).sum())
    source = Path(table.source).name or table.source
    return {"source": source, "shape": X.shape, "dtype": str(X.dtype), "n_missing": missing}


def run_facts(model: Any, result: Any, seconds: float) -> dict[str, Any]:
    """Say how long a run took and why it stopped, for `result` of a record."""
    sentence = getattr(result, "stop_sentence", None) or result.stop_reason.value
    reason = {"name": result.stop_reason.name.lower(), "sentence": sentence}
    return {"n_iter": model.n_iter_, "stop_reason": reason, "seconds": seconds}


def read_record(path: str | os.PathLike[str]) -> Record:
    """Read the record of a run."""
    content = _read_object(path)
    command = content.get("command")
    if not isinstance(command, str):
        raise FileFormatError(f"{path} is not the record of a nonneg run: it names no command.")
    if content.get("format") != FORMAT:
        raise FileFormatError(
            f"{path} has the format {content.get('format')}; expected {FORMAT}. Run `nonneg {command}` again."
        )
    if missing := [name for name in _STORED if name not in content]:
        raise FileFormatError(f"{path} lacks {', '.join(missing)}. Run `nonneg {command}` again.")
    own = {name: content.pop(name) for name in _STORED}
    return Record(**own, details=content)


def _read_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: expected JSON, but {error}. The file may be truncated.") from error
    if not isinstance(value, dict):
        raise FileFormatError(f"{path}: expected a JSON object, got {type(value).__name__}.")
    return value


def plain(value: Any) -> Any:
    """Turn a value into what JSON holds: pictures and sounds as text, numbers that are not finite as null."""
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, np.ndarray) and value.dtype == np.uint8:
        return {"shape": value.shape} | plain(value.tobytes())
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean(str(key)): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset | range):
        return [plain(entry) for entry in value]
    return clean(str(value))


def clean(text: str) -> str:
    """Replace bytes of a file name that are not UTF-8, which Python keeps as lone surrogates."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if not text.isascii() else text


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Write a value as strict JSON."""
    return json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def write_run(folder: Path, record: Record, page: str | None) -> list[Path]:
    """Write the files, the model, the record and the report of a run: all of them, or none."""
    with replaced_folder(folder, earlier_files(folder)) as fresh:
        for name, write in record.files.items():
            write(fresh / name)
        if record.model is not None:
            with warnings.catch_warnings():
                # It says that the checkpoint folder is not part of a saved model.
                warnings.simplefilter("ignore", NonnegWarning)
                record.model.save(fresh / MODEL)
        content = record.as_dict() | {"files": sorted(entry.name for entry in fresh.iterdir())}
        (fresh / RESULT).write_text(as_json(content, indent=1) + "\n", encoding="utf-8")
        if page is not None:
            (fresh / REPORT).write_text(clean(page), encoding="utf-8")
        written = sorted((entry.name for entry in fresh.iterdir()), key=lambda name: (name == REPORT, name))
    return [folder / name for name in written]


def earlier_files(folder: Path) -> set[str]:
    """Return the files of an earlier run in a folder, as its record names them."""
    try:
        # A record may come from elsewhere: only files beside it count.
        names = [name for name in _read_object(folder / RESULT)["files"] if Path(name).name == name]
    except (NonnegError, OSError, KeyError, TypeError):
        return set()
    return {*names, RESULT, REPORT}


@contextmanager
def replaced_folder(folder: str | os.PathLike[str], known: Iterable[str] = ()) -> Iterator[Path]:
    """Write files into a hidden folder, and move them into place when all are complete.

    Files of an earlier run, which `known` names, are removed unless they are replaced.
    """
    place, state = Path(folder).absolute(), "What was there before is unchanged."
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{place.name}.", dir=place.parent, ignore_cleanup_errors=True
        ) as hidden:
            yield Path(hidden)
            written = {entry.name: entry for entry in Path(hidden).iterdir()}
            place.mkdir(exist_ok=True)
            state = "Some of its files may be new and some of the earlier run."
            for name in sorted(written):
                written[name].replace(place / name)
            for name in set(known) - set(written):
                (place / name).unlink(missing_ok=True)
    except OSError as error:
        # A writer inside may have explained itself already, with the name of the hidden folder.
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise OutputError(
            f"The results could not be written to {folder}: {cause.strerror or cause}. {state} Free some "
            "space or choose another folder with -o, and run again."
        ) from error
