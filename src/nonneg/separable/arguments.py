"""What each parameter of `select_anchors` and its methods may be: the one place where values are checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from nonneg._arguments import is_count, is_folder, is_number, is_verbose
from nonneg.exceptions import InvalidParameterError, UnknownNameError


def check_arguments(values: Mapping[str, Any]) -> None:
    """Reject values that no method can use."""
    for name, value in values.items():
        if name in _CHOICES and value not in _CHOICES[name]:
            raise UnknownNameError.of(name, value, _CHOICES[name])
        if name in _CHECKS:
            meant, possible = _CHECKS[name]
            if not possible(value):
                raise InvalidParameterError(f"{name} must be {meant}, got {value!r}.")


def _is_weight(value: Any, names: tuple[str, ...] = ("auto",)) -> bool:
    if isinstance(value, str):
        return value in names
    return is_number(value) and 0 <= value < math.inf


def _is_tolerance(value: Any) -> bool:
    return value is None or (is_number(value) and value >= 0)


def _is_flag(value: Any) -> bool:
    # NumPy's bool is not a subclass of Python's.
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


_CHOICES: dict[str, tuple[str, ...]] = {
    "variant": ("max", "rand"),
    "aggregate": ("mean", "median"),
    "preconditioner": ("ellipsoid", "whitening", "spa"),
}
_CHECKS: dict[str, tuple[str, Any]] = {
    "lam": (
        "a finite number not below 0, or a rule: 'paper' or 'printed' for 'merit', 'auto' for others",
        lambda value: _is_weight(value, ("auto", "paper", "printed")),
    ),
    "n_explained": ("None or an integer of at least 1", lambda value: value is None or is_count(value)),
    "mu": (
        "a finite number above 0, for example 1e-5",
        lambda value: is_number(value) and 0 < value < math.inf,
    ),
    "max_iter": ("an integer of at least 1", is_count),
    "tol": ("None or a number not below 0", _is_tolerance),
    "callback": ("None or a function of one argument", lambda value: value is None or callable(value)),
    "verbose": ("True, False or a nonnegative integer", is_verbose),
    "checkpoint": ("None or the path of a folder", is_folder),
    "energy": (
        "above 0 and at most 1, for example 0.99",
        lambda value: value is None or (is_number(value) and 0 < value <= 1),
    ),
    "merge": (
        "above 0, for example 0.001",
        lambda value: value is None or (is_number(value) and value > 0),
    ),
    "centered": ("True or False", _is_flag),
    "clean_up": ("True or False", _is_flag),
    "tie_tol": (
        "a share from 0 to 1, for example 1e-6",
        lambda value: is_number(value) and 0 <= value <= 1,
    ),
    "n_members": (
        "'auto' or an integer of at least 1",
        lambda value: value == "auto" if isinstance(value, str) else is_count(value),
    ),
    "depth": ("a share from 0 to 1, for example 0.15", lambda value: is_number(value) and 0 <= value <= 1),
    "lift": ("True or False", _is_flag),
    "snr": ("None or a number of decibels", lambda value: value is None or is_number(value)),
    "memory_limit": (
        "a number of bytes above 0, for example 8e9",
        lambda value: is_number(value) and value > 0,
    ),
}
