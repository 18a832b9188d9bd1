"""Numbers with units and comparisons on pages and in docstrings: each has a record or a reason."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = tomllib.loads((ROOT / "docs" / "verification" / "claims.toml").read_text("utf-8"))
NAMES = ("README.md", *(f"docs/{name}.md" for name in ("faq", "install", "index", "choosing-a-solver")))
PAGES = [*(ROOT / name for name in NAMES), *sorted((ROOT / "docs" / "guide").glob("*.md"))]
UNITS = "times|ms|s|seconds?|minutes?|hours?|GB|MB|TB"
CLAIM = re.compile(
    rf"(?<![\w.])\d[\d.]*\s(?:{UNITS})\b|(?<![\w.])\d[\d.]*%|\b\d+ of (?:the )?\d+"
    r"|\b(?:fastest|quickest|most accurate|state of the art)\b|\b(?:is|are) (?:the best|faster)\b"
)


def claims(page: Path) -> set[str]:
    """Return the claims in the sentences of a page; tables and code have records of their own."""
    prose = re.sub(r"^```.*?^```$|^\|.*?$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return {" ".join(found.split()) for found in CLAIM.findall(prose)}


def states(record: str, claim: str) -> bool:
    """Tell whether a record has the number, to the digits written; also in thousandths or as a share."""
    digits = re.match(r"[\d.]+", claim)[0].rstrip(".")
    last = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    numbers = {float(text) for text in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", record)}
    return any(
        abs(number * unit - float(digits)) <= 1.001 * last for number in numbers for unit in (1, 100, 1000)
    )


def docstrings() -> dict[str, str]:
    """Return the docstrings of all public names and their public members, without examples."""
    texts = {}
    for module in ("nonneg", "nonneg.applications", "nonneg.metrics", "nonneg.datasets", "nonneg.results"):
        home = importlib.import_module(module)
        for name in home.__all__:
            thing = getattr(home, name)
            members = vars(thing) if inspect.isclass(thing) else {}
            public = [getattr(thing, member) for member in members if not member.startswith("_")]
            words = [inspect.getdoc(each) or "" for each in (thing, *filter(callable, public))]
            texts[f"{module}.{name}"] = re.sub(
                r"^(?:>>>|\.\.\.) .*$", "", "\n".join(words), flags=re.MULTILINE
            )
    return texts


def test_every_claim_of_a_docstring_has_a_reason():
    said = {
        name: {" ".join(claim.split()) for claim in CLAIM.findall(text)}
        for name, text in docstrings().items()
    }
    listed = {name: set(CLAIMS[name]) for name in CLAIMS if name.startswith("nonneg.")}
    assert {name: words for name, words in said.items() if words} == listed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_claim_has_a_record_or_a_reason(page):
    listed = CLAIMS.get(page.relative_to(ROOT).as_posix(), {})
    assert claims(page) == set(listed), "list it in docs/verification/claims.toml, or take it out"
    for claim, source in listed.items():
        if source.startswith("docs/"):
            assert states((ROOT / source).read_text("utf-8"), claim), f"{source} does not say {claim}"
        else:
            assert len(source.split()) > 1


def test_an_invented_number_is_noticed():
    record = (ROOT / "docs" / "benchmarks" / "gpu.md").read_text("utf-8")
    assert states(record, "6.64 ms")
    assert not states(record, "6.93 ms")


PAPERS = sorted((ROOT / "docs" / "papers").glob("[!i]*.md"))


@pytest.mark.parametrize("page", PAPERS, ids=lambda page: page.stem)
def test_counts_on_the_pages_of_the_papers_are_those_of_the_reproduced_pages(page):
    for line in page.read_text("utf-8").splitlines():
        links = re.findall(r"\]\((\.\./reproduced/.*?)\)", line)
        said = re.search(r"(\w+: )?(\d+) of (\d+) claims hold", line)
        if not links or not said:
            continue
        counted = [(page.parent / link).read_text("utf-8") for link in links]
        holds = [len(re.findall(r"^- \*\*holds", text, re.MULTILINE)) for text in counted]
        every = [
            len(re.findall(r"^- \*\*(?:holds|fails|not decided)", text, re.MULTILINE)) for text in counted
        ]
        assert (int(said[2]), int(said[3])) in list(zip(holds, every, strict=True)), line


def test_the_index_of_reproduced_pages_follows_from_them(tmp_path):
    page = pytest.importorskip("reproduction.page")
    folder = ROOT / "docs" / "reproduced"
    for path in folder.glob("*/*/index.md"):
        copy = tmp_path / path.relative_to(folder)
        copy.parent.mkdir(parents=True)
        copy.write_text(path.read_text("utf-8"), encoding="utf-8")
    index = (folder / "index.md").read_text("utf-8")
    (tmp_path / "index.md").write_text(index, encoding="utf-8")
    page.write_index(tmp_path)
    assert (tmp_path / "index.md").read_text("utf-8") == index
