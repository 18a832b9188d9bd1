"""Saved models: one file of arrays and JSON that cannot run code. Every class declares what it stores."""

from __future__ import annotations

import functools
import io
import json
import os
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from types import FunctionType
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError as RejectedParameterError
from sklearn.utils.validation import check_is_fitted

from nonneg._arguments import checked_path
from nonneg._arrays import checked_indices, to_numpy, write_npz
from nonneg._version import __version__
from nonneg.estimators.documentation import documented
from nonneg.estimators.laplacian import laplacian
from nonneg.exceptions import (
    FileFormatError,
    InvalidParameterError,
    NonnegError,
    NonnegWarning,
    OutputError,
    UnsafeFileError,
)
from nonneg.io.limits import check_archive
from nonneg.kernels.grams import Laplacian

FORMAT, FORMAT_VERSION = "nonneg-model", 4
# Parameters that belong to a process or a machine rather than to the model.
NOT_STORED = ("callback", "checkpoint")

Classes = Mapping[str, Callable[[], Any]]
"""The classes that a file may name: for each a function that imports it, because they load one by one."""

Fields = Mapping[str, Any]
"""Stored attributes of a class: a `StoredArray`; a type of plain values (a union with None if the value
may be absent); an estimator, or a union of estimators; a mapping from classes to the fields that each of them
stores, for an object or a list of objects; or a class or function that makes an object again from what its
`as_dict` returned. Objects may be absent."""
PLAIN = (int, float, bool, str, list, dict)


def damaged(what: str) -> FileFormatError:
    """Return the error of a file whose content contradicts itself or the class."""
    return FileFormatError(f"{what}. The file is damaged.")


@dataclass
class File:
    """The arrays of a file, and the lengths of the axes known so far."""

    arrays: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


class StoredArray:
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
        self.shape, self.kind, self.below = shape, kind, below
        self.optional = optional  # whether the attribute may be None or absent
        self.source = source  # another attribute that it is read from
        self.finite, self.nonnegative = finite or nonnegative, nonnegative

    def write(self, value: Any, file: File, name: str) -> Any:
        """Put it into the file."""
        file.arrays[name] = to_numpy(value)
        return list(file.arrays[name].shape)

    def read(self, plain: Any, file: File, name: str) -> Any:
        """Return it, after checking it: the file may come from anywhere."""
        if name not in file.arrays:
            raise damaged(f"{name} is missing")
        array, sizes = file.arrays.pop(name), file.sizes
        # The first array with an axis fixes the length of that axis for all that follow.
        for axis, length in zip(self.shape, array.shape, strict=False):
            if isinstance(axis, str):
                sizes.setdefault(axis, length)
        expected = tuple(sizes.get(str(axis), axis) for axis in self.shape)
        good = array.shape == expected and array.dtype.kind in self.kind
        good = good and (array.dtype.kind != "f" or array.dtype in (np.float32, np.float64))
        good = good and not (self.finite and not np.isfinite(array).all())
        if not good or (self.nonnegative and not (array >= 0).all()):
            words = "nonnegative " if self.nonnegative else "finite " if self.finite else ""
            raise damaged(
                f"expected {words}{name} of shape {expected}, got {array.dtype} of shape {array.shape}"
            )
        if self.below is not None:
            # Indices of rows or columns that exist: all of one axis, or a column of them per axis.
            limits = [sizes[axis] for axis in ([self.below] if isinstance(self.below, str) else self.below)]
            if not ((array >= 0) & (array < limits)).all():
                raise damaged(f"indices in {name} exceed the {' x '.join(map(str, limits))} that exist")
        return array


class Names(StoredArray):
    """Names along an axis."""

    def __init__(self, axis: str, *, container: Any = None, optional: bool = False) -> None:
        super().__init__(axis, kind="U", optional=optional)
        self.container = container

    def write(self, value: Any, file: File, name: str) -> Any:
        return super().write(np.asarray([str(word) for word in value], dtype=np.str_), file, name)

    def read(self, plain: Any, file: File, name: str) -> Any:
        names = super().read(plain, file, name)
        return names.astype(object) if self.container is None else self.container(names.tolist())


class Sparse(StoredArray):
    """A sparse matrix, by its arrays; a square one needs one axis only."""

    def __init__(self, layout: str, *shape: str, nonnegative: bool = False, optional: bool = False) -> None:
        super().__init__(*(shape * 2)[:2], nonnegative=nonnegative, optional=optional)
        self.matrix: Any = {"csr": sp.csr_array, "csc": sp.csc_array}[layout]

    def write(self, value: Any, file: File, name: str) -> Any:
        matrix = self.matrix(value)
        for part in ("data", "indices", "indptr"):
            file.arrays[f"{name}.{part}"] = getattr(matrix, part)
        return list(matrix.shape)

    def read(self, plain: Any, file: File, name: str) -> Any:
        for axis, length in zip(self.shape, plain, strict=True):
            if type(length) is not int or file.sizes.setdefault(str(axis), length) != length:
                raise damaged(f"{name} of shape {plain} does not fit the model")
        n_entries = f"entries of {name}"
        data = StoredArray(n_entries, nonnegative=self.nonnegative).read(None, file, f"{name}.data")
        indices = StoredArray(n_entries, kind="i").read(None, file, f"{name}.indices")
        indptr = StoredArray(f"{name}.indptr", kind="i").read(None, file, f"{name}.indptr")
        matrix = self.matrix((data, indices, indptr), shape=tuple(plain))
        checked_indices(matrix, name)
        return matrix


