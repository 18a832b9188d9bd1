"""What every reader returns: indices that fit, names that fit, columns that were chosen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from nonneg.exceptions import FileFormatError, InvalidParameterError, UnknownNameError
from nonneg.io.table import (
    Contents,
    Selection,
    Table,
    check_variable,
    checked_table,
    choose_variable,
    compressed_matrix,
    selected_columns,
)

SOUND = {"data": [1.0, 2.0, 3.0], "indices": [0, 2, 1], "indptr": [0, 2, 3], "shape": (2, 3)}


def matrix(by_rows=True, **changes):
    """Build the matrix [[1, 0, 2], [0, 3, 0]], or its transpose, with some parts changed."""
    parts = SOUND | changes
    shape = parts["shape"] if by_rows else tuple(parts["shape"][::-1])
    arrays = (np.asarray(parts[name]) for name in ("data", "indices", "indptr"))
    return compressed_matrix(*arrays, shape, by_rows=by_rows, source="file")


@pytest.mark.parametrize("by_rows", [True, False])
def test_sound_arrays_are_a_matrix(by_rows):
    found, X = matrix(by_rows), np.array([[1.0, 0, 2], [0, 3, 0]])
    np.testing.assert_array_equal(found.toarray(), X if by_rows else X.T)
    assert found.format == ("csr" if by_rows else "csc")
    # Entries beyond the last row are not part of it.
    np.testing.assert_array_equal(matrix(by_rows, indptr=[0, 1, 2]).nnz, 2)
    empty = matrix(by_rows, data=np.zeros(0), indices=np.zeros(0, int), indptr=[0, 0, 0])
    assert empty.nnz == 0


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        {"data": [[1.0, 2.0, 3.0]]},
        {"indices": [[0, 2, 1]]},
        {"indptr": [[0, 2, 3]]},
        {"indices": [0.0, 2.0, 1.0]},
        {"indptr": [0.0, 2.0, 3.0]},
        {"shape": (3, 3)},
        {"shape": (1, 3)},
        {"shape": (2, -1)},
        {"data": [1.0, 2.0]},
        {"indptr": [1, 2, 3]},
        {"indptr": [0, 2, 4]},
        {"indptr": [0, 3, 2]},
        {"indices": [0, 3, 1]},
        {"indices": [-1, 2, 1]},
    ],
)
def test_arrays_that_are_no_matrix_are_refused(by_rows, changes):
    with pytest.raises(FileFormatError, match="file contains a sparse matrix with impossible indices: "):
        matrix(by_rows, **changes)


def test_labels_and_features_are_columns_by_name_or_place():
    X = np.array([[1.0, 2.5, 3.0], [4.0, 5.0, 6.0]])
    named = Contents(X, None, ["a", "b", "c"])
    found = selected_columns(named, Selection(label="b", drop=("0",)), "file")
    np.testing.assert_array_equal(found.X, X[:, [2]])
    assert (found.column_names, found.labels, found.label_name) == (["c"], ["2.5", "5"], "b")
    bare = selected_columns(Contents(sparse.csr_array(X)), Selection(columns=("2", "0"), label="1"), "file")
    np.testing.assert_array_equal(bare.X.toarray(), X[:, [0, 2]])
    assert (bare.column_names, bare.labels, bare.label_name) == (None, ["2.5", "5"], "1")
    plain = selected_columns(named, Selection(columns=("c", "a")), "file")
    assert (plain.column_names, plain.labels, plain.label_name) == (["a", "c"], None, None)


@pytest.mark.parametrize(
    ("contents", "selection"),
    [
        (Contents(np.ones((2, 3)), selected=True), Selection(drop=("0",))),
        (Contents(np.ones((2, 3))), Selection()),
        (Contents(np.ones(3)), Selection(drop=("0",))),
    ],
    ids=["done already", "nothing chosen", "no table"],
)
def test_nothing_is_chosen_twice(contents, selection):
    assert selected_columns(contents, selection, "file") is contents


def test_places_of_columns():
    names = ["a", "b", "b", "7"]
    assert not Selection()
    assert all([Selection(columns=("a",)), Selection(drop=("a",)), Selection(label="a")])
    assert Selection(columns=("7", "a")).places(names, 4, "f") == ([0, 3], None)
    assert Selection(drop=("a",), label="3").places(names, 4, "f") == ([1, 2], 3)
    assert Selection(drop=("3",)).places(None, 4, "f") == ([0, 1, 2], None)
    chosen = Selection(columns=("x",), drop=("y",), label="z")
    assert [chosen.names(cell) for cell in "xyzw"] == [True, True, True, False]
    assert not Selection().names("x")
    with pytest.raises(InvalidParameterError, match="--columns b: f has several columns with this name"):
        Selection(columns=("b",)).places(names, 4, "f")
    with pytest.raises(InvalidParameterError, match=r"--drop 4: f has no column names.* from 0 to 3"):
        Selection(drop=("4",)).places(None, 4, "f")
    with pytest.raises(UnknownNameError, match=r"--label-column='4' is not known.* from 0 to 3"):
        Selection(label="4").places(names, 4, "f")
    with pytest.raises(InvalidParameterError, match="leave none of the 2 columns of f"):
        Selection(columns=("a",), drop=("a",)).places(["a", "c"], 2, "f")


def test_the_array_that_is_meant():
    shapes = {"X": (5, 4), "k": (), "v": (1, 9), "w": (1, 1)}
    assert choose_variable(shapes, None, "f") == "X"
    assert choose_variable(shapes, "k", "f") == "k"
    assert choose_variable({"v": (1, 9)}, None, "f") == "v"
    with pytest.raises(FileFormatError, match=r"several variables: X \(5 x 4\), k \(scalar\), Y \(2 x 2\)"):
        choose_variable({"X": (5, 4), "k": (), "Y": (2, 2)}, None, "f")
    with pytest.raises(FileFormatError, match="several variables"):
        choose_variable({"v": (1, 9), "w": (9,)}, None, "f")
    with pytest.raises(FileFormatError, match="f contains no numeric array"):
        choose_variable({}, None, "f")
    check_variable(None, "f", "a NumPy array", several=False)
    check_variable("X", "f", "an archive", several=True)
    with pytest.raises(InvalidParameterError, match="f is a NumPy array and contains only one"):
        check_variable("X", "f", "a NumPy array", several=False)


def test_names_and_labels_have_the_length_of_their_side():
    X = np.ones((2, 3))
    found = checked_table(Contents(X, ["r", 1], "abc", [0, 1], "kind"), "f", "csv")
    assert (found.row_names, found.column_names) == (("r", "1"), ("a", "b", "c"))
    assert (found.labels, found.label_name) == (("0", "1"), "kind")
    assert repr(found) == "Table(2 x 3 float64, row and column names, from 'f')"
    assert repr(Table(X, None, None, "f", "csv")) == "Table(2 x 3 float64, from 'f')"
    for contents, said in (
        (Contents(X, ["r"]), "2 rows but 1 names"),
        (Contents(X, None, "abcd"), "3 columns but 4 names"),
        (Contents(X, labels=["x"]), "2 rows but 1 names"),
    ):
        with pytest.raises(FileFormatError, match=said):
            checked_table(contents, "f", "csv")
    with pytest.raises(InvalidParameterError, match="--label-column needs samples in rows"):
        found.transposed()
    assert found.converted("float32").X.dtype == np.float32


def test_sparse_tables_are_compressed_and_canonical():
    twice = sparse.coo_array(([1, 2, 3], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    found = checked_table(Contents(twice), "f", "mtx").X
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), [[0, 3], [3, 0]])
    flags = checked_table(Contents(sparse.csc_array(np.eye(2, dtype=bool))), "f", "npz").X
    assert (flags.format, flags.dtype) == ("csc", np.uint8)


def test_indices_that_were_changed_are_found():
    X = sparse.csr_array(np.eye(3))
    X.indices[1] = 99
    with pytest.raises(FileFormatError, match="impossible indices"):
        checked_table(Contents(X), "f", "npz")


def test_two_by_two_is_a_matrix_and_one_row_is_none():
    assert choose_variable({"X": (2, 2), "v": (1, 7)}, None, "f") == "X"
    assert choose_variable({"X": (2, 2, 2), "v": (7, 1)}, None, "f") == "X"
