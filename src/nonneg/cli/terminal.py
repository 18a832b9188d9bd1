"""All that the command line writes: results on standard output, everything else on standard error."""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Outcome:
    """What the command that runs now has written."""

    json: bool = False
    quiet: bool = False
    record: Mapping[str, Any] | None = None
    files: list[Path] = field(default_factory=list)


outcome = Outcome()


def begin(*, json: bool, quiet: bool) -> None:
    """Forget the last command; with `json`, standard output is for the record alone."""
    global outcome
    outcome = Outcome(json, quiet)


def say(text: str) -> None:
    """Write a line of the result."""
    if outcome.json:
        note(text)
    else:
        _write(text)


def say_outcome() -> None:
    """Write the record of the run and the names of its files as JSON."""
    from nonneg.report.records import as_json

    files = [str(path) for path in outcome.files]
    _write(as_json({**(outcome.record or {}), "files": files}, indent=1))


def open_report() -> None:
    """Show the report in the browser of the user."""
    import webbrowser

    pages = [path for path in outcome.files if path.suffix == ".html"]
    if not pages:
        note("note: there is no report to open")
    elif not webbrowser.open(pages[-1].absolute().as_uri()):
        note(f"note: no browser was found; open {pages[-1]} yourself")


# First bytes of the formats that can be told apart; everything else is text.
SIGNATURES = {
    b"\x93NUMPY": ".npy",
    b"PK": ".npz",
    b"%%MatrixMarket": ".mtx",
    b"PAR1": ".parquet",
    b"\x89HDF": ".h5ad",
    b"RIFF": ".wav",
    b"fLaC": ".flac",
    b"\x1f\x8b": ".csv.gz",
    b"{": ".jsonl",
}


@contextmanager
def standard_input_as_file(options: argparse.Namespace) -> Iterator[None]:
    """Put what comes by standard input into a file where the name of a file is `-`."""
    given = {name: value for name, value in vars(options).items() if value in (Path("-"), [Path("-")])}
    if not given:
        yield
        return
    content = sys.stdin.buffer.read()
    text = ".txt" if options.command in ("topics", "communities") else ".csv"
    suffix = next((end for start, end in SIGNATURES.items() if content.startswith(start)), text)
    with tempfile.TemporaryDirectory(prefix="nonneg-") as folder:
        path = Path(folder) / f"stdin{suffix}"
        path.write_bytes(content)
        for name, value in given.items():
            setattr(options, name, [path] if isinstance(value, list) else path)
        yield


def _write(text: str) -> None:
    try:
        sys.stdout.write(text + "\n")
    except UnicodeEncodeError:
        # A terminal or a pipe in an old encoding: what it cannot show must not cost the results.
        encoding = sys.stdout.encoding
        plain = text.replace("\N{NARROW NO-BREAK SPACE}", " ")
        sys.stdout.write(plain.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Write a line that is not part of the result: what happens, or what went wrong."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show warnings to users as one line each, without file names and source lines."""

    def show(message: Warning | str, category: type[Warning], *details: Any, **more: Any) -> None:
        note(f"note: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield
