"""What a line of an edge list says: names, weight, headings, comments; and pairs that are hidden."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.applications.communities import number
from nonneg.applications.communities.edge_list import (
    Edges,
    _columns,
    _is_heading,
    _joined,
    _splitter,
    _weight,
    read_edge_list,
)
from nonneg.exceptions import FileFormatError, InvalidParameterError


def edges_of(found):
    """The edges with their weights, by name, each once."""
    upper = sp.triu(found.adjacency).tocoo()
    triples = zip(upper.row, upper.col, upper.data, strict=True)
    return {(found.names[i], found.names[j]): weight for i, j, weight in triples}


def read(tmp_path, text, **options):
    path = tmp_path / "edges.txt"
    path.write_text(text, encoding="utf-8")
    return read_edge_list(path, **options)


@pytest.mark.parametrize(
    ("headings", "columns"),
    [
        (["source", "target"], None),
        (["source", "target", "weight"], None),
        (["source", "target", "id"], [0, 1]),
        (["source", "target", "strength"], None),
        (["source", "target", "strength", "id"], None),
        (["target", "source"], [1, 0]),
        (["id", "from", "to"], [1, 2]),
        (["weight", "u", "v"], [1, 2, 0]),
        (["u", "v", "time", "weights"], [0, 1, 3]),
        (['"Source"', '"TARGET"', '"Type"'], [0, 1]),
        (["source", "b"], None),
        (["a", "target", "weight"], None),
    ],
)
def test_headings_say_where_names_and_weights_are(headings, columns):
    assert _columns(headings) == columns


@pytest.mark.parametrize(
    ("line", "delimiter", "cells", "blanks"),
    [
        ("a b 3", None, ["a", "b", "3"], True),
        ("a b {'weight': 3, 'x': 1}", None, ["a", "b", "{'weight': 3, 'x': 1}"], True),
        ("a b 3 4 5", None, ["a", "b", "3 4 5"], True),
        ("a, b ,3", None, ["a", "b", "3"], False),
        ("a;b;3", None, ["a", "b", "3"], False),
        ("a\tb c\t3", None, ["a", "b c", "3"], False),
        ("a,b;c,d", ";", ["a,b", "c,d"], False),
        ("a b", " ", ["a", "b"], True),
        ("a,", None, ["a"], False),
        ("a,b,", None, ["a", "b", ""], False),
        ('"a,b",c,2', None, ["a,b", "c", "2"], False),
        ("a,b,{'weight': 3, 'x': 1}", None, ["a", "b", "{'weight': 3, 'x': 1}"], False),
        ("a,b,1,2", None, ["a", "b", "1", "2"], False),
    ],
)
def test_lines_are_split_at_what_separates_their_cells(line, delimiter, cells, blanks):
    split, between_blanks = _splitter(line, delimiter)
    assert (split(line), between_blanks) == (cells, blanks)


@pytest.mark.parametrize(
    ("cells", "heading"),
    [
        (["a", "b", "weight"], True),
        (["a", "b", "3"], False),
        (["a", "b", "3 x"], False),
        (["a", "b", "x 3"], True),
        (["a", "b"], False),
        (["a", "b", ""], False),
        (["a", "b", "{}"], False),
    ],
)
def test_a_word_instead_of_a_weight_is_a_heading(cells, heading):
    assert _is_heading(cells) is heading


def test_weights(tmp_path):
    for cells, weight in (
        (["a", "b"], 1.0), (["a", "b", ""], 1.0), (["a", "b", " 2.5 "], 2.5), (["a", "b", "2 1999"], 2.0),
        (["a", "b", "{'weight': 0.5}"], 0.5), (["a", "b", '{"weight" : -3e1}'], -30.0),
        (["a", "b", "{}"], 1.0),
    ):  # fmt: skip
        assert _weight(cells, 7, tmp_path) == weight
    with pytest.raises(FileFormatError, match="line 7: the weight 'x' is not a number"):
        _weight(["a", "b", "x"], 7, tmp_path)


def test_comments_blank_lines_and_lines_that_end_early(tmp_path):
    found = read(tmp_path, "# a,b,9\n\n% c,d,9\na,b,2\n#x,y\n\nb,c\nd,\n")
    assert found.names == ("a", "b", "c", "d")
    assert edges_of(found) == {("a", "b"): 2.0, ("b", "c"): 1.0}
    assert found.notes == ()


@pytest.mark.parametrize(
    ("text", "edges", "told"),
    [
        ("source,target\n1,2\n2,3\n", {("1", "2"): 1, ("2", "3"): 1}, False),
        ("u v\na b\nb c\n", {("a", "b"): 1, ("b", "c"): 1}, False),
        ("ann,bob\n1,2\n2,3\n", {("1", "2"): 1, ("2", "3"): 1}, False),
        ("x,y\na,b\nb,c\n", {("x", "y"): 1, ("a", "b"): 1, ("b", "c"): 1}, True),
        ("a,b\nb,c\n", {("a", "b"): 1, ("b", "c"): 1}, False),
        ("x,y\na,b\nb,y\n", {("x", "y"): 1, ("a", "b"): 1, ("y", "b"): 1}, False),
        ("x,1\na,b\n", {("x", "1"): 1, ("a", "b"): 1}, False),
        ("x,y,2\na,b\n", {("x", "y"): 2, ("a", "b"): 1}, False),
        ("x,y\n", {("x", "y"): 1}, False),
        ("from,to,weight\n1,2,3\n", {("1", "2"): 3}, False),
        ("id,from,to\n7,a,b\n8,b,c\n", {("a", "b"): 1, ("b", "c"): 1}, False),
        ("id from to\n7 a b\n8 b c\n", {("a", "b"): 1, ("b", "c"): 1}, False),
        ("weight u v time\n7 a b 9\n8 b\n", {("a", "b"): 7}, False),
    ],
)
def test_first_lines_that_are_headings(text, edges, told, tmp_path):
    found = read(tmp_path, text)
    assert edges_of(found) == edges
    assert bool(found.notes) == told
    if told:
        assert found.notes == (
            "'x' and 'y' of the first line are in no other line; pass --header if they are headings",
        )


def test_whether_there_are_headings_can_be_said(tmp_path):
    assert edges_of(read(tmp_path, "x,y\na,b\n", header=True)) == {("a", "b"): 1.0}
    assert edges_of(read(tmp_path, "u,v\na,b\n", header=False)) == {("u", "v"): 1.0, ("a", "b"): 1.0}


@pytest.mark.parametrize(
    ("text", "most"),
    [("a,b,1\n", 0), ("a,b,1,2\n", 4), ("a b 1 2\n", 0), ("a b 1 2 3\n", 5), ("a b 1\nc d 1 2 3 4\n", 0),
     ("a,b,1\na,c,1,2,3\na,d,1,2\n", 5)],
)  # fmt: skip
def test_many_cells_are_told(text, most, tmp_path):
    notes = read(tmp_path, text).notes
    assert bool(notes) == bool(most)
    if most:
        assert notes[0].startswith(f"lines have up to {most} cells; the first three were read as two names")


@pytest.mark.parametrize(("duplicates", "weight", "done"), [
    ("sum", 6.0, "their weights were added"), ("max", 3.0, "the largest weight counts"),
])  # fmt: skip
def test_pairs_in_several_lines(duplicates, weight, done, tmp_path):
    found = read(tmp_path, "a,b,1\nb,a,2\na,b,3\nb,c,5\nc,c,7\n", duplicates=duplicates)
    assert edges_of(found) == {("a", "b"): weight, ("b", "c"): 5.0, ("c", "c"): 7.0}
    assert found.notes == (f"1 pairs of nodes are in more than one line; {done}",)
    np.testing.assert_array_equal(found.adjacency.toarray(), found.adjacency.toarray().T)


def test_directions_and_two_sides(tmp_path):
    text = "a,b,1\nb,a,2\nc,a,3\nd,\n"
    directed = read(tmp_path, text, kind="directed")
    np.testing.assert_array_equal(
        directed.adjacency.toarray(), [[0, 1, 0, 0], [2, 0, 0, 0], [3, 0, 0, 0], [0] * 4]
    )
    assert directed.notes == ()
    sides = read(tmp_path, text, kind="bipartite")
    # The names of the first column, then those of the second, whether or not they are the same.
    assert sides.names == ("a", "b", "c", "d", "a", "b")
    expected = np.zeros((6, 6))
    expected[[0, 1, 2], [5, 4, 4]] = [1, 2, 3]
    np.testing.assert_array_equal(sides.adjacency.toarray(), expected + expected.T)


def test_edges_are_joined_by_pair():
    edges = Edges(
        np.array([0, 2, 2, 1]), np.array([2, 0, 2, 2]), np.array([1.0, 2.0, 4.0, 8.0]), ("a", "b", "c")
    )
    both, n_repeated = _joined(edges, "sum", directed=False)
    np.testing.assert_array_equal(both.toarray(), [[0, 0, 3], [0, 0, 8], [3, 8, 4]])
    assert n_repeated == 1
    one, n_repeated = _joined(edges, "sum", directed=True)
    np.testing.assert_array_equal(one.toarray(), [[0, 0, 1], [0, 0, 8], [2, 0, 4]])
    assert n_repeated == 0


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(InvalidParameterError, match="one character, got ', '"):
        read(tmp_path, "a,b\n", delimiter=", ")
    with pytest.raises(FileFormatError, match="contains no edges"):
        read(tmp_path, "a\nb\n")
    assert edges_of(read(tmp_path, "a\tb\n", delimiter="\\t")) == {("a", "b"): 1.0}


@pytest.mark.parametrize("n_first", [None, 5])
def test_hidden_edges_are_predicted_from_the_others(n_first, monkeypatch, rng):
    n = 12
    A = np.triu(rng.random((n, n)) < 0.6, 1) * (1.0 + rng.random((n, n)))
    if n_first:
        A[:n_first, :n_first] = A[n_first:, n_first:] = 0.0
    adjacency, upper = sp.csr_array(A + A.T), sp.coo_array(np.triu(A))
    hidden = rng.random(upper.nnz) < 0.3
    pairs = np.array([[0, 7], [1, 9], [2, 11]]).T
    monkeypatch.setattr(number, "_pairs_without_edge", lambda *given: (pairs[0], pairs[1], 20.0))
    found = number._split_errors(upper, hidden, adjacency, 4, n_first, rng)
    shown = np.zeros((n, n))
    shown[upper.row[~hidden], upper.col[~hidden]] = upper.data[~hidden]
    shown = shown + shown.T
    degrees = shown.sum(axis=1)
    scales = 1 / np.sqrt(degrees + degrees.mean())
    values, vectors = np.linalg.eigh(scales[:, None] * shown * scales)
    order = np.argsort(-values if n_first else -np.abs(values))
    for k in range(1, 5):
        kept = order[:k]
        model = (vectors[:, kept] * values[kept]) @ vectors[:, kept].T / 0.9 * (2 if n_first else 1)
        rows, columns = upper.row[hidden], upper.col[hidden]
        edges = upper.data[hidden] * scales[rows] * scales[columns] - model[rows, columns]
        expected = (edges**2).sum() + 0.1 * 20 / 3 * (model[pairs[0], pairs[1]] ** 2).sum()
        assert found[k - 1] == pytest.approx(expected)
    everything = np.ones(upper.nnz, dtype=bool)
    np.testing.assert_array_equal(
        number._split_errors(upper, everything, adjacency, 4, n_first, rng), np.zeros(4)
    )
