"""Saved models: one file of arrays and JSON. Nothing in it can run code."""

from __future__ import annotations

import io
import json
import os
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._version import __version__
from nonneg.estimators.stored import names_array
from nonneg.exceptions import (
    FileFormatError,
    NonnegError,
    NonnegWarning,
    OutputError,
    UnsafeFileError,
)

FORMAT, FORMAT_VERSION = "nonneg-model", 2
# Parameters that belong to a process or a machine rather than to the model.
NOT_STORED = ("callback", "checkpoint")
# Arrays that were given as parameters, beside those that a fit found.
PARAM = "param."

Classes = Mapping[str, Callable[[], Any]]
"""The classes that a file may name: for each a function that imports it, because they load one by one."""


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator."""
    header, arrays = packed(model)
    stored = arrays | {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)}
    _write(Path(path), stored)
    if header["notes"]:
        warnings.warn(" ".join(header["notes"]), NonnegWarning, stacklevel=3)


def packed(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all that a file holds of an estimator."""
    params: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    notes = []
    for name, value in model.get_params(deep=False).items():
        array = _given_array(value)
        try:
            if name in NOT_STORED and value is not None:
                raise _NotPlain
            if array is None:
                params[name] = _to_plain(value)
            else:
                arrays[PARAM + name] = array
        except _NotPlain:
            notes.append(f"{name} was not stored: a saved model holds names and numbers only.")
    parts, found = model._saved_parts()
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "nonneg_version": __version__,
        "class": type(model).__name__,
        "params": params,
        "notes": notes,
    }
    return header | parts, arrays | found


class _NotPlain(Exception):
    """A value that JSON cannot hold."""


def _given_array(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind in "biufU":
        return value if isinstance(value, np.ndarray) else None
    words = value.dtype == object and all(isinstance(word, str) for word in value.ravel())
    return names_array(value) if words and value.ndim == 1 else None


def _to_plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    # JSON knows lists alone; what else holds values says what it is.
    if isinstance(value, list):
        return [_to_plain(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_to_plain(item) for item in value]}
    if isinstance(value, set | frozenset):
        return {"set": sorted((_to_plain(item) for item in value), key=repr)}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _to_plain(item) for key, item in value.items()}}
    raise _NotPlain


def _from_plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "dict":
        return {str(key): _from_plain(item) for key, item in content.items()}
    return {"tuple": tuple, "set": frozenset}[kind](_from_plain(item) for item in content)


def _write(path: Path, arrays: dict[str, Any]) -> None:
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as stream:
            np.savez(stream, **arrays)
            stream.flush()
            os.fsync(stream.fileno())
        # Temporary files are for the owner alone; a result may be read like any other file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise OutputError(
            f"The model could not be written to {path}: {error}. What was there before is still there. Free "
            "some space or name another place."
        ) from error


def read_model(path: str | os.PathLike[str], classes: Classes) -> Any:
    """Read a model that `save_model` wrote."""
    content = Path(path).read_bytes()
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise FileFormatError(
            f"{path} is not a saved model, or it is truncated. Write it again with model.save(path)."
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(bytes(arrays.pop("header")).decode())
        return unpacked(header, arrays, classes, path)
    except NonnegError:
        raise
    except Exception as error:  # a damaged archive fails in many ways, and all of them mean the same
        if "allow_pickle" in str(error):
            raise UnsafeFileError(
                f"{path} holds pickled objects, which can run code when they are read: refused. A model is "
                "saved with model.save(path), which writes none."
            ) from error
        raise FileFormatError(
            f"{path} is not a saved model, or it is damaged ({type(error).__name__}: {error}). Write it "
            "again with model.save(path)."
        ) from error


def unpacked(header: dict[str, Any], arrays: dict[str, Any], classes: Classes, path: Any) -> Any:
    """Return the estimator that `packed` was given."""
    if header["format"] != FORMAT:
        raise FileFormatError(f"{path} is not a saved model: its format is {header['format']!r}.")
    if header["format_version"] > FORMAT_VERSION:
        raise FileFormatError(
            f"{path} was written by a newer nonneg ({header['nonneg_version']}; this is {__version__}). "
            "Upgrade nonneg to read it."
        )
    if header["class"] not in classes:
        raise FileFormatError(
            f"{path} holds a model of class {header['class']!r}, which nonneg {__version__} does not have. "
            f"It has {sorted(classes)}."
        )
    kind = classes[header["class"]]()
    params = {name: _from_plain(value) for name, value in header["params"].items()}
    params |= {name.removeprefix(PARAM): arrays[name] for name in arrays if name.startswith(PARAM)}
    if unknown := sorted(set(params) - set(kind._get_param_names())):
        raise FileFormatError(f"{path} sets parameters that {header['class']} does not have: {unknown}.")
    model = kind(**params)
    found = {name: array for name, array in arrays.items() if not name.startswith(PARAM)}
    try:
        if hasattr(model, "_parameter_constraints"):
            model._validate_params()
        model._restore_parts(header, found, path)
    except FileFormatError:
        raise
    except NonnegError as error:
        raise FileFormatError(f"{path}: {error}") from error
    return model


def nested(arrays: Mapping[str, Any], within: str) -> dict[str, Any]:
    """Return the arrays of an estimator, or of another part, that is within another one."""
    start = within + "."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
