"""Saved models: one file of arrays and JSON that cannot run code. Every class declares what it stores."""

from __future__ import annotations

import functools
import io
import json
import os
import tempfile
import warnings
import zipfile
from abc import ABC
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError as RejectedParameterError
from sklearn.utils.validation import check_is_fitted

from nonneg._arrays import write_npz
from nonneg._version import __version__
from nonneg.estimators.stored_fields import (
    Content,
    Field,
    Fields,
    NotPlainError,
    from_plain,
    pack_fields,
    to_plain,
    unpack_fields,
)
from nonneg.exceptions import (
    FileFormatError,
    InvalidParameterError,
    NonnegError,
    NonnegWarning,
    OutputError,
    UnsafeFileError,
)
from nonneg.io.limits import check_archive

FORMAT, FORMAT_VERSION = "nonneg-model", 3
# Parameters that belong to a process or a machine rather than to the model.
NOT_STORED = ("callback", "checkpoint")
# Arrays that were passed as parameters are stored under this prefix, beside those that a fit found.
PARAM = "param."


Classes = Mapping[str, Callable[[], Any]]
"""The classes that a file may name: for each a function that imports it, because they load one by one."""


class SavableEstimator(BaseEstimator, ABC):
    """A scikit-learn estimator with our errors, whose fit can be saved; `_stored` declares what is."""

    _stored: ClassVar[Fields] = {}

    @classmethod
    @functools.cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn takes the signature apart at every call, two of which are a tenth of a small fit.
        return super()._get_param_names()

    def _validate_params(self) -> None:
        # scikit-learn's words, in an error that is also one of ours.
        try:
            super()._validate_params()
        except RejectedParameterError as error:
            raise InvalidParameterError(str(error)) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model to a file of arrays and JSON, without pickle.

        Parameters
        ----------
        path : str or path
            The file; `nonneg.load` reads it. An existing file is replaced once the new one is complete.

        Notes
        -----
        Everything a fit found is saved, including history and certificate, except `result_`, which repeats it
        and adds details of the run.
        """
        check_is_fitted(self)
        content = Content()
        pack_model(self, content)
        header = np.frombuffer(json.dumps(content.values).encode(), dtype=np.uint8)
        _write(Path(path), content.arrays | {"header": header})
        if content.values["notes"]:
            warnings.warn(" ".join(content.values["notes"]), NonnegWarning, stacklevel=2)

    def __getstate__(self) -> dict[str, Any]:
        # `result_` holds the encoding of the training data, which can be as large as X. A pickle is for the
        # model, as a saved file is.
        return {name: value for name, value in super().__getstate__().items() if name != "result_"}

    def _complete_loaded(self) -> None:
        """Check what shapes and dtypes do not tell, and set attributes that follow from stored ones."""


class Model(Field):
    """Another estimator that can be saved, of one of several classes."""

    def __init__(self, *kinds: type[SavableEstimator]) -> None:
        super().__init__()
        self.kinds = kinds

    def write(self, name: str, value: Any, content: Content) -> None:
        pack_model(value, content.inner(name))

    def read(self, name: str, content: Content) -> Any:
        inner = content.inner(name)
        inner.sizes = {}
        return unpack_model(inner, {kind.__name__: partial(_itself, kind) for kind in self.kinds})


def _itself(kind: type[SavableEstimator]) -> type[SavableEstimator]:
    return kind


def pack_model(model: Any, content: Content) -> None:
    """Store an estimator: its class, its parameters and the fields that its class declares."""
    params: dict[str, Any] = {}
    notes: list[str] = []
    content.values |= {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "nonneg_version": __version__,
        "class": type(model).__name__,
        "params": params,
        "notes": notes,
    }
    for name, value in model.get_params(deep=False).items():
        array = _array_parameter(value)
        try:
            if name in NOT_STORED and value is not None:
                raise NotPlainError
            if array is None:
                params[name] = to_plain(value)
            else:
                content.put(PARAM + name, array)
        except NotPlainError:
            notes.append(f"{name} was not saved: a saved model contains only names and numbers.")
    pack_fields(model, model._stored, content)


def unpack_model(content: Content, classes: Classes) -> Any:
    """Return the estimator that `pack_model` stored."""
    header = content.values
    if header["format"] != FORMAT:
        raise FileFormatError(f"not a saved model: its format is {header['format']!r}.")
    if header["format_version"] != FORMAT_VERSION:
        newer = header["format_version"] > FORMAT_VERSION
        raise FileFormatError(
            f"written by {'a newer' if newer else 'an older'} nonneg ({header['nonneg_version']}; this is "
            f"{__version__}). {'Upgrade nonneg to read it.' if newer else 'Fit and save the model again.'}"
        )
    name = header["class"]
    if name not in classes:
        raise FileFormatError(
            f"the file contains a model of class {name!r}, which nonneg {__version__} does not have. It has "
            f"{sorted(classes)}."
        )
    kind = classes[name]()
    params = {key: from_plain(value) for key, value in header["params"].items()}
    start = content.prefix + PARAM
    for key in [key for key in content.arrays if key.startswith(start)]:
        params[key.removeprefix(start)] = content.arrays.pop(key)
    if unknown := sorted(set(params) - set(kind._get_param_names())):
        raise FileFormatError(f"the file sets parameters that {name} does not have: {unknown}.")
    model = kind(**params)
    if hasattr(model, "_parameter_constraints"):
        model._validate_params()
    content.sizes |= {key: value for key, value in params.items() if type(value) is int}
    for key, value in unpack_fields(kind._stored, content).items():
        setattr(model, key, value)
    if not content.prefix and content.arrays:
        raise FileFormatError(
            f"the file contains arrays that {name} does not have: {sorted(content.arrays)}."
        )
    model._complete_loaded()
    return model


def _array_parameter(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind in "biufU":
        return value if isinstance(value, np.ndarray) else None
    words = value.dtype == object and all(isinstance(word, str) for word in value.ravel())
    return value.astype(np.str_) if words and value.ndim == 1 else None


def _write(path: Path, arrays: dict[str, Any]) -> None:
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as stream:
            write_npz(stream, arrays)
            stream.flush()
            os.fsync(stream.fileno())
        # Temporary files are private to their owner; a saved model may be read like any other file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise OutputError(
            f"The model could not be written to {path}: {error}. What was there before is unchanged. Free "
            f"some space or choose another path."
        ) from error


def read_model(path: str | os.PathLike[str], classes: Classes) -> Any:
    """Read a model that `save` wrote."""
    content = Path(path).read_bytes()
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise FileFormatError(
            f"{path} is not a saved model, or it is truncated. Save it again with model.save(path)."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_archive(archive, Path(path))
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(bytes(arrays.pop("header")).decode())
        return unpack_model(Content(header, arrays), classes)
    except NonnegError as error:
        raise FileFormatError(f"{path}: {error}") from error
    except Exception as error:  # a damaged archive fails in many ways, and all of them mean the same
        if "allow_pickle" in str(error):
            raise UnsafeFileError(
                f"{path} contains pickled objects, which can run code when they are read, so it is rejected. "
                "Save models with model.save(path), which uses no pickle."
            ) from error
        raise FileFormatError(
            f"{path} is not a saved model, or it is damaged ({type(error).__name__}: {error}). Save it "
            "again with model.save(path)."
        ) from error
