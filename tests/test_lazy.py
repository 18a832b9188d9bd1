"""Attributes and names that are computed or loaded when they are first used."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from nonneg._lazy import cached_property, lazy_names


class Counted:
    """Counts how often its attribute is computed."""

    calls = 0

    @cached_property
    def value(self):
        """What is computed."""
        self.calls += 1
        return self.calls


def test_an_attribute_is_computed_once_for_each_instance():
    first, second = Counted(), Counted()
    assert first.value == 1
    assert first.value == 1
    assert (first.calls, second.calls) == (1, 0)
    del first.value
    assert first.value == 2
    assert isinstance(Counted.value, cached_property)
    assert Counted.value.__doc__ == "What is computed."


def test_names_are_loaded_when_they_are_asked_for(monkeypatch):
    package = ModuleType("xml")
    package.__getattr__ = lazy_names("xml", {"sqrt": "math", "dom": "xml.dom"})
    found = package.__getattr__("dom")
    monkeypatch.setitem(sys.modules, "xml", package)
    assert found is sys.modules["xml.dom"]
    assert package.sqrt(9.0) == 3.0
    assert "sqrt" in vars(package)  # the next look-up does not come here
    with pytest.raises(AttributeError, match="module 'xml' has no attribute 'cbrt'"):
        _ = package.cbrt
