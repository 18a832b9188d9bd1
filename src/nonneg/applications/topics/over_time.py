"""Topics over time: mean proportions by period, with the number of documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg._typing import FloatArray, IntArray
from nonneg.exceptions import InvalidDataError, InvalidParameterError, ShapeError, UnknownNameError

# The periods: pandas' code, and how the beginning of one is written.
UNITS = {
    "hour": ("h", "%Y-%m-%dT%H"),
    "day": ("D", "%Y-%m-%d"),
    "week": ("W", "%Y-%m-%d"),
    "month": ("M", "%Y-%m"),
    "year": ("Y", "%Y"),
}
# A chart with more periods than this is not read, and a mean of fewer documents is mostly noise.
MOST_PERIODS, FEWEST_DOCUMENTS = 120, 5
# A date of the year 9999 must not fill the memory.
LIMIT = 20_000


@dataclass(frozen=True)
class TopicsOverTime:
    """The proportions of topics by period, as `TopicModel.over_time` returns them.

    Attributes
    ----------
    unit : str
        "hour", "day", "week" (from Monday), "month" or "year".
    starts : array of datetime64 of shape (n_periods,)
        When each period begins, in UTC, without gaps.
    periods : list of str
        The periods by name, such as "2021-03".
    counts : array of int of shape (n_periods,)
        Number of documents of each period that have a date and a topic.
    proportions : array of shape (n_periods, n_topics)
        Mean topic proportions of these documents; NaN where there are none.
    n_missing : int
        Number of documents without a date.
    unreadable : list of (int, str)
        Rows with an entry that is neither empty nor a date, and that entry.
    n_empty : int
        Number of documents with a date, but without a topic.
    labels : list of str
        The labels of the topics.
    """

    unit: str
    starts: Any
    periods: list[str]
    counts: IntArray
    proportions: FloatArray
    n_missing: int
    unreadable: list[tuple[int, str]]
    n_empty: int
    labels: list[str]


def topics_over_time(
    proportions: FloatArray, times: Any, labels: Sequence[str], unit: str | None = None
) -> TopicsOverTime:
    """Average topic proportions by period."""
    if unit is not None:
        UnknownNameError.check("unit", unit, UNITS)
    pandas = import_optional("pandas", extra="formats", purpose="Reading dates")
    dates, unreadable = read_dates(times, len(proportions))
    dated = dates.notna()
    usable = dated & (proportions.sum(axis=1) > 0)
    if not usable.any():
        first = f"; the first entry is {unreadable[0][1][:40]!r}" if unreadable else ""
        raise InvalidDataError(
            f"None of the {len(dated)} documents has a topic and a date that can be read{first}. Write dates "
            "as 2021-12-31."
        )
    periods = {name: dates[usable].to_period(code) for name, (code, _) in UNITS.items()}
    spans = {name: (period.max() - period.min()).n + 1 for name, period in periods.items()}
    if unit is None:
        # The finest unit whose periods can be drawn and hold enough documents; where there are too few
        # documents, or the span is too long, the coarsest that still tells two periods apart.
        most = min(MOST_PERIODS, int(usable.sum()) // FEWEST_DOCUMENTS)
        # A unit that divides no period of the next one, as days do not where dates are years, tells no more.
        distinct = [period.nunique() for period in periods.values()] + [1]
        several = [
            name for name, (own, following) in zip(UNITS, pairwise(distinct), strict=True) if own > following
        ]
        coarsest = several[-1] if several else "day"
        unit = next((name for name in several if spans[name] <= most), coarsest)
    if spans[unit] > LIMIT:
        raise InvalidParameterError(
            f"unit={unit!r} gives {spans[unit]} periods from {dates.min()} to {dates.max()}, more than "
            f"{LIMIT}. Choose a longer unit, or leave out documents whose dates are wrong."
        )
    own = periods[unit]
    every = pandas.period_range(own.min(), own.max(), freq=own.freq)
    groups = pandas.DataFrame(proportions[usable]).groupby(own)
    return TopicsOverTime(
        unit, every.start_time.to_numpy(), every.start_time.strftime(UNITS[unit][1]).tolist(),
        groups.size().reindex(every, fill_value=0).to_numpy(), groups.mean().reindex(every).to_numpy(),
        int(np.sum(~dated)), unreadable, int(np.sum(dated & ~usable)), list(labels),
    )  # fmt: skip


# Day or month first, as 31/12/2020, 31.12.2020 or 12-31-2020.
_NUMERIC = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2\d{4}(?:[ T,].*)?")
_NUMBER = re.compile(r"(\d+)(?:\.\d+)?")
_MISSING = {"", "nan", "nat", "none", "null", "na", "n/a", "-", "?"}


def read_dates(times: Any, n_documents: int) -> tuple[Any, list[tuple[int, str]]]:
    """Return dates as a pandas index in UTC, NaT where there is none, and the entries that are not dates."""
    entries = np.asarray(times)
    if entries.shape != (n_documents,):
        raise ShapeError(
            f"Expected one date per document, times of shape ({n_documents},), got {entries.shape}."
        )
    pandas = import_optional("pandas", extra="formats", purpose="Reading dates")
    if entries.dtype.kind == "M":
        return pandas.DatetimeIndex(entries), []
    texts = [_as_text(entry) for entry in entries.tolist()]
    dates = pandas.DatetimeIndex(
        pandas.to_datetime(
            texts, format="mixed", dayfirst=_is_day_first(texts), utc=True, errors="coerce"
        )
    ).tz_localize(None)  # fmt: skip
    wrong = np.flatnonzero(dates.isna() & np.array([text is not None for text in texts]))
    return dates, [(int(at), str(entries[at])) for at in wrong]


def _as_text(entry: Any) -> str | None:
    """Return a date as pandas reads it: years and seconds since 1970 in ISO 8601; None for a missing one."""
    text = str(entry).strip()
    if text.lower() in _MISSING:
        return None
    number = _NUMBER.fullmatch(text)
    # Four digits are a year, eight a date such as 20211231, nine and ten are seconds, until the year 2286.
    if number is None or len(number[1]) not in (4, 9, 10):
        return text
    return f"{number[1]}-01-01" if len(number[1]) == 4 else str(np.datetime64(int(number[1]), "s"))


def _is_day_first(texts: Sequence[str | None]) -> bool:
    """Tell from all dates of the form 03/04/2021 together whether the day comes first."""
    matches = [match for text in texts if text and (match := _NUMERIC.fullmatch(text))]
    day_first = any(int(match[1]) > 12 or match[2] == "." for match in matches)
    month_first = any(int(match[3]) > 12 for match in matches)
    if matches and day_first == month_first:
        raise InvalidDataError(
            f"Dates such as {matches[0][0]!r} do not show whether the day or the month comes first, and "
            f"neither do the other dates. Write them as 2021-12-31."
        )
    return day_first
