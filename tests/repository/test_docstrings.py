"""Docstrings follow numpydoc where users read them; internals have one summary line."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import numpydoc.validate
import pytest
from numpydoc.validate import validate
from sklearn.base import BaseEstimator

import nonneg
from nonneg import _optional

# Codes of numpydoc's validation, https://numpydoc.readthedocs.io/en/latest/validation.html
EVERYWHERE = {
    "GL08": "no docstring",
    "SS03": "summary does not end with a period",
    "PR02": "describes a parameter that does not exist",
    "PR03": "parameters in another order",
    "SS02": "summary does not start with a capital",
    "GL07": "sections in another order",
}
FOR_USERS = EVERYWHERE | {
    "PR01": "a parameter is not described",
    "PR04": "a parameter has no type",
    "PR07": "a parameter has no description",
    "RT01": "no Returns section",
    "RT03": "a return value has no description",
    "YD01": "no Yields section",
    "SS06": "summary is longer than a line",
}
# A result is not made by users: its fields are described as attributes, not as parameters.
FOR_RESULTS = {code: text for code, text in FOR_USERS.items() if code != "PR01"}


def complaints(name: str, codes: dict[str, str]) -> list[str]:
    return [f"{name}: {code} {text}" for code, text in validate(name)["errors"] if code in codes]


def definitions(module_name: str) -> Iterator[tuple[str, object]]:
    """Public functions and classes that a module defines, with the methods of the classes."""
    module = importlib.import_module(module_name)
    for name, member in vars(module).items():
        if name.startswith("_") or getattr(member, "__module__", None) != module_name:
            continue
        if inspect.isroutine(member) or inspect.isclass(member) or hasattr(member, "py_func"):
            yield f"{module_name}.{name}", member


def methods(name: str, owner: object) -> list[str]:
    if not inspect.isclass(owner):
        return []
    return [f"{name}.{method}" for method, member in vars(owner).items() if is_own_method(method, member)]


def is_own_method(name: str, member: object) -> bool:
    return not name.startswith("_") and (
        inspect.isfunction(member) or isinstance(member, classmethod | staticmethod)
    )


def modules() -> list[str]:
    found = [info.name for info in pkgutil.walk_packages(nonneg.__path__, "nonneg.")]
    return [name for name in found if not name.endswith("__main__")]


def public_module(name: str) -> object:
    """Return the public module of that name if it lists its own names, else None."""
    member = getattr(nonneg, name)
    return member if inspect.ismodule(member) and hasattr(member, "__all__") else None


def names_for_users() -> dict[str, dict[str, str]]:
    """Public functions, classes and methods, by the place that defines them, with what is asked of each."""
    owners = [nonneg, *(member for member in map(public_module, nonneg.__all__) if member)]
    names: dict[str, dict[str, str]] = {}
    for member in [getattr(owner, name) for owner in owners for name in owner.__all__]:
        if not (inspect.isfunction(member) or inspect.isclass(member)):
            continue
        full_name = f"{member.__module__}.{member.__qualname__}"
        names |= dict.fromkeys([full_name, *methods(full_name, member)], FOR_USERS)
        result = dataclasses.is_dataclass(member) and not issubclass(member, BaseEstimator)
        if result or (inspect.isclass(member) and issubclass(member, enum.Enum)):
            names[full_name] = FOR_RESULTS
    return names


@pytest.fixture(autouse=True)
def _without_comments(monkeypatch):
    """Do not look for comments that let mistakes pass, in the whole file for each of its functions."""
    monkeypatch.setattr(numpydoc.validate, "extract_ignore_validation_comments", lambda path: {})
    monkeypatch.setattr(numpydoc.validate.Validator, "source_file_def_line", None)


def test_docstrings_in_outline(monkeypatch):
    # No code of these asks for it, and it parses every function.
    monkeypatch.setattr(numpydoc.validate.Validator, "method_returns_something", False)
    names = {name for module in modules() for name, _ in definitions(module)}
    assert len(names) > 1000
    others = names - names_for_users().keys()
    assert [problem for name in others for problem in complaints(name, EVERYWHERE)] == []


def test_docstrings_for_users():
    names = names_for_users()
    assert names
    found = [problem for name, codes in names.items() for problem in complaints(name, codes)]
    assert found == []


def test_validation_finds_a_wrong_docstring(monkeypatch):
    def wrong(first, second):
        """summary"""

    wrong.__module__ = "nonneg._optional"
    monkeypatch.setattr(_optional, "wrong", wrong, raising=False)
    found = complaints("nonneg._optional.wrong", FOR_USERS)
    assert any("PR01" in problem for problem in found)
    assert any("SS03" in problem for problem in found)
