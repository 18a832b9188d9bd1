"""A page in a real browser: what it complains about, and what it shows."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from operator import itemgetter
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
  // The box around slanted words covers its neighbors, the words do not.
  const slanted = text => /rotate\\((?!0|-?90)/.test(text.getAttribute("transform"));
  const labels = [...document.querySelectorAll("svg text")].filter(text => !slanted(text));
  const boxes = labels.map(text => text.getBoundingClientRect());
  const shownBoxes = boxes.filter(box => box.width * box.height > 0);
  const shared = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
  const covers = (box, at) => shownBoxes.slice(0, at).some(other => shared(box, other));
  const overlaps = shownBoxes.filter(covers).length;
  const numbers = [
    drawn, images.length, drawings, wide, playable, sounds.length, overlaps, root.clientWidth, innerWidth
  ];
  parent.postMessage(numbers.join(" "), "*");
});
</script></body>"""
HOST = """<!doctype html><script>
addEventListener("message", message => {
  const seen = document.documentElement.dataset;
  seen.seen = (seen.seen ? seen.seen + ";" : "") + message.data;
});
</script><body><iframe src="watched.html" style="width: 400px; height: 800px; border: 0"></iframe>
<iframe src="watched.html" style="width: 1280px; height: 800px; border: 0"></iframe>
<iframe src="page.html" style="width: 500px; height: 800px; border: 0"></iframe></body>"""


@dataclass(frozen=True)
class Shown:
    """What a browser made of a page, at the worse of two widths: 400 and 1280 pixels."""

    complaints: str
    pictures: tuple[int, int]  # drawn, and all
    drawings: int
    too_wide_by: int
    sounds: tuple[int, int]  # that can be played, and all
    overlapping: int = 0  # labels of drawings that lie on another label


def shown(page: str, folder: Path) -> Shown:
    """Load a page at one start of the browser: as it is, and at two widths with a script that looks at it."""
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
    found = re.search(r'data-seen="([-\d ;]+)"', run.stdout)
    assert found is not None, run.stdout
    views = sorted(
        ([int(number) for number in view.split()] for view in found[1].split(";")), key=itemgetter(-1)
    )
    assert [view[-1] for view in views] == [400, 1280]
    assert len({tuple(view[:2] + view[4:6]) for view in views}) == 1  # the same pictures and sounds
    drawn, n_pictures, drawings, _, playable, n_sounds, *_ = views[0]
    return Shown(
        complaints="\n".join(line for line in run.stderr.splitlines() if "CONSOLE" in line),
        pictures=(drawn, n_pictures),
        drawings=drawings,
        too_wide_by=max(view[3] for view in views),
        sounds=(playable, n_sounds),
        overlapping=max(view[6] for view in views),
    )
