"""The parameters of a purification: checked, and completed from the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._arguments import is_number
from nonneg._arrays import is_float32
from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError, UnsupportedError

UPDATES = ("regression", "covariance")
DECODES = ("auto", "unshifted", "shifted", "linear")
ANNEAL = 0.8


@dataclass(frozen=True)
class Options:
    """How features are updated and weights decoded.

    Attributes
    ----------
    update : {"regression", "covariance"}
        The rule.
    decode : {"unshifted", "shifted", "linear"}
        The rule of the decoding.
    alpha : float, array of shape (n,) or None
        The first threshold; None chooses it from the data.
    eta : float
        The first step size.
    adaptive : bool
        Whether the step size may be halved.
    r : float, array of shape (n,) or None
        Scaling of the covariance update; None keeps the diagonal of the mixing at one.
    anneal : float
        By what the threshold is multiplied after an iteration.
    """

    update: str
    decode: str
    alpha: float | FloatArray | None
    eta: float
    adaptive: bool
    r: float | FloatArray | None
    anneal: float


def completed_options(
    n: int, *, update: Any, decode: Any, alpha: Any, eta: Any, r: Any, anneal: Any
) -> Options:
    """Check the parameters and fill in those that do not depend on the data."""
    checked_name("update", update, UPDATES)
    checked_name("decode", decode, DECODES)
    if decode == "auto":
        decode = "shifted" if update == "covariance" else "unshifted"
    adaptive = isinstance(eta, str) and eta == "auto"
    if not adaptive and (not is_number(eta) or not 0 < eta <= 1):
        raise InvalidParameterError(f"eta must be 'auto' or a number above 0 and at most 1, got {eta!r}.")
    if isinstance(anneal, str) and anneal == "auto":
        anneal = ANNEAL if decode == "unshifted" else 1.0
    elif not is_number(anneal) or not 0 < anneal <= 1:
        raise InvalidParameterError(
            f"anneal must be 'auto' or a number above 0 and at most 1, got {anneal!r}."
        )
    scaling = _one_or_each("r", r, n, lowest=0.0)
    if scaling is not None and update == "regression":
        raise UnsupportedError(
            "update='regression' finds its own scale and takes no r. Leave r='auto', or use "
            "update='covariance'."
        )
    return Options(
        update=update,
        decode=decode,
        alpha=_one_or_each("alpha", alpha, n, lowest=-math.inf),
        eta=(1.0 if update == "regression" else 0.5) if adaptive else float(eta),
        adaptive=adaptive,
        r=scaling,
        anneal=float(anneal),
    )


def _one_or_each(name: str, value: Any, n: int, *, lowest: float) -> float | FloatArray | None:
    if isinstance(value, str) and value == "auto":
        return None
    if is_number(value):
        if not lowest < value < math.inf:
            raise InvalidParameterError(
                f"{name} must be 'auto' or a finite number above {lowest:g}, got {value!r}."
            )
        return float(value)
    try:
        each = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameterError(
            f"{name} must be 'auto', a number, or one number for each of {n} features, got {value!r}."
        ) from None
    if each.shape != (n,):
        raise ShapeError(f"{name} must have one entry for each of the {n} features, got shape {each.shape}.")
    if not (np.isfinite(each) & (each > lowest)).all():
        raise InvalidParameterError(f"{name} must have finite entries above {lowest:g}.")
    return each


def checked_name(name: str, value: Any, known: Sequence[str]) -> None:
    """Refuse a value that is none of some names."""
    if not isinstance(value, str) or value not in known:
        raise UnknownNameError.of(name, value, known)


def checked_flag(name: str, value: Any) -> bool:
    """Return a parameter that is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidParameterError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def checked_tolerance(tol: Any, dtype: Any) -> float:
    """Return the tolerance, by default one that the precision of the data can meet."""
    if tol is None:
        return 1e-5 if is_float32(dtype) else 1e-10
    if not is_number(tol) or not tol >= 0:
        raise InvalidParameterError(f"tol must be None or a number not below 0, got {tol!r}.")
    return float(tol)
