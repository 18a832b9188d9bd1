"""The built site (`make docs`): the search finds what people look for, and pages show their output."""

from __future__ import annotations

import html
import re
import subprocess
from pathlib import Path

import pytest
from tests.report.browser import CHROMIUM, QUIET
from tests.repository.site_check import faults_of

SITE = Path(__file__).resolve().parents[2] / "docs" / "_build" / "html"
pytestmark = pytest.mark.skipif(not (SITE / "searchindex.js").exists(), reason="make docs has not been run")
N_SHOWN = 8  # results on the first screen
# What somebody types, and the pages of which one must be among the first results.
WANTED = {
    "install": {"install"},
    "cite": {"citing"},
    "anndata": {"guide/data", "guide/single-cells"},
    "GPU": {"guide/gpu", "guide/data", "install"},
    "out of core": {"guide/larger-than-memory"},
    "missing values": {"guide/missing-weights-frozen", "faq"},
}


def frames_of(addresses: list[str], width: int, script: str, profile: Path) -> list[str]:
    """Load pages of the site in frames of one page beside them; return what the script says of each."""
    frames = "".join(
        f'<iframe src="{address}" style="width: {width}px; height: 900px"></iframe>' for address in addresses
    )
    host = SITE / "_frames.html"
    host.write_text(
        f"""<!doctype html><body>{frames}<script>
        const look = page => {script};
        setTimeout(() => {{
          document.body.innerHTML = [...document.querySelectorAll("iframe")].map(
            frame => "<p>" + look(frame.contentDocument) + "</p>").join("");
        }}, 9000);</script></body>""",
        encoding="utf-8",
    )
    command = [CHROMIUM, *QUIET, "--allow-file-access-from-files", f"--user-data-dir={profile}", "--dump-dom"]
    try:
        run = subprocess.run(
            [*command, host.as_uri()], capture_output=True, text=True, timeout=120, check=True
        )
    finally:
        host.unlink()
    return [html.unescape(text) for text in re.findall(r"<p>([^<]*)</p>", run.stdout)]


@pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
def test_search_finds_what_people_look_for(tmp_path):
    links = (
        """[...page.querySelectorAll("#search-results li a")].map(a => a.getAttribute("href")).join(" ")"""
    )
    addresses = [f"search.html?q={query.replace(' ', '+')}" for query in WANTED]
    listed = frames_of(addresses, 1000, links, tmp_path)
    found = {
        query: [link.partition("#")[0].partition("?")[0].removesuffix(".html") for link in text.split()][
            :N_SHOWN
        ]
        for query, text in zip(WANTED, listed, strict=True)
    }
    assert {query: pages for query, pages in found.items() if not WANTED[query] & set(pages)} == {}


@pytest.mark.slow  # minutes: `make docs` runs it
@pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
def test_every_page_is_laid_out_well_at_two_widths(tmp_path):
    pages = (page.relative_to(SITE) for page in sorted(SITE.rglob("*.html")))
    shown = [page.as_posix() for page in pages if page.parts[0] not in ("_static", "_downloads")]
    assert faults_of(SITE, shown, tmp_path) == []


def test_programs_find_the_list_of_pages():
    listed = set(re.findall(r"\]\(([^)]+)\)", (SITE / "llms.txt").read_text("utf-8")))
    assert {"install.html", "tutorial.html", "citing.html", "guide/topics.html"} <= listed
    assert [address for address in listed if not (SITE / address).exists()] == []


def test_no_page_loads_anything_from_elsewhere():
    loaded = re.compile(r'<(?:script|img|link)[^>]*(?:src|href)="(https?://[^"]+)"[^>]*>')
    away = {
        page.relative_to(SITE).as_posix(): sorted(set(loaded.findall(page.read_text("utf-8"))))
        for page in SITE.rglob("*.html")
        if "_modules" not in page.parts
    }
    assert {page: links for page, links in away.items() if links} == {}


def test_formulas_have_no_marks_of_latex_left():
    for page in SITE.rglob("*.html"):
        formulas = re.findall(r"<math.*?</math>", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not [formula for formula in formulas if re.search(r"<m[io]>(&(?!#)|\\)", formula)], page


def test_guides_show_a_picture_and_the_output_of_their_code():
    for page in sorted((SITE / "guide").glob("*.html")):
        text = page.read_text("utf-8")
        assert "<img" in text, page.name
        source = SITE.parents[1] / "guide" / f"{page.stem}.md"  # code that needs a GPU is only shown
        if "\n```python\n" in source.read_text("utf-8"):
            assert 'class="output highlight-text' in text, page.name
