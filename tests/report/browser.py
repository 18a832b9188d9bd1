"""A page in a real browser: what it complains about, and what it shows."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

CHROMIUM = Path("/usr/bin/chromium")
QUIET = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--enable-logging=stderr", "--virtual-time-budget=5000"),
]
# Sounds are read in real time, which the browser does not wait for: whether it is able to is asked instead.
CHECK = """<script>
addEventListener("load", () => {
  const images = [...document.images];
  const drawn = images.filter(image => image.complete && image.naturalWidth > 0).length;
  const tall = svg => svg.getBoundingClientRect().height > 50;
  const drawings = [...document.querySelectorAll("svg")].filter(tall).length;
  const root = document.documentElement;
  const wide = root.scrollWidth - root.clientWidth;
  const sounds = [...document.querySelectorAll("audio")];
  const kind = sound => sound.src.match(/^data:([^;]+);base64,/)[1];
  const playable = sounds.filter(sound => sound.canPlayType(kind(sound))).length;
  const numbers = [drawn, images.length, drawings, wide, playable, sounds.length, root.clientWidth];
  parent.postMessage(numbers.join(" "), "*");
});
</script></body>"""
HOST = """<!doctype html><script>
addEventListener("message", message => { document.documentElement.dataset.seen = message.data; });
</script><body><iframe src="watched.html" style="width: 500px; height: 800px; border: 0"></iframe>
<iframe src="page.html" style="width: 500px; height: 800px; border: 0"></iframe></body>"""


@dataclass(frozen=True)
class Shown:
    """What a browser made of a page, 500 pixels wide."""

    complaints: str
    pictures: tuple[int, int]  # drawn, and all
    drawings: int
    too_wide_by: int
    sounds: tuple[int, int]  # that can be played, and all


def shown(page: str, folder: Path) -> Shown:
    """Load a page twice at one start of the browser: as it is, and with a script that looks at it."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    # The page forbids itself scripts; for the check alone that rule is taken out.
    watched = re.sub(r"<meta http-equiv=[^>]*>", "", page).replace("</body>", CHECK)
    (folder / "watched.html").write_text(watched, encoding="utf-8")
    host = folder / "host.html"
    host.write_text(HOST, encoding="utf-8")
    run = subprocess.run(
        [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", "--dump-dom", host.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found = re.search(r'data-seen="([-\d ]+)"', run.stdout)
    assert found is not None, run.stdout
    drawn, n_pictures, drawings, wide, playable, n_sounds, width = map(int, found[1].split())
    assert width in range(480, 501)  # a bar to scroll may take some of it
    return Shown(
        complaints="\n".join(line for line in run.stderr.splitlines() if "CONSOLE" in line),
        pictures=(drawn, n_pictures),
        drawings=drawings,
        too_wide_by=wide,
        sounds=(playable, n_sounds),
    )