class SavableEstimator(BaseEstimator):
    """A scikit-learn estimator with our errors, whose fit can be saved; `_stored` declares what is."""

    _stored: ClassVar[Fields] = {}
    _function: ClassVar[Any] = None  # the function behind the estimator, which describes its parameters

    def __init_subclass__(cls, **kwargs: Any) -> None:
        for member in (cls, *(member for member in vars(cls).values() if isinstance(member, FunctionType))):
            documented(member, vars(cls).get("_function"))
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
        for name, value in self.get_params(deep=False).items():
            kinds = self._parameter_constraints.get(name, ())
            if isinstance(value, bool) and any(getattr(kind, "type", None) is Integral for kind in kinds):
                raise InvalidParameterError(f"{name} must be a number, not True or False; got {value}.")

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
        file = File()
        header = pack_model(self, file)
        file.arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        try:
            write_npz(checked_path(path), file.arrays)
        except OSError as error:
            raise OutputError(
                f"The model could not be written to {path}: {error}. What was there before is unchanged. "
                "Free some space or choose another path."
            ) from error
        if header["notes"]:
            warnings.warn(" ".join(header["notes"]), NonnegWarning, stacklevel=2)

    def __getstate__(self) -> dict[str, Any]:
        # `result_` holds the encoding of the training data, which can be as large as X. A pickle is for the
        # model, as a saved file is.
        return {name: value for name, value in super().__getstate__().items() if name != "result_"}

    def _complete_loaded(self) -> None:
        """Check what shapes and dtypes do not tell, and set attributes that follow from stored ones."""


def pack_model(model: Any, file: File, prefix: str = "") -> dict[str, Any]:
    """Return an estimator as JSON: its class, its parameters and the fields that its class declares."""
    params: dict[str, Any] = {}
    notes: list[str] = []
    for name, value in model.get_params(deep=False).items():
        try:
            if name in NOT_STORED and value is not None:
                raise NotPlainError
            params[name] = to_plain(value, file, f"{prefix}param.{name}")
        except NotPlainError:
            notes.append(f"{name} was not saved: a saved model contains only names and numbers.")
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "nonneg_version": __version__,
        "class": type(model).__name__,
        "params": params,
        "notes": notes,
        **pack_fields(model, model._stored, file, prefix),
    }


def unpack_model(header: dict[str, Any], file: File, classes: Classes, prefix: str = "") -> Any:
    """Return the estimator that `pack_model` stored."""
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
    params = {key: from_plain(plain, file, f"{prefix}param.{key}") for key, plain in header["params"].items()}
    if unknown := sorted(set(params) - set(kind._get_param_names())):
        raise FileFormatError(f"the file sets parameters that {name} does not have: {unknown}.")
    # A file must not choose a path that a later fit writes to; `pack_model` stores neither.
    if foreign := [key for key in NOT_STORED if params.get(key) is not None]:
        raise FileFormatError(f"the file sets {' and '.join(foreign)}, which saved models never contain.")
    model = kind(**params)
    if hasattr(model, "_parameter_constraints"):
        model._validate_params()
    file.sizes |= {key: value for key, value in params.items() if type(value) is int}
    for key, value in unpack_fields(kind._stored, header, file, prefix).items():
        setattr(model, key, value)
    if not prefix and file.arrays:
        raise FileFormatError(f"the file contains arrays that {name} does not have: {sorted(file.arrays)}.")
    model._complete_loaded()
    return model


def pack_fields(owner: Any, fields: Fields, file: File, prefix: str = "") -> dict[str, Any]:
    """Return the declared attributes of an object as JSON, and put its arrays into the file."""
    plain = {}
    for name, stored in fields.items():
        source = getattr(stored, "source", None) or name
        if hasattr(owner, source) or not _is_optional(stored):
            value = getattr(owner, source)
            plain[name] = None if value is None else _packed(value, stored, file, prefix + name)
    return plain


def unpack_fields(fields: Fields, plain: dict[str, Any], file: File, prefix: str = "") -> dict[str, Any]:
    """Return the attributes that `pack_fields` stored, after checking them."""
    values = {}
    for name, stored in fields.items():
        if plain.get(name) is not None:
            values[name] = _unpacked(plain[name], stored, file, prefix + name)
        elif not _is_optional(stored):
            raise damaged(f"{prefix}{name} is missing")
        elif name in plain:
            values[name] = None
    return values


