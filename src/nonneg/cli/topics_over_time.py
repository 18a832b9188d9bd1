"""Topics over time in the record of `nonneg topics`, and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nonneg.cli import terminal


def over_time_record(model: Any, proportions: Any, documents: Any) -> dict[str, Any] | None:
    """Return topics over time for the record, or None where documents have no dates."""
    if documents.times is None:
        return None
    found = model.over_time(documents.contents, documents.times, proportions=proportions)
    if found.n_missing:
        which = ""
        if found.unreadable:  # none where the cells are empty
            row, text = found.unreadable[0]
            which = f"; not a date: {text!r} ({documents.names[row]})"
        terminal.note(
            f"note: {found.n_missing} of {len(proportions)} documents have no date and are left out of the "
            f"topics over time{which}"
        )
    return {
        "unit": found.unit,
        "periods": found.periods,
        "counts": found.counts,
        "proportions": found.proportions,
        "smoothed": found.smoothed,
        "bandwidth": found.bandwidth,
        "n_missing": found.n_missing,
        "unreadable": [[documents.names[row], text] for row, text in found.unreadable],
        "n_empty": found.n_empty,
    }


def over_time_table(record: Mapping[str, Any]) -> tuple[list[str], Iterator[list[Any]]]:
    """Return the heading and the rows of the table: a period per row."""
    k = len(record["smoothed"][0])
    heading = [
        "period",
        "documents",
        *(f"topic_{at}" for at in range(k)),
        *(f"smoothed_{at}" for at in range(k)),
    ]
    rows = zip(*(record[name] for name in ("periods", "counts", "proportions", "smoothed")), strict=True)
    return heading, (
        [period, count, *("" if one is None else f"{one:.6g}" for one in (*raw, *smooth))]
        for period, count, raw, smooth in rows
    )
