"""Public names: complete, importable and documented, and nothing else is offered."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import nonneg

ROOT = Path(__file__).resolve().parents[2]
NAMES = [name for name in nonneg.__all__ if not name.startswith("__")]


def modules() -> list[str]:
    return [
        info.name
        for info in pkgutil.walk_packages(nonneg.__path__, "nonneg.")
        if not info.name.endswith("__main__")
    ]


def public_members(owner: type) -> list[str]:
    """Methods and properties written in this package, not those inherited from scikit-learn."""
    return [
        name
        for name, member in inspect.getmembers(owner)
        if not name.startswith("_")
        and (callable(member) or isinstance(member, property))
        and getattr(getattr(member, "fget", member), "__module__", "").startswith("nonneg")
    ]


@pytest.mark.parametrize("name", NAMES)
def test_public_name_is_importable_and_documented(name):
    assert inspect.getdoc(getattr(nonneg, name))


@pytest.mark.parametrize("package", ["nonneg", "nonneg.applications", "nonneg.integrations"])
def test_a_package_offers_every_name_that_type_checkers_see(package):
    loaded = importlib.import_module(package)
    stub = ast.parse(Path(loaded.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    assert loaded.__all__ == sorted(alias.asname for node in stub.body for alias in node.names)
    assert {name for name in loaded.__all__ if not hasattr(loaded, name)} == set()


def test_only_public_names_are_offered():
    assert dir(nonneg) == sorted(nonneg.__all__)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'nonneg' has no attribute 'NFM'"):
        nonneg.NFM  # noqa: B018 -- the access is the test


def test_version_is_the_installed_one():
    from importlib.metadata import version

    assert nonneg.__version__ == version("nonneg")


def test_modules_list_names_that_exist_and_say_what_they_are_for():
    for module in modules():
        loaded = importlib.import_module(module)
        listed = getattr(loaded, "__all__", [])
        assert all(isinstance(name, str) for name in listed), module
        assert [name for name in listed if not hasattr(loaded, name)] == [], module
        empty = Path(loaded.__file__).stat().st_size == 0
        # The compiled core is documented in its C++ sources.
        compiled = not loaded.__file__.endswith(".py")
        assert loaded.__doc__ or empty or compiled, f"{module} does not say what it is for"


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_mentions(name):
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("**/*.md"))
    assert re.search(rf"\b{name}\b", pages)


@pytest.mark.parametrize("name", [name for name in NAMES if name[0].isupper()])
def test_every_public_method_is_documented(name):
    owner = getattr(nonneg, name)
    assert [member for member in public_members(owner) if not inspect.getdoc(getattr(owner, member))] == []
