"""Which nodes, edges and names of a large graph are drawn, and how strong the lines are."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.report import graph_drawing as drawing
from nonneg.report import graph_layout
from nonneg.report.graph_layout import corner_places, placed_nodes


def strokes(lines):
    found = [re.search(r'opacity="([\d.]+)" stroke-width="([\d.]+)"', line) for line in lines]
    return [(float(each[1]), float(each[2])) for each in found]


@pytest.mark.parametrize("n", [5, 30])
def test_many_lines_are_fainter(n, rng):
    A = np.triu(rng.random((n, n)) ** 2, 1)
    A[0, 1] = 3.0
    places = rng.random((n, 2)) * 100
    lines, words = drawing._ties(sp.csr_array(A + A.T + 9 * np.eye(n)), places)
    n_edges = n * (n - 1) // 2
    assert (len(lines), words) == (n_edges, "")
    shares = np.sort(np.sqrt(A[np.triu_indices(n, 1)] / 3.0))
    faint = min(1.0, math.sqrt(250 / n_edges))
    expected = [(0.08 + (0.07 + 0.55 * s) * faint, 0.5 + (0.1 + 2.4 * s) * faint) for s in shares]
    found = np.array(strokes(lines))
    np.testing.assert_allclose(found[:, 0], [opacity for opacity, _ in expected], atol=0.0051)
    np.testing.assert_allclose(found[:, 1], [width for _, width in expected], atol=0.051)
    ends = [float(number) for number in re.findall(r'[xy][12]="([\d.]+)"', lines[-1])]
    np.testing.assert_allclose(ends, [*places[0], *places[1]], atol=0.051)


def test_no_edges_are_drawn_where_there_are_none():
    assert drawing._ties(sp.csr_array(np.eye(3)), np.zeros((3, 2))) == ([], "")


@pytest.mark.parametrize("equal", [False, True])
def test_of_many_edges_the_strongest_are_drawn(equal, rng):
    n = 45
    A = np.ones((n, n)) if equal else np.triu(rng.random((n, n)), 1)
    rows, columns = np.triu_indices(n, 1)
    weights = A[rows, columns]
    drawn = drawing._sample_of_ties(rows, columns, weights, n)
    assert len(drawn) == len(set(drawn)) == 800
    order = np.lexsort((np.random.default_rng(len(weights)).random(len(weights)), -weights))
    seen, first, later = np.zeros(n, dtype=int), [], []
    for at in order:
        (first if min(seen[rows[at]], seen[columns[at]]) < 2 else later).append(at)
        seen[[rows[at], columns[at]]] += 1
    np.testing.assert_array_equal(drawn, [*first, *later][:800])
    lines, words = drawing._ties(sp.csr_array(np.where(np.tri(n, k=0), 0, A)), rng.random((n, 2)))
    assert len(lines) == 800
    kind = (
        "some of every node, then an even sample"
        if equal
        else "the strongest of every node, then the strongest"
    )
    assert words == f"800 of 990 edges are drawn: {kind}"
    np.testing.assert_array_equal(
        drawing._sample_of_ties(rows[:800], columns[:800], weights[:800], n), np.arange(800)
    )


def ring_of(n):
    A = sp.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    return sp.csr_array(A + A.T)


def test_all_nodes_of_a_small_graph_are_drawn():
    np.testing.assert_array_equal(
        drawing.nodes_to_draw(ring_of(160), np.ones((160, 1)), np.array([3])), range(160)
    )


@pytest.mark.parametrize("k", [1, 2, 3])
def test_nodes_around_the_pure_ones_are_drawn(k):
    n = 600
    pure = np.array([100, 300, 500])[:k]
    # A node has the membership of the nearest pure one; on a ring the nodes around it are tied to it.
    nearest = np.abs(np.arange(n)[:, None] - pure).argmin(axis=1)
    memberships = np.eye(k)[nearest]
    memberships[97] = np.nan
    found = drawing.nodes_to_draw(ring_of(n), memberships, pure)
    each = (160 - k) // k
    assert len(found) == k + k * each
    assert (np.diff(found) > 0).all()
    for community, start in enumerate(pure):
        near = found[np.abs(found - start) <= each + 3]
        assert len(near) == each + 1
        assert (nearest[near] == community).all()
        assert (np.diff(near) == 1).all()
    assert 97 not in found
    assert 98 in found


def test_nodes_are_added_by_rank_and_those_that_are_taken_are_passed():
    ranks = np.array([0.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    A = sp.csr_array(np.ones((6, 6)))
    assert drawing._around(A, ranks, 0, {2}, 3) == [0, 1, 3]
    assert drawing._around(A, ranks, 5, {5}, 9) == [1, 2, 3, 4]
    path = sp.csr_array(np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1))
    assert drawing._around(path, ranks, 3, set(), 4) == [3, 2, 1, 4]
    assert drawing._around(path, ranks, 1, set(), 1) == [1]


@pytest.mark.parametrize("ring", [False, True])
def test_names_that_would_cover_others_are_left_out(ring):
    size, gap = (14, 5) if ring else (11, 1)
    half = 0.29 * size * 3
    place = np.array([100.0, 50.0])

    def shown(*shifts):
        wanted = [(place, 10.0, "abc", ring), *((place + shift, 10.0, "def", ring) for shift in shifts)]
        return [
            re.findall(r'x="([\d.]+)" y="([\d.]+)".*>(\w+)<', text)[0] for text in drawing._labels(wanted)
        ]

    x, y, text = shown()[0]
    assert (float(x), text) == (100.0, "abc")
    assert float(y) == pytest.approx(60 + gap + 0.85 * size, abs=0.051)
    for shift in ([2 * half, 0], [-2 * half, 0], [0, size], [0, -size]):
        assert len(shown(np.array(shift) * 1.01)) == 2
        assert len(shown(np.array(shift) * 0.99)) == 1
    # Those after one that is left out are still written.
    assert [text for _, _, text in shown(np.array([0.0, 1.0]), np.array([0.0, 2.0 * size]))] == ["abc", "def"]


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_corners_are_those_of_a_regular_polygon(k):
    expected = {1: [(1, 0)], 2: [(1, 0), (-1, 0)], 4: [(1, 0), (0, 1), (-1, 0), (0, -1)]}
    half = math.sqrt(3) / 2
    expected[3] = [(1, 0), (-0.5, half), (-0.5, -half)]
    np.testing.assert_allclose(corner_places(k), expected[k], atol=1e-12)


def test_layout_is_that_of_forces_by_hand(monkeypatch):
    # At the end of all steps nodes move to and fro, and rounding decides where they stop.
    monkeypatch.setattr(graph_layout, "N_STEPS", 4)
    A = sp.csr_array(np.array([[0, 16.0, 0], [16.0, 0, 1.0], [0, 1.0, 0]]))
    memberships = np.array([[1.0, 0.0], [np.nan, np.nan], [0.25, 0.75]])
    shares = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    at = shares @ [[1, 0], [-1, 0]] + 0.15 * np.random.default_rng([3, 2]).standard_normal((3, 2))
    pull, ideal = {(0, 1): 1.0, (1, 2): 0.5}, 2 / math.sqrt(3)
    for step in np.geomspace(0.2, 0.004, 4):
        forces = -0.6 * at
        for i in range(3):
            for j in range(3):
                apart = at[i] - at[j]
                forces[i] += apart * ideal**2 / (apart @ apart + 1e-6)
                if tie := pull.get((min(i, j), max(i, j))):
                    forces[i] -= apart * tie * np.linalg.norm(apart) / ideal
        lengths = np.linalg.norm(forces, axis=1, keepdims=True)
        at = at + forces / lengths * np.minimum(lengths, step)
    expected = (at - at.min(axis=0)) / (at.max(axis=0) - at.min(axis=0))
    np.testing.assert_allclose(placed_nodes(A, memberships), expected, atol=1e-9)


def test_a_single_node_is_in_the_middle_and_nodes_without_ties_are_apart():
    np.testing.assert_array_equal(placed_nodes(sp.csr_array((1, 1)), np.ones((1, 2))), [[0.5, 0.5]])
    places = placed_nodes(sp.csr_array((2, 2)), np.ones((2, 1)))
    np.testing.assert_allclose(np.sort(places, axis=0), [[0, 0], [1, 1]])


def test_huge_and_tiny_ties_look_like_others():
    flows = np.array([[3.0, 1.0, 0.5], [1.0, 2.0, 0.0], [0.5, 0.0, 4.0]])
    expected = drawing.community_picture(flows, np.array([5.0, 3.0, 2.0]), ("a", "b", "c"))
    for scale in (1e200, 1e-200):
        assert (
            drawing.community_picture(scale * flows, np.array([5.0, 3.0, 2.0]), ("a", "b", "c")) == expected
        )
