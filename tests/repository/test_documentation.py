"""The pages are true: their Python runs, their table comes from the registry."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[str]:
    return FENCE.findall(page.read_text(encoding="utf-8"))


def with_claims(code: str) -> ast.Module:
    """Turn ``value  # literal`` and ``value  # literal: why`` into assertions; other comments stay."""
    lines, module = code.splitlines(), ast.parse(code)
    for at, node in enumerate(module.body):
        claim = lines[node.end_lineno - 1][node.end_col_offset :].strip().removeprefix("#").strip()
        if not isinstance(node, ast.Expr) or not claim:
            continue
        for text in (claim, claim.partition(":")[0]):
            try:
                stated = ast.parse(repr(ast.literal_eval(text)), mode="eval").body
            except (SyntaxError, ValueError):
                continue
            said = ast.Constant(f"{ast.unparse(node)} is said to be {text}")
            test = ast.Compare(node.value, [ast.Eq()], [stated])
            module.body[at] = ast.copy_location(ast.Assert(test, said), node)
            break
    return ast.fix_missing_locations(module)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_code_on_the_page_runs_and_gives_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = compile(with_claims("\n".join(blocks(page))), page.name, "exec", dont_inherit=True)
    exec(code, {"__name__": page.stem})


def test_a_false_claim_is_seen():
    exec(compile(with_claims("1 + 1  # 2: a sum\n[1]  # any words\nlen  # (the function"), "x", "exec"))
    with pytest.raises(AssertionError, match=r"1 \+ 1 is said to be 3"):
        exec(compile(with_claims("1 + 1  # 3"), "x", "exec"))


def test_links_between_pages_lead_somewhere():
    targets = [
        (page, link)
        for page in PAGES
        for link in re.findall(r"\]\((?!https?:|#)([^)\s#]+)[^)]*\)", page.read_text("utf-8"))
    ]
    assert [(page.name, link) for page, link in targets if not (page.parent / link).exists()] == []


def test_the_api_page_documents_names_that_exist():
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    missing, module = [], "nonneg"
    for directive, name in re.findall(r"^\.\. (currentmodule|auto\w+):: ([\w.]+)", text, re.MULTILINE):
        if directive == "currentmodule":
            module = name
            continue
        try:
            pkgutil.resolve_name(name if name.startswith("nonneg.") else f"{module}.{name}")
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []


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
        implementation: object
        losses: frozenset[str]
        missing: bool

    written = solver_table.table({"hals": Entry(len, frozenset({"frobenius"}), False)})
    assert written == "| solver | losses | missing |\n| --- | --- | --- |\n| `hals` | frobenius | - |\n"
