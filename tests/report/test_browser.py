"""The page in a real browser: no errors, every picture visible."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")
QUIET = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--enable-logging=stderr", "--virtual-time-budget=5000"),
]
CHECK = """<script>
addEventListener("load", () => {
  const images = [...document.images];
  const drawn = images.filter(image => image.complete && image.naturalWidth > 0).length;
  const tall = svg => svg.getBoundingClientRect().height > 50;
  const drawings = [...document.querySelectorAll("svg")].filter(tall).length;
  const root = document.documentElement;
  const wide = root.scrollWidth - root.clientWidth;
  root.dataset.seen = `${drawn} of ${images.length}, ${drawings} drawings, too wide by ${wide}`;
});
</script></body>"""


def shown(page: str, folder: Path, *options: str) -> tuple[str, str]:
    """Load a page and return what the browser made of it, and what it complained about."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    run = subprocess.run(
        [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", *options, "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return run.stdout, "\n".join(line for line in run.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
def test_the_page_loads_without_errors_and_shows_all_pictures(make_fit, tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    from nonneg.report.page import build_page

    page = build_page(make_fit(names=True, image_shape=[2, 3], examples=[0, 11]))
    _, complaints = shown(page, tmp_path)
    assert complaints == ""
    # The page forbids itself scripts; for the check alone that rule is taken out.
    watched = re.sub(r"<meta http-equiv=[^>]*>", "", page).replace("</body>", CHECK)
    document, complaints = shown(watched, tmp_path, "--window-size=500,800")
    assert complaints == ""
    seen = re.search(r'data-seen="(\d+) of (\d+), (\d+) drawings, too wide by (-?\d+)"', document)
    assert seen is not None
    assert seen.groups() == ("7", "7", "4", "0")


@pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
def test_the_check_sees_a_broken_picture_and_a_complaint(tmp_path):
    broken = f"<body><img src='data:image/png;base64,AAAA'><script>console.error('ouch')</script>{CHECK}"
    document, complaints = shown(broken, tmp_path)
    assert "ouch" in complaints
    assert "0 of 1" in document
