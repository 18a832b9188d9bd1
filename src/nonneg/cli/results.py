"""What several commands write: the record of the run, the model, the report, and weights as tables."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.cli import terminal
from nonneg.exceptions import MissingDependencyError, NonnegWarning
from nonneg.iteration.progress import phase
from nonneg.report import wording
from nonneg.report.folder import replaced_folder
from nonneg.report.records import as_json

RESULT, MODEL, REPORT = "result.json", "model.npz", "report.html"
NAMES = "names.json"
"""Names of the rows and columns, where a fit had them."""
TABLE_KINDS = frozenset({"csv", "tsv", "parquet"})
"""Formats of data whose factors are written as .csv too."""


def write_results(
    folder: Path,
    record: Mapping[str, Any],
    write_files: Callable[[Path], None],
    page: Callable[[], str] | None,
    *,
    known: Iterable[str],
    model: Any = None,
) -> list[Path]:
    """Write all files of a run at once, or none: its own, the model and the record; then draw the report."""
    names = frozenset({RESULT, *known, *([MODEL] if model is not None else []), *([REPORT] if page else [])})
    shown = int(not terminal.outcome.quiet)
    with phase("writing the results", shown), replaced_folder(folder, names) as fresh:
        write_files(fresh)
        if model is not None:
            with warnings.catch_warnings():
                # It says that the checkpoint folder is not part of a saved model.
                warnings.simplefilter("ignore", NonnegWarning)
                model.save(fresh / MODEL)
        (fresh / RESULT).write_text(as_json(record, indent=1) + "\n", encoding="utf-8")
        written = sorted((entry.name for entry in fresh.iterdir()), key=lambda name: (name == RESULT, name))
    terminal.outcome.record = record
    terminal.outcome.files = files = [folder / name for name in written]
    if page is not None:
        # Results are safe before the report is drawn, which takes long and may fail.
        try:
            with phase("drawing the report", shown):
                write_report(folder, page())
            files.append(folder / REPORT)
        except MissingDependencyError as error:
            terminal.note(f"note: no report was written. {error}")
    return files


def write_report(folder: Path, text: str) -> None:
    """Write the report of a run beside its results."""
    with replaced_folder(folder) as fresh:
        (fresh / REPORT).write_text(text, encoding="utf-8")


def say_results(sentence: str, table: str, written: Iterable[Path]) -> None:
    """Say what was found and where it is."""
    terminal.say(sentence)
    if table:
        terminal.say(table)
    for failure in wording.failures(terminal.outcome.record or {}):
        terminal.say(failure)
    for path in written:
        terminal.say(str(path))


def write_csv(path: Path, heading: Iterable[Any], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table as a .csv file."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(heading)
        writer.writerows(rows)


def write_factor(
    path: Path,
    factor: FloatArray,
    corner: str,
    row_names: Sequence[str] | None,
    column_names: Sequence[str] | None,
) -> None:
    """Write a factor as a .csv file."""
    # Nine digits give every float32 back; a float64 is written as short as possible.
    rows = factor.tolist()
    if factor.dtype == np.float32:
        rows = [[f"{value:.9g}" for value in row] for row in rows]
    names = column_names or [f"feature_{at}" for at in range(factor.shape[1])]
    if row_names is None:
        write_csv(path, names, rows)
    else:
        named = ([name, *row] for name, row in zip(row_names, rows, strict=True))
        write_csv(path, [corner, *names], named)


def write_names(folder: Path, rows: Sequence[str] | None, columns: Sequence[str] | None) -> None:
    """Write the names of samples and features, where there are any."""
    if rows is not None or columns is not None:
        names = {"rows": rows, "columns": columns}
        (folder / NAMES).write_text(as_json(names), encoding="utf-8")


def write_proportions(
    path: Path, proportions: FloatArray, names: Sequence[str], topics: Sequence[str | None] = ()
) -> None:
    """Write the topic proportions of documents as a .csv file, after the topic with the largest one."""
    best = np.where(proportions.sum(axis=1) > 0, proportions.argmax(axis=1), -1).tolist()
    # Names of topics have a column where there are any.
    called = [[topics[at] or ""] if at >= 0 else [""] for at in best] if any(topics) else [[]] * len(best)
    heading = ["document", "topic", *(["name"] if any(topics) else [])]
    heading += [f"topic_{at}" for at in range(proportions.shape[1])]
    rows = zip(names, best, called, proportions, strict=True)
    write_csv(
        path, heading, ([name, topic, *own, *(f"{one:.6g}" for one in row)] for name, topic, own, row in rows)
    )
