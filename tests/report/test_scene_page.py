"""The page of an unmixed scene in a real browser."""

from __future__ import annotations

import pytest
from tests.report.browser import CHROMIUM, Shown, shown

from nonneg.cli import main


@pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
def test_the_page_of_a_scene_shows_all_its_pictures(tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("nonneg.cli.unmix_scenes._SIZE", (30, 40, 50))
    assert main(["unmix", "--example", "-k", "3", "--quiet", "-o", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert shown(page, tmp_path) == Shown("", pictures=(4, 4), drawings=2, too_wide_by=0, sounds=(0, 0))
