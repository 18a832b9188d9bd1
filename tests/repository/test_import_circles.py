"""No module imports another that leads back to it, not even under TYPE_CHECKING or inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from tests.repository.sources import nodes, nodes_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"nonneg": ROOT / "src", "reproduction": ROOT, "benchmarks": ROOT}


Imports = list[ast.Import | ast.ImportFrom]


def sources(package: str) -> dict[str, Imports]:
    """Return module name -> imports."""
    found = {}
    for path in sorted((PACKAGES[package] / package).rglob("*.py")):
        parts = path.relative_to(PACKAGES[package]).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = nodes(path)[1]
    return found


def imported(imports: Imports, modules: Iterable[str]) -> set[str]:
    """Return the modules among `modules` that any statement of a source imports."""
    known, found = set(modules), set()
    for node in imports:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif node.module:
            wanted = [f"{node.module}.{alias.name}" for alias in node.names]
            found.update(name if name in known else node.module for name in wanted)
    return found & known


def circle(modules: Mapping[str, Imports]) -> list[str]:
    """Return the modules of an import circle; none if there is none."""
    graph = {name: imported(imports, modules) - {name} for name, imports in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])[::-1]
    return []


@pytest.mark.parametrize("package", PACKAGES)
def test_there_are_no_import_circles(package):
    assert " -> ".join(circle(sources(package))) == ""


@pytest.mark.parametrize(
    "hidden",
    [
        "from p.a import f",
        "import p.a",
        "from p import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import f",
        "def g():\n    from p.a import f",
    ],
)
def test_the_search_finds_a_circle(hidden):
    texts = {"p": "", "p.a": "from p.b import g", "p.b": hidden, "p.c": "from p import a, b"}
    modules = {name: nodes_of(text)[1] for name, text in texts.items()}
    assert set(circle(modules)) == {"p.a", "p.b"}
    assert circle(modules | {"p.b": nodes_of("import numpy")[1]}) == []
