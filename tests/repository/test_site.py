"""The built site (`make docs`): the search finds what people look for, and pages show their output."""

from __future__ import annotations

import html
import re
import subprocess
from pathlib import Path

import pytest
from tests.report.browser import CHROMIUM, QUIET

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


@pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
def test_search_finds_what_people_look_for(tmp_path):
    """Every query runs in a frame of one page, beside the site so that its script may read it."""
    frames = "".join(
        f'<iframe src="search.html?q={query.replace(" ", "+")}" id="{at}"></iframe>'
        for at, query in enumerate(WANTED)
    )
    host = SITE / "_searches.html"
    host.write_text(
        f"""<!doctype html><body>{frames}<script>
        setTimeout(() => {{
          document.body.innerHTML = [...document.querySelectorAll("iframe")].map(frame => "<p>"
            + [...frame.contentDocument.querySelectorAll("#search-results li a")].map(
              link => link.getAttribute("href")).join(" ") + "</p>").join("");
        }}, 9000);</script></body>""",
        encoding="utf-8",
    )
    try:
        run = subprocess.run(
            [CHROMIUM, *QUIET, "--allow-file-access-from-files", f"--user-data-dir={tmp_path}", "--dump-dom",
             host.as_uri()],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
    finally:
        host.unlink()
    listed = [html.unescape(text).split() for text in re.findall(r"<p>([^<]*)</p>", run.stdout)]
    found = {
        query: [link.partition("#")[0].partition("?")[0].removesuffix(".html") for link in links][:N_SHOWN]
        for query, links in zip(WANTED, listed, strict=True)
    }
    assert {query: links for query, links in found.items() if not WANTED[query] & set(links)} == {}


def test_no_page_loads_anything_from_elsewhere():
    loaded = re.compile(r'<(?:script|img|link)[^>]*(?:src|href)="(https?://[^"]+)"[^>]*>')
    away = {
        page.relative_to(SITE).as_posix(): sorted(set(loaded.findall(page.read_text("utf-8"))))
        for page in SITE.rglob("*.html")
        if "_modules" not in page.parts
    }
    assert {page: links for page, links in away.items() if links} == {}


def test_guides_show_a_picture_and_the_output_of_their_code():
    for page in sorted((SITE / "guide").glob("*.html")):
        text = page.read_text("utf-8")
        assert "<img" in text, page.name
        if 'class="highlight-python' in text:
            assert 'class="output highlight-text' in text, page.name
