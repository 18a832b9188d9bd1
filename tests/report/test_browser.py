"""The page in a real browser: no errors, every picture visible."""

from __future__ import annotations

import pytest
from tests.report.browser import CHROMIUM, axe, shown


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
