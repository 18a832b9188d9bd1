"""The check of pages in a browser sees what it looks for, and accepts a page without faults."""

from __future__ import annotations

import re

import pytest
from tests.report.browser import CHROMIUM
from tests.repository.site_check import faults_of

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
DRAWING = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='900' height='90'/%3E#a.svg"
GOOD = f"""<p>A sentence with <code>`code`</code> and <a href="#"><code class="xref">a target</code></a>.</p>
<div style="overflow-x: auto"><p style="width: 900px">wide, but scrolled</p></div>
<p style="overflow-x: auto"><img src="{DRAWING}" style="max-width: 700px"></p>"""
FAULTS = {
    "wider than the screen": "<p style='width: 900px'>wide</p>",
    "beyond the screen": "<p style='width: 900px'>wide</p>",
    "squeezed": "<p style='width: 9px; overflow-wrap: anywhere'>letter by letter</p>",
    "overlaps": "<p>one line</p><p style='margin-top: -2em'>another line</p>",
    "no image": "<img src='none.png'>",
    "shrunk": f'<p><img src="{DRAWING}" style="max-width: 100%"></p>',
    "message": "<div class='system-message'>Unknown role</div>",
    "no such target": "<code class='xref'>nonneg.nothing</code>",
    r"markup: .*\\lVert": r"<p>\lVert X \rVert</p>",
    r"markup: .*\*\*bold": "<p>**bold**</p>",
    r"markup: .*doc": "<p>{doc}`page`</p>",
    "ouch": "<script>console.error('ouch')</script>",
}


def test_every_fault_is_seen_and_nothing_else(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    pages = {"good.html": GOOD} | {f"{i}.html": body for i, body in enumerate(FAULTS.values())}
    for name, body in pages.items():
        page = f"<!doctype html><title>x</title><body><article>{body}</article></body>"
        (site / name).write_text(page, encoding="utf-8")
    found = faults_of(site, pages, tmp_path / "profile")
    for i, fault in enumerate(FAULTS):
        mine = [text for text in found if text.startswith(f"{i}.html ") or f"{i}.html (" in text]
        assert any(re.search(fault, text) for text in mine), (fault, mine)
    assert not [text for text in found if "good.html" in text]
