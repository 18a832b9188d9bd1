"""A page in a real browser, light and dark, at two widths: what it complains about, and what it shows."""

from __future__ import annotations

import html
import importlib.util
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHROMIUM = Path(shutil.which("chromium") or "/usr/bin/chromium")
QUIET = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--enable-logging=stderr", "--virtual-time-budget=20000"),
]
WIDTHS, SCHEMES = (400, 1280), ("light", "dark")
VIEWS = [f"{scheme}-{width}" for scheme in SCHEMES for width in WIDTHS]
# Sounds are read in real time, which the browser does not wait for: whether it is able to is asked instead.
CHECK = """<script>
addEventListener("load", async () => {
  const all = selector => [...document.querySelectorAll(selector)];
  const box = element => element.getBoundingClientRect();
  const images = [...document.images];
  const root = document.documentElement;
  const sounds = all("audio");
  const kind = sound => sound.src.match(/^data:([^;]+);base64,/)[1];
  // The box around slanted words covers its neighbors, the words do not.
  const slanted = text => /rotate\\((?!0|-?90)/.test(text.getAttribute("transform"));
  const labels = all("svg text").filter(text => !slanted(text) && box(text).width * box(text).height > 0);
  const shared = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
  const covers = (text, at) => labels.slice(0, at).some(other => shared(box(text), box(other)));
  // Text in a column so narrow that its words are broken letter by letter.
  const own = element => [...element.childNodes].filter(node => node.nodeType === 3)
    .map(node => node.textContent.trim()).join(" ");
  const narrow = element => own(element).length > 6
    && box(element).width < 40 && box(element).height > 90;
  const squeezed = all("main *").filter(element => !element.closest("svg") && narrow(element));
  // A heat map whose lines cannot be told apart.
  const flat = all("svg image").filter(image => box(image).height < 24 && box(image).width > 200);
  // Drawings that reach beyond the card they are on, and are not scrolled.
  const cards = all(".card").filter(card => getComputedStyle(card).overflowX === "visible");
  const beyond = cards.filter(card => [...card.querySelectorAll("svg text")].some(
    text => box(text).right > box(card).right + 1 || box(text).left < box(card).left - 1));
  const seen = {
    view: NAME, drawn: images.filter(image => image.complete && image.naturalWidth > 0).length,
    images: images.length, drawings: all("svg").filter(svg => box(svg).height > 50).length,
    wide: root.scrollWidth - root.clientWidth, tall: root.scrollHeight,
    playable: sounds.filter(sound => sound.canPlayType(kind(sound))).length, sounds: sounds.length,
    overlaps: labels.filter(covers).map(text => text.textContent), squeezed: squeezed.map(own),
    flat: flat.length, beyond: beyond.length, violations: [],
  };
  if (window.axe) {
    const found = await axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "best-practice"]});
    seen.violations = found.violations.map(rule => rule.id + ": " + rule.nodes[0].html.slice(0, 120)
      + " " + rule.nodes[0].failureSummary.slice(0, 200));
  }
  parent.postMessage(seen, "*");
});
</script></body>"""
HOST = """<!doctype html><body><script>
const found = [];
addEventListener("message", message => {
  found.push(message.data);
  document.documentElement.dataset.seen = JSON.stringify(found);
});
</script>FRAMES</body>"""


@dataclass(frozen=True)
class Shown:
    """What a browser made of a page, at the worst of four views: two widths, light and dark."""

    complaints: str = ""
    pictures: tuple[int, int] = (0, 0)  # drawn, and all
    drawings: int = 0
    too_wide_by: int = 0
    sounds: tuple[int, int] = (0, 0)  # that can be played, and all
    faults: tuple[str, ...] = ()  # overlapping labels, squeezed words, flat maps, names and contrast
    tall: int = field(default=0, compare=False)  # pixels, at the smaller width


def axe() -> str | None:
    """Return the accessibility checker axe-core, if it is installed (``make axe``)."""
    place = importlib.util.find_spec("axe_playwright_python")
    given = os.environ.get("NONNEG_AXE")
    if given is None and (place is None or not place.submodule_search_locations):
        return None
    path = Path(given or Path(next(iter(place.submodule_search_locations))) / "axe.min.js")
    return path.read_text(encoding="utf-8")


def shown(page: str, folder: Path, *, accessible: bool = False) -> Shown:
    """Load a page in a browser."""
    return all_shown({"page": page}, folder, accessible=accessible)["page"]


def all_shown(pages: Mapping[str, str], folder: Path, *, accessible: bool = False) -> dict[str, Shown]:
    """Load pages at one start of the browser: as they are, and in four views with a script that looks.

    What the browser complains about is said of all.
    """
    frames = [frame for name, page in pages.items() for frame in _frames(name, page, folder, accessible)]
    host = folder / "host.html"
    host.write_text(HOST.replace("FRAMES", "".join(frames)), encoding="utf-8")
    run = subprocess.run(
        [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", "--dump-dom", host.as_uri()],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    found = re.search(r'data-seen="([^"]*)"', run.stdout)
    assert found is not None, run.stdout[:2000]
    views = {view["view"]: view for view in json.loads(html.unescape(found[1]))}
    assert set(views) == {f"{name}-{view}" for name in pages for view in VIEWS}
    complaints = "\n".join(line for line in run.stderr.splitlines() if "CONSOLE" in line)
    return {
        name: _worst([views[f"{name}-{view}"] | {"view": view} for view in VIEWS], complaints)
        for name in pages
    }


def _frames(of: str, page: str, folder: Path, accessible: bool) -> Iterator[str]:
    """Write a page and its views; yield the frames that show them."""
    (folder / f"{of}.html").write_text(page, encoding="utf-8")
    yield f'<iframe src="{of}.html" style="width: 500px; height: 800px; border: 0"></iframe>'
    checker = f"<script>{axe()}</script>" if accessible else ""
    for scheme in SCHEMES:
        # The page forbids itself scripts; for the check alone that rule is taken out.
        watched = re.sub(r"<meta http-equiv=[^>]*>", "", page)
        if scheme == "dark":
            watched = watched.replace("(prefers-color-scheme: dark)", "all")
        for width in WIDTHS:
            name = f"{of}-{scheme}-{width}"
            check = checker + CHECK.replace("NAME", json.dumps(name))
            (folder / f"{name}.html").write_text(watched.replace("</body>", check), encoding="utf-8")
            yield f'<iframe src="{name}.html" style="width: {width}px; height: 800px; border: 0"></iframe>'


def _worst(views: Sequence[dict[str, Any]], complaints: str) -> Shown:
    """Put the views of a page together."""
    assert len({tuple(view[name] for name in ("drawn", "images", "playable")) for view in views}) == 1
    one = views[0]
    return Shown(
        complaints=complaints,
        pictures=(one["drawn"], one["images"]),
        drawings=one["drawings"],
        too_wide_by=max(view["wide"] for view in views),
        sounds=(one["playable"], one["sounds"]),
        faults=tuple(sorted({fault for view in views for fault in _faults(view)})),
        tall=one["tall"],
    )


def _faults(view: dict[str, Any]) -> list[str]:
    """Name what is wrong with a view."""
    found = [f"{view['view']}: overlapping label {text!r}" for text in view["overlaps"]]
    found += [f"{view['view']}: squeezed {text!r}" for text in view["squeezed"]]
    found += [f"{view['view']}: {fault}" for fault in view["violations"]]
    if view["flat"]:
        found.append(f"{view['view']}: {view['flat']} flat heat maps")
    if view["beyond"]:
        found.append(f"{view['view']}: {view['beyond']} drawings beyond their cards")
    return found
