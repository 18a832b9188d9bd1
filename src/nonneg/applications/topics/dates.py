"""Dates as users have them: of several types, in several notations, some missing."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import numpy as np

from nonneg.exceptions import DataTypeError, InvalidDataError, ShapeError

# Day or month first, as 31/12/2020, 31.12.2020 or 12-31-2020, with or without a time of day.
_NUMERIC = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})(?:[ T,]+(.*))?")
_WITH_NAMES = (
    *("%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y", "%B %d %Y", "%b %d %Y"),
    *("%d-%b-%Y", "%B %Y", "%b %Y", "%a %b %d %H:%M:%S %Y", "%Y/%m/%d", "%Y/%m/%d %H:%M:%S", "%Y/%m"),
)
_MISSING = {"", "nan", "nat", "none", "null", "na", "n/a", "-", "?"}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
# Below it a number is a year; seconds since 1970 reach the second number in the year 5138, milliseconds the
# third.
_YEARS, _SECONDS, _MILLISECONDS = 3000, 1e11, 1e14


@dataclass(frozen=True)
class Dates:
    """The dates of documents."""

    values: Any  # datetime64[s] in UTC, NaT where there is none
    unreadable: list[tuple[int, str]]  # places of entries that are not dates, and what stands there

    @property
    def n_missing(self) -> int:
        """How many documents have no date."""
        return int(np.isnat(self.values).sum())


def read_dates(times: Any, n_documents: int) -> Dates:
    """Read the dates of documents; what is empty or not a date is missing."""
    if isinstance(times, str) or not hasattr(times, "__len__"):
        raise DataTypeError(f"Expected one date per document, got {times!r}.")
    if len(times) != n_documents:
        raise ShapeError(f"times has {len(times)} entries, but there are {n_documents} documents.")
    array = np.asarray(times)
    if array.ndim != 1:
        raise ShapeError(f"Expected one date per document, got an array of shape {array.shape}.")
    if array.dtype.kind == "M":
        return Dates(array.astype("datetime64[s]"), [])
    entries = [_plain(entry) for entry in array.tolist()]
    month_first = _is_month_first([entry for entry in entries if isinstance(entry, str)])
    found = np.full(n_documents, np.datetime64("NaT", "s"))
    unreadable = []
    for at, entry in enumerate(entries):
        if entry is None:
            continue
        try:
            found[at] = np.datetime64(_read(entry, month_first), "s")
        except (ValueError, OverflowError, TypeError, IndexError):
            unreadable.append((at, str(entry)))
    return Dates(found, unreadable)


def _plain(entry: Any) -> Any:
    """Return what may be a date, or None."""
    if entry is None or (isinstance(entry, float) and entry != entry):
        return None
    if isinstance(entry, str):
        entry = entry.strip()
        return None if entry.lower() in _MISSING else entry
    # pandas writes NaT into columns of dates.
    return None if str(entry) == "NaT" else entry


def _read(entry: Any, month_first: bool | None) -> datetime.datetime:
    if isinstance(entry, datetime.datetime):
        return _in_utc(entry)
    if isinstance(entry, datetime.date):
        return datetime.datetime(entry.year, entry.month, entry.day)
    if isinstance(entry, str):
        return _read_text(entry, month_first)
    if isinstance(entry, bool):
        raise ValueError
    return _read_number(float(entry))


def _in_utc(moment: datetime.datetime) -> datetime.datetime:
    if moment.tzinfo is None:
        return moment
    return moment.astimezone(datetime.UTC).replace(tzinfo=None)


def _read_number(number: float) -> datetime.datetime:
    if 1 <= number < _YEARS and number == int(number):
        return datetime.datetime(int(number), 1, 1)
    if not _YEARS <= number < _MILLISECONDS:
        raise ValueError
    seconds = number if number < _SECONDS else number / 1000.0
    return _in_utc(_EPOCH + datetime.timedelta(seconds=seconds))


def _read_text(text: str, month_first: bool | None) -> datetime.datetime:
    if text.isdigit() and len(text) != 8:
        return _read_number(float(text))
    if match := re.fullmatch(r"(\d{4})-(\d{1,2})", text):
        return datetime.datetime(int(match[1]), int(match[2]), 1)
    if match := _NUMERIC.fullmatch(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        by_month = second > 12 or (bool(month_first) and match[2] != "." and first <= 12)
        day, month = (second, first) if by_month else (first, second)
        return datetime.datetime(year, month, day)
    try:
        return _in_utc(datetime.datetime.fromisoformat(text))
    except ValueError:
        pass
    for notation in _WITH_NAMES:
        try:
            return datetime.datetime.strptime(text, notation)
        except ValueError:
            continue
    return _in_utc(parsedate_to_datetime(text))


def _is_month_first(texts: Sequence[str]) -> bool | None:
    """Tell from all dates of the form 03/04/2021 together whether the month comes first."""
    pairs = [
        (int(match[1]), int(match[3]))
        for text in texts
        if (match := _NUMERIC.fullmatch(text)) and match[2] != "."
    ]
    if not pairs:
        return None
    day_first = any(first > 12 for first, _ in pairs)
    month_first = any(second > 12 for _, second in pairs)
    unclear = [text for text in texts if (match := _NUMERIC.fullmatch(text)) and match[2] != "."]
    if day_first == month_first:
        raise InvalidDataError(
            f"Dates such as {unclear[0]!r} do not show whether the day or the month comes first, and "
            f"neither do the other dates. Write them as 2021-12-31."
        )
    return month_first
