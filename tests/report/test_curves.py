"""Figures that are files of their own."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from nonneg.applications.images import picture_grid
from nonneg.report.curves import curve_panels

MEASURED = {"label": "cr1 <&>", "x": [100, 1000], "y": [0.1, 0.2], "spread": [0.01, None], "style": "points"}
BOUND = {"label": "bound $x", "x": [100, 1000], "y": [0.3, None], "spread": None, "style": "dashed"}
PANEL = {"title": "alpha", "x_label": "N", "y_label": "error", "series": [MEASURED, BOUND], "x_log": True}


def words(text: str) -> list[str]:
    return [
        element.text
        for element in ElementTree.fromstring(text).iter()
        if element.text and element.text.strip()
    ]


def test_panels_are_one_file_with_their_words_in_order():
    text = curve_panels([PANEL, PANEL | {"title": "beta", "y_log": True}, PANEL], 'a "title" & more')
    found = words(text)
    assert found.index("alpha") < found.index("beta")
    assert found.index("cr1 <&>") < found.index("bound $x")  # curves with error bars do not come last
    assert ElementTree.fromstring(text).get("aria-label") == 'a "title" & more'
    assert curve_panels([PANEL], "same") == curve_panels([PANEL], "same")


def test_labels_are_no_formulas():
    series = [dict(PANEL["series"][0], label="$a$ and $b$")]
    assert "$a$ and $b$" in words(curve_panels([PANEL | {"series": series}], "labels"))


def test_a_panel_without_curves_is_drawn():
    assert "alpha" in words(curve_panels([PANEL | {"series": []}], "empty"))


def test_an_unknown_style_is_an_error():
    with pytest.raises(KeyError, match="dotted"):
        curve_panels([PANEL | {"series": [MEASURED | {"style": "dotted"}]}], "x")


def test_pictures_stand_in_a_grid():
    images = [[np.eye(4), np.ones((4, 4))], [np.arange(16.0).reshape(4, 4)]]
    small = picture_grid(images)
    assert small.startswith(b"\x89PNG")
    assert picture_grid(images) == small
    assert picture_grid(images, row_labels=["one", "two"], column_labels=["left", "right"]) != small
