"""What figures show: curves, bars and pictures stand where the numbers are."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from nonneg.report import consensus_figures, curves, figures, topic_figures


def labels_of(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def heights(bars):
    return [bar.get_height() for bar in bars]


def test_the_loss_is_drawn_where_it_was_recorded(draw):
    (axes,) = draw(figures.convergence, [3.0, None, 2.0, 1.9], [1, 2, 3, 4], "iteration")
    line, end = axes.lines
    np.testing.assert_array_equal(line.get_xydata(), [[1, 3], [3, 2], [4, 1.9]])
    np.testing.assert_array_equal(end.get_xydata(), [[4, 1.9]])
    assert axes.get_yscale() == "linear"
    low, high = axes.get_ylim()
    assert low < 1.9 < 3.0 < high
    assert high - 3.0 == pytest.approx(1.9 - low)
    assert high - low < 2 * (3.0 - 1.9)


def test_a_loss_over_decades_has_a_logarithmic_axis(draw):
    assert draw(figures.convergence, [10.1, 1.0], [1, 2], "iteration")[0].get_yscale() == "log"
    assert draw(figures.convergence, [10.0, 1.0], [1, 2], "iteration")[0].get_yscale() == "linear"
    assert draw(figures.convergence, [10.1, 0.0], [1, 2], "iteration")[0].get_yscale() == "linear"


@pytest.mark.parametrize("value", [0.0, 5.0, -5.0])
def test_a_loss_that_does_not_change_lies_in_the_middle(value, draw):
    (axes,) = draw(figures.convergence, [value, value], [1, 2], "iteration")
    low, high = axes.get_ylim()
    assert low < value < high
    assert (low + high) / 2 == pytest.approx(value)


def test_times_begin_at_zero_and_are_in_their_unit(draw):
    (axes,) = draw(figures.convergence, [2.0, 1.0], [0.1, 0.4], "seconds")
    assert axes.get_xlabel() == "milliseconds"
    np.testing.assert_allclose(axes.lines[0].get_xdata(), [100, 400])
    assert axes.get_xlim()[0] == 0
    (axes,) = draw(figures.convergence, [2.0, 1.0], [0.1, 0.5], "seconds")
    assert axes.get_xlabel() == "seconds"
    assert draw(figures.convergence, [], [], "seconds")[0].get_xlabel() == "seconds"


def test_shares_are_sorted_percentages_under_their_numbers(draw):
    (axes,) = draw(figures.strengths, np.array([0.2, 0.5, 0.3]))
    np.testing.assert_allclose(heights(axes.patches), [50, 30, 20])
    assert labels_of(axes.xaxis) == ["1", "2", "0"]
    np.testing.assert_array_equal(axes.get_xticks(), [0, 1, 2])
    left, right = axes.get_xlim()
    assert left < -0.39
    assert right > 7
    (axes,) = draw(figures.strengths, np.full(100, 0.01))
    assert len(axes.get_xticks()) == 50
    assert axes.get_xlim()[1] > 99.39


def test_chosen_data_points_have_another_color_and_a_line_after_them(draw):
    (axes,) = draw(figures.ranked_bars, np.arange(40.0, 0.0, -1.0), 3, "length")
    chosen, others = axes.containers
    assert heights(chosen) == [40, 39, 38]
    assert heights(others) == list(range(37, 24, -1))
    centers = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
    np.testing.assert_allclose(centers, np.arange(1, 17))
    assert {bar.get_facecolor() for bar in chosen}.isdisjoint(bar.get_facecolor() for bar in others)
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), [3.5, 3.5])
    left, right = axes.get_xlim()
    assert left < 0.61
    assert right > 16.39


def test_the_chosen_candidate_is_marked_and_the_spread_lies_around_the_curve(draw):
    (axes,) = draw(figures.candidate_curve, [2, 4, 6], [3.0, 1.0, 2.0], [0.5, 0.25, 0.0], 4, "error")
    curve, mark = axes.lines
    np.testing.assert_array_equal(curve.get_xydata(), [[2, 3], [4, 1], [6, 2]])
    np.testing.assert_array_equal(mark.get_xydata(), [[4, 1]])
    assert [text.get_text() for text in axes.texts] == ["4"]
    band = axes.collections[0].get_paths()[0].vertices
    assert {(2.0, 2.5), (2.0, 3.5), (4.0, 0.75), (4.0, 1.25), (6.0, 2.0)} <= set(map(tuple, band))
    (axes,) = draw(figures.candidate_curve, [2, 4], [3.0, 1.0], [0.0, 0.0], 3, "error")
    assert not axes.collections
    assert len(axes.lines) == 1


def test_a_map_has_a_line_per_component_scaled_by_its_maximum_or_by_one_number(draw):
    factor = np.array([[1.0, 2.0, 4.0], [0.0, 0.0, 0.0]])
    (axes,) = draw(figures.heat_map, factor, "sample")
    np.testing.assert_allclose(axes.images[0].get_array(), [[0.25, 0.5, 1], [0, 0, 0]])
    assert axes.images[0].get_extent() == [-0.5, 2.5, 1.5, -0.5]
    assert axes.images[0].get_clim() == (0, 1)
    assert labels_of(axes.yaxis) == ["0", "1"]
    (axes,) = draw(figures.heat_map, factor, "sample", largest=8.0, ordered=True, line="topic")
    np.testing.assert_allclose(axes.images[0].get_array(), factor / 8)
    assert len(axes.get_xticks()) == 0
    assert axes.get_ylabel() == "topic"
    (axes,) = draw(figures.heat_map, np.ones((60, 40)), "feature", [f"name {at}" for at in range(40)])
    assert "name 1" not in labels_of(axes.xaxis)
    assert len(axes.get_yticks()) == 20
    (axes,) = draw(figures.heat_map, np.ones((1, 3)), "feature", ["a" * 16, "b" * 17, "c"])
    assert labels_of(axes.xaxis) == ["a" * 16, "b" * 15 + "…", "c"]


def test_curves_have_their_spread_and_a_color_each(draw):
    series = [
        {"label": "one", "x": [1, 2], "y": [3, None], "spread": [0.5, None]},
        {"label": "two", "x": [1, 2], "y": [5, 6], "style": "line"},
    ]
    panel = {"title": "t", "x_label": "x", "y_label": "y", "series": series}
    first, second, third, empty = draw(
        curves.curve_panels, [panel, panel | {"x_log": True}, panel | {"y_log": True}], "title"
    )
    assert (second.get_xscale(), second.get_yscale()) == ("log", "linear")
    assert (third.get_xscale(), third.get_yscale()) == ("linear", "log")
    assert not empty.axison
    one, two = first.containers[0], first.lines[-1]
    np.testing.assert_array_equal(one[0].get_xydata(), [[1, 3], [2, np.nan]])
    np.testing.assert_array_equal(one[2][0].get_segments()[0], [[1, 2.5], [1, 3.5]])
    np.testing.assert_array_equal(two.get_xydata(), [[1, 5], [2, 6]])
    assert one[0].get_color() != two.get_color()
    assert (one[0].get_marker(), two.get_marker()) == ("o", "None")
    assert [text.get_text() for text in first.get_legend().get_texts()] == ["one", "two"]
    assert len(draw(curves.curve_panels, [panel], "title")) == 1


def test_documents_are_counted_by_period(draw):
    periods = [str(year) for year in range(2000, 2025)]
    (axes,) = draw(topic_figures.documents_per_period, periods, list(range(25)), "year")
    assert heights(axes.patches) == list(range(25))
    assert labels_of(axes.xaxis) == ["2000", "2003", "2006", "2009", "2012", "2015", "2018", "2021", "2024"]
    np.testing.assert_array_equal(axes.get_xticks(), range(0, 25, 3))
    left, right = axes.get_xlim()
    assert left < -0.42
    assert right > 24.42
    assert draw(topic_figures.documents_per_period, ["2000"], [3], "year")[0].get_xlim()[1] > 7


def test_the_course_of_a_topic_is_in_percent_with_dots_by_documents(draw):
    (axes,) = draw(
        topic_figures.course, ["a", "b", "c"], [10, 0, 5], [0.5, None, 0.25], [0.4, 0.3, 0.2], "topic 1"
    )
    dots, (line,) = axes.collections[0], axes.lines
    np.testing.assert_array_equal(dots.get_offsets().filled(np.nan), [[0, 50], [np.nan, np.nan], [2, 25]])
    large, none, half = dots.get_sizes()
    assert large > half > none > 0
    assert half - none == pytest.approx((large - none) / 2)
    np.testing.assert_allclose(line.get_xydata(), [[0, 40], [1, 30], [2, 20]])
    assert axes.get_ylim()[0] == 0
    assert labels_of(axes.xaxis) == ["a", "b", "c"]


def test_a_tree_joins_its_leaves_at_their_distance(draw):
    merges = [[0, 2, 0.5, 2], [1, 3, 2.0, 3]]
    (axes,) = draw(topic_figures.tree, merges, ["x", "y" * 44, "z" * 45])
    named = dict(zip(labels_of(axes.yaxis), axes.get_yticks(), strict=True))
    assert set(named) == {"x", "y" * 44, "z" * 43 + "…"}
    near, far = sorted(axes.lines, key=lambda line: line.get_xdata().max())
    assert (near.get_xdata().max(), far.get_xdata().max()) == (0.5, 2.0)
    assert {near.get_ydata()[0], near.get_ydata()[-1]} == {named["x"], named["z" * 43 + "…"]}
    joined = (named["x"] + named["z" * 43 + "…"]) / 2
    assert {far.get_ydata()[0], far.get_ydata()[-1]} == {named["y" * 44], joined}
    low, high = axes.get_ylim()
    assert (low, high) == (30, 0)
    assert axes.get_xlim()[0] == 0


def test_stability_and_error_are_drawn_by_rank(draw):
    rows = [
        {"n_components": 2, "stability": 0.9, "least_stable": 0.8, "error": 5.0},
        {"n_components": 3, "stability": 0.7, "least_stable": -0.2, "error": 4.0},
    ]
    axes, other = draw(consensus_figures.rank_plot, rows, 2)
    chosen, mean, least = axes.lines
    np.testing.assert_array_equal(chosen.get_xdata(), [2, 2])
    np.testing.assert_array_equal(mean.get_xydata(), [[2, 0.9], [3, 0.7]])
    np.testing.assert_array_equal(least.get_xydata(), [[2, 0.8], [3, -0.2]])
    np.testing.assert_array_equal(other.lines[0].get_xydata(), [[2, 5], [3, 4]])
    assert axes.get_ylim()[0] < -0.2
    assert axes.get_ylim()[1] > 1
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "mean stability",
        "least stable",
        "error",
    ]
    positive = [row | {"least_stable": 0.1} for row in rows]
    wide, narrow = (
        draw(consensus_figures.rank_plot, positive, 2),
        draw(consensus_figures.rank_plot, positive, 2, narrow=True),
    )
    assert -0.1 < wide[0].get_ylim()[0] < 0
    assert narrow[0].figure.get_figwidth() < wide[0].figure.get_figwidth()


def test_outliers_are_counted_and_lie_beyond_the_threshold(draw):
    density = [0.1, 0.1, 0.3, 1.4]
    (axes,) = draw(consensus_figures.density_plot, density, 0.5, 1)
    assert axes.get_title() == "1 of 4 components (25%) are outliers"
    (line,) = axes.lines
    np.testing.assert_array_equal(line.get_xdata(), [0.5, 0.5])
    assert sum(heights(axes.patches)) == 4  # values beyond the axis are in the last bar
    assert axes.patches[-1].get_height() == 1
    assert axes.patches[-1].get_x() + axes.patches[-1].get_width() == pytest.approx(1)
    (axes,) = draw(consensus_figures.density_plot, density, 1.2, 0)
    assert axes.patches[-1].get_x() + axes.patches[-1].get_width() == pytest.approx(1.32)
    assert not draw(consensus_figures.density_plot, density, 2.0, 0)[0].lines


def test_clusters_are_named_in_their_middle(draw):
    axes, _ = draw(consensus_figures.clustergram, np.zeros((5, 5)), [4, 4, 4, 7, 7])
    np.testing.assert_allclose(axes.get_xticks(), [1.5, 4])
    np.testing.assert_allclose(axes.get_yticks(), [1.5, 4])
    assert labels_of(axes.xaxis) == labels_of(axes.yaxis) == ["4", "7"]
    assert axes.images[0].get_extent() == [0, 5, 5, 0]


def test_bars_of_usage_lie_end_to_end(draw):
    groups = [{"name": "a", "usage": [0.5, 0.3, 0.2]}, {"name": "b" * 30, "usage": [0.1, 0.6, 0.3]}]
    (axes,) = draw(consensus_figures.usage_bars, groups, "program")
    spans = [[(round(bar.get_x(), 6), round(bar.get_width(), 6)) for bar in bars] for bars in axes.containers]
    assert spans == [[(0, 50), (0, 10)], [(50, 30), (10, 60)], [(80, 20), (70, 30)]]
    assert labels_of(axes.yaxis) == ["a", "b" * 24]
    assert axes.yaxis_inverted()
    assert axes.get_xlim() == (0, 100)
    colors = [bars[0].get_facecolor() for bars in axes.containers]
    assert len(set(colors)) == 3
    many = [{"name": "a", "usage": np.full(10, 0.1)}]
    colors = [
        bars[0].get_facecolor() for bars in draw(consensus_figures.usage_bars, many, "program")[0].containers
    ]
    assert len(set(colors)) == 10


@pytest.mark.parametrize("narrow", [False, True])
def test_channels_of_a_signature_stand_under_their_substitution(narrow, draw):
    channels = [
        f"A[{kind}]{letter}{at}"
        for kind in ("C>A", "C>G", "C>T", "T>A", "T>C", "T>G")
        for at, letter in enumerate("ACGT" * 4)
    ]
    signature = np.arange(96.0) / np.arange(96.0).sum()
    panels = draw(consensus_figures.signature_bars, signature, channels, "title", narrow=narrow)
    assert len(panels) == 1 + narrow
    found = np.concatenate([heights(axes.containers[0]) for axes in panels])
    np.testing.assert_allclose(found, 100 * signature)
    texts = [text.get_text() for axes in panels for text in axes.texts]
    assert texts == ["C>A", "C>G", "C>T", "T>A", "T>C", "T>G"]
    for axes in panels:
        blocks = [patch for patch in axes.patches if patch not in list(axes.containers[0])]
        for at, (block, text) in enumerate(zip(blocks, axes.texts, strict=True)):
            below = axes.containers[0][16 * at : 16 * at + 16]
            assert block.get_x() == pytest.approx(below[0].get_x(), abs=0.1)
            end = block.get_x() + block.get_width()
            assert end == pytest.approx(below[-1].get_x() + below[-1].get_width(), abs=0.1)
            assert text.get_position()[0] == pytest.approx(block.get_x() + block.get_width() / 2)
            assert {bar.get_facecolor() for bar in below} == {block.get_facecolor()}
            assert block.get_y() > 100 * signature.max()
            assert block.get_y() + block.get_height() < text.get_position()[1]
        left, right = axes.get_xlim()
        assert left < -0.375
        assert right > len(axes.containers[0]) - 0.625
    assert len({axes.get_ylim() for axes in panels}) == 1
    assert panels[0].get_ylim()[0] == 0
