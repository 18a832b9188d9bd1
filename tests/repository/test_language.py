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
# Phrase -> what to say instead. The glossary (docs/notation.md) has the words.
BANNED = {
    r"\bat most so many\b": "maximum number of",
    r"\bso many\b(?! that)": "this number of",
    r"\bof the kind of\b": "same array type as",
    r"\b(data point|sample|feature|pixel|image|node|angle|one) an? (row|column|line|axis|frame)\b": "per row",
    r"\ba (row|line|file) each\b": "one row per ...",
    r"\b\d+ a kind\b": "100 of each kind",
    r"\bexhibits?\b": "artifact",
    r"\bif need be\b": "if necessary",
    r"\b(was|were) expected, [^.]{1,40} came\b": "expected ..., got ...",
    r"\bin the place of\b": "in place of",
    r"\b(is|are) no (numbers?|model|programs?|counts|table|text|graph|data)\b": "is not a ...",
    r"\bholds? (no|NaN|real|finite|texts?|names|dates|several|complex)\b": "contains",
    r"\b(cones?|ball|hull|simplex) about (the|them|some)\b": "around",
    r"\btimes sooner\b": "times faster",
    r"\banother (array|device|folder|library|number|range|type) than\b": "other than",
    r"\b(inside|outside) of (the|a|`)": "inside the ...",
    r"\bsome (\d|ten |twenty )": "about ten",
    r"\bmade (a|one) by\b": "to make a ..., use",
    r"\bcaller less\b": "remove from the count",
    r"\ball else\b": "everything else",
    r"\bcannot be told (from|apart)\b": "cannot be distinguished",
    r"\bdear\b": "expensive",
    r"\b(mend|mends|mended)\b": "fix",
    r"\bto speak of\b": "hardly any",
    r"\bas the data say\b": "depending on the data",
    r"\bnext to nothing\b": "hardly any",
    r"\banew\b": "again",
    r"\b(go|goes) on\b": "continue",
    r"\b(sets|data|draws|graphs|networks|collections|mixtures) that (chose|judge|report)s?\b": "test",
    r"\bto land\b": "minimum",
    r"\bmet `?tol\b": "reached the tolerance tol",
    r"\b(machine|programs|data sets) (is|are) others\b": "differ",
    r"\bstands? in for\b": "takes the place of",
    r"\bn_starts\b": "n_init",
    r"(?<![\w.])\d[\d.]* %(?=[ .,;:)])": "10%, without a space",
    r"\b(plane|pass|pass over the data) an? (name|iteration)\b": "per name",
    r"\b(learnt|spelt|whilst)\b": "learned",
    r"\b\w*(minimi|maximi|normali|factori|optimi|initiali|regulari|organi)s(e|es|ed|ing|ation)\b": "-ize",
    r"\b(colour|neighbour|behaviour|favour)\w*\b": "-or",
    r"\b(centre|centred|centres|licence|grey|catalogue)\b": "American spelling",
}
PATTERNS = {re.compile(phrase, re.IGNORECASE): instead for phrase, instead in BANNED.items()}
ANY = re.compile("|".join(BANNED), re.IGNORECASE)


def words_of_a_page(text: str) -> str:
    """Leave out code and links, which quote names."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)", "", text)


def texts_of_a_module(constants: list[ast.Constant]) -> str:
    """Return docstrings, messages and help: every string that has a space in it."""
    strings = (node.value for node in constants)
    return "\n".join(text for text in strings if isinstance(text, str) and " " in text)


def found(text: str) -> list[str]:
    text = " ".join(text.split())
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
