"""The page of an unmixed scene in a real browser."""

from __future__ import annotations

import re

import pytest
from tests.report.test_browser import CHECK, CHROMIUM, shown

from nonneg.cli import main


@pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
def test_the_page_of_a_scene_shows_all_its_pictures(tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("nonneg.cli.unmix_scenes._SIZE", (30, 40, 50))
    assert main(["unmix", "--example", "-k", "3", "--quiet", "-o", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    _, complaints = shown(page, tmp_path)
    assert complaints == ""
    # The page forbids itself scripts; for the check alone that rule is taken out.
    watched = re.sub(r"<meta http-equiv=[^>]*>", "", page).replace("</body>", CHECK)
    document, complaints = shown(watched, tmp_path, "--window-size=500,800")
    assert complaints == ""
    seen = re.search(r'data-seen="(\d+) of (\d+), (\d+) drawings, too wide by (-?\d+)"', document)
    assert seen is not None
    assert seen.groups() == ("4", "4", "2", "0")
