"""Checks of user parameters: each kind is checked in one place, with one message for all families."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.exceptions import InvalidParameterError

# What annotations say, in words, and the types that they stand for.
KINDS: dict[str, tuple[str, Any]] = {
    "bool": ("True or False", (bool, np.bool_)),
    "str": ("a string", str),
    "float": ("a number", Real),
    "Mapping[str, Any]": ("a dict", Mapping),
    "Sequence[str]": ("a list of names", (Sequence, np.ndarray)),
    "None": ("None", type(None)),
}


def typed(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Refuse flags, names and collections of other types; numbers alone are checked with their range."""
    for name, annotation in inspect.get_annotations(function).items():
        kinds = [KINDS[kind] for kind in annotation.split(" | ") if kind in KINDS]
        words = [word for word, _ in kinds]
        whole = len(kinds) > annotation.count(" | ") and set(words) - {"a number", "None"}
        if whole and not isinstance(given.get(name), tuple(kind for _, kind in kinds)):
            raise InvalidParameterError(f"{name} must be {' or '.join(words)}, got {given[name]!r}.")


def is_number(value: Any) -> bool:
    """Tell whether a value is a real number."""
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)


def is_count(value: Any, lowest: int = 1) -> bool:
    """Tell whether a value is an integer of at least `lowest`."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= lowest


def checked_count(name: str, value: Any, lowest: int = 1) -> int:
    """Return an integer of at least `lowest`."""
    if not is_count(value, lowest) or value > sys.maxsize:
        raise InvalidParameterError(f"{name} must be an integer of at least {lowest}, got {value!r}.")
    return int(value)


def checked_nonnegative(name: str, value: Any) -> float:
    """Return a finite nonnegative number."""
    if not is_number(value) or not 0 <= value < math.inf:
        raise InvalidParameterError(f"{name} must be a finite number of at least 0, got {value!r}.")
    return float(value)


def checked_verbose(value: Any) -> int:
    """Return the level of verbosity."""
    if not (isinstance(value, bool | np.bool_) or is_count(value, 0)):
        raise InvalidParameterError(f"verbose must be True, False or a nonnegative integer, got {value!r}.")
    return int(value)


def checked_path(value: Any, words: str = "path must be the path of a file") -> Path:
    """Return a path."""
    if not isinstance(value, str | PathLike) or "\0" in str(value):
        raise InvalidParameterError(f"{words}, got {value!r}.")
    return Path(value)


def checked_checkpoint(value: Any) -> Path | None:
    """Return the folder of the checkpoints."""
    return value if value is None else checked_path(value, "checkpoint must be None or the path of a folder")
