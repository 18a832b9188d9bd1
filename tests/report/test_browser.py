"""The page in a real browser: no errors, every picture visible."""

from __future__ import annotations

import numpy as np
import pytest
from tests.report.browser import CHROMIUM, Shown, axe, shown


@pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
def test_the_check_sees_a_broken_picture_and_a_complaint(tmp_path):
    broken = (
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'\"><body>"
        "<img src='data:image/png;base64,AAAA'><script>console.error('ouch')</script>"
        "<p style='width: 900px'>wide</p><main><p style='width: 9px; overflow-wrap: anywhere'>letters</p>"
        "<svg width='90' height='60'><text x='9' y='30'>one</text><text x='12' y='31'>two</text></svg>"
        "<div class='card' style='width: 90px'><svg width='60' height='60'><text x='95'>out</text></svg>"
        "</div></main></body>"
    )
    seen = shown(broken, tmp_path)
    # The page as it is forbids itself what is in it; the one that is looked at does not.
    assert "Content Security Policy" in seen.complaints
    assert seen.complaints.count("ouch") == 4  # once in each view
    assert seen.pictures == (0, 1)
    assert seen.too_wide_by >= 400
    assert "dark-400: overlapping label 'two'" in seen.faults
    assert "light-1280: squeezed 'letters'" in seen.faults
    assert "light-400: 1 drawings beyond their cards" in seen.faults


@pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
@pytest.mark.skipif(axe() is None, reason="axe-core is not installed (make axe)")
def test_the_check_sees_missing_names_and_faint_words(tmp_path):
    faint = (
        "<!doctype html><html lang='en'><title>x</title><body><main><h1>x</h1><img src='data:,'>"
        "<p style='color: #ccc; background: #fff'>hardly visible</p></main></body></html>"
    )
    faults = " ".join(shown(faint, tmp_path, accessible=True).faults)
    assert "image-alt" in faults
    assert "color-contrast" in faults


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
def test_the_report_of_a_separation_shows_and_plays(tmp_path):
    for library in ("matplotlib", "soundfile"):
        pytest.importorskip(library)
    from nonneg.cli.separate_results import Separated, write_sources

    from nonneg.applications import SourceSeparation
    from nonneg.applications.audio import Sound

    t = np.arange(600) / 1000
    signal = np.sin(2 * np.pi * 83 * t) + np.sin(2 * np.pi * 209 * t) * (t > 0.3)
    model = SourceSeparation(2, frame_length=32, max_iter=5, method="dct", random_state=0)
    sources = model.fit_separate(signal, 1000)
    separated = Separated(model, [Sound(signal, 1000, 1, "x.wav")], [sources], 0.1)
    write_sources(tmp_path / "out", separated)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    # It would complain if the page forbade itself to play.
    assert shown(page, tmp_path) == Shown("", pictures=(0, 0), drawings=8, too_wide_by=0, sounds=(3, 3))
