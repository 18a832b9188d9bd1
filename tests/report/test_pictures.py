"""Pictures of graphs and communities: colors, places, shares and what is left out."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import _html
from nonneg.report import graph_drawing
from nonneg.report.figures import averaged, scaled_rows
from nonneg.report.graph_drawing import (
    PALETTE,
    _around,
    _node,
    _sample_of_ties,
    _sectors,
    _ties,
    color,
    color_rgb,
    community_picture,
    in_unit,
    nodes_to_draw,
)


def test_colors_are_numbers_too():
    assert color(0) == PALETTE[0]
    assert color(len(PALETTE) - 1) == PALETTE[-1]
    assert color(len(PALETTE)).startswith("hsl(")
    red, green, blue = color_rgb(0)
    assert f"#{red:02x}{green:02x}{blue:02x}" == PALETTE[0].lower()
    assert color_rgb(-1) == (0xB9, 0xBF, 0xC7)
    hue = float(color(len(PALETTE))[4:].split()[0])
    assert hue == pytest.approx((47 + 137.5 * len(PALETTE)) % 360, abs=0.5)
    assert max(color_rgb(len(PALETTE))) - min(color_rgb(len(PALETTE))) > 100


def test_weights_in_units_of_the_largest():
    A = sp.csr_array(np.array([[0.0, 4.0], [1.0, 0.0]]))
    np.testing.assert_allclose(in_unit(A).toarray(), [[0.0, 1.0], [0.25, 0.0]])
    tiny = sp.csr_array(np.array([[0.0, 5e-324], [0.0, 0.0]]))
    assert in_unit(tiny).toarray()[0, 1] == 1.0
    empty = sp.csr_array((2, 2))
    assert in_unit(empty) is empty


def test_nodes_of_a_large_graph_hang_together(monkeypatch, rng):
    monkeypatch.setattr(graph_drawing, "N_DRAWN", 6)
    A = sp.csr_array(np.diag(np.ones(19), 1) + np.diag(np.ones(19), -1))
    memberships = np.repeat([[0.9, 0.1], [0.1, 0.9]], 10, axis=0)
    found = nodes_to_draw(A, memberships, np.array([2, 15]))
    assert len(found) == 6
    assert {2, 15} <= set(found)
    assert all(any(abs(at - other) == 1 for other in found) for at in found)
    np.testing.assert_array_equal(nodes_to_draw(A[:5, :5], memberships[:5], np.array([0])), range(5))
    ranks = np.arange(20.0)
    assert _around(A, ranks, 10, set(), 4) == [10, 11, 12, 13]
    assert _around(A, ranks, 10, {10, 11}, 2) == [12, 13]
    ranks[11:] = 0.0
    assert _around(A, ranks, 10, set(), 3) == [10, 9, 8]


def test_ties_are_lines_and_the_strongest_are_kept(monkeypatch, rng):
    dense = np.triu(rng.random((6, 6)), 1)
    A = sp.csr_array(dense + dense.T)
    places = rng.random((6, 2)) * 100
    lines, words = _ties(A, places)
    assert len(lines) == 15
    assert words == ""
    widths = [float(re.search(r'stroke-width="([\d.]+)"', line)[1]) for line in lines]
    assert widths == sorted(widths)
    assert widths[-1] == pytest.approx(0.5 + 2.5)
    monkeypatch.setattr(graph_drawing, "_N_TIES", 7)
    monkeypatch.setattr(graph_drawing, "_TIES_PER_NODE", 1)
    rows, columns = np.triu_indices(6, 1)
    chosen = _sample_of_ties(rows, columns, dense[rows, columns], 6)
    assert len(chosen) == 7
    strongest = {
        int(np.argmax(np.where((rows == at) | (columns == at), dense[rows, columns], -1))) for at in range(6)
    }
    assert strongest <= set(chosen)
    lines, words = _ties(A, places)
    assert words.startswith("7 of 15 edges are drawn: the strongest of every node")
    _, words = _ties(sp.csr_array(np.ones((6, 6)) - np.eye(6)), places)
    assert words.startswith("7 of 15 edges are drawn: some of every node")


def test_a_node_shows_its_shares():
    one = _node(np.array([10.0, 20.0]), 5.0, np.array([0.99, 0.01]), "a<b", ring="")
    assert "a&lt;b: 99% of 0, 1% of 1" in one
    assert f'r="5.0" fill="{color(0)}"' in one
    assert "<path" not in one
    two = _node(np.array([10.0, 20.0]), 5.0, np.array([0.5, 1.5]), "n", ring="#123456")
    assert two.count("<path") == 2
    assert 'r="9.0" fill="none" stroke="#123456"' in two
    none = _node(np.array([0.0, 0.0]), 5.0, np.array([np.nan, np.nan]), "n", ring="")
    assert "no membership" in none
    quarter, rest = _sectors(0.0, 0.0, 2.0, np.array([0.25, 0.75]))
    assert quarter.startswith('<path d="M0.0 0.0L0.0 -2.0A2.0 2.0 0 0 1 2.0')
    assert " 0 1 1 " in rest
    assert len(_sectors(0.0, 0.0, 1.0, np.array([0.996, 0.004]))) == 1


def test_discs_of_communities_have_areas_and_ties_of_their_sizes():
    flows = np.array([[4.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
    picture = community_picture(flows, np.array([16.0, 4.0, 1.0]), ["a", "b", "c"])
    radii = [float(each) for each in re.findall(r'<circle[^>]* r="([\d.]+)"', picture)]
    np.testing.assert_allclose(radii, [62.0, 31.0, 15.5])
    assert picture.count("<line") == 2
    widths = [float(each) for each in re.findall(r'<line[^>]*stroke-width="([\d.]+)"', picture)]
    np.testing.assert_allclose(widths, [14.0, 7.5])
    total = flows.sum()
    assert f"{2 * 1.0 / total:.1%} of the weight" in picture
    assert f"a: {4.0 / total:.1%} of the weight within" in picture
    centers = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', picture)
    x, y = map(float, centers[0])
    assert (x, y) == pytest.approx((350.0, 202.0 - (210.0 - 75.0)))
    alone = re.findall(
        r'<circle cx="([\d.]+)" cy="([\d.]+)"', community_picture(np.ones((1, 1)), np.ones(1), ["a"])
    )
    assert tuple(map(float, alone[0])) == (350.0, 202.0)


def test_neighboring_columns_are_averaged(rng):
    factor = rng.random((2, 10))
    np.testing.assert_array_equal(averaged(factor, 10), factor)
    np.testing.assert_allclose(averaged(factor, 5), factor.reshape(2, 5, 2).mean(axis=2))
    uneven = averaged(factor, 3)
    np.testing.assert_allclose(uneven[:, 0], factor[:, :3].mean(axis=1))
    np.testing.assert_allclose(uneven[:, 2], factor[:, 6:].mean(axis=1))
    scaled = scaled_rows(np.array([[1.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_array_equal(scaled, [[0.25, 1.0], [0.0, 0.0]])


def test_small_curves():
    def points(values):
        return [
            tuple(map(float, pair.split(",")))
            for pair in re.search(r'points="([^"]+)"', _html.sparkline(values, "x"))[1].split()
        ]

    assert points([1.0, 3.0, 2.0]) == [(0.0, 36.0), (120.0, 4.0), (240.0, 20.0), (240.0, 20.0)]
    assert points([5.0, 5.0])[0] == (0.0, 36.0)  # no spread: a flat line
    falling = points([100.0, 10.0, 1.0])
    assert falling[1] == (120.0, 20.0)  # on a logarithmic scale
    assert points([0.0, 10.0])[1] == (240.0, 4.0)
    assert _html.sparkline([1.0], "x") == ""
    assert _html.sparkline([1.0, math.nan], "x") == ""
    rows = _html.table(["a"], [["x<y"], [_html.Raw("<b>")], [1.23456789]], strong=1)
    assert "x&lt;y" in rows
    assert "<b>" in rows
    assert "1.23457" in rows
    assert rows.count("font-weight:bold") == 1
    assert rows.index("font-weight:bold") > rows.index("x&lt;y")
