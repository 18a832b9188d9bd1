"""Plain American English with the field's words: pages, docstrings, help and messages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.repository.sources import nodes, nodes_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
MODULES = [
    path
    for folder in ("src/nonneg", "reproduction", "benchmarks", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
# Phrase from the beginning of a word -> what to say instead. The glossary (docs/notation.md) has the words.
BANNED = {
    r"at most so many\b": "maximum number of",
    r"so many\b(?! that)": "this number of",
    r"of the kind of\b": "same array type as",
    r"(data point|sample|feature|pixel|image|node|angle|one) an? (row|column|line|axis|frame)\b": "per row",
    r"a (row|line|file) each\b": "one row per ...",
    r"\d+ a kind\b": "100 of each kind",
    r"exhibits?\b": "artifact",
    r"if need be\b": "if necessary",
    r"(was|were) expected, [^.]{1,40} came\b": "expected ..., got ...",
    r"in the place of\b": "in place of",
    r"(is|are) no (numbers?|model|programs?|counts|table|text|graph|data)\b": "is not a ...",
    r"holds? (no|nan|real|finite|texts?|names|dates|several|complex)\b": "contains",
    r"(cones?|ball|hull|simplex) about (the|them|some)\b": "around",
    r"times sooner\b": "times faster",
    r"another (array|device|folder|library|number|range|type) than\b": "other than",
    r"(inside|outside) of (the|a|`)": "inside the ...",
    r"some (\d|ten |twenty )": "about ten",
    r"made (a|one) by\b": "to make a ..., use",
    r"caller less\b": "remove from the count",
    r"all else\b": "everything else",
    r"cannot be told (from|apart)\b": "cannot be distinguished",
    r"dear\b": "expensive",
    r"(mend|mends|mended)\b": "fix",
    r"to speak of\b": "hardly any",
    r"as the data say\b": "depending on the data",
    r"next to nothing\b": "hardly any",
    r"anew\b": "again",
    r"(go|goes) on\b": "continue",
    r"(sets|data|draws|graphs|networks|collections|mixtures) that (chose|judge|report)s?\b": "test",
    r"to land\b": "minimum",
    r"met `?tol\b": "reached the tolerance tol",
    r"(machine|programs|data sets) (is|are) others\b": "differ",
    r"stands? in for\b": "takes the place of",
    r"n_starts\b": "n_init",
    r"\d[\d.]* %(?=[ .,;:)])": "10%, without a space",
    r"(plane|pass|pass over the data) an? (name|iteration)\b": "per name",
    r"(learnt|spelt|whilst)\b": "learned",
    r"(re|de|un)?(minimi|maximi|normali|factori|optimi|initiali|regulari|organi)s(e|ing|at)": "-ize",
    r"(colour|neighbour|behaviour|favour)\w*\b": "-or",
    r"(centre|centred|centres|licence|grey|catalogue)\b": "American spelling",
}
PATTERNS = {re.compile(rf"\b{phrase}"): instead for phrase, instead in BANNED.items()}
ANY = re.compile(rf"\b(?:{'|'.join(BANNED)})")


def words_of_a_page(text: str) -> str:
    """Leave out code and links, which quote names."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)", "", text)


def texts_of_a_module(constants: list[ast.Constant]) -> str:
    """Return docstrings, messages and help: every string that has a space in it."""
    strings = (node.value for node in constants)
    return "\n".join(text for text in strings if isinstance(text, str) and " " in text)


def found(text: str) -> list[str]:
    text = " ".join(text.lower().split())
    if not ANY.search(text):  # one search takes a fraction of the time of all
        return []
    return [
        f"{match.group()!r}: say {instead!r}"
        for pattern, instead in PATTERNS.items()
        for match in pattern.finditer(text)
    ]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_pages_speak_plainly():
    said = {relative(page): found(words_of_a_page(page.read_text(encoding="utf-8"))) for page in PAGES}
    assert {page: words for page, words in said.items() if words} == {}


def test_docstrings_help_and_messages_speak_plainly():
    said = {relative(path): found(texts_of_a_module(nodes(path)[0])) for path in MODULES}
    assert {path: words for path, words in said.items() if words} == {}


def test_bounds_in_sentences_are_rounded_to_the_safe_side():
    """Not to the nearest number, which may be beyond the bound: `certificates.bounds` writes them."""
    limit = r"\b(?:at (?:most|least)|up to|within|below|above|no more than|exceeds?)"
    raw = re.compile(limit + r'(?: of)? "?\s*f?"?(\{[^{}]*[a-z][^{}]*:\.\d[fg%]\})')
    sources = {relative(path): path.read_text(encoding="utf-8") for path in MODULES if "src" in path.parts}
    shown = {path: raw.findall(text) for path, text in sources.items() if raw.search(text)}
    assert shown == {"src/nonneg/iteration/progress.py": ["{remaining:.0f}"]}  # seconds


@pytest.mark.parametrize(
    "text",
    [
        "At most so many iterations.",
        "an array of the kind of X",
        "one a row",
        "is minimised",
        "grey",
        "few, dear steps",
        "one size angle an axis",
        "ten times sooner",
        "the file holds several arrays",
        "10 % of them",
    ],
)
def test_the_search_finds_dialect(text):
    assert found(text)
    assert found(texts_of_a_module(nodes_of(f"def f():\n    raise ValueError('{text} here')")[0]))
    assert not found(words_of_a_page(f"`{text}`"))
