"""Success rates with confidence intervals, in tables, curves and claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from scipy import stats

from reproduction.artifacts import Curves, Measured, Series, Verdict
from reproduction.grouping import grouped

LEVEL = 0.95
"""Of the intervals."""
DOUBT = 0.01
"""Two shares agree unless Fisher's exact test finds so large a difference less probable than this."""

DEFAULT_CLAIM = "the default finds all anchors as often as MERIT as published, up to sampling error"


@dataclass(frozen=True)
class Rate:
    """A share of trials."""

    successes: int  # how many
    n: int  # of how many

    @property
    def value(self) -> float:
        """The share."""
        return self.successes / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """The exact (Clopper and Pearson's) interval of 95%."""
        return _exact_interval(self.successes, self.n)

    @property
    def half_length(self) -> float:
        """Half the length of the interval."""
        low, high = self.interval
        return 0.5 * (high - low)

    def agrees_with(self, other: Rate) -> bool:
        """Tell whether two shares differ by no more than sampling explains."""
        table = [[self.successes, self.n - self.successes], [other.successes, other.n - other.successes]]
        return bool(stats.fisher_exact(table).pvalue >= DOUBT)

    def __str__(self) -> str:
        return f"{self.successes} of {self.n}"


@cache
def _exact_interval(successes: int, n: int) -> tuple[float, float]:
    found = stats.binomtest(successes, n).proportion_ci(LEVEL, method="exact")
    return float(found.low), float(found.high)


def rate_of(share: float, n: int) -> Rate:
    """Return a published share as a count."""
    return Rate(round(share * n), n)


def success_rates(records: Iterable[Mapping[str, Any]], *keys: str) -> dict[tuple[Any, ...], Rate]:
    """Count successes group by group."""
    return {
        key: Rate(sum(record["success"] for record in group), len(group))
        for key, group in grouped(records, *keys).items()
    }


def rate_cell(rate: Rate | None, published: float | None = None) -> Measured:
    """Return a share with its interval as a cell."""
    if rate is None:
        return Measured(None, published=published)
    low, high = rate.interval
    agrees = None if published is None else rate.agrees_with(rate_of(published, rate.n))
    return Measured(rate.value, published=published, remark=f"[{low:.2f}, {high:.2f}]", agrees=agrees)


def rate_curves(
    title: str, x_label: str, curves: Mapping[str, Mapping[float, Rate]], *, dashed: Sequence[str] = ()
) -> Curves:
    """Draw shares against something."""
    series = [
        Series(
            label,
            sorted(points),
            [points[at].value for at in sorted(points)],
            None if label in dashed else [points[at].half_length for at in sorted(points)],
            style="dashed" if label in dashed else "points",
        )
        for label, points in curves.items()
        if points
    ]
    return Curves(title, x_label, "success rate", series)


def rate_verdict(claim: str, rates: Sequence[Rate | None], floor: float, n_needed: int) -> Verdict:
    """Say whether shares are large enough."""
    present = [rate for rate in rates if rate is not None]
    detail = ", ".join(map(str, present)) or "no trials"
    if not rates or len(present) < len(rates) or any(rate.n < n_needed for rate in present):
        return Verdict(claim, None, detail)
    return Verdict(claim, all(rate.value >= floor for rate in present), detail)


def agreement_verdict(claim: str, pairs: Mapping[str, tuple[Rate | None, Rate]], n_needed: int) -> Verdict:
    """Say whether shares agree with those of others within sampling error."""
    ours = [rate for rate, _ in pairs.values()]
    if not pairs or any(rate is None or rate.n < n_needed for rate in ours):
        return Verdict(claim, None, f"fewer than {n_needed} trials somewhere")
    apart = [
        f"{where}: {rate} against {theirs}"
        for where, (rate, theirs) in pairs.items()
        if rate is not None and not rate.agrees_with(theirs)
    ]
    words = f"{len(pairs)} compared" if not apart else "; ".join(apart)
    return Verdict(claim, not apart, words)


def default_verdict(pairs: Mapping[Any, tuple[Rate | None, Rate | None]], n_draws: int) -> Verdict:
    """Claim that the default is nowhere behind the published algorithm beyond what sampling explains."""
    worse = []
    for at, (ours, theirs) in pairs.items():
        if ours is None or theirs is None or min(ours.n, theirs.n) < n_draws:
            return Verdict(DEFAULT_CLAIM, None, f"fewer than {n_draws} draws somewhere")
        if ours.value < theirs.value and not ours.agrees_with(theirs):
            worse.append(f"{ours} against {theirs} at {at}")
    return Verdict(DEFAULT_CLAIM, not worse, "; ".join(worse) or "everywhere")
