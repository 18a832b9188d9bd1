"""Options of an iteration and of `method_params`, checked in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nonneg._arguments import checked_count, checked_size
from nonneg.exceptions import InvalidParameterError, UnknownNameError, UnsupportedError
from nonneg.transforms.rotations.line_search import LINE_SEARCHES
from nonneg.transforms.rotations.retractions import RETRACTIONS

METHODS = ("tl", "jd")
OBJECTIVES = ("C", "I")


@dataclass(frozen=True)
class TransformOptions:
    """How an iteration is made.

    Attributes
    ----------
    eps0 : float
        Added to variances and model: part of what is minimized.
    n_nmf_updates, n_rotation_updates : int
        Updates of the factors and of the transform in an iteration (the paper's J_NMF and J_TL).
    objective : {"C", "I"}
        What TL-NMF minimizes: C = L + I, or I alone as the original TL-NMF did.
    l1 : float
        Weight of the l1 norm of the activations, with components of l1 norm one.
    line_search : {"wolfe", "backtracking"}
        The line search.
    retraction : {"exponential", "polar"}
        How a skew direction becomes a rotation.
    max_trials : int
        Maximum number of steps that a line search tries.
    synchronize : bool
        Whether values may be read from a device within an iteration. Otherwise every iteration makes the
        same operations, which can be captured as a CUDA graph.
    """

    eps0: float = 5e-7
    n_nmf_updates: int = 10
    n_rotation_updates: int = 1
    objective: str = "C"
    l1: float = 0.0
    line_search: str = "wolfe"
    retraction: str = "exponential"
    max_trials: int = 20
    synchronize: bool = True

    def __post_init__(self) -> None:
        checked_size("eps0", self.eps0)
        checked_size("l1", self.l1)
        for name, least in (("n_nmf_updates", 0), ("n_rotation_updates", 0), ("max_trials", 1)):
            checked_count(name, getattr(self, name), least)
        for name, known in (
            ("objective", OBJECTIVES),
            ("line_search", LINE_SEARCHES),
            ("retraction", RETRACTIONS),
        ):
            if getattr(self, name) not in known:
                raise UnknownNameError.of(name, getattr(self, name), known)
        if self.l1 and self.objective != "I":
            raise UnsupportedError(
                "A penalty on the activations belongs to objective='I' (the original TL-NMF): C is a "
                "likelihood. Pass objective='I' or l1=0."
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the options as plain values.

        Returns
        -------
        dict
            By name, without those that do not change the result.
        """
        values = dict(self.__dict__)
        values.pop("synchronize")
        return values


# Line search, retraction and trials of the paper and its authors' code.
DEFAULTS: dict[str, dict[str, Any]] = {
    "tl": {"line_search": "wolfe", "retraction": "exponential", "max_trials": 20},
    "jd": {"line_search": "backtracking", "retraction": "polar", "max_trials": 30},
}
# What `method_params` may hold, for each method and for the function `joint_diagonalize`.
ROTATION_PARAMS = ("n_rotation_updates", "line_search", "retraction", "max_trials")
METHOD_PARAMS: dict[str, tuple[str, ...]] = {
    "tl": ("n_nmf_updates", *ROTATION_PARAMS, "objective", "l1"),
    "jd": ("n_nmf_updates", *ROTATION_PARAMS),
}


def method_options(method: str, **given: Any) -> TransformOptions:
    """Return the options of a method, with those of the paper where none are given."""
    if method not in METHODS:
        raise UnknownNameError.of("method", method, METHODS)
    return TransformOptions(**(DEFAULTS[method] | given))


def checked_method_params(
    method: str, given: Mapping[str, Any] | None, accepted: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """Return a copy of `method_params`; refuse names that the method does not accept."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidParameterError(f"method_params must be None or a dict, got {given!r}.")
    accepted = METHOD_PARAMS[method] if accepted is None else accepted
    for name in given:
        if name not in accepted:
            known = ", ".join(accepted)
            others = [other for other in METHODS if name in METHOD_PARAMS[other] and other != method]
            hint = f" (method={others[0]!r} does)" if others else ""
            raise InvalidParameterError(
                f"method_params: method={method!r} does not accept {name!r}{hint}; it accepts {known}."
            )
    return dict(given)
