"""Saved models: one file of arrays and JSON that cannot run code. Every class declares what it stores."""

from __future__ import annotations

import functools
import io
import json
import os
import warnings
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError as RejectedParameterError
from sklearn.utils.validation import check_is_fitted

from nonneg._arrays import to_numpy, write_npz
from nonneg._version import __version__
from nonneg.estimators.documentation import documented
from nonneg.exceptions import (
    FileFormatError,
    InvalidParameterError,
    NonnegError,
    NonnegWarning,
    OutputError,
    UnsafeFileError,
)
from nonneg.io.limits import check_archive
from nonneg.io.table import check_format

FORMAT, FORMAT_VERSION = "nonneg-model", 3
# Parameters that belong to a process or a machine rather than to the model.
NOT_STORED = ("callback", "checkpoint")
# Arrays that were passed as parameters are stored under this prefix, beside those that a fit found.
PARAM = "param."

Classes = Mapping[str, Callable[[], Any]]
"""The classes that a file may name: for each a function that imports it, because they load one by one."""

Fields = Mapping[str, "Field"]
"""What a class stores: an attribute and how it is written and checked."""


def damaged(what: str) -> FileFormatError:
    """Return the error of a file whose content contradicts itself or the class."""
    return FileFormatError(f"{what}. The file is damaged.")


@dataclass
class Content:
    """What a file holds of a model, or of a part of one."""

    values: dict[str, Any] = field(default_factory=dict)  # for JSON
    arrays: dict[str, Any] = field(default_factory=dict)  # of the whole file
    prefix: str = ""  # of the names of this part's arrays
    sizes: dict[str, int] = field(default_factory=dict)  # lengths of axes known so far, by name

    def inner(self, name: str) -> Content:
        """Return the content of a part."""
        values = self.values.setdefault(name, {})
        if not isinstance(values, dict):
            raise damaged(f"expected named values in {self.prefix}{name}, got {values!r}")
        return Content(values, self.arrays, f"{self.prefix}{name}.", self.sizes)

    def holds(self, name: str) -> bool:
        """Tell whether there is a value or an array of this name, or arrays of its parts."""
        full = self.prefix + name
        return self.values.get(name) is not None or any(
            key == full or key.startswith(f"{full}.") for key in self.arrays
        )

    def take(self, name: str) -> Any:
        """Return an array, once."""
        if self.prefix + name not in self.arrays:
            raise damaged(f"{self.prefix}{name} is missing")
        return self.arrays.pop(self.prefix + name)


class Field(ABC):
    """One attribute that is stored."""

    # `optional`: the attribute may be None or absent. `source`: it is read from another attribute.
    def __init__(self, *, optional: bool = False, source: str | None = None) -> None:
        self.optional, self.source = optional, source

    @abstractmethod
    def write(self, name: str, value: Any, content: Content) -> None:
        """Store it."""

    @abstractmethod
    def read(self, name: str, content: Content) -> Any:
        """Return it, after checking it: the file may come from anywhere."""


class StoredArray(Field):
    """An array. Axes are named; the same name means the same length as in other fields or parameters."""

    def __init__(
        self,
        *shape: str | int,
        kind: str = "f",
        finite: bool = False,
        nonnegative: bool = False,
        below: str | tuple[str, ...] | None = None,
        optional: bool = False,
        source: str | None = None,
    ) -> None:
        super().__init__(optional=optional, source=source)
        self.shape, self.kind, self.below = shape, kind, below
        self.finite, self.nonnegative = finite or nonnegative, nonnegative

    def write(self, name: str, value: Any, content: Content) -> None:
        content.arrays[content.prefix + name] = to_numpy(value)

    def read(self, name: str, content: Content) -> Any:
        array, sizes = content.take(name), content.sizes
        expected = tuple(sizes.get(axis, axis) if isinstance(axis, str) else axis for axis in self.shape)
        # The first array with an axis fixes the length of that axis for all that follow.
        good = array.ndim == len(expected) and all(
            (sizes.setdefault(axis, got) if isinstance(axis, str) else axis) == got
            for axis, got in zip(self.shape, array.shape, strict=True)
        )
        good = good and array.dtype.kind in self.kind
        good = good and (array.dtype.kind != "f" or array.dtype in (np.float32, np.float64))
        good = good and not (self.finite and not np.isfinite(array).all())
        if not good or (self.nonnegative and not (array >= 0).all()):
            words = "nonnegative " if self.nonnegative else "finite " if self.finite else ""
            raise damaged(
                f"expected {words}{content.prefix}{name} of shape {expected}, got {array.dtype} of shape "
                f"{array.shape}"
            )
        if self.below is not None:
            # Indices of rows or columns that exist: all of one axis, or a column of them per axis.
            axes = [self.below] if isinstance(self.below, str) else self.below
            limits = [sizes[axis] for axis in axes]
            if not ((array >= 0) & (array < limits)).all():
                numbers = " x ".join(map(str, limits))
                raise damaged(f"indices in {content.prefix}{name} exceed the {numbers} that exist")
        return array


