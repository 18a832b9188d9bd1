"""The pages are true: their Python runs, their table comes from the registry."""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
import re
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
# Their code takes a second a page and more; `make docs` runs it too.
LONG = {
    "topics", "audio", "single-cells", "separable", "hyperspectral", "purification", "rank", "cones",
    "min-volume", "cluster", "consensus", "signatures", "uncertainties", "data",
}  # fmt: skip
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[str]:
    """Return the code of a page; what needs scanpy only where it is installed, as it is for `make docs`."""
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    without = importlib.util.find_spec("scanpy") is None
    return [code for code in found if not (without and "import scanpy" in code)]


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


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=pytest.mark.slow if page.stem in LONG else ())
        for page in PAGES
        if blocks(page)
    ],
)
def test_code_on_the_page_runs_and_gives_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if any("import anndata" in block for block in blocks(page)):
        pytest.importorskip("anndata")
    code = compile(with_claims("\n".join(blocks(page))), page.name, "exec", dont_inherit=True)
    exec(code, {"__name__": page.stem})


GUIDES = sorted((ROOT / "docs" / "guide").glob("*.md"))


def says_something(code: str) -> bool:
    """Tell whether a block has a bare expression, or prints."""
    return any(isinstance(node, ast.Expr) for node in ast.parse(code).body) or "print(" in code


@pytest.mark.parametrize("page", [ROOT / "docs" / "tutorial.md", *GUIDES], ids=lambda page: page.stem)
def test_every_block_of_code_shows_something(page):
    silent = [code for code in blocks(page) if not (says_something(code) or "plot" in code)]
    assert silent == []


