"""What the registries of methods of the applications share."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from sklearn.utils._param_validation import Interval

from nonneg._registry import Entry, Registry
from nonneg.separable.registry import not_accepted

APPLICATION_CONSTRAINTS: dict[str, list[Any]] = {
    # Names are looked up in the registries, which know the near ones.
    "method": [str],
    "method_params": [dict, None],
    "tol": [Interval(Real, 0, None, closed="left"), None],
    "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
    "verbose": ["verbose"],
    "n_jobs": [Integral, None],
    "callback": [callable, None],
    "checkpoint": [str, PathLike, None],
}
"""What the applications accept for the parameters that they share; None is the default of the method."""


@dataclass(frozen=True)
class ApplicationMethod(Entry):
    """A method of an application; `shared` are the parameters of iterations that it accepts."""

    shared: frozenset[str] = frozenset()


MethodType = TypeVar("MethodType", bound=ApplicationMethod)


def iteration_params(methods: Registry[MethodType], name: str, **given: Any) -> dict[str, Any]:
    """Return the parameters of iterations that are not None; refuse those that the method does not accept."""
    found = {key: value for key, value in given.items() if value is not None}
    for key in found:
        if key not in methods[name].shared:
            raise not_accepted(name, key, [other for other, entry in methods.items() if key in entry.shared])
    return found
