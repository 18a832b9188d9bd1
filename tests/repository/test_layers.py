"""Names of modules in strings, from which registries import, go down the layers as imports do."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from tests.repository.sources import nodes, nodes_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "nonneg"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LAYERS = [
    re.findall(r"nonneg\.(\w+)", layer)
    for contract in PROJECT["tool"]["importlinter"]["contracts"]
    if contract["type"] == "layers"
    for layer in contract["layers"]
]
LEVEL = {room: -level for level, rooms in enumerate(LAYERS) for room in rooms}
ENTRIES = {"__init__", "__main__"}  # the front page and the command stand above all rooms
MODULE = re.compile(r"nonneg\.(\w+)(?:\.\w*)*(?::\w+)?")  # or the part of an f-string before a brace


def upward(room: str, constants: list[ast.Constant]) -> set[str]:
    """Return the strings of a source that name modules of a room above, or beside, its own."""
    strings = {node.value for node in constants if isinstance(node.value, str)}
    named = {text: match[1] for text in strings if (match := MODULE.fullmatch(text))}
    return {
        text
        for text, other in named.items()
        if other in LEVEL and other != room and LEVEL[other] >= LEVEL[room]
    }


def test_every_room_has_a_layer():
    rooms = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert rooms - ENTRIES == set(LEVEL)


def test_strings_name_no_module_of_a_room_above():
    rooms = {path: path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")}
    strings = {
        path.relative_to(PACKAGE).as_posix(): upward(room, nodes(path)[0])
        for path, room in rooms.items()
        if room in LEVEL
    }
    assert {file: names for file, names in strings.items() if names} == {}


def test_the_search_finds_a_name_that_goes_up():
    for room, source, named in (
        ("solvers", "ENTRY = Entry('nonneg.cli.demo:main', 'x')", {"nonneg.cli.demo:main"}),
        ("data", "load(f'nonneg.cli.{name}')", {"nonneg.cli."}),
        ("cli", "ENTRY = Entry('nonneg.solvers.hals:hals', 'see nonneg.cli.demo')", set()),
    ):
        assert upward(room, nodes_of(source)[0]) == named
