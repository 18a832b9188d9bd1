"""Graphs from files."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from nonneg.applications.communities.files import node_labels, read_graph, read_node_labels
from nonneg.exceptions import FileFormatError, InvalidParameterError, UnknownNameError


def written(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


EDGES = [[0, 3, 0], [3, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.txt", "# people\nAnn Bob 3\n\nBob Cyd\n"),
        ("tabs.tsv", "Ann\tBob\t3\nBob\tCyd\t1\n"),
        ("commas.csv", "source,target,weight\nAnn,Bob,3\nBob,Cyd,1\n"),
        ("quoted.csv", '"Ann","Bob",3\n"Bob","Cyd",\n'),
        ("semicolon.csv", "from;to;how often\nAnn;Bob;3\nBob;Cyd;1\n"),
        ("percent.edges", "% sym\nAnn Bob 3.0 1290000000\nBob Cyd 1.0 1290000001\n"),
        ("twice.txt", "Ann Bob 1\nBob Ann 2\nBob Cyd\n"),
        ("windows.csv", "\ufeffAnn, Bob, 3\r\nBob, Cyd, 1\r\n"),
    ],
)
def test_edge_lists_of_all_kinds_give_the_same_graph(tmp_path, name, text):
    found = read_graph(written(tmp_path, name, text))
    assert found.names == ("Ann", "Bob", "Cyd")
    np.testing.assert_array_equal(found.graph.toarray(), EDGES)
    assert found.source == name
    assert bool(found.notes) == (name == "twice.txt")


def test_pairs_that_come_twice_are_added(tmp_path):
    added = read_graph(written(tmp_path, "a.txt", "a b 1\nb a 2\na a 5\n"))
    assert added.graph.toarray().tolist() == [[5, 3], [3, 0]]
    assert "1 pairs" in added.notes[0]


def test_a_name_alone_is_an_isolated_node(tmp_path):
    found = read_graph(written(tmp_path, "a.csv", "a,b\nlonely,\n"))
    assert found.names == ("a", "b", "lonely")
    assert found.graph.toarray()[2].sum() == 0


def test_headings_can_be_said(tmp_path):
    path = written(tmp_path, "a.csv", "x,y\na,b\n")
    assert read_graph(path).names == ("x", "y", "a", "b")
    assert read_graph(path, header=True).names == ("a", "b")
    other = written(tmp_path, "b.txt", "a|b|2\n")
    assert read_graph(other, delimiter="|").graph[0, 1] == 2
    square = "source,target,weight,kind,year\n" + "".join(f"{at},{at + 1},1,x,2001\n" for at in range(5))
    assert len(read_graph(written(tmp_path, "square.csv", square)).names) == 6


def test_packed_edge_lists_are_read(tmp_path):
    path = tmp_path / "a.txt.gz"
    with gzip.open(path, "wt") as stream:
        stream.write("1 2\n2 3\n")
    assert read_graph(path).names == ("1", "2", "3")


def test_matrices_are_read(tmp_path):
    A = sp.csr_array(np.array(EDGES, dtype=float))
    sp.save_npz(tmp_path / "a.npz", A)
    scipy.io.mmwrite(tmp_path / "a.mtx", sp.coo_matrix(A), symmetry="symmetric")
    np.save(tmp_path / "a.npy", A.toarray())
    for name in ("a.npz", "a.mtx", "a.npy"):
        found = read_graph(tmp_path / name)
        np.testing.assert_array_equal(sp.csr_array(found.graph).toarray(), EDGES)
        assert found.names is None


@pytest.mark.parametrize("name", ["a.graphml", "a.gml"])
def test_graphs_of_networkx_keep_their_names(tmp_path, name):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_edge("Ann", "Bob", weight=3)
    getattr(networkx, f"write_{name.split('.')[1]}")(graph, tmp_path / name)
    found = read_graph(tmp_path / name).graph
    assert set(found.nodes) == {"Ann", "Bob"}
    assert found["Ann"]["Bob"]["weight"] == 3
    numbered = networkx.relabel_nodes(graph, {"Ann": 0, "Bob": 1})
    networkx.set_node_attributes(numbered, {0: "Ann", 1: "Bob"}, "name")
    networkx.write_graphml(numbered, tmp_path / "numbered.graphml")
    assert set(read_graph(tmp_path / "numbered.graphml").graph.nodes) == {"Ann", "Bob"}


def test_files_that_are_no_graphs_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="does not exist"):
        read_graph(tmp_path / "none.txt")
    with pytest.raises(FileFormatError, match=r"line 2: the weight 'heavy'"):
        read_graph(written(tmp_path, "a.txt", "a b 1\nb c heavy\n"))
    table = "".join(f"{at}," + ",".join(str(abs(at - other)) for other in range(6)) + "\n" for at in range(6))
    for name, text in (("named.csv", ",0,1,2,3,4,5\n" + table), ("plain.csv", table)):
        with pytest.raises(FileFormatError, match="lines are a matrix, not a list of edges"):
            read_graph(written(tmp_path, name, text))
    with pytest.raises(FileFormatError, match="no edges"):
        read_graph(written(tmp_path, "b.txt", "# nothing\n"))
    with pytest.raises(FileFormatError, match=r"unknown file type \(\.docx\)"):
        read_graph(written(tmp_path, "a.docx", "a b"))
    (tmp_path / "c.csv").write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(FileFormatError, match="UTF-8"):
        read_graph(tmp_path / "c.csv")
    pytest.importorskip("networkx")
    with pytest.raises(FileFormatError, match="GRAPHML"):
        read_graph(written(tmp_path, "a.graphml", "<graph"))
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"a b\n" * 1000)[:30])
    with pytest.raises(FileFormatError, match="could not be read"):
        read_graph(tmp_path / "cut.txt.gz")


TRIANGLE = ("5", "7", "9")


@pytest.mark.parametrize(
    ("name", "text", "total"),
    [
        (
            "gephi.csv",
            "Source,Target,Type,Id,Weight\n5,7,Undirected,0,2.5\n7,9,Undirected,1,1\n5,9,x,2,1\n",
            4.5,
        ),
        ("ids.csv", "id,source,target\n1,5,7\n2,7,9\n3,5,9\n", 3),
        ("times.txt", "source target timestamp\n5 7 1999\n7 9 2000\n5 9 2001\n", 3),
        ("plain.tsv", "source\ttarget\n5\t7\n7\t9\n5\t9\n", 3),
        ("own_words.csv", "author,coauthor\n5,7\n7,9\n5,9\n", 3),
        ("ends_in_a_comma.csv", "5,7,\n7,9,\n5,9,\n", 3),
    ],
)
def test_headings_say_which_columns_are_names_and_weights(tmp_path, name, text, total):
    found = read_graph(written(tmp_path, name, text))
    assert found.names == TRIANGLE
    assert found.graph.sum() / 2 == total
    assert not found.notes


def test_names_that_look_like_headings(tmp_path):
    # "u" and "v" are also nodes: the first line is an edge.
    found = read_graph(written(tmp_path, "uv.txt", "u v\nv w\nw u\n"))
    assert found.names == ("u", "v", "w")
    assert found.graph.nnz == 6


def test_delimiters(tmp_path):
    path = written(tmp_path, "a.txt", '"a"\tb\nb\tc\n')
    assert read_graph(path, delimiter="\\t").names == ("a", "b", "c")
    for wrong in ("", ",,"):
        with pytest.raises(InvalidParameterError, match="delimiter must be one character"):
            read_graph(path, delimiter=wrong)


def test_a_choice_of_an_array_is_refused_where_there_is_none(tmp_path):
    (tmp_path / "edges.csv").write_text("a,b\nb,c\n", encoding="utf-8")
    with pytest.raises(InvalidParameterError, match="is a list of edges and contains only one"):
        read_graph(tmp_path / "edges.csv", variable="A")


def test_a_line_that_ends_before_the_weight_has_weight_one(tmp_path):
    path = written(tmp_path, "a.csv", "source,target,date,weight\nAnn,Bob,x,3\nBob,Cyd,y\n")
    np.testing.assert_array_equal(read_graph(path).graph.toarray(), EDGES)


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("a.csv", "node,party\nAnn, left\nBob,right\nCyd\n", {}),
        ("a.csv", "party,x,Name\nleft,1, Ann\nright,2,Bob\n", {}),  # by its heading
        ("a.csv", "who,party\nAnn,left\nBob,right\n", {}),  # the first column
        ("a.tsv", "id\tparty\nAnn\tleft\nBob\tright\n", {}),
        ("a.TXT", "id\tparty\nAnn\tleft\nBob\tright\n", {}),
        ("a.csv", "id|party\nAnn|left\nBob|right\n", {"delimiter": "|"}),
        ("a.csv", "id\tparty\nAnn\tleft\nBob\tright\n", {"delimiter": "\\t"}),
    ],
)
def test_labels_from_a_table_of_nodes(tmp_path, name, text, options):
    path = written(tmp_path, name, text)
    assert read_node_labels(path, "party", **options) == {"Ann": "left", "Bob": "right"}
    with pytest.raises(UnknownNameError, match="labels='club' is not known"):
        read_node_labels(path, "club", **options)


def test_tables_of_nodes_that_cannot_be_read(tmp_path):
    with pytest.raises(FileFormatError, match=r"No such file.* Give the path of a table"):
        read_node_labels(tmp_path / "none.csv", "party")
    with pytest.raises(UnknownNameError, match="labels"):
        read_node_labels(written(tmp_path, "empty.csv", ""), "party")
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(FileFormatError, match="could not be read as a table"):
        read_node_labels(tmp_path / "a.csv", "party")


def test_labels_of_a_networkx_graph():
    graph = pytest.importorskip("networkx").Graph([("a", "b"), ("b", "c")])
    graph.nodes["b"]["club"] = "x"
    assert node_labels(graph, "club") == [None, "x", None]
    with pytest.raises(UnknownNameError, match=r"labels='party' is not known.*'club'"):
        node_labels(graph, "party")