@pytest.mark.parametrize(
    "page",
    [*(ROOT / "docs" / f"{name}.md" for name in ("index", "tutorial", "migration")), *GUIDES],
    ids=lambda page: page.stem,
)
def test_every_block_of_code_is_run_when_the_site_is_built(page):
    """Only commands that install something are shown without being run."""
    fences = re.findall(r"^```([^\n]*)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    shown = [text for kind, text in fences if kind not in ("python", "console") and "code-block" in kind]
    assert all(line.startswith("pip install ") for text in shown for line in text.splitlines())
    assert {kind for kind, _ in fences} <= {
        *("python", "console", "{code-block} bash", "{note}", "{toctree}"),
        *(kind for kind, _ in fences if kind.startswith("{figure} ")),
    }


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_every_guide_opens_with_when_to_use_it_and_a_picture(page):
    title, _, text = page.read_text(encoding="utf-8").partition("\n")
    opening = text.partition("\n## ")[0]
    assert title.startswith("# ")
    assert re.match(r"\s*(Use|Read) ", opening), opening[:80]
    gallery = re.search(r"```{figure} \.\./gallery/images/sphx_glr_(plot_\w+?)_\d{3}\.png", opening)
    if gallery:
        assert (ROOT / "examples" / f"{gallery[1]}.py").exists()
    else:
        assert "![" in opening or "plt.subplots" in opening


@pytest.fixture
def executed_code():
    spec = importlib.util.spec_from_file_location("executed_code", ROOT / "docs" / "executed_code.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_site_shows_what_code_prints_returns_and_draws(executed_code, tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    page = (
        "Words.\n\n```python\nx = 2\nx + 1\nprint('said')\n```\n\n```python\nx * 5\n```\n\n"
        "```python\nfrom matplotlib import pyplot\naxes = pyplot.plot([1, 2])\nobject()\n```\n\n"
        "```{code-block} python\nundefined\n```\n\n```console\n$ nonneg --version\n$ ls\n```\n"
    )
    shown = executed_code.executed(page, "guide/x", tmp_path / "outputs")
    assert "```{code-block} text\n:class: output\n\n3\nsaid\n```" in shown
    assert ":class: output\n\n10\n```" in shown
    assert "![](/_generated/outputs/guide-x-0-0.png)" in shown
    assert (tmp_path / "outputs" / "guide-x-0-0.png").stat().st_size > 1000
    assert "<object" not in shown
    assert re.search(r"```console\n\$ nonneg --version\nnonneg \S+\n\$ ls\n```", shown)
    assert shown.count("undefined") == 1
    with pytest.raises(executed_code.PageError, match="guide/x: this block failed"):
        executed_code.executed("```python\n1 / 0\n```\n", "guide/x", tmp_path)


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


def names_of_the_api_page():
    """Return the full names that the page lists, by tables and by directives."""
    names, module, inside = [], "nonneg", False
    for line in (ROOT / "docs" / "api.md").read_text("utf-8").splitlines():
        directive = re.match(r"\.\. (\w+):: ?([\w.]*)", line)
        if directive:
            inside = directive[1] == "autosummary"
            if directive[1] == "currentmodule":
                module = directive[2]
            elif directive[1].startswith("auto") and directive[2]:
                names.append(directive[2])
        elif inside and re.fullmatch(r"   [\w.]+", line):
            names.append(f"{module}.{line.strip()}")
        elif line and not line.startswith("   "):
            inside = False
    return names


def test_pages_mention_names_that_exist():
    missing = []
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in {*names_of_the_api_page(), *re.findall(r"`(nonneg(?:\.\w+)+)`", text)}:
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []


def test_the_api_page_lists_every_public_name():
    import nonneg

    listed = set(names_of_the_api_page())
    modules = ("results", "datasets", "metrics", "plotting")
    public = {f"nonneg.{name}" for name in nonneg.__all__ if not name.startswith("_")}
    public -= {name for name in public if isinstance(pkgutil.resolve_name(name), types.ModuleType)}
    for module in modules:
        public |= {f"nonneg.{module}.{name}" for name in getattr(nonneg, module).__all__}
    assert public - listed == set()


@pytest.fixture
def solver_table():
    spec = importlib.util.spec_from_file_location("solver_table", ROOT / "docs" / "solver_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_of_solvers_says_what_the_registry_declares(solver_table, tmp_path):
    from nonneg.solvers.registry import SOLVERS

    solver_table.write(tmp_path / "made" / "solvers.md")
    written = (tmp_path / "made" / "solvers.md").read_text("utf-8")
    assert written.startswith(solver_table.table(SOLVERS))
    assert f"\n- `hals`: {SOLVERS['hals'].summary}. `tol` bounds the {SOLVERS['hals'].tol}.\n" in written
    assert "| `kl-cd` | KL | yes | KL | - | - | - |" in written


def ragged_rows(text: str) -> list[str]:
    """Return the rows of tables with more or fewer cells than the header, which are cut or filled up."""
    found, n_cells = [], 0
    for line in re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL).splitlines():
        bars = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        if n_cells and bars and bars != n_cells:
            found.append(line)
        n_cells = (n_cells or bars) if bars else 0
    return found


def test_every_row_of_a_table_has_as_many_cells_as_its_header():
    assert ragged_rows("| a | b |\n|---|---|\n| 1 | 2 | 3 |\n| `x \\| y` | 2 |\n\n| a |\n") == [
        "| 1 | 2 | 3 |"
    ]
    assert {page.name: rows for page in PAGES if (rows := ragged_rows(page.read_text("utf-8")))} == {}


def broken_paragraphs(text: str) -> list[str]:
    """Return the lines of paragraphs that begin like an item of a list, and would become one."""
    item = re.compile(r"\s*([-+*]|\d+[.)]) ")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    paragraphs = [paragraph.splitlines() for paragraph in re.split(r"\n\s*\n", prose)]
    return [
        line
        for first, *others in filter(None, paragraphs)
        for line in others
        if item.match(line)
        and not line.startswith(" ")
        and not (item.match(first) or first.startswith("<!--"))
    ]


def test_no_line_of_a_paragraph_becomes_a_list():
    assert broken_paragraphs("A step of 2 / (t\n+ 2) is taken.\n\n- an item\n- another\n") == [
        "+ 2) is taken."
    ]
    assert {page: lines for page in PAGES if (lines := broken_paragraphs(page.read_text("utf-8")))} == {}


def test_published_versions_are_listed_the_newest_first(tmp_path):
    spec = importlib.util.spec_from_file_location("versions", ROOT / "docs" / "versions.py")
    versions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(versions)
    for name in ("0.2.0", "dev", "0.10.0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    assert versions.write(tmp_path, "https://site") == ["dev", "0.10.0", "0.2.0"]
    assert "0.10.0/" in (tmp_path / "index.html").read_text("utf-8")
    assert '"url": "https://site/0.2.0/"' in (tmp_path / "versions.json").read_text("utf-8")


def test_every_example_has_its_place_and_a_short_title():
    spec = importlib.util.spec_from_file_location("gallery_order", ROOT / "docs" / "gallery_order.py")
    gallery_order = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gallery_order)
    examples = sorted((ROOT / "examples").glob("plot_*.py"))
    assert sorted(path.stem.removeprefix("plot_") for path in examples) == sorted(gallery_order.NAMES)
    titles = [ast.get_docstring(ast.parse(path.read_text("utf-8"))).partition("\n")[0] for path in examples]
    assert [title for title in titles if len(title) > 40] == []
