"""Components as pictures."""

from __future__ import annotations

import io

import numpy as np
import pytest

from nonneg import NMF
from nonneg.applications import show_components
from nonneg.applications.images import Picture, data_address, picture_grid, picture_png
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


def test_shapes_that_do_not_fit():
    with pytest.raises(ShapeError, match="2 x 4 = 8 pixels"):
        show_components(np.ones((3, 6)), (2, 4))
    with pytest.raises(ShapeError, match="3 labels"):
        show_components(np.ones((3, 6)), (2, 3), labels=["a"])


def test_components_without_a_positive_entry_are_black():
    assert show_components([[-1.0, -2.0], [np.nan, np.nan]], (1, 2)).png.startswith(b"\x89PNG")


def test_pictures_of_a_grid_are_as_large_as_the_first_says():
    tall = pixels(picture_grid([[np.ones((20, 10))] * 2] * 5)).shape
    flat = pixels(picture_grid([[np.ones((10, 20))] * 2] * 5)).shape
    dpi = tall[1] / (1.2 * 2 + 0.1)
    assert tall[0] / dpi >= 5 * 2.4  # 1.2 inches for the width of each
    assert 5 * 0.6 <= flat[0] / dpi < 5


def test_pixels_may_be_stored_column_after_column(rng):
    picture = rng.random((4, 6))
    by_rows = show_components(picture.reshape(1, -1), (4, 6)).png
    assert show_components(picture.T.reshape(1, -1), (4, 6), columns_first=True).png == by_rows
    assert show_components(picture.T.reshape(1, -1), (4, 6)).png != by_rows


@pytest.fixture
def figures(monkeypatch):
    """The figures that are drawn."""
    drawn = []

    class Recorded(figure_module.Figure):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            drawn.append(self)

    monkeypatch.setattr(figure_module, "Figure", Recorded)
    return drawn


def words(axes):
    return axes.get_title(), axes.get_ylabel(), len(axes.images)


@pytest.mark.parametrize(
    ("labels", "titles", "width", "height"),
    [((), (), 0.1, 0.1), (("a", "b"), (), 1.0, 0.1), ((), (("x",) * 3, ("y",)), 0.1, 0.3)],
)
def test_a_grid_has_room_for_pictures_and_words(labels, titles, width, height):
    grid = [[np.ones((10, 20))] * 3, [np.ones((10, 20))]]
    shape = pixels(picture_grid(grid, row_labels=labels, titles=titles)).shape
    # In inches: 1.2 for the width of a picture, and 120 pixels each.
    np.testing.assert_allclose(shape[1], 120 * (3 * 1.2 + width), atol=1.5)
    np.testing.assert_allclose(shape[0], 120 * (2 * (0.6 + height) + 0.3), atol=1.5)


def test_words_of_a_grid_are_beside_their_pictures(figures):
    one = np.array([[0.0, 2.0], [np.nan, 1.0]])
    picture_grid([[one, -one], [one]], row_labels=["first", "second"], column_labels=["left", "right"])
    first, second, third, fourth = figures[-1].axes
    assert words(first) == ("left", "first", 1)
    assert words(second) == ("right", "", 1)
    assert words(third) == ("", "second", 1)
    assert words(fourth) == ("", "", 0)  # a place without a picture
    # Names with dollar signs are names.
    assert not first.title.get_parse_math()
    assert not first.yaxis.label.get_parse_math()
    assert first.yaxis.label.get_rotation() == 0
    assert not any(spine.get_visible() for axes in figures[-1].axes for spine in axes.spines.values())
    assert first.images[0].get_clim() == (0.0, 2.0)
    assert second.images[0].get_clim() == (0.0, 1.0)  # nothing above zero
    assert not any(axes.get_xticks().size or axes.get_yticks().size for axes in figures[-1].axes)
    picture_grid([[one, one], [one, one]], titles=[["a"], ["b", "c"]])
    assert [axes.get_title() for axes in figures[-1].axes] == ["a", "", "b", "c"]
    picture_grid([[one, one]], row_labels=[], column_labels=["only"])
    assert [words(axes) for axes in figures[-1].axes] == [("only", "", 1), ("", "", 1)]


@pytest.mark.parametrize(
    ("n", "n_columns", "rows"),
    [(5, None, [3, 2]), (4, None, [2, 2]), (1, None, [1]), (5, 2, [2, 2, 1]), (3, 9, [3]), (3, 1, [1, 1, 1])],
)
def test_the_grid_of_components_is_about_square(n, n_columns, rows, figures):
    components = np.arange(6.0 * n).reshape(n, 6)
    show_components(components, (2, 3), n_columns=n_columns)
    shown = [axes for axes in figures[-1].axes if axes.images]
    assert [axes.get_title() for axes in shown] == [str(at) for at in range(n)]
    for row, axes in zip(components, shown, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), row.reshape(2, 3))
    assert figures[-1].axes[0].get_subplotspec().get_gridspec().get_geometry() == (len(rows), max(rows))


@pytest.mark.parametrize("components", [np.ones(6), np.ones((1, 2, 3)), np.ones((0, 6)), np.ones((2, 5))])
def test_components_are_rows_of_pixels(components):
    with pytest.raises(ShapeError, match=r"2 x 3 = 6 pixels, one per row, got an array of shape"):
        show_components(components, (2, 3))


def test_shades_are_relative_to_the_largest_finite_entry():
    black = pixels(picture_png(np.array([[0.0, np.inf, 5.0]])))
    assert black[0, 2, 0] == 0.0
    assert pixels(picture_png(np.array([[0.0, 0.5]])))[0, 1, 0] == 0.0
    assert pixels(picture_png(np.array([[np.nan, np.nan]]))).shape[:2] == (1, 2)
    # Without an entry above zero the range is that of shares.
    assert pixels(picture_png(np.array([[-1.0, 0.5]]), largest=0.0))[0, 1, 0] == pytest.approx(0.5, abs=0.1)
    assert repr(Picture(b"123")) == "Picture(3 bytes; save(path) writes it)"
