"""Components as pictures."""

from __future__ import annotations

import io

import numpy as np
import pytest

from nonneg import NMF
from nonneg.applications import show_components
from nonneg.applications.images import data_address, picture_png
from nonneg.exceptions import OutputError, ShapeError

image = pytest.importorskip("matplotlib.image")
figure_module = pytest.importorskip("matplotlib.figure")


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


def test_components_in_a_grid(tmp_path):
    components = np.random.default_rng(0).random((5, 6))
    grid = show_components(components, (2, 3))
    height, width = pixels(grid.png).shape[:2]
    assert width > height * 0.8
    assert grid._repr_png_() == grid.png
    assert pixels(show_components(components, (2, 3), n_columns=5).png).shape[1] > width
    assert show_components(components, (2, 3), columns_first=True).png != grid.png
    assert show_components(components, (2, 3), labels="abcde").png != grid.png
    assert grid.save(tmp_path / "grid.png").read_bytes() == grid.png
    with pytest.raises(OutputError, match=r"could not be written: No such file or directory\.$"):
        grid.save(tmp_path / "none" / "grid.png")


def test_a_fitted_estimator_shows_its_own():
    X = np.random.default_rng(0).random((20, 6))
    model = NMF(2, max_iter=5, tol=0, random_state=0).fit(X)
    assert show_components(model, (2, 3)).png == show_components(model.components_, (2, 3)).png


def test_components_without_a_positive_entry_are_black():
    assert show_components([[-1.0, -2.0], [np.nan, np.nan]], (1, 2)).png.startswith(b"\x89PNG")


def test_pixels_may_be_stored_column_after_column(rng):
    picture = rng.random((4, 6))
    by_rows = show_components(picture.reshape(1, -1), (4, 6)).png
    assert show_components(picture.T.reshape(1, -1), (4, 6), columns_first=True).png == by_rows
    assert show_components(picture.T.reshape(1, -1), (4, 6)).png != by_rows


@pytest.mark.parametrize("components", [np.ones(6), np.ones((1, 2, 3)), np.ones((0, 6)), np.ones((2, 5))])
def test_components_are_rows_of_pixels(components):
    with pytest.raises(ShapeError, match=r"2 x 3 = 6 pixels, one per row, got an array of shape"):
        show_components(components, (2, 3))
