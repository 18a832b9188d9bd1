"""Small pieces of HTML: the curve shows the values, and text is escaped."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nonneg import _html


def points_of(values):
    drawing = ET.fromstring(_html.sparkline(values, "loss"))
    (line,) = drawing
    points = np.array([[float(side) for side in point.split(",")] for point in line.get("points").split()])
    width, height = float(drawing.get("width")), float(drawing.get("height"))
    assert points.min() >= 0
    assert points[:, 0].max() == width
    assert points[:, 1].max() < height
    return points


def test_a_curve_falls_as_the_values_do():
    x, y = points_of([5.0, 3.0, 4.0, np.nan, 2.0])[:4].T
    np.testing.assert_allclose(x / 240, [0, 1 / 3, 2 / 3, 1], atol=1e-3)
    # A drawing counts from its upper edge.
    np.testing.assert_allclose((y - y[0]) / (y[3] - y[0]), [0, 2 / 3, 1 / 3, 1], atol=5e-3)
    assert y[3] - y[0] > 20
    # Two values are the shortest curve.
    np.testing.assert_array_equal(points_of([2.0, 1.0])[[0, -1], 0], [0, 240])


def test_equal_values_are_a_level_line():
    assert len(set(points_of([2.0, 2.0, 2.0])[:, 1])) == 1


def test_decades_are_equally_high():
    y = points_of([1000.0, 100.0, 10.0, 1.0])[:4, 1]
    np.testing.assert_allclose(np.diff(y), np.diff(y)[0], atol=0.15)
    # A value that is zero or negative has no logarithm, and less than a decade needs none.
    for values in ([1000.0, 100.0, 0.0], [10.0, 5.5, 1.0], [9.0, 0.0, -9.0], [900.0, 500.0, 100.0]):
        y = points_of(values)[:3, 1]
        shares = (values[1] - values[0]) / (values[2] - values[0])
        assert (y[1] - y[0]) / (y[2] - y[0]) == pytest.approx(shares, abs=5e-3)


def test_a_long_curve_has_few_points_and_ends_where_it_ends():
    values = np.append(np.linspace(9.0, 8.0, 10_020), 1.0)
    points = points_of(values)
    assert 300 <= len(points) < 400
    np.testing.assert_array_equal(points[-1], [240, points[:, 1].max()])
    assert np.sum(points[:, 1] == points[:, 1].max()) == 1
    assert np.all(np.diff(points[:, 0]) > 0)


class Shown(list):
    """A history or a certificate, as far as a view needs it."""

    def _repr_html_(self):
        return f"<i>{len(self)} entries</i>"


@dataclass
class Found:
    """A result, with or without what else there is to show."""

    loss: float
    history: Any = None
    certificate: Any = None


def test_a_view_has_the_pieces_that_are_there():
    assert _html.view_of_result(3.0) == "<div><p>3.0</p></div>"
    assert _html.view_of_result(Found(1.0)).count("entries") == 0
    assert _html.view_of_result(Found(1.0, Shown(), None)).count("<i>") == 0
    whole = _html.view_of_result(Found(1.0, Shown([1, 2]), Shown([1])))
    assert whole.endswith("</p><i>2 entries</i><i>1 entries</i></div>")
    assert "<p>Found(loss=1.0" in whole


@pytest.mark.parametrize("values", [[], [1.0], [np.inf, 1.0, np.nan]])
def test_one_value_is_no_curve(values):
    assert _html.sparkline(values, "loss") == ""


def test_tables_escape_what_is_no_html_and_print_six_digits():
    table = _html.table(["<a>", "b"], [["x & y", 1 / 3], [_html.Raw("<b>z</b>"), 2]], strong=1)
    assert "&lt;a&gt;" in table
    assert "x &amp; y" in table
    assert "<b>z</b>" in table
    assert "0.333333<" in table
    first, second = table.split("<tbody>")[1].split("</tr>")[:2]
    assert "bold" not in first
    assert second.count("bold") == 2
    assert "bold" not in _html.table(["a"], [["x"]])
