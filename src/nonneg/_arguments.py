"""Numbers, folders and the like that a user passed, checked: every family says the same words about them."""

from __future__ import annotations

import math
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.exceptions import InvalidParameterError


def is_number(value: Any) -> bool:
    """Tell whether a value is a real number."""
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)


def is_count(value: Any, lowest: int = 1) -> bool:
    """Tell whether a value is a whole number that is at least so large."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= lowest


def checked_count(name: str, value: Any, lowest: int = 1) -> int:
    """Return a whole number that is at least so large."""
    if not is_count(value, lowest):
        raise InvalidParameterError(f"{name} must be an integer of at least {lowest}, got {value!r}.")
    return int(value)


def checked_size(name: str, value: Any) -> float:
    """Return a finite number that is not negative."""
    if not is_number(value) or not 0 <= value < math.inf:
        raise InvalidParameterError(f"{name} must be a finite number of at least 0, got {value!r}.")
    return float(value)


def is_verbose(value: Any) -> bool:
    """Tell whether a value says how much is shown."""
    return isinstance(value, bool | np.bool_) or is_count(value, 0)


def checked_verbose(value: Any) -> int:
    """Return how much is shown."""
    if not is_verbose(value):
        raise InvalidParameterError(f"verbose must be True, False or an integer not below 0, got {value!r}.")
    return int(value)


def is_folder(value: Any) -> bool:
    """Tell whether a value may name a folder, or none."""
    return value is None or isinstance(value, str | PathLike)


def checked_checkpoint(value: Any) -> Path | None:
    """Return the folder in which a run is saved."""
    if not is_folder(value):
        raise InvalidParameterError(f"checkpoint must be None or the path of a folder, got {value!r}.")
    return None if value is None else Path(value)
