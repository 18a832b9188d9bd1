"""Rules about files: sizes, names, what may not be written in them."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PYTHON_FILES = [
    path for folder in ("src", "tests", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))
]
NAMES_THAT_SAY_NOTHING = {"util", "utils", "helper", "helpers", "common", "misc", "shared", "stuff"}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tracked_files() -> list[Path]:
    """Files under version control; the test that asks is skipped outside a clone."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git clone")
    # A file that was just removed is still listed until that is committed.
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def calls_of_print(source: str) -> list[int]:
    if "print" not in source:
        return []
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def machine_paths(text: str) -> list[str]:
    """Paths that exist on one person's machine only."""
    places = ["home", "Users", "root", "work", "mnt", "opt/pypi"]
    if not any(place in text for place in ("Users", *(f"/{place}/" for place in places))):
        return []  # in large records the expressions take seconds
    homes = "|".join(places)
    return re.findall(rf"(?<![\w.:/~*-])/(?:{homes})/\w[\w.-]*", text) + re.findall(
        r"\b[A-Z]:\\\\?Users\b", text
    )


def test_sources_are_found():
    assert len(SOURCES) > 5


def test_nothing_prints():
    lines = {relative(path): calls_of_print(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {name: found for name, found in lines.items() if found} == {}


def test_the_search_for_print_finds_one():
    assert calls_of_print("x = 1\nprint(x)\n") == [2]
    assert calls_of_print("'print(x)'  # print(x)") == []


def test_every_file_name_says_what_is_inside():
    named = [
        path
        for path in PYTHON_FILES
        if NAMES_THAT_SAY_NOTHING & {path.stem, path.stem.strip("_"), path.parent.name}
    ]
    assert [relative(path) for path in named] == []


def test_no_path_of_a_single_machine_is_written_down():
    found = {}
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # pictures and arrays
        if paths := machine_paths(text):
            found[relative(path)] = paths
    assert found == {}


@pytest.mark.parametrize("place", ["home", "Users", "root"])
def test_the_search_for_machine_paths_finds_one(place):
    assert machine_paths(f"see /{place}/someone/data.csv") == [f"/{place}/someone"]


def test_the_search_for_machine_paths_leaves_addresses_alone():
    assert machine_paths("https://example.org/home/page and docs/work/plan") == []


def test_the_ci_script_can_be_run():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "make test TORCH=1" in script.read_text(encoding="utf-8")