class Names(StoredArray):
    """Names along an axis."""

    def __init__(self, axis: str, *, container: Any = None, optional: bool = False) -> None:
        super().__init__(axis, kind="U", optional=optional)
        self.container = container

    def write(self, name: str, value: Any, content: Content) -> None:
        super().write(name, np.asarray([str(one) for one in value], dtype=np.str_), content)

    def read(self, name: str, content: Content) -> Any:
        names = super().read(name, content)
        return names.astype(object) if self.container is None else self.container(names.tolist())


class Sparse(Field):
    """A sparse matrix, by its arrays; a square one needs one axis only."""

    def __init__(self, layout: str, *shape: str, nonnegative: bool = False, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.shape, self.nonnegative = (shape * 2)[:2], nonnegative
        self.matrix: Any = {"csr": sp.csr_array, "csc": sp.csc_array}[layout]

    def write(self, name: str, value: Any, content: Content) -> None:
        matrix = self.matrix(value)
        content.values[name] = list(matrix.shape)
        for part in ("data", "indices", "indptr"):
            content.arrays[f"{content.prefix}{name}.{part}"] = getattr(matrix, part)

    def read(self, name: str, content: Content) -> Any:
        shape = content.values[name]
        for axis, length in zip(self.shape, shape, strict=True):
            if type(length) is not int or content.sizes.setdefault(axis, length) != length:
                raise damaged(f"{content.prefix}{name} of shape {shape} does not fit the model")
        entries = f"number of entries of {name}"
        data = StoredArray(entries, nonnegative=self.nonnegative).read(f"{name}.data", content)
        indices = StoredArray(entries, kind="i").read(f"{name}.indices", content)
        indptr = StoredArray(f"{name}.indptr", kind="i").read(f"{name}.indptr", content)
        try:
            matrix = self.matrix((data, indices, indptr), shape=tuple(shape))
            check_format(matrix)
        except ValueError as error:
            raise damaged(f"the arrays of {content.prefix}{name} do not match each other ({error})") from None
        return matrix


class Value(Field):
    """A number, a word, or a dict of them. A whole number also fixes the length of the axis of its name."""

    WORDS: ClassVar = {int: "a whole number", float: "a number", bool: "True or False", str: "a word"}

    def __init__(self, kind: type, *, optional: bool = False, source: str | None = None) -> None:
        super().__init__(optional=optional, source=source)
        self.kind = kind

    def write(self, name: str, value: Any, content: Content) -> None:
        content.values[name] = to_plain(value) if self.kind is dict else self.kind(value)

    def read(self, name: str, content: Content) -> Any:
        value = content.values[name]
        value = from_plain(value) if self.kind is dict else value
        kinds: Any = (int, float) if self.kind is float else self.kind
        if not isinstance(value, kinds) or isinstance(value, bool) != (self.kind is bool):
            words = self.WORDS.get(self.kind, "named values")
            raise damaged(f"expected {words} for {content.prefix}{name}, got {value!r}")
        if self.kind is int:
            content.sizes[name] = value
        return self.kind(value)


class Record(Field):
    """An object that `as_dict` makes plain, and the function that makes it again."""

    def __init__(self, build: Callable[[Any], Any], *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.build = build

    def write(self, name: str, value: Any, content: Content) -> None:
        content.values[name] = value.as_dict()

    def read(self, name: str, content: Content) -> Any:
        return self.build(content.values[name])


class Part(Field):
    """An object of one of several classes, with the fields that each of them stores."""

    def __init__(self, classes: Mapping[Any, Fields], *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.classes = classes

    def write(self, name: str, value: Any, content: Content) -> None:
        inner = content.inner(name)
        inner.values["class"] = type(value).__name__
        pack_fields(value, self.classes[type(value)], inner)

    def read(self, name: str, content: Content) -> Any:
        inner = content.inner(name)
        kinds = {kind.__name__: kind for kind in self.classes}
        kind = kinds.get(inner.values.get("class", ""))
        if kind is None:
            raise damaged(f"expected {inner.prefix}class to be one of {list(kinds)}")
        return kind(**unpack_fields(self.classes[kind], inner))


class Parts(Part):
    """A list of such objects; axes are those of each object on its own."""

    def write(self, name: str, value: Any, content: Content) -> None:
        content.values[name] = {"length": len(value)}
        for at, item in enumerate(value):
            super().write(str(at), item, content.inner(name))

    def read(self, name: str, content: Content) -> Any:
        inner, items = content.inner(name), []
        for at in range(Value(int).read("length", inner)):
            inner.sizes = dict(content.sizes)
            items.append(super().read(str(at), inner))
        return items


class Model(Field):
    """Another estimator that can be saved, of one of several classes."""

    def __init__(self, *kinds: type[SavableEstimator]) -> None:
        super().__init__()
        self.kinds: dict[str, Callable[[], Any]] = {}
        for kind in kinds:
            self.kinds[kind.__name__] = functools.partial(lambda kind: kind, kind)

    def write(self, name: str, value: Any, content: Content) -> None:
        pack_model(value, content.inner(name))

    def read(self, name: str, content: Content) -> Any:
        inner = content.inner(name)
        inner.sizes = {}
        return unpack_model(inner, self.kinds)


def pack_fields(owner: Any, fields: Fields, content: Content) -> None:
    """Store the declared attributes of an object."""
    for name, stored in fields.items():
        source = stored.source or name
        if stored.optional and not hasattr(owner, source):
            continue
        value = getattr(owner, source)
        if value is None:
            content.values[name] = None
        else:
            stored.write(name, value, content)


def unpack_fields(fields: Fields, content: Content) -> dict[str, Any]:
    """Return the attributes that `pack_fields` stored, after checking them."""
    values = {}
    for name, stored in fields.items():
        if content.holds(name):
            values[name] = stored.read(name, content)
        elif not stored.optional:
            raise damaged(f"{content.prefix}{name} is missing")
        elif name in content.values:
            values[name] = None
    return values


def to_plain(value: Any) -> Any:
    """Turn a value into what JSON can hold."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    # JSON knows lists only; other containers are marked.
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [to_plain(item) for item in value]}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, set | frozenset):
        return {"set": sorted((to_plain(item) for item in value), key=repr)}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"dict": {key: to_plain(item) for key, item in value.items()}}
    raise NotPlainError


def from_plain(value: Any) -> Any:
    """Return what `to_plain` was given."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "dict":
        return {str(key): from_plain(item) for key, item in content.items()}
    if kind == "range":
        return range(*content)
    return {"tuple": tuple, "set": frozenset}[kind](from_plain(item) for item in content)


class NotPlainError(Exception):
    """A value that JSON cannot hold."""


class SavableEstimator(BaseEstimator, ABC):
    """A scikit-learn estimator with our errors, whose fit can be saved; `_stored` declares what is."""

    _stored: ClassVar[Fields] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        for member in (cls, *vars(cls).values()):
            if isinstance(member, type | FunctionType):
                documented(member)
        super().__init_subclass__(**kwargs)

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
        try:
            write_npz(Path(path), content.arrays | {"header": header})
        except OSError as error:
            raise OutputError(
                f"The model could not be written to {path}: {error}. What was there before is unchanged. "
                "Free some space or choose another path."
            ) from error
        if content.values["notes"]:
            warnings.warn(" ".join(content.values["notes"]), NonnegWarning, stacklevel=2)

    def __getstate__(self) -> dict[str, Any]:
        # `result_` holds the encoding of the training data, which can be as large as X. A pickle is for the
        # model, as a saved file is.
        return {name: value for name, value in super().__getstate__().items() if name != "result_"}

    def _complete_loaded(self) -> None:
        """Check what shapes and dtypes do not tell, and set attributes that follow from stored ones."""


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
                content.arrays[content.prefix + PARAM + name] = array
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
    # A file must not choose a path that a later fit writes to; `pack_model` stores neither.
    if foreign := [key for key in NOT_STORED if params.get(key) is not None]:
        raise FileFormatError(f"the file sets {' and '.join(foreign)}, which saved models never contain.")
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
