"""List of the published versions for the choice in the sidebar: ``python docs/versions.py SITE URL``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def order(name: str) -> tuple[bool, tuple[int, ...]]:
    """Sort "dev" first, then the newest version."""
    return name == "dev", tuple(int(number) for number in re.findall(r"\d+", name))


def write(site: Path, url: str) -> list[str]:
    """Write versions.json, and a page that leads to the newest version; return the folders."""
    folders = sorted((path.parent.name for path in site.glob("*/index.html")), key=order, reverse=True)
    listed = [{"version": name, "url": f"{url}/{name}/"} for name in folders]
    (site / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    newest = next((name for name in folders if name != "dev"), "dev")
    page = f'<!doctype html><title>nonneg</title><meta http-equiv="refresh" content="0; url={newest}/">\n'
    (site / "index.html").write_text(page, encoding="utf-8")
    return folders


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2])
