"""Numbers with units and comparisons on README and the guides: each has a record or a reason."""

from __future__ import annotations

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
    """Tell whether a record has the number, also as thousandths or as a share, to the digits that are written."""
    digits = re.match(r"[\d.]+", claim)[0].rstrip(".")
    last = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    numbers = {float(text) for text in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", record)}
    return any(
        abs(number * unit - float(digits)) <= 1.001 * last for number in numbers for unit in (1, 100, 1000)
    )


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
    assert states(record, "5.74 ms")
    assert not states(record, "6.03 ms")
