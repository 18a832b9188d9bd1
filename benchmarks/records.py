"""Records first, tables from the records: one JSON object a line, one file a claim."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def append(claim: str, records: Iterable[dict[str, Any]], folder: Path = RESULTS) -> None:
    """Add records to the file of a claim, each as soon as it is made."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{claim}.jsonl"
    for record in records:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(_plain(record), allow_nan=False) + "\n")


def read(claim: str, folder: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the records of a claim, oldest first."""
    path = folder / f"{claim}.jsonl"
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def latest(records: Iterable[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """Return the newest record for every combination of the keys, in the order of first appearance."""
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in records:
        newest[tuple(record.get(key) for key in keys)] = record
    return list(newest.values())


def known(claim: str, folder: Path, published: Path) -> list[dict[str, Any]]:
    """Return the records of a claim, oldest first, and before them those of other machines and other days."""
    return read(claim, published) + read(claim, folder)


def keep_newest(claim: str, folder: Path, where: Path) -> None:
    """Write the records behind the tables of a claim beside its page."""
    newest = latest(known(claim, folder, where), "case", "dtype", "threads", "contender")
    if not newest:
        return
    where.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record, allow_nan=False) for record in newest]
    (where / f"{claim}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def mark(claim: str, head: dict[str, Any], folder: Path = RESULTS) -> None:
    """Note which contender is about to run, so that one that ends the process can be named."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{claim}.running").write_text(json.dumps(_plain(head)), encoding="utf-8")


def unmark(claim: str, folder: Path = RESULTS) -> dict[str, Any] | None:
    """Remove the note of `mark` and return it."""
    path = folder / f"{claim}.running"
    if not path.is_file():
        return None
    head = dict(json.loads(path.read_text(encoding="utf-8")))
    path.unlink()
    return head


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