def _is_optional(stored: Any) -> bool:
    if isinstance(stored, StoredArray):
        return stored.optional
    return not (stored in PLAIN or _is_estimator(stored))


def _types(stored: Any) -> tuple[Any, ...]:
    """Return the types of a union but None."""
    return tuple(kind for kind in getattr(stored, "__args__", (stored,)) if kind is not type(None))


def _is_estimator(stored: Any) -> bool:
    return all(isinstance(kind, type) and issubclass(kind, SavableEstimator) for kind in _types(stored))


def _packed(value: Any, stored: Any, file: File, name: str) -> Any:
    if isinstance(stored, StoredArray):
        return stored.write(value, file, name)
    if _is_estimator(stored):
        return pack_model(value, file, f"{name}.")
    if not isinstance(stored, Mapping):
        (kind,) = _types(stored)
        return to_plain(kind(value), file, name) if kind in PLAIN else value.as_dict()
    if isinstance(value, list):
        return [_packed(item, stored, file, f"{name}.{i}") for i, item in enumerate(value)]
    return {"class": type(value).__name__, **pack_fields(value, stored[type(value)], file, f"{name}.")}


def _unpacked(plain: Any, stored: Any, file: File, name: str) -> Any:
    if isinstance(stored, StoredArray):
        return stored.read(plain, file, name)
    if isinstance(stored, Mapping):
        if isinstance(plain, list):
            # Axes are those of each object on its own.
            copies = [replace(file, sizes=dict(file.sizes)) for _ in plain]
            return [_unpacked(plain[i], stored, own, f"{name}.{i}") for i, own in enumerate(copies)]
        kinds = {kind.__name__: kind for kind in stored}
        if plain["class"] not in kinds:
            raise damaged(f"expected {name}.class to be one of {list(kinds)}")
        kind = kinds[plain["class"]]
        return kind(**unpack_fields(stored[kind], plain, file, f"{name}."))
    if _is_estimator(stored):
        classes = {kind.__name__: functools.partial(lambda kind: kind, kind) for kind in _types(stored)}
        return unpack_model(plain, replace(file, sizes={}), classes, f"{name}.")
    (kind,) = _types(stored)
    if kind not in PLAIN:
        return getattr(kind, "from_dict", kind)(plain)
    value = from_plain(plain, file, name)
    accepted: Any = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or isinstance(value, bool) != (kind is bool):
        raise damaged(f"expected {name} of type {kind.__name__}, got {value!r}")
    if kind is int:
        # It is also the length of the axis of its name.
        file.sizes[name.rpartition(".")[2]] = value
    return kind(value)


class NotPlainError(Exception):
    """A value that JSON and arrays cannot hold."""


def to_plain(value: Any, file: File, name: str) -> Any:
    """Turn a value into what JSON and arrays can hold: ranges and sets become lists."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        words = value.dtype == object and all(isinstance(word, str) for word in value.ravel())
        if value.dtype.kind not in "biufU" and not words:
            raise NotPlainError
        file.arrays[name] = value.astype(np.str_) if words else value
        return {"array": list(value.shape)}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"dict": {key: to_plain(item, file, f"{name}.{key}") for key, item in value.items()}}
    if isinstance(value, Laplacian):
        shape = Sparse("csr", "nodes").write(value.edges, file, name)
        return {"laplacian": [shape, value.strength, value.normalized]}
    if not isinstance(value, list | tuple | range | set | frozenset):
        raise NotPlainError
    items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
    plain = [to_plain(item, file, f"{name}.{i}") for i, item in enumerate(items)]
    return {"tuple": plain} if isinstance(value, tuple) else plain


def from_plain(plain: Any, file: File, name: str) -> Any:
    """Return what `to_plain` was given."""
    if isinstance(plain, list):
        return [from_plain(item, file, f"{name}.{i}") for i, item in enumerate(plain)]
    if not isinstance(plain, dict):
        return plain
    ((mark, content),) = plain.items()
    if mark == "array":
        return file.arrays.pop(name)
    if mark == "laplacian":
        shape, strength, normalized = content
        edges = Sparse("csr", "nodes").read(shape, File(file.arrays), name)
        return replace(laplacian(edges, strength=strength), normalized=bool(normalized))
    if mark == "tuple":
        return tuple(from_plain(content, file, name))
    return {str(key): from_plain(item, file, f"{name}.{key}") for key, item in content.items()}


def read_model(path: str | os.PathLike[str], classes: Classes) -> Any:
    """Read a model that `save` wrote."""
    place = checked_path(path)
    try:
        content = place.read_bytes()
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_archive(archive, place)
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(bytes(arrays.pop("header")).decode())
        return unpack_model(header, File(arrays), classes)
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror or error}.") from error
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
