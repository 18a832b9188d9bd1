"""What every command writes beside its own files: the record of the run, the model, and the report."""

from __future__ import annotations

import importlib.metadata
import platform
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nonneg._version import __version__
from nonneg.cli import terminal
from nonneg.exceptions import MissingDependencyError, NonnegWarning
from nonneg.report.records import as_json

RESULT, MODEL, REPORT = "result.json", "model.npz", "report.html"


def write_answer(
    folder: Path,
    fresh: Path,
    record: Mapping[str, Any],
    build_page: Callable[[], str],
    *,
    model: Any = None,
) -> list[Path]:
    """Write the record, the model and the report, the last where it can be drawn.

    Parameters
    ----------
    folder : Path
        Where all files will be.
    fresh : Path
        The folder in which they are gathered; see `replaced_folder`.
    record : mapping
        The contents of result.json.
    build_page : callable
        Returns the report.
    model : StoredEstimator, optional
        Fitted.

    Returns
    -------
    list of Path
        The files that were gathered, by the names they will have, the report last.
    """
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
    """Name the versions of what took part.

    Returns
    -------
    dict of str to str
        Library to version.
    """
    libraries = ("numpy", "scipy", "scikit-learn", "numba")
    found = {name: importlib.metadata.version(name) for name in libraries}
    return {"nonneg": __version__, "python": platform.python_version(), **found}
