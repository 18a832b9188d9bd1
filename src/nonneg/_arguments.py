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
    """Tell whether a value is a real number.

    Parameters
    ----------
    value : Any
        What was given.

    Returns
    -------
    bool
        False for NaN, and for True and False.
    """
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)


def is_count(value: Any, lowest: int = 1) -> bool:
    """Tell whether a value is a whole number that is at least so large.

    Parameters
    ----------
    value : Any
        What was given.
    lowest : int
        The smallest allowed.

    Returns
    -------
    bool
        False for True and False.
    """
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= lowest


def checked_count(name: str, value: Any, lowest: int = 1) -> int:
    """Return a whole number that is at least so large.

    Parameters
    ----------
    name : str
        Of the argument.
    value : Any
        What was given.
    lowest : int
        The smallest allowed.

    Returns
    -------
    int
        The number.
    """
    if not is_count(value, lowest):
        raise InvalidParameterError(f"{name} must be an integer of at least {lowest}, got {value!r}.")
    return int(value)


def checked_size(name: str, value: Any) -> float:
    """Return a finite number that is not negative.

    Parameters
    ----------
    name : str
        Of the argument.
    value : Any
        What was given.

    Returns
    -------
    float
        The number.
    """
    if not is_number(value) or not 0 <= value < math.inf:
        raise InvalidParameterError(f"{name} must be a finite number of at least 0, got {value!r}.")
    return float(value)


def is_verbose(value: Any) -> bool:
    """Tell whether a value says how much is shown.

    Parameters
    ----------
    value : Any
        What was given.

    Returns
    -------
    bool
        True for whole numbers from 0, and for True and False, as scikit-learn has it.
    """
    return isinstance(value, bool | np.bool_) or is_count(value, 0)


def checked_verbose(value: Any) -> int:
    """Return how much is shown.

    Parameters
    ----------
    value : Any
        What was given as `verbose`.

    Returns
    -------
    int
        0 for nothing.
    """
    if not is_verbose(value):
        raise InvalidParameterError(f"verbose must be True, False or an integer not below 0, got {value!r}.")
    return int(value)


def is_folder(value: Any) -> bool:
    """Tell whether a value may name a folder, or none.

    Parameters
    ----------
    value : Any
        What was given.

    Returns
    -------
    bool
        True for None, strings and paths; nothing is looked for on the disk.
    """
    return value is None or isinstance(value, str | PathLike)


def checked_checkpoint(value: Any) -> Path | None:
    """Return the folder in which a run is saved.

    Parameters
    ----------
    value : Any
        What was given as `checkpoint`.

    Returns
    -------
    Path or None
        None where nothing is to be saved.
    """
    if not is_folder(value):
        raise InvalidParameterError(f"checkpoint must be None or the path of a folder, got {value!r}.")
    return None if value is None else Path(value)
