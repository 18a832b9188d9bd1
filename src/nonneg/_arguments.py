"""Numbers that a user passed, checked: every family says the same words about them."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

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
