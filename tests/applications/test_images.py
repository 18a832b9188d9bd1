"""Images as PNG files inside a page."""

from __future__ import annotations

import io

import numpy as np
import pytest

from nonneg.applications.images import data_address, picture_png

image = pytest.importorskip("matplotlib.image")


def pixels(png: bytes):
    return image.imread(io.BytesIO(png))


def test_a_picture_is_dark_where_the_entry_is_large():
    shades = pixels(picture_png(np.array([[0.0, 1.0], [2.0, 4.0]])))[..., 0]
    assert shades.shape == (2, 2)
    assert shades[0, 0] == 1.0
    assert shades[1, 1] == 0.0
    assert shades[0, 1] > shades[1, 0]
    half = pixels(picture_png(np.array([[2.0]]), largest=4.0))[0, 0, 0]
    assert 0.3 < half < 0.7
    assert pixels(picture_png(np.zeros((1, 2))))[0, 0, 0] == 1.0
    assert pixels(picture_png(np.array([[np.nan, 1.0]])))[0, 0, 3] == 0.0


def test_colors_stay_as_they_are():
    found = pixels(picture_png(np.array([[[255, 0, 51]]], dtype=np.uint8)))
    np.testing.assert_allclose(found[0, 0, :3], [1, 0, 0.2], atol=1e-6)
    assert data_address(b"abc") == "data:image/png;base64,YWJj"
