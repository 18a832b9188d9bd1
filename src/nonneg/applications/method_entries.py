"""Methods and parameters that the applications share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nonneg._arguments import checked_checkpoint, checked_count, checked_nonnegative, checked_verbose
from nonneg._registry import Entry, Registry
from nonneg.exceptions import InvalidParameterError
from nonneg.separable.registry import METHODS as ANCHOR_METHODS
from nonneg.separable.registry import not_accepted


@dataclass(frozen=True)
class ApplicationMethod(Entry):
    """A method of an application; `shared` are the parameters of iterations that it accepts."""

    shared: frozenset[str] = frozenset()


def anchor_parameters(name: str, shared: frozenset[str]) -> dict[str, Any]:
    """Return what the entry of a search for anchors accepts, of its own and of the `shared` parameters."""
    entry = ANCHOR_METHODS[name]
    own = entry.options | (entry.shared & {"init"})
    return {"options": own, "shared": entry.shared & shared}


def method_parameters(methods: Registry[Any], name: str, model: Any, *more: str) -> dict[str, Any]:
    """Return `method_params` and the parameters of iterations that are set; refuse what is not accepted."""
    params = dict(model.method_params or {})
    methods.check_options(name, params)
    for key in ("tol", "max_iter", "callback", "checkpoint", *more):
        if (value := getattr(model, key)) is None:
            continue
        if key not in methods[name].shared:
            raise not_accepted(name, key, [other for other, entry in methods.items() if key in entry.shared])
        params[key] = value
    return params


def check_search(model: Any, methods: Registry[Any]) -> None:
    """Check method and parameters of the iterations of an application; None leaves these to the method."""
    checks: dict[str, Any] = {"n_init": checked_count, "max_iter": checked_count, "tol": checked_nonnegative}
    for name in (each for each in checks if getattr(model, each, None) is not None):
        checks[name](name, getattr(model, name))
    if not isinstance(model.method_params, dict | None):
        raise InvalidParameterError(f"method_params must be None or a dict, got {model.method_params!r}.")
    methods.check_options(model.method, model.method_params or {})
    checked_verbose(model.verbose)
    checked_checkpoint(getattr(model, "checkpoint", None))
