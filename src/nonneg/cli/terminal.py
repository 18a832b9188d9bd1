"""Output of the command line: results on standard output, everything else on standard error."""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nonneg.exceptions import MissingDependencyError, NonnegError

if TYPE_CHECKING:
    from nonneg.report.record import Record

Result = TypeVar("Result")
_GZIP = b"\x1f\x8b"  # with which compressed files begin
# All but tab and line feed.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass
class Outcome:
    """Output written so far by the command that runs."""

    json: bool = False
    quiet: bool = False
    record: Mapping[str, Any] | None = None
    files: list[Path] = field(default_factory=list)


outcome = Outcome()
WRITTEN = {True: "the results were written", False: "nothing was written"}


def begin(*, json: bool) -> None:
    """Forget the last command; with `json`, standard output is for the record alone."""
    global outcome
    outcome = Outcome(json)


def say(text: str) -> None:
    """Write a line of the result."""
    if outcome.json:
        note(text)
    else:
        _write(text)


def say_outcome() -> None:
    """Write the record of the run and the names of its files as JSON."""
    from nonneg.report.record import as_json

    # What the page draws is in result.json only.
    content = {name: value for name, value in (outcome.record or {}).items() if name != "sections"}
    _write(as_json(content | {"files": list(map(str, outcome.files))}, indent=1))


def open_report() -> None:
    """Show the report in the browser of the user."""
    import webbrowser

    pages = [path for path in outcome.files if path.suffix == ".html"]
    if not pages:
        note("note: there is no report to open")
    elif not webbrowser.open(pages[-1].absolute().as_uri()):
        note(f"note: no browser was found; open {pages[-1]} yourself")


@contextmanager
def standard_input_as_file(options: argparse.Namespace) -> Iterator[None]:
    """Put what comes by standard input into a file where the name of a file is `-`."""
    standard = {
        name: value
        for name, value in vars(options).items()
        if name != "output" and value in (Path("-"), [Path("-")])
    }
    if not standard:
        yield
        return
    content = sys.stdin.buffer.read()
    suffix = ".txt" if options.command in ("topics", "communities") else ".csv"
    with tempfile.TemporaryDirectory(prefix="nonneg-") as folder:
        path = Path(folder) / f"stdin{suffix}{'.gz' * content.startswith(_GZIP)}"
        path.write_bytes(content)
        for name, value in standard.items():
            setattr(options, name, [path] if isinstance(value, list) else path)
        try:
            yield
        except NonnegError as error:  # which names a file that the user has never seen
            raise type(error)(str(error).replace(str(path), "standard input")) from error


def _write(text: str) -> None:
    text = harmless(text)
    try:
        sys.stdout.write(text + "\n")
    except UnicodeEncodeError:
        # A terminal or a pipe in an old encoding: what it cannot show must not cost the results.
        encoding = sys.stdout.encoding
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Write a line that is not part of the result: what happens, or what went wrong."""
    unfinished = "\r\x1b[K" * sys.stderr.isatty()  # a line of progress, which this one replaces
    with suppress(OSError):  # that nobody can be told is no reason to end a fit
        sys.stderr.write(f"{unfinished}{harmless(text)}\n")
        sys.stderr.flush()


def progress(text: str) -> None:
    """Write what happens, unless the user wants to see results only."""
    if not outcome.quiet:
        note(text)


def harmless(text: str) -> str:
    """Show control characters of names by their code: a terminal would obey them."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show warnings to users as one line each, without file names and source lines."""

    def show(message: Warning | str, category: type[Warning], *details: Any, **more: Any) -> None:
        note(f"note: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


def timed(call: Callable[..., Result], *args: Any, **named: Any) -> tuple[Result, float]:
    """Call a function; return its result, and how many seconds it took."""
    started = time.perf_counter()
    result = call(*args, **named)
    return result, time.perf_counter() - started


def table_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay rows out as a Markdown table, numbers to the right; nothing if there are none."""
    from nonneg.report.page import shown_columns

    columns = []
    for key, (values, right) in shown_columns(rows).items():
        texts = (key, *map(_cell, values))
        cells = [text.replace("|", "\\|").replace("\n", " ") for text in texts]
        width = max(3, *map(len, cells))
        cells = [cell.rjust(width) if right else cell.ljust(width) for cell in cells]
        columns.append(
            [f" {cells[0]} ", "-" * (width + 1) + ("-:"[right]), *(f" {cell} " for cell in cells[1:])]
        )
    return "\n".join(f"|{'|'.join(line)}|" for line in zip(*columns, strict=True))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        # Names with weights: as many as have room.
        names = [str(name) for name, _ in value]
        ends = list(itertools.accumulate(len(name) + 2 for name in names))
        return ", ".join(names[: max(1, sum(end < 72 for end in ends))])
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def finish(folder: Path, record: Record, *, page: bool = True, others: Sequence[Path] = ()) -> None:
    """Write the results of a run, then say what came out, with its table, and where it is."""
    from nonneg.iteration.progress import phase
    from nonneg.report.page import build_page, failures
    from nonneg.report.record import MODEL, REPORT, RESULT, earlier_files, write_run

    outcome.record = record.as_dict()
    names = {*record.files, MODEL, RESULT, REPORT}
    while any((folder / name).exists() for name in names - earlier_files(folder)):
        note(f"note: {folder} has files of the same names, which no run wrote; they are not replaced")
        folder = folder / f"{record.command}-results"
    text: str | None = None
    failure: BaseException | None = None
    with phase("writing the results and drawing the report", int(not outcome.quiet)):
        try:
            text = build_page(record) if page else None
        except BaseException as error:  # the fit may have taken hours: its results are written first
            failure = error
        files = write_run(folder, record, text)
    outcome.files = [*files, *others]
    if isinstance(failure, MissingDependencyError):
        note(f"note: no report was written. {failure}")
    elif failure is not None:
        note(f"note: the results were written to {folder}, but without a report")
        raise failure
    for hint in record.hints:
        note(f"note: {hint}")
    for part in (record.answer, *record.remarks, record.table, *failures(record)):
        if part:
            say(part if isinstance(part, str) else table_text(part))
    report = folder / REPORT
    say(f"Results: {', '.join(map(str, [report if report in files else folder, *others]))}")
