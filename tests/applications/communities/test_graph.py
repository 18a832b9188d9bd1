"""Graphs from matrices and networkx: one symmetric form, or an error that says what to do."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.applications.communities import MixedMembership, as_graph
from nonneg.exceptions import (
    DataChangedWarning,
    DataTypeError,
    InvalidDataError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
    UnknownNameError,
)

PATH = np.array([[0, 1, 0], [1, 0, 2], [0, 2, 0]])


@pytest.mark.parametrize("kind", [sp.csr_array, sp.coo_array, sp.csc_matrix, sp.lil_array, np.asarray])
def test_matrices_of_all_kinds_become_the_same_graph(kind):
    graph = as_graph(kind(PATH))
    assert graph.adjacency.format == "csr"
    assert graph.adjacency.dtype == np.float64
    np.testing.assert_array_equal(graph.adjacency.toarray(), PATH)
    assert (graph.n_nodes, graph.n_edges, graph.names) == (3, 2, None)
    np.testing.assert_array_equal(graph.degrees, [1, 3, 2])


def test_the_input_is_not_changed():
    given = sp.csr_array(
        (np.array([1.0, 1.0, 0.0, 3.0]), np.array([1, 1, 2, 0]), np.array([0, 3, 4, 4])), shape=(3, 3)
    )
    before = given.data.copy(), given.indices.copy()
    as_graph(given, kind="undirected")
    as_graph(given)
    np.testing.assert_array_equal(given.data, before[0])
    np.testing.assert_array_equal(given.indices, before[1])


def test_networkx_graphs_bring_names_and_weights():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_edge("Ann", "Bob", weight=3)
    graph.add_edge("Bob", "Cyd", strength=5.0)
    found = as_graph(graph)
    assert found.names == ("Ann", "Bob", "Cyd")
    assert found.adjacency.toarray().tolist() == [[0, 3, 0], [3, 0, 1], [0, 1, 0]]
    assert as_graph(graph, weight=None).adjacency.toarray().sum() == 4
    assert as_graph(graph, weight="strength").adjacency[1, 2] == 5
    parallel = networkx.MultiGraph([("a", "b"), ("a", "b")])
    assert as_graph(parallel).adjacency[0, 1] == 2
    assert as_graph(graph, names=["x", "y", "z"]).names == ("x", "y", "z")


def test_graphs_of_igraph_bring_names_and_weights():
    networkx = pytest.importorskip("networkx")

    class Graph:
        """What igraph.Graph has."""

        def to_networkx(self, *, vertex_attr_hashable):
            assert vertex_attr_hashable == "name"
            return networkx.Graph([("Ann", "Bob", {"weight": 3})])

    graph = as_graph(Graph())
    assert graph.names == ("Ann", "Bob")
    assert graph.adjacency[0, 1] == 3


def test_networkx_graphs_that_do_not_fit_are_refused():
    networkx = pytest.importorskip("networkx")
    with pytest.raises(InvalidDataError, match="no nodes"):
        as_graph(networkx.Graph())
    words = networkx.Graph()
    words.add_edge(0, 1, weight="strong")
    with pytest.raises(DataTypeError, match="weight=None"):
        as_graph(words)
    directed = networkx.DiGraph([("a", "b")])
    assert as_graph(directed).kind == "directed"
    assert as_graph(directed, kind="undirected").adjacency.toarray().tolist() == [[0, 1], [1, 0]]


def test_a_directed_graph_stays_directed_or_is_made_undirected():
    directed = np.array([[4.0, 3.0, 0.0], [1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    kept = as_graph(directed, self_loops="keep")
    assert kept.directed
    assert (kept.n_edges, kept.degrees.tolist()) == (4, [12.0, 6.0, 2.0])
    np.testing.assert_array_equal(kept.adjacency.toarray(), directed)
    # The weights of both directions are added; a loop is one edge.
    made = as_graph(directed, kind="undirected", self_loops="keep")
    np.testing.assert_array_equal(made.adjacency.toarray(), [[4, 4, 0], [4, 0, 2], [0, 2, 0]])


def test_weights_that_differ_by_rounding_are_equal():
    close = PATH * np.array([[1, 1 + 1e-14, 1], [1, 1, 1], [1, 1, 1]])
    adjacency = as_graph(close).adjacency
    assert (adjacency != adjacency.T).nnz == 0


def test_a_signed_graph_is_refused_with_the_place_and_the_remedy():
    signed = PATH.astype(float)
    signed[1, 2] = signed[2, 1] = -0.5
    with pytest.raises(NegativeDataError, match=r"entry \[1, 2\] is -0.5. The graph is signed.*abs"):
        as_graph(signed)


def test_lists_of_edges_and_other_entries_and_shapes_are_refused():
    edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)]
    with pytest.raises(ShapeError, match=r"shape \(5, 2\), as of an edge list. Pass networkx.Graph"):
        MixedMembership(2).fit(edges)
    with pytest.raises(DataTypeError, match=r"entries of type <U1. For an edge list pass networkx.Graph"):
        MixedMembership(2).fit([("a", "b"), ("b", "c"), ("c", "d")])
    assert as_graph(edges, kind="bipartite").sides.tolist() == [0] * 5 + [1] * 2
    with pytest.raises(ShapeError, match="kind='bipartite'"):
        as_graph(np.ones((2, 3)), kind="undirected")
    with pytest.raises(ShapeError, match="one row and one column per node"):
        as_graph(np.ones(4))
    with pytest.raises(DataTypeError, match="complex"):
        as_graph(PATH.astype(complex))
    bad = PATH.astype(float)
    bad[1, 2] = np.nan
    with pytest.raises(NonFiniteDataError, match=r"entry \[1, 2\] is nan"):
        as_graph(bad)
    with pytest.raises(InvalidDataError, match="no edges"):
        as_graph(np.zeros((3, 3)))
    with pytest.raises(InvalidDataError, match="no nodes"):
        as_graph(sp.csr_array((0, 0)))
    with pytest.raises(ShapeError, match="2 entries for a graph of 3"):
        as_graph(PATH, names=["a", "b"])


def test_self_loops_are_dropped_with_a_count_or_kept():
    loops = PATH + np.diag([5, 0, 1])
    with pytest.warns(DataChangedWarning, match="2 edges from a node to itself"):
        graph = as_graph(loops)
    np.testing.assert_array_equal(graph.adjacency.toarray(), PATH)
    assert graph.n_self_loops == 2
    kept = as_graph(loops, self_loops="keep")
    np.testing.assert_array_equal(kept.adjacency.toarray(), loops)
    assert kept.n_edges == 4
    with pytest.raises(UnknownNameError, match="self_loops"):
        as_graph(loops, self_loops="halve")


def test_isolated_nodes_are_told():
    graph = as_graph(sp.block_diag([sp.coo_array(PATH), np.zeros((1, 1))], format="csr"))
    np.testing.assert_array_equal(graph.isolated, [False, False, False, True])


def test_a_weight_that_no_edge_has_is_refused():
    graph = pytest.importorskip("networkx").Graph([("a", "b", {"times": 3})])
    assert as_graph(graph, weight="times").adjacency.max() == 3
    assert as_graph(graph).adjacency.max() == 1
    with pytest.raises(UnknownNameError, match=r"weight='time' is not known.*'times'"):
        as_graph(graph, weight="time")


def test_data_frames_bring_names():
    frame = pytest.importorskip("pandas").DataFrame([[0, 2], [2, 0]], index=["a", "b"], columns=["a", "b"])
    assert as_graph(frame).names == ("a", "b")
    assert as_graph(frame.reset_index(drop=True)).names == ("a", "b")
    assert as_graph(frame.set_axis([0, 1], axis=0).set_axis([0, 1], axis=1)).names is None
    with pytest.raises(ShapeError, match="have different names"):
        as_graph(frame.loc[["b", "a"]])


def test_ties_that_come_several_times_are_added_in_a_type_that_holds_the_sum():
    rows = np.repeat([0, 1], 300)
    found = as_graph(sp.coo_array((np.ones(600, dtype=np.uint8), (rows, 1 - rows))))
    np.testing.assert_array_equal(found.adjacency.toarray(), [[0, 300], [300, 0]])


def test_tables_and_graphs_with_two_sides_are_bipartite():
    table = as_graph(np.array([[1, 2, 0], [0, 0, 3]]))
    assert table.kind == "bipartite"
    assert table.sides.tolist() == [0, 0, 1, 1, 1]
    assert table.n_edges == 3
    frame = pytest.importorskip("pandas").DataFrame([[1, 0, 1]], index=["w"], columns=["a", "b", "c"])
    assert as_graph(frame).names == ("w", "a", "b", "c")
    # The same edges with the nodes in another order, and a node alone.
    shuffled = sp.csr_array((6, 6)).tolil()
    for i, j in ((4, 1), (4, 3), (0, 2)):
        shuffled[i, j] = shuffled[j, i] = 1.0
    found = as_graph(shuffled.tocsr()).sides
    assert found[[4, 1, 3]].tolist() in ([1, 0, 0], [0, 1, 1])
    assert found[0] != found[2]
    triangle = np.ones((3, 3)) - np.eye(3)
    assert as_graph(triangle).kind == "undirected"
    with pytest.raises(InvalidDataError, match="cycle of odd length"):
        as_graph(triangle, kind="bipartite")
    # A square table is a graph unless it is said to be a table.
    square = np.array([[1.0, 1.0], [0.0, 1.0]])
    assert as_graph(square, self_loops="keep").kind == "directed"
    assert as_graph(square, kind="bipartite").n_nodes == 4
    with pytest.raises(UnknownNameError, match="kind"):
        as_graph(triangle, kind="tripartite")
