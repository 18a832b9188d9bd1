"""Running `nonneg transform`, and reading what came of it."""

from __future__ import annotations

import json

from nonneg.cli import main


def run(*words):
    """Run the command and return its exit status."""
    return main(["transform", *map(str, words)])


def the_error(capsys):
    """Return the one line that was said instead of an answer."""
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("nonneg: error: ")
    assert shown.err.count("\n") == 1
    return shown.err


def record_of(folder):
    """Return what is in the file of results."""
    return json.loads((folder / "result.json").read_text())
