"""The files of an estimate of the rank."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scipy import sparse

from nonneg.cli.result_files import REPORT, RESULT, versions, write_answer
from nonneg.io import Table
from nonneg.report.folder import replaced_folder
from nonneg.report.rank_page import HEADINGS, build_rank_page, rank_figure, rank_rows
from nonneg.report.records import plain
from nonneg.report.tables import markdown_table

RANKS, FIGURE = "rank.csv", "rank.svg"
FILES = frozenset({RANKS, FIGURE, RESULT, REPORT})
"""All names an estimate may write."""


def write_rank_results(
    folder: Path, found: Any, table: Table, parameters: Mapping[str, Any], *, seconds: float, title: str
) -> tuple[dict[str, Any], list[Path]]:
    """Write all files of an estimate at once, or none."""
    X = table.X
    values = {
        "format": 1,
        "title": title,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {
            "source": Path(table.source).name or table.source,
            "shape": X.shape,
            "dtype": str(X.dtype),
            "n_stored": X.nnz if sparse.issparse(X) else None,
        },
        "parameters": {name: value for name, value in parameters.items() if name != "verbose"},
        "result": {**found.as_dict(), "seconds": seconds},
        "versions": versions(),
    }
    record = dict(plain(values))
    with replaced_folder(folder, FILES) as fresh:
        rows = record["result"]["table"]
        with (fresh / RANKS).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(rows[0]) if rows else ["k"])
            writer.writeheader()
            writer.writerows(rows)

        def page() -> str:
            if drawing := rank_figure(record):
                (fresh / FIGURE).write_text(drawing, encoding="utf-8")
            return build_rank_page(record)

        written = write_answer(folder, fresh, record, page)
    return record, written


def rank_table(record: Mapping[str, Any]) -> str:
    """Lay the candidates out as a table for the terminal."""
    rows = rank_rows(record)
    columns = {"k": "k"}
    columns |= {name: text for name, text in HEADINGS.items() if any(name in row for row in rows)}
    columns["chosen"] = "chosen by"
    return markdown_table(rows, columns).rstrip("\n")
