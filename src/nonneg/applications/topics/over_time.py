"""Topics over time: mean proportions by period, smoothed, with the number of documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import convolve1d

from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.dates import Dates
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnknownNameError

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
    proportions: FloatArray, dates: Dates, labels: Sequence[str], unit: str | None = None
) -> TopicsOverTime:
    """Average topic proportions by period."""
    if unit is not None and unit not in UNITS:
        raise UnknownNameError.of("unit", unit, UNITS)
    dated = ~np.isnat(dates.values)
    if not dated.any():
        first = f"; the first entry is {dates.unreadable[0][1]!r}" if dates.unreadable else ""
        raise InvalidDataError(
            f"None of the {len(dated)} documents has a date that can be read{first}. Write dates as "
            "2021-12-31."
        )
    kept = dated & (proportions.sum(axis=1) > 0)
    if not kept.any():
        raise InvalidDataError("None of the documents that have a date has a topic.")
    values = dates.values[kept]
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
    np.add.at(sums, places - start, proportions[kept].astype(np.float64))
    means = np.full_like(sums, np.nan)
    means[counts > 0] = sums[counts > 0] / counts[counts > 0, None]
    smoothed, bandwidth = _smoothed(sums, counts)
    return TopicsOverTime(
        unit, _starts(start, n_periods, unit), counts, means, smoothed, bandwidth, dates.n_missing,
        dates.unreadable, int(np.sum(dated & ~kept)), list(labels),
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
    found = total / np.where(known > 0, known, 1.0)[:, None]
    return np.where(known[:, None] > 0, found, np.nan), best[1]


def _kernel_sums(
    sums: FloatArray, counts: IntArray, width: float, *, itself: bool
) -> tuple[FloatArray, FloatArray]:
    # Beyond three standard deviations there is nothing to say.
    apart = np.arange(-int(3 * width), int(3 * width) + 1)
    kernel = np.exp(-0.5 * (apart / width) ** 2) * ((apart != 0) | itself)
    both = np.column_stack([sums, counts])
    found = convolve1d(both, kernel, axis=0, mode="constant")
    return found[:, :-1], found[:, -1]
