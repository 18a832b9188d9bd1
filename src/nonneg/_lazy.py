"""Lazy attributes of an object and lazy names of a package: computed or loaded when first used."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

Value = TypeVar("Value")


class cached_property(functools.cached_property[Value]):  # noqa: N801, TID251
    """An attribute that is computed once per instance, without a lock."""

    # That of Python 3.11 has one lock for all instances: fits side by side wait for each other, and a child
    # forked meanwhile inherits it locked and waits forever.
    if not TYPE_CHECKING:

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            # Later look-ups find the value in the instance and do not come here.
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package."""

    def load(name: str) -> Any:
        target = modules.get(name)
        if target is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(target)
        value = module if target == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return load
