"""Topics over time: mean proportions by period, smoothed, with the number of documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import convolve1d

from nonneg._optional import import_optional
from nonneg._typing import FloatArray, IntArray
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    ShapeError,
    UnknownNameError,
)

UNITS = ("hour", "day", "week", "month", "year")
_NUMPY = {"hour": "h", "day": "D", "month": "M", "year": "Y"}
# A chart with more periods than this is not read, and a mean of fewer documents is mostly noise.
MOST_PERIODS, FEWEST_DOCUMENTS = 120, 5
LIMIT = 20_000
"""Maximum number of periods: a date of the year 9999 must not fill the memory."""
# Bandwidths in periods, of which leave-one-out chooses; fewer periods than this are not smoothed.
BANDWIDTHS, FEWEST_PERIODS = (0.5, 1.0, 2.0, 4.0, 8.0), 5


@dataclass(frozen=True)
class TopicsOverTime:
    """The proportions of topics by period, as `TopicModel.over_time` returns them.

    Attributes
    ----------
    unit : str
        "hour", "day", "week" (from Monday), "month" or "year".
    starts : array of datetime64 of shape (n_periods,)
        When each period begins, in UTC, without gaps.
    counts : array of int of shape (n_periods,)
        Number of documents of each period that have a date and a topic.
    proportions : array of shape (n_periods, n_topics)
        Mean topic proportions of these documents; NaN where there are none.
    smoothed : array of shape (n_periods, n_topics)
        The same, smoothed over neighboring periods in proportion to their documents; NaN far from any.
    bandwidth : float
        Standard deviation of the Gaussian kernel in periods, chosen by leave-one-out; 0 for no smoothing.
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
    counts: IntArray
    proportions: FloatArray
    smoothed: FloatArray
    bandwidth: float
    n_missing: int
    unreadable: list[tuple[int, str]]
    n_empty: int
    labels: list[str]

    @property
    def periods(self) -> list[str]:
        """The periods by name, such as "2021-03"."""
        length = {"hour": 13, "year": 4, "month": 7}.get(self.unit, 10)
        return [str(start)[:length] for start in self.starts.astype("datetime64[s]")]


def topics_over_time(
    proportions: FloatArray, times: Any, labels: Sequence[str], unit: str | None = None
) -> TopicsOverTime:
    """Average topic proportions by period."""
    if unit is not None and unit not in UNITS:
        raise UnknownNameError.of("unit", unit, UNITS)
    dates, unreadable = read_dates(times, len(proportions))
    dated = ~np.isnat(dates)
    if not dated.any():
        first = f"; the first entry is {unreadable[0][1]!r}" if unreadable else ""
        raise InvalidDataError(
            f"None of the {len(dated)} documents has a date that can be read{first}. Write dates as "
            "2021-12-31."
        )
    usable = dated & (proportions.sum(axis=1) > 0)
    if not usable.any():
        raise InvalidDataError("None of the documents that have a date has a topic.")
    values = dates[usable]
    unit = _unit_of(values) if unit is None else unit
    places = _period(values, unit)
    start = int(places.min())
    n_periods = int(places.max()) - start + 1
    if n_periods > LIMIT:
        raise InvalidParameterError(
            f"unit={unit!r} gives {n_periods} periods from {values.min()} to {values.max()}, more than "
            f"{LIMIT}. Choose a longer unit, or leave out documents whose dates are wrong."
        )
    counts = np.bincount(places - start, minlength=n_periods)
    sums = np.zeros((n_periods, proportions.shape[1]))
    np.add.at(sums, places - start, proportions[usable].astype(np.float64))
    means = np.full_like(sums, np.nan)
    means[counts > 0] = sums[counts > 0] / counts[counts > 0, None]
    smoothed, bandwidth = _smoothed(sums, counts)
    return TopicsOverTime(
        unit, _starts(start, n_periods, unit), counts, means, smoothed, bandwidth, int(np.sum(~dated)),
        unreadable, int(np.sum(dated & ~usable)), list(labels),
    )  # fmt: skip


def _period(values: Any, unit: str) -> IntArray:
    """Return the number of the period in which each date lies."""
    if unit == "week":
        # The first day of 1970 was a Thursday.
        return (values.astype("datetime64[D]").astype(np.int64) + 3) // 7
    return values.astype(f"datetime64[{_NUMPY[unit]}]").astype(np.int64)


def _starts(first: int, n_periods: int, unit: str) -> Any:
    numbers = np.arange(first, first + n_periods)
    if unit == "week":
        return (7 * numbers - 3).astype("datetime64[D]")
    return numbers.astype(f"datetime64[{_NUMPY[unit]}]")


