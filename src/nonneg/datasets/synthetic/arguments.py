"""Arguments of generators: counts and sizes, checked."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from nonneg.exceptions import InvalidParameterError


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
    if not isinstance(value, Integral) or isinstance(value, bool) or value < lowest:
        raise InvalidParameterError(f"{name} must be an integer of at least {lowest}. Got {value!r}.")
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
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < math.inf:
        raise InvalidParameterError(f"{name} must be a finite number of at least 0. Got {value!r}.")
    return float(value)
