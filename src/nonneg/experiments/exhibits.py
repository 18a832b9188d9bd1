"""What an experiment shows, as plain data: drawing it is not its business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nonneg._typing import FloatArray


@dataclass(frozen=True)
class Paragraph:
    """A few sentences.

    Attributes
    ----------
    text : str
        Markdown.
    """

    text: str


@dataclass(frozen=True)
class Verdict:
    """Whether something that was to be shown was shown.

    Attributes
    ----------
    claim : str
        What was to be shown.
    met : bool or None
        None where these trials cannot tell, as with the quick setting.
    detail : str
        The numbers, and where it was not met, why.
    """

    claim: str
    met: bool | None
    detail: str = ""


@dataclass(frozen=True)
class Measured:
    """A cell of a table: what was measured and, beside it, what the paper prints.

    Attributes
    ----------
    value : float or None
        The measured value, or the mean of several; None where there is none.
    spread : float or None
        Their standard deviation.
    printed, printed_spread : float or None
        The paper's.
    sign : str
        Put before the value, such as ">" where runs were ended by a limit before they got there.
    remark : str
        Put behind it, such as "3 of 5 got there".
    """

    value: float | None
    spread: float | None = None
    printed: float | None = None
    printed_spread: float | None = None
    sign: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Table:
    """Rows and columns.

    Attributes
    ----------
    caption : str
        What it shows.
    columns : mapping of str to str
        Key -> heading, in the order in which they stand.
    rows : sequence of mapping
        Key -> a number, text, None or `Measured`. A column with printed numbers gets another beside it.
    digits : int
        Significant digits of a number.
    """

    caption: str
    columns: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]
    digits: int = 4


@dataclass(frozen=True)
class Series:
    """A curve.

    Attributes
    ----------
    label : str
        For the legend.
    x, y : sequence of float
        Its points; None in `y` leaves a gap.
    spread : sequence of float or None
        Half the length of the error bar of each point.
    style : {"points", "line", "dashed"}
        Points joined by a line (for measurements), a line alone, or a dashed line (for bounds and theory).
    """

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    spread: Sequence[float] | None = None
    style: str = "points"


@dataclass(frozen=True)
class Curves:
    """Curves in one pair of axes.

    Attributes
    ----------
    title : str
        Above the axes.
    x_label, y_label : str
        Below and beside them.
    series : sequence of Series
        The curves, in the order of the legend.
    x_log, y_log : bool
        Logarithmic scales.
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_log: bool = False
    y_log: bool = False


@dataclass(frozen=True)
class Figure:
    """One or several panels of curves.

    Attributes
    ----------
    name : str
        Of its file, without an ending; letters, digits and dashes.
    caption : str
        What it shows.
    panels : sequence of Curves
        Row by row.
    n_columns : int
        So many beside one another.
    """

    name: str
    caption: str
    panels: Sequence[Curves]
    n_columns: int = 2


@dataclass(frozen=True)
class Pictures:
    """A grid of pictures, each scaled to its own largest entry.

    Attributes
    ----------
    name : str
        Of its file, without an ending; letters, digits and dashes.
    caption : str
        What it shows.
    images : sequence of sequences of array of shape (height, width)
        Row by row.
    row_labels, column_labels : sequence of str
        Beside and above; empty for none.
    """

    name: str
    caption: str
    images: Sequence[Sequence[FloatArray]]
    row_labels: Sequence[str] = ()
    column_labels: Sequence[str] = ()


Exhibit: TypeAlias = Paragraph | Verdict | Table | Figure | Pictures
