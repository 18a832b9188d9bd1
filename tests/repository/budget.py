"""Lines per room of the repository, and the numbers they may not exceed.

``python tests/repository/budget.py`` prints the table; ``--lower`` lowers every number of `budget.toml` to
today's count. Numbers never rise by themselves: who needs more room edits the file and says why.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("budget.toml")
SOURCES = {".py", ".pyi", ".cpp", ".hpp"}


def sources(places: Sequence[str]) -> list[Path]:
    """Return the source files of folders and files, named relative to the root of the repository."""
    paths = [path for place in places for path in sorted(ROOT.glob(place))]
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    return sorted({file for file in files if file.suffix in SOURCES})


def lines(files: Sequence[Path]) -> int:
    """Count lines, docstrings and comments among them."""
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def counts() -> dict[str, tuple[int, int, int]]:
    """Return room -> (count of today, most that is allowed, goal of the design)."""
    rooms = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: (
            len(sources(room["places"])) if room.get("unit") == "files" else lines(sources(room["places"])),
            room["most"],
            room["goal"],
        )
        for name, room in rooms.items()
    }


def lowered(text: str, counted: dict[str, tuple[int, int, int]]) -> str:
    """Return the text of `budget.toml` with each number at its count where that is lower."""
    for name, (count, most, _) in counted.items():
        pattern = rf"(\[{re.escape(name)}\]\n(?s:.*?)most = ){most}\b"
        text = re.sub(pattern, rf"\g<1>{min(count, most)}", text)
    return text


def main() -> None:
    """Print the table, or lower the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lower", action="store_true", help="lower the numbers to today's counts")
    counted = counts()
    if parser.parse_args().lower:
        FILE.write_text(lowered(FILE.read_text(encoding="utf-8"), counted), encoding="utf-8")
        return
    rows = [f"{name:<24}{count:>8,}{most:>8,}{goal:>8,}" for name, (count, most, goal) in counted.items()]
    sys.stdout.write("\n".join([f"{'room':<24}{'today':>8}{'most':>8}{'goal':>8}", *rows, ""]))


if __name__ == "__main__":
    main()
