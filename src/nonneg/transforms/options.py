"""Options of an iteration and of `method_params`, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nonneg._arguments import checked_count, checked_nonnegative
from nonneg._registry import Entry, Registry
from nonneg.exceptions import InvalidParameterError, UnknownNameError
from nonneg.kernels.majorization_equalization import LEAST_EPS0
from nonneg.transforms.rotations.line_search import LINE_SEARCHES


@dataclass(frozen=True)
class TransformOptions:
    """Options of an iteration."""

    eps0: float = 5e-7  # added to variances and model: part of what is minimized
    n_nmf_updates: int = 10  # of the factors in an iteration, the paper's J_NMF
    n_rotation_updates: int = 1  # of the transform, the paper's J_TL
    line_search: str = "wolfe"  # or "backtracking"
    max_trials: int = 20  # maximum number of steps that a line search tries

    def __post_init__(self) -> None:
        if checked_nonnegative("eps0", self.eps0) > 1.0 / LEAST_EPS0:
            raise InvalidParameterError(
                f"eps0={self.eps0:g} leaves the range of float64 in products of four; expected at most "
                f"{1.0 / LEAST_EPS0:g}. It is in the unit of the squared data: a share of their mean power."
            )
        for name, least in (("n_nmf_updates", 0), ("n_rotation_updates", 0), ("max_trials", 1)):
            checked_count(name, getattr(self, name), least)
        UnknownNameError.check("line_search", self.line_search, LINE_SEARCHES)


# Line search and trials of the paper and its authors' code.
DEFAULTS: dict[str, dict[str, Any]] = {
    "tl": {"line_search": "wolfe", "max_trials": 20},
    "jd": {"line_search": "backtracking", "max_trials": 30},
    "dct": {"n_rotation_updates": 0},
}
ROTATION_PARAMS = frozenset({"n_nmf_updates", "n_rotation_updates", "max_trials"})
METHODS = Registry(
    "method",
    {
        "tl": Entry(
            "nonneg.transforms.steps:tl_step",
            "transform and factors together (TL-NMF)",
            options=ROTATION_PARAMS | {"line_search"},
        ),
        "jd": Entry(
            "nonneg.transforms.steps:jd_step",
            "first a joint diagonalizer, then the factors (JD+NMF)",
            options=ROTATION_PARAMS,
        ),
        "dct": Entry(
            "nonneg.transforms.steps:nmf_step",
            "the discrete cosine transform, fixed (Itakura-Saito NMF)",
            options=frozenset({"n_nmf_updates"}),
        ),
    },
)
"""The methods of `learn_transform`; their options are those of `method_params`."""


def method_options(method: str, **params: Any) -> TransformOptions:
    """Return the options of a method, with those of the paper where none are given."""
    return TransformOptions(**(DEFAULTS[METHODS.name_of(method)] | params))
