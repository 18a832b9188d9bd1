"""The pages are true: their Python runs, their table comes from the registry."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[str]:
    return FENCE.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_code_on_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks(page)), page.name, "exec"), {"__name__": page.stem})


def test_links_between_pages_lead_somewhere():
    targets = [
        (page, link)
        for page in PAGES
        for link in re.findall(r"\]\(([\w/.-]+\.md)\)", page.read_text("utf-8"))
    ]
    assert [(page.name, link) for page, link in targets if not (page.parent / link).is_file()] == []


@pytest.fixture
def solver_table():
    spec = importlib.util.spec_from_file_location("solver_table", ROOT / "docs" / "solver_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_of_the_readme_is_the_registry(solver_table):
    from nonneg.solvers.registry import SOLVERS

    text = (ROOT / "README.md").read_text("utf-8")
    written = text.partition("<!-- solvers: begin -->\n")[2].partition("<!-- solvers: end -->")[0]
    assert written == solver_table.compact_table(SOLVERS)


def test_table_of_solvers_says_what_the_registry_declares(solver_table):

    @dataclasses.dataclass(frozen=True)
    class Entry:
        run: object
        losses: frozenset[str]
        missing: bool

    written = solver_table.table({"hals": Entry(len, frozenset({"frobenius"}), False)})
    assert written == "| solver | losses | missing |\n| --- | --- | --- |\n| `hals` | frobenius | - |\n"
