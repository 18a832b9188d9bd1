"""Measures of a fit against their definitions; figures that take any names and touch no global state."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy import sparse

from nonneg.data.streamed import StreamedMatrix
from nonneg.io.stored_sparse import CompressedRows
from nonneg.report.quality import component_strengths, observed_relative_error


@pytest.fixture
def factors():
    rng = np.random.default_rng(0)
    return rng.random((50, 3)), rng.random((3, 20))


def test_relative_error_is_that_of_the_definition(factors, monkeypatch):
    W, H = factors
    X = W @ H + np.random.default_rng(1).random((50, 20))
    expected = np.linalg.norm(X - W @ H) / np.linalg.norm(X)
    monkeypatch.setattr("nonneg.report.quality._BLOCK_ENTRIES", 140)  # several blocks
    assert observed_relative_error(X, W, H) == pytest.approx(expected, rel=1e-12)
    assert observed_relative_error(sparse.csc_array(X), W, H) == pytest.approx(expected, rel=1e-10)
    X[3, 4] = np.nan
    seen = ~np.isnan(X)
    expected = np.linalg.norm((X - W @ H)[seen]) / np.linalg.norm(X[seen])
    assert observed_relative_error(X, W, H) == pytest.approx(expected, rel=1e-12)


def test_relative_error_of_zero_data(factors):
    W, H = factors
    assert observed_relative_error(np.zeros((50, 20)), 0 * W, H) == 0
    assert observed_relative_error(np.zeros((50, 20)), W, H) == np.inf


def test_strengths_add_up_and_do_not_see_the_scale(factors):
    W, H = factors
    shares = component_strengths(W, H)
    assert shares.sum() == pytest.approx(1)
    scale = np.array([10, 0.1, 3])
    np.testing.assert_allclose(component_strengths(W * scale, H / scale[:, None]), shares)
    np.testing.assert_array_equal(component_strengths(0 * W, H), 0)


def test_averages_keep_the_mean_of_each_group():
    figures = pytest.importorskip("nonneg.report.figures")
    rows = np.arange(20.0).reshape(2, 10)
    np.testing.assert_allclose(
        figures.averaged(rows, 5), [[0.5, 2.5, 4.5, 6.5, 8.5], [10.5, 12.5, 14.5, 16.5, 18.5]]
    )
    np.testing.assert_array_equal(figures.averaged(rows, 10), rows)
    assert figures.averaged(np.ones((2, 7)), 3).tolist() == [[1, 1, 1], [1, 1, 1]]
    np.testing.assert_allclose(figures.scaled_rows(np.array([[1.0, 2.0], [0.0, 0.0]])), [[0.5, 1], [0, 0]])


def test_figures_are_sound_svg_with_the_colors_of_the_page():
    pytest.importorskip("matplotlib")
    from nonneg.report import figures

    drawings = [
        figures.convergence([3.0, 2.0, None, 1.9], [1, 2, 3, 4], "iteration"),
        figures.convergence([1e6, 1.0, 1e-3], [1, 2, 3], "iteration"),
        figures.convergence([5.0], [1], "iteration"),
        figures.convergence([0.0, 0.0], [1, 2], "iteration"),
        figures.convergence([], [], "iteration"),
        figures.strengths(np.array([0.2, 0.8])),
        figures.strengths(np.full(300, 1 / 300)),
        figures.heat_map(np.random.default_rng(0).random((3, 5000)), "sample"),
        figures.heat_map(np.zeros((1, 1)), "sample"),
    ]
    for drawing in drawings:
        assert ET.fromstring(drawing).tag.endswith("svg")
        assert "currentColor" in drawing
        assert not any(placeholder in drawing for placeholder in ("#010203", "#040506", "#070809"))
        assert "matplotlib.org" not in drawing
    assert drawings[0] == figures.convergence([3.0, 2.0, None, 1.9], [1, 2, 3, 4], "iteration")


def test_strange_names_are_drawn_as_they_are():
    pytest.importorskip("matplotlib")
    from nonneg.report import figures

    drawing = figures.heat_map(np.ones((2, 4)), "feature", ["$x_{", "<script>", "中文", "a" * 50])
    texts = [element.text for element in ET.fromstring(drawing).iter() if element.tag.endswith("text")]
    assert {"$x_{", "<script>", "中文", "a" * 15 + "…"} <= set(texts)


def test_drawing_leaves_pyplot_and_the_settings_alone():
    pytest.importorskip("matplotlib")
    code = (
        "import sys, matplotlib\n"
        "from matplotlib import rcParams\n"
        "def kept(): return {key: rcParams[key] for key in rcParams if key != 'backend'}\n"
        "before = kept()\n"
        "from nonneg.report import figures\n"
        "figures.convergence([2.0, 1.0], [1, 2], 'iteration')\n"
        "assert kept() == before\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_click_does_not_hide_the_note_that_follows(monkeypatch):
    sound_figures = pytest.importorskip("nonneg.report.sound_figures")
    drawn = []
    monkeypatch.setattr(sound_figures, "svg_text", lambda figure, title: drawn.append(figure))
    sound_figures.activations(np.array([[1e4, 10.0, 10.0, 0.0]]).T, 1.0, ["source 1"])
    (axes,) = drawn[0].axes
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert sorted(set(np.round(heights, 6))) == [0.0, 30.0, 60.0]


def test_short_labels_of_a_heat_map_stand_upright(monkeypatch):
    figures = pytest.importorskip("nonneg.report.figures")
    drawn = []
    monkeypatch.setattr(figures, "svg_text", lambda figure, title: drawn.append(figure))
    figures.heat_map(np.ones((2, 3)), "topic", ["0", "1", "2"])
    figures.heat_map(np.ones((2, 8)), "feature", ["a long name"] * 8)
    turned = [figure.axes[0].get_xticklabels()[0].get_rotation() for figure in drawn]
    assert turned == [0.0, 60.0]


def test_numbers_of_rings_lie_in_the_picture_and_on_nothing_else():
    scene_figures = pytest.importorskip("nonneg.report.hyperspectral_figures")
    pixels = [(4, 81), (18, 90), (18, 95), (0, 0), (79, 99), (79, 50)]
    svg = scene_figures.marked_scene("data:,", (80, 100), pixels, ["#123456"] * len(pixels))
    size = 100 / 45
    places = [
        (float(text.get("x")), float(text.get("y")))
        for text in ET.fromstring(svg)
        if text.tag.endswith("text")
    ]
    boxes = [(x, y - 1.9 * size, x + 1.6 * size, y) for x, y in places]
    rings = [(c + 0.5 - size, r + 0.5 - size, c + 0.5 + size, r + 0.5 + size) for r, c in pixels]
    assert len(boxes) == len(pixels)
    for at, (left, top, right, low) in enumerate(boxes):
        assert min(left, top, 100 - right, 80 - low) >= -1e-3
        for other in rings + boxes[:at]:
            assert right <= other[0] or other[2] <= left or low <= other[1] or other[3] <= top


def test_axes_that_count_have_no_fractions(monkeypatch):
    figures = pytest.importorskip("nonneg.report.figures")
    drawn = []
    monkeypatch.setattr(figures, "svg_text", lambda figure, title: drawn.append(figure))
    figures.convergence([3.0, 2.0], [1, 2], "iteration")
    figures.convergence([3.0], [1], "iteration")
    figures.heat_map(np.ones((1, 1)), "sample")
    figures.heat_map(np.ones((2, 3)), "sample")
    ticks = np.concatenate([figure.axes[0].get_xticks() for figure in drawn])
    np.testing.assert_array_equal(ticks, np.round(ticks))


@pytest.mark.parametrize(
    ("label", "last", "expected"),
    [("seconds", 0.3, "milliseconds"), ("seconds", 3.0, "seconds"), ("iteration", 0.3, "iteration")],
)
def test_short_times_are_in_milliseconds(label, last, expected):
    pytest.importorskip("matplotlib")
    from nonneg.report.figures import convergence

    texts = [element.text for element in ET.fromstring(convergence([2.0, 1.0], [0.0, last], label)).iter()]
    assert expected in texts
    assert ("milliseconds" in texts) == (expected == "milliseconds")


def test_the_legend_of_many_programs_has_several_columns(monkeypatch):
    pytest.importorskip("matplotlib")
    from nonneg.report import consensus_figures

    monkeypatch.setattr(consensus_figures, "svg_text", lambda figure, title: figure)
    for n_programs, n_columns in ((5, 1), (30, 3)):
        usage = np.full(n_programs, 1 / n_programs)
        figure = consensus_figures.usage_bars([{"name": "a", "usage": usage}], "program")
        assert figure.axes[0].get_legend()._ncols == n_columns


def test_a_curve_that_reaches_zero_has_no_logarithmic_axis(monkeypatch):
    pytest.importorskip("matplotlib")
    from nonneg.report import figures

    monkeypatch.setattr(figures, "svg_text", lambda figure, title: figure)
    for values, scale in (([0.0, 500.0], "linear"), ([1.0, 500.0], "log"), ([10.0, 500.0], "linear")):
        drawn = figures.candidate_curve([2, 3], values, [0.0, 0.0], 2, "error")
        assert drawn.axes[0].get_yscale() == scale


def test_relative_error_of_data_on_disk(factors):
    W, H = factors
    X = W @ H + np.random.default_rng(1).random((50, 20))
    X[np.median(X) > X] = 0.0
    expected = np.linalg.norm(X - W @ H) / np.linalg.norm(X)
    csr = sparse.csr_array(X)
    stored = CompressedRows(csr.data, csr.indices, csr.indptr, csr.shape, "arrays", 4000)
    assert observed_relative_error(StreamedMatrix(stored), W, H) == pytest.approx(expected, rel=1e-10)
    X[3, 4] = X[7, 0] = np.nan
    seen = ~np.isnan(X)
    expected = np.linalg.norm((X - W @ H)[seen]) / np.linalg.norm(X[seen])
    csr = sparse.csr_array(X)
    stored = CompressedRows(csr.data, csr.indices, csr.indptr, csr.shape, "arrays", 4000)
    masked = StreamedMatrix(stored, missing="mask")
    assert observed_relative_error(masked, W, H) == pytest.approx(expected, rel=1e-10)
