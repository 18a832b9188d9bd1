"""Methods and parameters that the applications share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from nonneg._registry import Entry, Registry
from nonneg.separable.registry import not_accepted


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
