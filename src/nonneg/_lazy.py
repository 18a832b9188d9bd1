"""Lazy attributes of an object and lazy names of a package: computed or loaded when first used."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
import sys
from collections.abc import Callable
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


def lazy_names(package: str) -> tuple[Callable[[str], Any], list[str]]:
    """Return ``__getattr__`` and ``__all__`` of a package, whose ``__init__.pyi`` imports its names."""
    stub = (pkgutil.get_data(package, "__init__.pyi") or b"").decode()
    homes = {name: home for home, name in re.findall(r"^from (\S+) import (\w+) as", stub, re.MULTILINE)}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        is_module = homes[name] == package
        module = importlib.import_module(f"{package}.{name}" if is_module else homes[name])
        value = module if is_module else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return load, sorted(homes)
