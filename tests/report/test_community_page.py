"""The report of communities and its pictures."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nonneg.applications import MixedMembership
from nonneg.datasets import mixed_membership_graph
from nonneg.report.community_page import N_LISTED, draw_graph, mostly_one, shared_weights
from nonneg.report.graph_drawing import (
    N_DRAWN,
    PALETTE,
    _ties,
    color,
    community_picture,
    graph_picture,
    nodes_to_draw,
)
from nonneg.report.graph_export import write_graph
from nonneg.report.graph_layout import placed_nodes


@pytest.fixture(scope="module")
def model():
    planted = mixed_membership_graph(400, 3, mean_degree=20, n_pure=5, rng=0)
    return MixedMembership(3, method="spa").fit(planted.adjacency)


def test_nodes_that_are_tied_are_drawn_near_one_another():
    blocks = sp.block_diag([sp.coo_array(np.ones((6, 6)))] * 2, format="lil")
    blocks[0, 6] = blocks[6, 0] = 1.0
    shares = np.repeat(np.eye(2), 6, axis=0)
    places = placed_nodes(sp.csr_array(blocks), shares)
    assert places.min() == 0.0
    assert places.max() == 1.0
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert distances[:6, :6].mean() < 0.6 * distances[:6, 6:].mean()
    np.testing.assert_array_equal(places, placed_nodes(sp.csr_array(blocks), shares))
    assert placed_nodes(sp.csr_array((1, 1)), np.ones((1, 1))).tolist() == [[0.5, 0.5]]


def test_a_mixed_node_is_a_pie_and_a_pure_one_a_disc():
    A = sp.csr_array(np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=float))
    shares = np.array([[1.0, 0.0], [0.25, 0.75], [0.0, 1.0], [np.nan, np.nan]])
    svg = graph_picture(A, shares, ["a<b", "mix", "c", "alone"], np.array([0, 2]))
    root = ET.fromstring(svg)
    name = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f".//{name}path")) == 2
    assert len(root.findall(f".//{name}line")) == 2
    # Three discs, and rings around the two pure nodes.
    assert len(root.findall(f".//{name}circle")) == 5
    titles = [title.text for title in root.iter(f"{name}title")]
    assert titles == ["a<b: 100% of 0", "mix: 25% of 0, 75% of 1", "c: 100% of 1", "alone: no membership"]


def test_a_pie_has_its_shares_clockwise_from_the_top():
    A = sp.csr_array(np.ones((1, 1)))
    svg = graph_picture(A, np.array([[0.25, 0.6, 0.003, 0.147]]), ["mix"], np.array([], dtype=int))
    found = re.findall(
        r'<path d="M(\S+) (\S+)L(\S+) (\S+)A(\S+) \S+ 0 (\d) 1 (\S+) (\S+)Z" fill="(\S+)"', svg
    )
    assert [row[-1] for row in found] == [PALETTE[0], PALETTE[1], PALETTE[3]]  # tiny shares are left out
    begins = []
    for *numbers, _ in found:
        x, y, x1, y1, radius, large, x2, y2 = map(float, numbers)
        first, last = (np.arctan2(c - x, y - r) / (2 * np.pi) % 1.0 for c, r in ((x1, y1), (x2, y2)))
        begins.append((first, (last - first) % 1.0, large))
        assert np.hypot(x1 - x, y1 - y) == pytest.approx(radius, abs=0.2)
        assert np.hypot(x2 - x, y2 - y) == pytest.approx(radius, abs=0.2)
    np.testing.assert_allclose(begins, [[0, 0.25, 0], [0.25, 0.6, 1], [0.853, 0.147, 0]], atol=5e-3)


def test_communities_are_as_large_as_their_share_and_tied_as_their_nodes_are():
    flows = np.array([[4.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
    root = ET.fromstring(community_picture(flows, np.array([4.0, 1.0, 1.0]), ["a", "b", "c"]))
    name = "{http://www.w3.org/2000/svg}"
    discs, lines = root.findall(f"{name}circle"), root.findall(f"{name}line")
    radii = [float(disc.get("r")) for disc in discs]
    assert radii[0] == 2 * radii[1] == 2 * radii[2]
    places = [(disc.get("cx"), disc.get("cy")) for disc in discs]
    assert len(set(places)) == 3
    assert float(places[0][1]) < min(float(places[1][1]), float(places[2][1]))
    ends = [((line.get("x1"), line.get("y1")), (line.get("x2"), line.get("y2"))) for line in lines]
    assert ends == [(places[1], places[0]), (places[2], places[1])]  # and no line without weight
    strong, weak = (float(line.get("stroke-width")) for line in lines)
    assert strong > weak > 1
    titles = [title.text for title in root.iter(f"{name}title")]
    assert titles == [
        "20.0% of the weight", "10.0% of the weight", "a: 40.0% of the weight within",
        "b: 20.0% of the weight within", "c: 10.0% of the weight within",
    ]  # fmt: skip
    texts = [(text.text, text.get("x")) for text in root.findall(f"{name}text")]
    assert texts == [(letter, place[0]) for letter, place in zip("abc", places, strict=True)]
    _, _, width, height = map(float, root.get("viewBox").split())
    for disc in discs:
        for at, size in (("cx", width), ("cy", height)):
            assert float(disc.get("r")) <= float(disc.get(at)) <= size - float(disc.get("r"))
    (alone,) = ET.fromstring(community_picture(np.ones((1, 1)), np.ones(1), ["a"])).findall(f"{name}circle")
    assert float(alone.get("cx")) == width / 2


def test_names_do_not_cover_one_another(model):
    root = ET.fromstring(draw_graph(model))
    texts = list(root.iter("{http://www.w3.org/2000/svg}text"))
    places = {(text.get("x"), text.get("y")) for text in texts}
    assert len(places) == len(texts) >= 3


def test_a_large_graph_is_drawn_in_part(model):
    adjacency = model.graph_.adjacency
    shown = nodes_to_draw(adjacency, model.memberships_, model.pure_nodes_)
    assert set(model.pure_nodes_) <= set(shown)
    # Pure nodes that are also well connected count once.
    assert N_DRAWN - 3 * 2 <= len(shown) <= N_DRAWN
    small = nodes_to_draw(adjacency[:9, :9], model.memberships_[:9], model.pure_nodes_[:0])
    np.testing.assert_array_equal(small, np.arange(9))


def test_what_is_drawn_of_a_large_sparse_graph_hangs_together():
    planted = mixed_membership_graph(4000, 3, mean_degree=12, rng=0)
    found = MixedMembership(3, method="spa", random_state=0).fit(planted.adjacency)
    shown = nodes_to_draw(found.graph_.adjacency, found.memberships_, found.pure_nodes_)
    assert len(shown) > 0.9 * N_DRAWN
    drawn = found.graph_.adjacency[shown][:, shown]
    ties = np.diff(drawn.indptr)
    assert (ties > 0).all()
    assert connected_components(drawn)[0] <= 3


def test_weights_are_shared_out_without_loss(model):
    flows = shared_weights(model)
    np.testing.assert_allclose(flows, flows.T)
    assert flows.sum() == pytest.approx(model.graph_.adjacency.sum() / model.graph_.adjacency.max())
    assert np.trace(flows) > 1.2 * flows.sum() / 3


def test_communities_beyond_the_palette_have_colors_of_their_own():
    colors = {color(at) for at in range(30)}
    assert len(colors) == 30
    assert set(PALETTE) <= colors
    picture = community_picture(np.eye(1), np.ones(1), ["0: only"])
    assert "0: only" in picture
    assert re.search(r"<line", picture) is None


def test_nodes_that_belong_to_one_community_are_counted():
    assert mostly_one(np.array([[0.95, 0.05], [0.5, 0.5], [np.nan, np.nan]])) == 1


def test_edges_that_are_left_out_are_told_on_the_picture():
    rng = np.random.default_rng(0)
    dense = np.triu(rng.random((100, 100)) < 0.5, 1)
    A = sp.csr_array((dense | dense.T).astype(float))
    svg = graph_picture(A, np.ones((100, 1)), [str(at) for at in range(100)], np.array([0]))
    lines = re.findall(r"<line [^>]*>", svg)
    assert len(lines) == 800
    assert f"800 of {A.nnz // 2} edges are drawn" in svg
    # Every node keeps some of its edges.
    ends = {place for line in lines for place in re.findall(r'x[12]="([^"]*)"', line)}
    assert len(ends) > 90
    faint = float(re.search(r'stroke-opacity="([^"]*)"', lines[0])[1])
    few = graph_picture(A[:9, :9], np.ones((9, 1)), list("abcdefghi"), np.array([0]))
    assert "are drawn" not in few
    assert faint < float(re.search(r'stroke-opacity="([^"]*)"', few)[1])


@pytest.mark.parametrize("scale", [1e-300, 1e308])
def test_huge_and_tiny_weights_make_no_warning(scale, tmp_path):
    pytest.importorskip("networkx")  # old versions warn when they are imported
    planted = mixed_membership_graph(60, 3, mean_degree=20, rng=0).adjacency
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = MixedMembership(3).fit(planted * scale)
        svg = draw_graph(found)
        flows = shared_weights(found)
        community_picture(flows, np.ones(3), list("abc"))
        write_graph(tmp_path / "graph.gexf", found)
    assert "nan" not in svg
    assert np.isfinite(flows).all()
    assert "nan" not in (tmp_path / "graph.gexf").read_text().lower()


def test_the_table_of_nodes_is_short():
    assert N_LISTED <= 100


def test_the_strongest_edge_is_the_widest_and_darkest():
    lines, words = _ties(sp.csr_array([[0, 4.0, 1], [4, 0, 0], [1, 0, 0]]), np.arange(6.0).reshape(3, 2))
    assert words == ""
    widths = [float(re.search('stroke-width="([0-9.]+)"', line)[1]) for line in lines]
    darkness = [float(re.search('stroke-opacity="([0-9.]+)"', line)[1]) for line in lines]
    assert widths == pytest.approx([0.5 + 0.1 + 2.4 / 2, 0.5 + 0.1 + 2.4])
    assert darkness == pytest.approx([0.08 + 0.07 + 0.55 / 2, 0.08 + 0.07 + 0.55], abs=0.006)
