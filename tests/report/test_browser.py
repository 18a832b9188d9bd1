"""The page in a real browser: no errors, every picture visible."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
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


# Sounds are read in real time, which the browser does not wait for: whether it is able to is asked instead.
PLAYABLE = """<script>
addEventListener("load", () => {
  const sounds = [...document.querySelectorAll("audio")];
  const good = sounds.filter(sound => sound.canPlayType(sound.src.match(/^data:([^;]+);base64,/)[1]));
  document.documentElement.dataset.playable = `${good.length} of ${sounds.length}`;
});
</script>"""


@pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
def test_the_report_of_a_separation_shows_and_plays(tmp_path):
    for library in ("jinja2", "matplotlib", "soundfile"):
        pytest.importorskip(library)
    from nonneg.applications import SourceSeparation
    from nonneg.applications.audio import Sound
    from nonneg.cli.separation_results import Separated, write_separation_results

    t = np.arange(600) / 1000
    signal = np.sin(2 * np.pi * 83 * t) + np.sin(2 * np.pi * 209 * t) * (t > 0.3)
    model = SourceSeparation(2, frame_length=32, max_iter=5, method="dct", random_state=0)
    sources = model.fit_separate(signal, 1000)
    separated = Separated(model, [Sound(signal, 1000, 1, "x.wav")], [sources], 0.1)
    write_separation_results(tmp_path / "out", separated)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    _, complaints = shown(page, tmp_path)
    assert complaints == ""  # such as that the page forbids itself to play
    watched = re.sub(r"<meta http-equiv=[^>]*>", "", page).replace("</body>", PLAYABLE + CHECK)
    document, complaints = shown(watched, tmp_path, "--window-size=500,800")
    assert complaints == ""
    assert 'data-playable="3 of 3"' in document
    assert 'data-seen="0 of 0, 8 drawings, too wide by 0"' in document


@pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
def test_the_report_of_topics_shows(tmp_path):
    for library in ("jinja2", "matplotlib"):
        pytest.importorskip(library)
    from nonneg.applications import TopicModel
    from nonneg.applications.topics.files import Documents
    from nonneg.cli.topic_results import write_topic_results

    texts = [
        "cat dog pet",
        "dog <i>cat</i> sleep",
        "pet cat sleep dog",
        "bond stock market",
        "stock bond rose",
        "market rose dog",
    ]
    model = TopicModel(2, method="spa")
    memberships = model.fit_transform(texts)
    documents = Documents(texts, [f"text {at}" for at in range(6)], None, "six texts")
    write_topic_results(tmp_path / "out", model, memberships, documents, seconds=0.1)
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    _, complaints = shown(page, tmp_path)
    assert complaints == ""
    watched = re.sub(r"<meta http-equiv=[^>]*>", "", page).replace("</body>", CHECK)
    document, complaints = shown(watched, tmp_path, "--window-size=500,800")
    assert complaints == ""
    seen = re.search(r'data-seen="(\d+) of (\d+), (\d+) drawings, too wide by (-?\d+)"', document)
    assert seen is not None
    assert seen.groups()[0] == seen.groups()[1]
    # Shares, and what topics have in common.
    assert seen.groups()[2:] == ("2", "0")
    assert document.count("<article") >= 2
