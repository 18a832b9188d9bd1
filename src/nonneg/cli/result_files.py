"""What several commands write: the record of the run, the model, the report, and weights as tables."""

from __future__ import annotations

import csv
import importlib.metadata
import platform
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg._version import __version__
from nonneg.cli import terminal
from nonneg.exceptions import MissingDependencyError, NonnegWarning
from nonneg.report.records import as_json

RESULT, MODEL, REPORT = "result.json", "model.npz", "report.html"
NAMES = "names.json"
"""Names of the rows and columns, where a fit had them."""
TABLE_KINDS = frozenset({"csv", "tsv", "parquet"})
"""Formats of data whose factors are written as .csv too."""


def write_answer(
    folder: Path,
    fresh: Path,
    record: Mapping[str, Any],
    build_page: Callable[[], str],
    *,
    model: Any = None,
) -> list[Path]:
    """Write the record, the model and the report, the last where it can be drawn."""
    if model is not None:
        with warnings.catch_warnings():
            # It says that the checkpoint folder is not part of a saved model.
            warnings.simplefilter("ignore", NonnegWarning)
            model.save(fresh / MODEL)
    (fresh / RESULT).write_text(as_json(record, indent=1) + "\n", encoding="utf-8")
    try:
        (fresh / REPORT).write_text(build_page(), encoding="utf-8")
    except MissingDependencyError as error:
        terminal.note(f"note: no report was written. {error}")
    written = sorted((entry.name for entry in fresh.iterdir()), key=lambda name: (name == REPORT, name))
    return [folder / name for name in written]


def versions() -> dict[str, str]:
    """Name the versions of what took part."""
    libraries = ("numpy", "scipy", "scikit-learn", "numba")
    found = {name: importlib.metadata.version(name) for name in libraries}
    return {"nonneg": __version__, "python": platform.python_version(), **found}


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
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        index = [] if row_names is None else [corner]
        names = column_names or [f"feature_{at}" for at in range(factor.shape[1])]
        writer.writerow([*index, *names])
        if row_names is None:
            writer.writerows(rows)
        else:
            writer.writerows([name, *row] for name, row in zip(row_names, rows, strict=True))


def write_names(folder: Path, rows: Sequence[str] | None, columns: Sequence[str] | None) -> None:
    """Write the names of samples and features, where there are any."""
    if rows is not None or columns is not None:
        names = {"rows": rows, "columns": columns}
        (folder / NAMES).write_text(as_json(names), encoding="utf-8")


def write_memberships(path: Path, memberships: FloatArray, names: Sequence[str]) -> None:
    """Write the topics of documents as a .csv file, with the largest first."""
    best = np.where(memberships.sum(axis=1) > 0, memberships.argmax(axis=1), -1)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["document", "topic", *(f"topic_{at}" for at in range(memberships.shape[1]))])
        for name, topic, row in zip(names, best, memberships, strict=True):
            writer.writerow([name, int(topic), *(f"{share:.6g}" for share in row)])
