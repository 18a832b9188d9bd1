"""The files of a search for anchors."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nonneg._typing import FloatArray
from nonneg.cli.result_files import MODEL, NAMES, REPORT, RESULT, versions, write_answer, write_names
from nonneg.io import Table
from nonneg.report.anchor_page import build_anchor_page
from nonneg.report.folder import replaced_folder
from nonneg.report.quality import observed_relative_error
from nonneg.report.records import plain
from nonneg.report.tables import markdown_table

ANCHORS = "anchors.csv"
FILES = frozenset({ANCHORS, "W.npy", "H.npy", NAMES, RESULT, MODEL, REPORT})
"""All names a search may write."""

_COLUMNS = ("component", "row", "name", "value", "margin", "mean_weight")


def write_anchor_results(
    folder: Path, model: Any, W: FloatArray, table: Table, *, seconds: float, title: str
) -> tuple[dict[str, Any], list[Path]]:
    """Write all files of a search at once, or none."""
    values = _ranked(model)
    record = _record(model, W, table, values, seconds=seconds, title=title)
    with replaced_folder(folder, FILES) as fresh:
        np.save(fresh / "W.npy", W, allow_pickle=False)
        np.save(fresh / "H.npy", model.components_, allow_pickle=False)
        with (fresh / ANCHORS).open("w", newline="", encoding="utf-8") as stream:
            named = table.row_names is not None
            columns = [name for name in _COLUMNS if named or name != "name"]
            writer = csv.DictWriter(stream, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(record["anchors"])
        write_names(fresh, table.row_names, table.column_names)
        written = write_answer(
            folder, fresh, record, lambda: build_anchor_page(record, values, W, table.row_names), model=model
        )
    return record, written


def anchor_table(record: dict[str, Any]) -> str:
    """Lay the anchors out as a table for the terminal."""
    headings = {"component": "component", "row": "row"}
    if any(entry["name"] is not None for entry in record["anchors"]):
        headings["name"] = "sample"
    headings |= {"value": record["result"]["measure"], "margin": "margin", "mean_weight": "mean weight"}
    return markdown_table(record["anchors"], headings).rstrip("\n")


def _ranked(model: Any) -> FloatArray:
    # The measure of the anchors, then of the best others.
    result = model.result_
    if result.row_maxima is not None:
        maxima = np.asarray(result.row_maxima)
        others = np.sort(np.delete(maxima, result.anchors))[::-1]
        return np.concatenate([maxima[result.anchors], others])
    scores = np.asarray(result.scores)
    return scores if result.best_left is None else np.append(scores, result.best_left)


def _record(
    model: Any, W: FloatArray, table: Table, values: FloatArray, *, seconds: float, title: str
) -> dict[str, Any]:
    result, X = model.result_, table.X
    k = model.n_components_
    # No margin where a greedy method does not look at what it left.
    best_other = float(values[k]) if len(values) > k else None
    error = observed_relative_error(X, W, model.components_)
    names = table.row_names
    anchors = [
        {
            "component": at,
            "row": int(row),
            "name": None if names is None else names[row],
            "value": float(values[at]),
            "margin": None if best_other is None else float(values[at]) - best_other,
            "mean_weight": float(W[:, at].mean()),
        }
        for at, row in enumerate(model.anchor_indices_)
    ]
    convex = result.row_maxima is not None
    record = {
        "format": 1,
        "title": title,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {
            "source": Path(table.source).name or table.source,
            "shape": X.shape,
            "dtype": str(X.dtype),
            "n_stored": X.nnz if sparse.issparse(X) else None,
        },
        "parameters": {name: value for name, value in model.get_params().items() if name != "callback"},
        "anchors": anchors,
        "result": {
            "method": result.method,
            "n_anchors": k,
            "measure": "row maximum" if convex else "score",
            "unknown_rank": model.n_components is None,
            "margin": min(
                (entry["margin"] for entry in anchors if entry["margin"] is not None), default=None
            ),
            "lam": result.lam,
            "objective": result.objective,
            "duality_gap": model.duality_gap_,
            "sum_to_one": model.sum_to_one_,
            "reconstruction_err": model.reconstruction_err_,
            "relative_error": error,
            "explained": 1.0 - error**2,
            "n_iter": model.n_iter_,
            "stop_reason": {"name": result.stop_reason.name.lower(), "sentence": result.stop_sentence},
            "seconds": seconds,
            "steps": _steps(result.facts),
        },
        "history": model.history_.as_dict(),
        "certificate": [statement.as_dict() for statement in model.certificate_],
        "versions": versions(),
    }
    return dict(plain(record))


def _steps(facts: Any) -> dict[str, Any]:
    # What the steps before the search did; lists of points are left to the model.
    shown = {}
    for name in ("energy", "normalize", "reduce", "merge"):
        if name in facts:
            shown[name] = {key: value for key, value in facts[name].items() if key != "labels"}
    return shown
