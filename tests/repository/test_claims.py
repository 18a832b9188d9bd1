"""Numbers with units and comparisons on pages and in docstrings: each has a record or a reason."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from sklearn import decomposition
from sklearn.datasets import load_wine
from tests.repository.sources import nodes

from nonneg import NMF

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = tomllib.loads((ROOT / "docs" / "verification" / "claims.toml").read_text("utf-8"))
NAMES = (
    "README.md",
    *(f"docs/{name}.md" for name in ("faq", "install", "index", "tutorial", "choosing-a-solver")),
)
PAGES = [*(ROOT / name for name in NAMES), *sorted((ROOT / "docs" / "guide").glob("*.md"))]
FLAGS = re.DOTALL | re.MULTILINE
UNITS = "times|ms|s|seconds?|min|minutes?|hours?|days?|[a-z]{4,5}seconds|[µn]s|[KMGT]i?B|dB|percent|points"
NUMBER = re.compile(
    rf"(?<![\w.])\d[\d.,]*\s(?:{UNITS})\b|(?<![\w.])\d[\d.]*%|\b\d+ (?:out )?of (?:the )?\d+"
    r"|(?<![\w./=-])\d*\.\d+(?![\w/])|\b\d[\d.]*(?:-fold|e-?\d+)\b|\b(?!10x)\d[\d.]*x\b|\bfactor of \d+"
    r"|\b\d+k?\b (?:iterations|\w+ per second)"
)
WORDS = "two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|fifty|hundred|a thousand"
PARTS = "half|third|quarter|fifth|sixth|seventh|eighth|ninth|tenth|twelfth|fourteenth|sixteenth"
LESS = r"(?:the |of )(?:[\w']+ )?(?:time|error|memory|cost)\b"
PEERS = (
    r"scikit-learn|cNMF|BERTopic|KeyNMF|SigProfiler\w*|nimfa|tensorly|PLANC|librosa|gensim|any|all|other\w*"
)
BEST = "accurate|robust|reliable|stable|efficient|precise|complete"
COMPARISON = re.compile(
    r"\b(?:fastest|quickest|most accurate|state of the art|outperform\w*|faster|slower|more accurate)\b"
    r"|\b(?:better|worse) (?:than|with)\b|\b(?:is|are) (?:the )?(?:best|better|worse)\b|\bfirst of\b"
    rf"|\bahead of\b|\b(?:{PARTS}) {LESS}|\bhalf that of\b|\b(?:a|{WORDS}) (?:{PARTS})s?\b(?! {LESS})"
    rf"|\b(?:twice as|(?:{WORDS})(?: to \w+)? times)\b|\b(?:half an?|{WORDS}) (?:{UNITS})\b|\b\w+fold\b"
    rf"|\b(?:{WORDS}) of (?:the )?(?:{WORDS})\b|\bthe most (?:{BEST})\b|\bthan (?:th\w+ of )?(?:{PEERS})\b"
    r"|\bquicker\b|\bbeats?\b|\bsuperior\b|\bunmatched\b|\bunrivaled\b|\balways finds?\b|\bnever fails?\b"
    r"|\bthe (?:smallest|lowest|highest|least|best) (?:error|loss|time|memory|cost|score)s?\b"
    r"|\b(?:nowhere else|only nonneg|(?:no other|the first|the only) (?:library|package|software|program))\b",
    re.IGNORECASE,
)
DECIMAL = re.compile(r"\d*\.\d+|\d+e-?\d+")
INHERITED = re.compile(r"set_\w+_request|set_output|[gs]et_params|get_metadata_routing|get_feature_names_out")


def found(text: str) -> Counter[str]:
    """Return the numbers and comparisons in sentences, without names in code, addresses and formulas."""
    text = re.sub(r"`[^`\n]*`|\]\([^)]*\)|\$[^$]*\$|^:\w.*?$", "", text, flags=re.MULTILINE)
    each = [*NUMBER.findall(text), *COMPARISON.findall(text)]
    return Counter(" ".join(claim.split()) for claim in each)


def claims(page: Path) -> Counter[str]:
    """Return the claims of a page; tables and code of guides have records of their own."""
    text = page.read_text("utf-8")
    code = r"^```.*?^```$"
    if page.name == "README.md":  # what a comment says about a result
        return found(
            re.sub(code, lambda block: "\n".join(re.findall(r"  # .*", block[0])), text, flags=FLAGS)
        )
    return found(re.sub(rf"{code}|^\|.*?$", "", text, flags=FLAGS))


def listed(name: str) -> Counter[str]:
    """Return the claims that have a record or a reason; a list for one that occurs several times."""
    return Counter(
        {claim: 1 if isinstance(why, str) else len(why) for claim, why in CLAIMS.get(name, {}).items()}
    )


def states(record: str, claim: str) -> bool:
    """Tell whether a record has the number, to the digits written; also in thousandths or as a share."""
    digits = re.match(r"[\d.]+", claim)[0].rstrip(".")
    last = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    numbers = {float(text) for text in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", record)}
    return any(
        abs(number * unit - float(digits)) <= 1.001 * last for number in numbers for unit in (1, 100, 1000)
    )


def settings(thing: object) -> set[float]:
    """Return the numbers in the code of the package that defines a name: its defaults and limits."""
    folder = Path(inspect.getsourcefile(thing)).parent
    constants = [node.value for path in folder.glob("*.py") for node in nodes(path)[0]]
    return {float(value) for value in constants if type(value) in (int, float)}


def docstrings() -> dict[str, Counter[str]]:
    """Return the claims of all public names and their members, without examples and settings."""
    said = {}
    for module in ("nonneg", "nonneg.applications", "nonneg.metrics", "nonneg.datasets", "nonneg.results"):
        home = importlib.import_module(module)
        for name in home.__all__:
            thing = getattr(home, name)
            members = vars(thing) if inspect.isclass(thing) else {}
            names = [each for each in members if not each.startswith("_") and not INHERITED.fullmatch(each)]
            public = filter(callable, (getattr(thing, each) for each in names))
            words = [inspect.getdoc(each) or "" for each in (thing, *public)]
            counted = found("\n".join(re.split(r"^Examples\n-+$", each, flags=FLAGS)[0] for each in words))
            if any(DECIMAL.fullmatch(claim) for claim in counted):
                known = settings(thing)
                counted = Counter(
                    {
                        claim: n
                        for claim, n in counted.items()
                        if not (DECIMAL.fullmatch(claim) and float(claim) in known)
                    }
                )
            if counted:
                said[f"{module}.{name}"] = counted
    return said


def test_every_claim_of_a_docstring_has_a_reason():
    assert docstrings() == {name: listed(name) for name in CLAIMS if name.startswith("nonneg.")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_claim_has_a_record_or_a_reason(page):
    name = page.relative_to(ROOT).as_posix()
    assert claims(page) == listed(name), "list it in docs/verification/claims.toml, or take it out"
    for claim, reasons in CLAIMS.get(name, {}).items():
        for source in [reasons] if isinstance(reasons, str) else reasons:
            if source.startswith("docs/"):
                record = (ROOT / source).read_text("utf-8")
                assert not claim[0].isdigit() or states(record, claim), f"{source} does not say {claim}"
            else:
                assert len(source.split()) > 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_errors_of_wine_on_readme():
    X = load_wine().data
    ours = NMF(n_components=3, random_state=0).fit(X).reconstruction_err_
    theirs = decomposition.NMF(n_components=3, random_state=0).fit(X).reconstruction_err_
    assert f"# {ours:.1f}; scikit-learn: {theirs:.1f}" in PAGES[0].read_text("utf-8")


@pytest.mark.parametrize(
    "sentence",
    [
        "An iteration takes 6.93 ms.",
        "The mutual information is 0.73 on news.",
        "It finds 17 of 20 topics.",
        "The answer is right in 71% of the cases.",
        "It is 12 times faster.",
        "It is the best of all libraries.",
        "It takes a third of the time.",
        "These methods exist nowhere else.",
        "It needs 3 GiB, 40 percent less.",
        "It is right in 97 out of 100 cases.",
        "Three of four topics are found.",
        "It needs twelvefold less memory.",
        "It takes ten minutes.",
        "Errors are below 1e-14.",
        "It beats the others.",
        "Only nonneg says so.",
    ],
)
def test_a_new_number_or_comparison_is_noticed(sentence, tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"# Words\n\n{sentence}\n", encoding="utf-8")
    assert claims(page)


def test_an_invented_number_is_noticed():
    record = "| HALS 200000 x 2000, k=50 | float32 | 6.64 | 2.37 | 25% |"
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


def test_the_totals_of_verification_are_those_of_the_pages():
    pages = [path.read_text("utf-8") for path in (ROOT / "docs" / "reproduced").glob("*/*/index.md")]
    text = "\n".join(pages)
    held, all_claims = (
        len(re.findall(rf"^- \*\*(?:{words})", text, re.MULTILINE))
        for words in ("holds", "holds|fails|not decided")
    )
    met = [re.findall(r"(\d+) of (\d+)", line) for line in re.findall("Published values met.*", text)]
    ours, theirs = (sum(int(pair[at]) for line in met for pair in line) for at in (0, 1))
    said = (ROOT / "docs" / "verification.md").read_text("utf-8")
    assert f"| {len(pages)} | `python -m reproduction`" in said
    assert f"| {all_claims}, of which {held} hold |" in said
    assert f"| {theirs}, of which {ours} are met" in said


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
