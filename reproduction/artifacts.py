"""The artifacts of an experiment as plain data; `page` draws them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from nonneg._typing import FloatArray

NEAR = 0.05
"""A published value is met within this fraction of it, or within two standard errors of our mean."""
WHOLE = "whole"


@dataclass(frozen=True)
class Paragraph:
    """A few sentences."""

    text: str  # markdown


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds."""

    claim: str  # the claim
    met: bool | None  # None if these trials cannot decide, as with the quick setting
    detail: str = ""  # the numbers, and the reason if it fails


@dataclass(frozen=True)
class Measured:
    """A cell of a table: the measured value and, beside it, the published one."""

    value: float | None  # the measured value or mean; None if missing
    spread: float | None = None  # their standard deviation
    published: float | None = None  # the paper's
    published_spread: float | None = None
    sign: str = ""  # put before the value, such as ">" if runs hit a limit before the target
    remark: str = ""  # put after it, such as "3 of 5 reached it"
    n_draws: int = 1  # behind the mean
    agrees: bool | None = None  # with the published one, by a test of its own; None: by `is_met`

    def is_met(self) -> bool | None:
        """Say whether the published value is met; None where one of the two is missing."""
        if self.value is None or self.published is None:
            return None
        if self.agrees is not None:
            return self.agrees
        error = (self.spread or 0.0) / math.sqrt(self.n_draws)
        return abs(self.value - self.published) <= max(NEAR * abs(self.published), 2 * error)


@dataclass(frozen=True)
class Table:
    """Rows and columns."""

    caption: str  # caption
    columns: Mapping[str, str]  # key -> heading, in order
    # Key -> a number, text, None or `Measured`. A column with published values gets a second column for them.
    rows: Sequence[Mapping[str, Any]]
    digits: int = 4  # significant digits of a number
    # Key of a column with published values -> why they cannot be compared. A table that has only published
    # values gives the reason for `WHOLE`.
    not_comparable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Series:
    """A curve."""

    label: str  # for the legend
    x: Sequence[float]  # its points; None in `y` leaves a gap
    y: Sequence[float | None]
    spread: Sequence[float] | None = None  # half-length of the error bars
    # Points joined by a line (for measurements), a line alone, or a dashed line (for bounds and theory).
    style: str = "points"


@dataclass(frozen=True)
class Curves:
    """Curves in one set of axes."""

    title: str  # above the axes
    x_label: str  # below and beside them
    y_label: str
    series: Sequence[Series]  # the curves, in the order of the legend
    x_log: bool = False  # logarithmic scales
    y_log: bool = False


@dataclass(frozen=True)
class Figure:
    """One or several panels of curves."""

    name: str  # file name without extension; letters, digits and dashes
    caption: str  # caption
    panels: Sequence[Curves]  # row by row
    n_columns: int = 2  # number of panels per row


@dataclass(frozen=True)
class Pictures:
    """A grid of images, each scaled to its own maximum."""

    name: str  # file name without extension; letters, digits and dashes
    caption: str  # caption
    images: Sequence[Sequence[FloatArray]]  # row by row
    row_labels: Sequence[str] = ()  # left and top labels; empty for none
    column_labels: Sequence[str] = ()


Artifact: TypeAlias = Paragraph | Verdict | Table | Figure | Pictures
