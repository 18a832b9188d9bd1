"""What an experiment shows, as plain data: drawing it is not its business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nonneg._typing import FloatArray


@dataclass(frozen=True)
class Paragraph:
    """A few sentences."""

    text: str  # markdown


@dataclass(frozen=True)
class Verdict:
    """Whether something that was to be shown was shown."""

    claim: str  # what was to be shown
    met: bool | None  # none where these trials cannot tell, as with the quick setting
    detail: str = ""  # the numbers, and where it was not met, why


@dataclass(frozen=True)
class Measured:
    """A cell of a table: what was measured and, beside it, what the paper prints."""

    value: float | None  # the measured value, or the mean of several; None where there is none
    spread: float | None = None  # their standard deviation
    printed: float | None = None  # the paper's
    printed_spread: float | None = None
    sign: str = ""  # put before the value, such as ">" where runs were ended by a limit before they got there
    remark: str = ""  # put behind it, such as "3 of 5 got there"


@dataclass(frozen=True)
class Table:
    """Rows and columns."""

    caption: str  # what it shows
    columns: Mapping[str, str]  # key -> heading, in the order in which they stand
    # Key -> a number, text, None or `Measured`. A column with printed numbers gets another beside it.
    rows: Sequence[Mapping[str, Any]]
    digits: int = 4  # significant digits of a number


@dataclass(frozen=True)
class Series:
    """A curve."""

    label: str  # for the legend
    x: Sequence[float]  # its points; None in `y` leaves a gap
    y: Sequence[float | None]
    spread: Sequence[float] | None = None  # half the length of the error bar of each point
    # Points joined by a line (for measurements), a line alone, or a dashed line (for bounds and theory).
    style: str = "points"


@dataclass(frozen=True)
class Curves:
    """Curves in one pair of axes."""

    title: str  # above the axes
    x_label: str  # below and beside them
    y_label: str
    series: Sequence[Series]  # the curves, in the order of the legend
    x_log: bool = False  # logarithmic scales
    y_log: bool = False


@dataclass(frozen=True)
class Figure:
    """One or several panels of curves."""

    name: str  # of its file, without an ending; letters, digits and dashes
    caption: str  # what it shows
    panels: Sequence[Curves]  # row by row
    n_columns: int = 2  # so many beside one another


@dataclass(frozen=True)
class Pictures:
    """A grid of pictures, each scaled to its own largest entry."""

    name: str  # of its file, without an ending; letters, digits and dashes
    caption: str  # what it shows
    images: Sequence[Sequence[FloatArray]]  # row by row
    row_labels: Sequence[str] = ()  # beside and above; empty for none
    column_labels: Sequence[str] = ()


Artifact: TypeAlias = Paragraph | Verdict | Table | Figure | Pictures
