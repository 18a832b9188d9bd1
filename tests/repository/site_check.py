"""Pages of the site in a real browser, at two widths: what is wrong with their layout and their text."""

from __future__ import annotations

import html
import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.report.browser import CHROMIUM, QUIET

WIDTHS = (400, 1280)
PER_START = 40  # pages that one start of the browser loads
# Each page is loaded once, in a frame; the frame is then resized.
LOOK = r"""
const own = element => [...element.childNodes].filter(node => node.nodeType === 3 && node.data.trim());
const name = element => `${element.localName} ${JSON.stringify(element.textContent.trim().slice(0, 60))}`;
const scrolls = (element, page) => {
  for (let at = element; at && at !== page.body; at = at.parentElement)
    if (["auto", "scroll", "hidden"].includes(page.defaultView.getComputedStyle(at).overflowX)) return true;
  return false;
};
// Lines of text as the browser has set them; not what lies above the text on purpose, or is hidden.
const lines = (element, page) => own(element).flatMap(node => {
  const range = page.createRange();
  range.selectNodeContents(node);
  return [...range.getClientRects()].filter(box => box.width > 2 && box.height > 2)
    .map(box => ({element, left: box.left, right: box.right, top: box.top, bottom: box.bottom}));
});
const floats = "button, .headerlink, .sr-only, .visually-hidden, math, svg, [tooltip]";
const overlaps = (article, page) => {
  const boxes = [...article.querySelectorAll("*")].filter(element => !element.closest(floats)
    && element.checkVisibility({opacityProperty: true, visibilityProperty: true})
    && !scrolls(element.parentElement, page)).flatMap(element => lines(element, page))
    .sort((a, b) => a.top - b.top);
  const found = [];
  for (let i = 0; i < boxes.length; i++)
    for (let j = i + 1; j < boxes.length && boxes[j].top < boxes[i].bottom - 4; j++) {
      const [a, b] = [boxes[i], boxes[j]];
      if (a.element !== b.element && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3
          && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4)
        found.push(`${name(a.element)} overlaps ${name(b.element)}`);
    }
  return found;
};
const markup = /\$\$|\\[a-zA-Z]{2,}|\*\*\w|\]\(|```|\{[a-z:]+\}`|:[a-z:]+:`|(?<![\w`])`[^`]*`/;
const text = article => {
  const copy = article.cloneNode(true);
  copy.querySelectorAll("pre, code, script, style, math, dt").forEach(element => element.remove());
  const found = copy.textContent.match(new RegExp(".{0,20}(" + markup.source + ").{0,20}", "g")) || [];
  return found.map(part => `markup: ${part}`);
};
const look = (page, width) => {
  if (!page || !page.body) return ["the page could not be read"];
  const root = page.documentElement, article = page.querySelector("article") || page.body;
  const faults = [];
  const beyond = root.scrollWidth - root.clientWidth;
  if (beyond > 0) faults.push(`wider than the screen by ${beyond} px`);
  for (const element of article.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (box.width > 0 && box.right > root.clientWidth + 2 && !scrolls(element.parentElement, page))
      faults.push(`beyond the screen: ${name(element)}`);
    if (own(element).length && box.width > 0 && box.width < 40 && box.height > 90
        && element.textContent.trim().length > 6) faults.push(`squeezed: ${name(element)}`);
  }
  faults.push(...overlaps(article, page));
  if (width === WIDTHS[0]) {
    const missing = [...page.images].filter(image => !image.complete || !image.naturalWidth);
    const links = "a, .domainindex-table";  // modules without a page of their own are listed there
    const dead = [...article.querySelectorAll(".xref")].filter(node => !node.closest(links));
    faults.push(...missing.map(image => `no image: ${image.getAttribute("src")}`));
    // A drawing of several panels cannot be read at the width of a phone: it scrolls.
    const drawings = [...article.querySelectorAll("p > img[src$='.svg']:only-child")];
    faults.push(...drawings.filter(image => image.naturalWidth > 600 && image.width < 600)
      .map(image => `shrunk: ${image.alt}`));
    faults.push(...dead.map(node => `no such target: ${name(node)}`), ...text(article));
    const messages = [...page.querySelectorAll(".system-message, .problematic")];
    faults.push(...messages.map(node => `message: ${name(node)}`));
  }
  return [...new Set(faults)].slice(0, 20);
};
const event = (target, ...names) => new Promise(done => {
  for (const name of names) target.addEventListener(name, done, {once: true});
  setTimeout(done, 9000);
});
(async () => {
  const found = [];
  for (const address of ADDRESSES) {
    const frame = document.createElement("iframe");
    frame.style.cssText = "height: 900px; border: 0; width: 400px";
    frame.src = address;
    const ready = event(frame, "load");
    document.body.append(frame);
    await ready;
    const page = frame.contentDocument;
    const late = [...(page ? page.images : [])].filter(image => !image.complete || image.loading === "lazy");
    for (const image of late) image.loading = "eager";
    await Promise.all(late.map(image => image.complete || event(image, "load", "error")));
    for (const width of WIDTHS) {
      frame.style.width = `${width}px`;
      for (const fault of look(page, width)) found.push([address, `${width}: ${fault}`]);
    }
    frame.remove();
  }
  document.documentElement.dataset.found = JSON.stringify(found);
})();
"""


def faults_of(site: Path, pages: Iterable[str], profile: Path) -> list[str]:
    """Load pages of a folder; return what is wrong with them, and what the browser complained about."""
    names = list(pages)
    return [
        fault
        for first in range(0, len(names), PER_START)
        for fault in _faults(site, names[first : first + PER_START], profile)
    ]


def _faults(site: Path, pages: list[str], profile: Path) -> list[str]:
    host = site / "_frames.html"
    script = LOOK.replace("ADDRESSES", json.dumps(pages)).replace("WIDTHS", json.dumps(WIDTHS))
    host.write_text(
        f"<!doctype html><meta charset=utf-8><body><script>{script}</script></body>", encoding="utf-8"
    )
    command = [CHROMIUM, *QUIET, "--allow-file-access-from-files", f"--user-data-dir={profile}"]
    command = [*command, "--virtual-time-budget=600000", "--window-size=1400,1000", "--dump-dom"]
    try:
        run = subprocess.run(
            [*command, host.as_uri()], capture_output=True, text=True, timeout=400, check=True
        )
    finally:
        host.unlink()
    found = re.search(r'data-found="([^"]*)"', run.stdout)
    assert found is not None, f"the browser did not finish: {pages}\n{run.stderr[-2000:]}"
    faults = [f"{page} {fault}" for page, fault in json.loads(html.unescape(found[1]))]
    return faults + [line.partition("CONSOLE")[2] for line in run.stderr.splitlines() if "CONSOLE" in line]
