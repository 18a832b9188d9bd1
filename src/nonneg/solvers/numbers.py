"""Ranges of the numbers that users pass, components that stay, and penalties that do nothing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._typing import IntArray
from nonneg.exceptions import InvalidParameterError, NonnegWarning
from nonneg.losses.penalties import Penalties

LARGEST = float(np.finfo(np.float64).max)


def check_numbers(max_iter: Any, tol: Any, alpha_W: Any, alpha_H: Any, l1_ratio: Any) -> None:
    """Reject numbers out of range."""

    def number(name: str, value: Any, low: float, high: float) -> None:
        good = isinstance(value, int | float | np.integer | np.floating) and low <= value <= high
        if not good:
            limit = f"at least {low:g}" if high >= LARGEST else f"between {low:g} and {high:g}"
            raise InvalidParameterError(f"{name} must be a number {limit}, got {value!r}.")

    number("max_iter", max_iter, 0, float("inf"))
    if max_iter < LARGEST and max_iter != int(max_iter):
        raise InvalidParameterError(f"max_iter must be a whole number, got {max_iter!r}.")
    number("tol", tol, 0, float("inf"))
    number("alpha_W", alpha_W, 0, LARGEST)
    number("l1_ratio", l1_ratio, 0, 1)
    if alpha_H != "same":
        number("alpha_H", alpha_H, 0, LARGEST)


def warn_of_one_sided_l1(penalties: Penalties, free: IntArray | None) -> None:
    """Warn of an L1 penalty on one factor alone, which scaling makes ineffective."""
    if free is not None and len(free) == 0:
        return
    for factor, other, l1, rest in (
        ("W", "H", penalties.l1_W, penalties.l1_H + penalties.l2_H),
        ("H", "W", penalties.l1_H, penalties.l1_W + penalties.l2_W),
    ):
        if l1 > 0 and rest == 0:
            warnings.warn(
                f"The L1 penalty is on {factor} only: scaling {factor} down and {other} up makes it "
                f"arbitrarily small without changing W H. Set alpha_{other} > 0 as well.",
                NonnegWarning,
                stacklevel=4,
            )


def free_components(frozen: Sequence[int] | None, k: int, H: Any) -> IntArray | None:
    """Return the components that are not frozen; None stands for all of them."""
    if frozen is None:
        return None
    indices = np.asarray(frozen)
    if indices.size == 0:
        return None
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise InvalidParameterError(
            f"frozen_components must be a sequence of indices of rows of H, got {frozen!r}."
        )
    if H is None:
        raise InvalidParameterError(
            "frozen_components names rows of H to keep, but H is not given. Pass H with these rows filled in."
        )
    wanted = {int(i) for i in indices}
    bad = sorted(i for i in wanted if not 0 <= i < k)
    if bad:
        raise InvalidParameterError(f"frozen_components contains {bad[0]}, but components are 0 to {k - 1}.")
    return np.asarray([i for i in range(k) if i not in wanted], dtype=np.int64)