def _unit_of(values: Any) -> str:
    """Choose the finest unit whose periods can be drawn and hold enough documents."""
    spans = {unit: int(np.ptp(_period(values, unit))) + 1 for unit in UNITS}
    for unit, n_periods in spans.items():
        if 2 <= n_periods <= min(MOST_PERIODS, len(values) // FEWEST_DOCUMENTS):
            return unit
    # Too few documents, or too long a span: the coarsest that still tells two periods apart.
    several = [unit for unit, n_periods in spans.items() if n_periods > 1]
    return several[-1] if several else "day"


def _smoothed(sums: FloatArray, counts: IntArray) -> tuple[FloatArray, float]:
    """Smooth sums and counts alike, so that a period weighs as much as it has documents."""
    filled = counts > 0
    means = sums / np.where(filled, counts, 1)[:, None]
    if filled.sum() < FEWEST_PERIODS:
        return np.where(filled[:, None], means, np.nan), 0.0
    best = (np.inf, BANDWIDTHS[0])
    for width in BANDWIDTHS:
        if width <= len(counts) / 4:
            others, known = _kernel_sums(sums, counts, width, itself=False)
            wrong = np.sum((others / np.where(known > 0, known, 1.0)[:, None] - means) ** 2, axis=1)
            # Errors that differ in their last digits only would depend on the machine.
            best = min(best, (float(f"{np.sum(counts * wrong):.9e}"), width))
    total, known = _kernel_sums(sums, counts, best[1], itself=True)
    smooth = total / np.where(known > 0, known, 1.0)[:, None]
    return np.where(known[:, None] > 0, smooth, np.nan), best[1]


def _kernel_sums(
    sums: FloatArray, counts: IntArray, width: float, *, itself: bool
) -> tuple[FloatArray, FloatArray]:
    # Beyond three standard deviations there is nothing to say.
    apart = np.arange(-int(3 * width), int(3 * width) + 1)
    kernel = np.exp(-0.5 * (apart / width) ** 2) * ((apart != 0) | itself)
    both = convolve1d(np.column_stack([sums, counts]), kernel, axis=0, mode="constant")
    return both[:, :-1], both[:, -1]


# Day or month first, as 31/12/2020, 31.12.2020 or 12-31-2020.
_NUMERIC = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2\d{4}(?:[ T,].*)?")
_MISSING = {"", "nan", "nat", "none", "null", "na", "n/a", "-", "?"}
# Below the first a number is a year; seconds since 1970 reach the second in the year 5138.
_YEARS, _SECONDS = 3000, 1e11


def read_dates(times: Any, n_documents: int) -> tuple[Any, list[tuple[int, str]]]:
    """Return dates as datetime64[s] in UTC, NaT where there is none, and the entries that are not dates."""
    if isinstance(times, str) or not hasattr(times, "__len__"):
        raise DataTypeError(f"Expected one date per document, got {times!r}.")
    entries = np.asarray(times)
    if entries.shape != (n_documents,):
        raise ShapeError(
            f"Expected one date per document, times of shape ({n_documents},), got {entries.shape}."
        )
    if entries.dtype.kind == "M":
        return entries.astype("datetime64[s]"), []
    pandas = import_optional("pandas", extra="formats", purpose="Reading dates")
    texts = [_as_text(entry) for entry in entries.tolist()]
    parsed = pandas.to_datetime(
        pandas.Series(texts, dtype=object), format="mixed", dayfirst=_is_day_first(texts), utc=True,
        errors="coerce",
    )  # fmt: skip
    dates = parsed.dt.tz_localize(None).to_numpy().astype("datetime64[s]")
    wrong = np.flatnonzero(np.isnat(dates) & np.array([text is not None for text in texts]))
    return dates, [(int(at), str(entries[at])) for at in wrong]


def _as_text(entry: Any) -> str | None:
    """Return a date as pandas reads it: years and seconds since 1970 in ISO 8601; None for a missing one."""
    text = str(entry).strip()
    if entry is None or text.lower() in _MISSING:
        return None
    try:
        number = None if isinstance(entry, bool) or len(text) == 8 else float(text)
    except ValueError:
        return text
    if number is None:
        return text
    if 1 <= number < _YEARS and number == int(number):
        return f"{int(number):04d}-01-01"
    seconds = number if number < _SECONDS else number / 1000.0
    return str(np.datetime64(int(seconds), "s")) if _YEARS <= seconds < _SECONDS else text


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
