"""The parameters of a purification: checked, with the defaults that do not depend on the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from nonneg._arguments import is_number
from nonneg._arrays import is_float32
from nonneg.exceptions import InvalidParameterError, UnknownNameError, UnsupportedError

UPDATES = ("regression", "covariance", "published")
DECODES = ("auto", "unshifted", "shifted", "linear")
PSEUDO_INVERSES = ("auto", "moore-penrose", "min-infinity")
# A threshold that decays is halved: the leakage of a warm start into other weights shrinks by more than that
# in an iteration of the regression update.
THRESHOLD_DECAY = 0.5
# Step sizes: the regression update is a fixed point of itself; 1/2 makes the covariance update Newton's
# iteration for the polar factor (docs/reproduced/purification/relu).
STEP_SIZES = {"regression": 1.0, "covariance": 0.5}


@dataclass(frozen=True)
class Options:
    """Options of the feature updates and of the decoder."""

    update: str  # "regression" or "covariance"
    decode: str  # "unshifted", "shifted" or "linear"
    threshold: float | None  # the initial threshold; None chooses it from the data
    step_size: float
    scale: float | None  # of the covariance update; None keeps the diagonal of the mixing at one
    threshold_decay: float  # factor of the threshold after each iteration
    pseudo_inverse: str  # "moore-penrose" or "min-infinity"


def completed_options(
    *,
    update: Any = "regression",
    decode: Any = "auto",
    threshold: Any = "auto",
    step_size: Any = "auto",
    scale: Any = "auto",
    threshold_decay: Any = "auto",
    pseudo_inverse: Any = "auto",
) -> Options:
    """Check the parameters and fill in those that do not depend on the data."""
    UnknownNameError.check("update", update, UPDATES)
    UnknownNameError.check("decode", decode, DECODES)
    UnknownNameError.check("pseudo_inverse", pseudo_inverse, PSEUDO_INVERSES)
    # Algorithm 1 of the paper; its pseudo-inverse is chosen with it.
    if pseudo_inverse == "auto":
        pseudo_inverse = "min-infinity" if update == "published" else "moore-penrose"
    update = "covariance" if update == "published" else update
    if decode == "auto":
        decode = "shifted" if update == "covariance" else "unshifted"
    if isinstance(step_size, str) and step_size == "auto":
        step_size = STEP_SIZES[update]
    if isinstance(threshold_decay, str) and threshold_decay == "auto":
        threshold_decay = THRESHOLD_DECAY if decode == "unshifted" else 1.0
    for name, value in (("step_size", step_size), ("threshold_decay", threshold_decay)):
        if not is_number(value) or not 0 < value <= 1:
            raise InvalidParameterError(f"{name} must be 'auto' or a number in (0, 1], got {value!r}.")
    scaling = _number_above("scale", scale, 0.0)
    if scaling is not None and update == "regression":
        raise UnsupportedError(
            "update='regression' finds its own scale and does not accept `scale`. Leave scale='auto', or use "
            "update='covariance'."
        )
    return Options(
        update=update,
        decode=decode,
        threshold=_number_above("threshold", threshold, -math.inf),
        step_size=float(step_size),
        scale=scaling,
        threshold_decay=float(threshold_decay),
        pseudo_inverse=pseudo_inverse,
    )


def _number_above(name: str, value: Any, lowest: float) -> float | None:
    if isinstance(value, str) and value == "auto":
        return None
    if not is_number(value) or not lowest < value < math.inf:
        raise InvalidParameterError(
            f"{name} must be 'auto' or a finite number above {lowest:g}, got {value!r}."
        )
    return float(value)


def checked_tolerance(tol: Any, dtype: Any) -> float:
    """Return the tolerance, by default one that the precision of the data can meet."""
    if tol is None:
        return 1e-5 if is_float32(dtype) else 1e-10
    if not is_number(tol) or not tol >= 0:
        raise InvalidParameterError(f"tol must be None or a number not below 0, got {tol!r}.")
    return float(tol)
