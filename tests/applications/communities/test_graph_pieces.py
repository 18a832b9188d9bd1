"""Forms of graphs and lines of edge lists against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.applications.communities.edge_list import _columns, _is_heading, _splitter
from nonneg.applications.communities.graph import Graph, as_graph, two_sides
from nonneg.exceptions import (
    DataChangedWarning,
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
)


@pytest.fixture
def directed(rng):
    A = rng.integers(0, 4, (6, 6)).astype(float)
    np.fill_diagonal(A, 0.0)
    A[0, 1], A[1, 0], A[5], A[:, 5] = 3.0, 0.0, 0.0, 0.0
    return A


def test_counts_and_degrees(directed):
    found = as_graph(sp.csr_array(directed))
    assert found.kind == "directed"
    assert found.n_edges == np.count_nonzero(directed)
    np.testing.assert_allclose(found.degrees, directed.sum(axis=0) + directed.sum(axis=1))
    np.testing.assert_array_equal(found.isolated, [False] * 5 + [True])
    np.testing.assert_allclose(found.undirected.toarray(), directed + directed.T)
    both = directed + directed.T
    plain = as_graph(both)
    assert plain.kind in ("undirected", "bipartite")
    assert plain.n_edges == np.count_nonzero(np.triu(both))
    np.testing.assert_allclose(plain.degrees, both.sum(axis=1))
    with_loop = both + np.diag([2.0, 0, 0, 0, 0, 0])
    kept = as_graph(with_loop, self_loops="keep")
    assert (kept.n_edges, kept.n_self_loops) == (plain.n_edges + 1, 1)
    with pytest.warns(DataChangedWarning, match="1 edges from a node to itself"):
        dropped = as_graph(with_loop)
    np.testing.assert_allclose(dropped.adjacency.toarray(), both)


@pytest.mark.parametrize(
    ("how", "combine"),
    [("sum", lambda A: A + A.T), ("mean", lambda A: (A + A.T) / 2), ("max", lambda A: np.maximum(A, A.T))],
)
def test_directions_are_combined(how, combine, directed):
    found = as_graph(directed, symmetrize=how)
    assert not found.directed
    np.testing.assert_allclose(found.adjacency.toarray(), combine(directed))
    with pytest.raises(InvalidParameterError, match="Leave one of them out"):
        as_graph(directed, symmetrize=how, kind="directed")


def test_tables_are_bipartite_graphs(rng):
    table = rng.integers(1, 3, (2, 3)).astype(float)
    found = as_graph(table, names=list("abcde"))
    np.testing.assert_array_equal(found.sides, [0, 0, 1, 1, 1])
    np.testing.assert_allclose(found.adjacency.toarray()[:2, 2:], table)
    np.testing.assert_allclose(found.adjacency.toarray()[2:, :2], table.T)
    assert found.names == tuple("abcde")
    with pytest.raises(ShapeError, match="names has 2 entries for a graph of 5 nodes"):
        as_graph(table, names=["a", "b"])
    with pytest.raises(ShapeError, match="one row and one column per node"):
        as_graph(table, kind="undirected")


def test_sides_of_paths_and_cycles():
    path = sp.csr_array(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))
    np.testing.assert_array_equal(two_sides(path), [0, 1, 0, 1])
    triangle = sp.csr_array(np.ones((3, 3)) - np.eye(3))
    assert two_sides(triangle) is None
    two = sp.csr_array(sp.block_diag([path, path]))
    np.testing.assert_array_equal(two_sides(two), [0, 1, 0, 1] * 2)
    assert two_sides(sp.csr_array(sp.block_diag([path, triangle]))) is None
    assert two_sides(sp.csr_array(np.eye(2))) is None
    assert as_graph(path).kind == "bipartite"
    assert as_graph(path, kind="undirected").kind == "undirected"
    with pytest.raises(InvalidDataError, match="not bipartite"):
        as_graph(triangle, kind="bipartite")


def test_wrong_weights_are_named_by_their_nodes(directed):
    wrong = directed.copy()
    wrong[2, 3] = -1.5
    with pytest.raises(
        NegativeDataError, match=r"1 entries are below 0, the first between nodes 2 and 3 \(-1.5\)"
    ):
        as_graph(wrong)
    with pytest.raises(NegativeDataError, match="nodes 'c' and 'd'"):
        as_graph(wrong, names=list("abcdef"))
    wrong[2, 3] = np.inf
    with pytest.raises(NonFiniteDataError, match="nodes 2 and 3 has the weight inf"):
        as_graph(wrong)
    with pytest.raises(InvalidDataError, match="no edges"):
        as_graph(np.zeros((3, 3)))
    assert Graph(sp.csr_array(np.zeros((2, 2)))).kind == "undirected"


@pytest.mark.parametrize(
    ("headings", "columns"),
    [
        (["source", "target"], None), (["source", "target", "weight"], None),
        (["target", "source"], [1, 0]), (["id", "source", "target"], [1, 2]),
        (["weight", "source", "target"], [1, 2, 0]), (["a", "b"], None), (['"Source"', "TARGET", "x"], None),
    ],
)  # fmt: skip
def test_headings_say_where_names_and_weights_are(headings, columns):
    assert _columns(headings) == columns


def test_lines_are_split_at_their_delimiter():
    for line, delimiter, cells, blanks in (
        ("a b 2", None, ["a", "b", "2"], True), ("a,b,2", None, ["a", "b", "2"], False),
        ("a b\tc d", None, ["a b", "c d"], False), ('"x;y",b', None, ["x;y", "b"], False),
        ("a b {'w': 1, 'v': 2}", None, ["a", "b", "{'w': 1, 'v': 2}"], True),
        ("a|b", "|", ["a", "b"], False), ("a,", ",", ["a"], False),
    ):  # fmt: skip
        split, between_blanks = _splitter(line, delimiter)
        assert split(line) == cells
        assert between_blanks is blanks
    assert _is_heading(["from", "to", "weight"])
    assert not _is_heading(["a", "b", "2"])
    assert not _is_heading(["a", "b"])
    assert not _is_heading(["a", "b", "{'weight': 1}"])
