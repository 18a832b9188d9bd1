"""Records of the pages: one JSON file each, one row per measurement, with the machine of the last run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe

FOLDER = Path(__file__).resolve().parents[2] / "docs/benchmarks/records"


def merge(name: str, rows: list[dict[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """Write rows to the record `name`, in place of those with the same keys; return all of its rows."""
    path = FOLDER / f"{name}.json"
    older = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    again = [[row[key] for key in keys] for row in rows]
    machine = describe()
    stamp = {"date": machine["date"], "on": f"{machine['processor']}, {machine['cores']} cores"}
    rows = [row for row in older if [row[key] for key in keys] not in again] + [row | stamp for row in rows]
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    text = f'{{"machine": {json.dumps(machine)},\n "rows": [\n{lines}\n ]}}\n'
    path.write_text(text, encoding="utf-8")
    return rows
