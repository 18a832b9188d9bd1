"""How a table is laid out: every decision at its limits."""

from __future__ import annotations

import pytest

from nonneg.io.selection import Selection
from nonneg.io.table import ReadOptions
from nonneg.io.text_layout import (
    WHITESPACE,
    _commented_header,
    _counts_up,
    _find_delimiter,
    _has_decimal_commas,
    _usual_length,
    find_layout,
    is_missing,
    is_number,
    split_cells,
)


def layout(text, suffix=",", **options):
    """Return the layout of a text."""
    return find_layout(list(enumerate(text.splitlines(), 1)), suffix, ReadOptions(**options))


def test_cells_and_numbers():
    assert split_cells('"b,c",d\n', ",") == ["b,c", "d"]
    assert split_cells("  1   2\t3 \n", WHITESPACE) == ["1", "2", "3"]
    assert split_cells("", ",") == []
    assert [is_missing(cell) for cell in ("", "NA", "null", "0", "na")] == [True, True, True, False, False]
    assert [is_number(cell) for cell in ("1.5", "nan", "1_000", "1,5", "x")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert is_number("1,5", decimal_comma=True)


@pytest.mark.parametrize(
    ("text", "names", "index", "skipped", "cells"),
    [
        ("1,2\n3,4", None, False, 0, 2),
        ("a,b\n1,2", ("a", "b"), False, 1, 2),
        ("name,a,b\nr,1,2\ns,3,4", ("a", "b"), True, 1, 3),
        ("a,b\nr,1,2\ns,3,4", ("a", "b"), True, 1, 3),  # R writes no name over the names of rows
        ("id,a\n1,2\n3,4", ("a",), True, 1, 2),
        (",a,b\n0,1,2\n1,3,4", ("a", "b"), True, 1, 3),
        ("# note\n1,2\n3,4", None, False, 1, 2),
        ("# a,b\n1,2\n3,4", ("a", "b"), False, 1, 2),
        ("x,1,2,oops\n1,2,3,4\n5,6,7,8", None, False, 0, 4),
        ("x,1,y,oops\n1,2,3,4\n5,6,7,8", ("x", "1", "y", "oops"), False, 1, 4),
        ("k,7,8,9,10\n1,5,6,3,1\n2,5,9,3,1\n3,5,7,3,1", ("k", "7", "8", "9", "10"), False, 1, 5),
    ],
)  # fmt: skip
def test_headers_and_names_of_rows(text, names, index, skipped, cells):
    found = layout(text)
    assert (found.column_names, found.has_index, found.n_skipped, found.n_cells) == (
        names, index, skipped, cells,
    )  # fmt: skip


def test_what_the_caller_says_counts():
    assert layout("1,2\n3,4", header=True).column_names == ("1", "2")
    assert layout("a,b\n1,2", header=False).column_names is None
    assert layout("a,b\n1,2", header=False).n_skipped == 0
    assert layout("1,2\n3,4", index=True).has_index
    assert not layout("r,1\ns,2", index=False).has_index
    assert layout("1;2\n3;4", delimiter=";").n_cells == 2
    assert layout("# only a note") is None
    assert layout("a,b") is None
    assert layout("a,b", header=False).n_cells == 2


def test_delimiters():
    assert _find_delimiter(["a;b", "1;2"], ",") == ";"
    assert _find_delimiter(["a\tb", "1\t2"], ",") == "\t"
    assert _find_delimiter(["1 2 3", "4 5 6"], ",") == WHITESPACE
    assert _find_delimiter(["a|b", "1|2"], ",") == "|"
    assert _find_delimiter(["one", "two"], ",") == ","
    assert _find_delimiter(["a,b", "1,2"], "\t") == ","
    assert _find_delimiter(["1,5;2,5", "3,5;4,5"], ",") == ";"


def test_small_decisions():
    assert _usual_length([[1, 2], [1, 2], [1]]) == 2
    assert _usual_length([[1, 2], [1]], preferred=1) == 1
    assert _usual_length([[1, 2], [1]]) == 2
    assert _has_decimal_commas([["1,5", "x"]])
    assert not _has_decimal_commas([["1,5", "2.5"]])
    assert not _has_decimal_commas([["15"]])
    assert _commented_header("# a,b", ",", 2) == ["a", "b"]
    assert _commented_header("# a,b", ",", 3) is None
    assert _commented_header("# a", ",", 1) is None
    assert _counts_up(["3", "4", "5"])
    assert not _counts_up(["3", "5"])
    assert not _counts_up(["3", "4.0"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1,x,2\n3,4,5", ("1", "x", "2")),  # half of the cells after the first
        ("1,x,2,3\n3,4,5,6", None),  # a third
        ("x\n1\n2", ("x",)),
        (",1\n0,1\n1,2", ("1",)),  # an empty cell over the names of rows
        (",1\n,1\n1,2", None),
        ("0,1,2,3,4\n9,5,1,5,1\n8,5,2,5,1\n7,5,3,5,1", ("0", "1", "2", "3", "4")),
        ("0,1,2,3,4\n9,5,1,5,1\n8,5,2,5,1", None),  # of too few rows
        ("0,1,2,3\n9,5,1,5\n8,5,2,5\n7,5,3,5", None),  # of too few columns
        ("0,1,2,3,4\n9,5,6,7,8\n8,5,2,5,1\n7,5,3,5,1", None),  # another row counts too
    ],
)
def test_what_makes_a_first_row_a_header(text, names):
    assert layout(text).column_names == names


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("r,1\ns,2\n3,4", True),  # most first cells are text
        ("r,1\n3,4", False),  # as many as not
        ("r\ns\nt", False),
        ("Row,a\n1,2\n3,4", True),
        ("rows,a\n1,2\n3,4", False),
    ],
)
def test_what_makes_a_first_column_names_of_rows(text, index):
    assert layout(text, header=text[0].isupper() or text.startswith("rows")).has_index == index


def test_a_column_that_is_spoken_of_is_no_index():
    text = "name,a\nr,1\ns,2"
    assert layout(text).has_index
    assert not layout(text, selection=Selection(label="name")).has_index
    assert layout(text, selection=Selection(label="a")).has_index
    assert layout(text, index=True, selection=Selection(label="name")).has_index
    # Over the names of rows there is no name that could be spoken of.
    assert layout("a,b\nr,1,2\ns,3,4", selection=Selection(label="a")).has_index


def test_the_ending_of_a_file_decides_where_the_lines_do_not():
    both = ["1 2,3 4", "5 6,7 8"]  # two cells of text, or three of which one is text
    assert _find_delimiter(["1,2"], "\t") == ","  # the only line
    assert _find_delimiter(["x", "1\t2"], " ") == WHITESPACE
    assert _find_delimiter(["x", "1\t2"], "\t") == "\t"
    assert _find_delimiter(both, "\t") == WHITESPACE


def test_notes_and_blank_lines_are_skipped():
    numbered = [(2, "# note"), (5, "1,2"), (7, "3,4")]
    assert find_layout(numbered, ",", ReadOptions()).n_skipped == 4
    assert find_layout([(3, "a,b"), (5, "1,2")], ",", ReadOptions()).n_skipped == 3
    assert find_layout([(2, "# a,b"), (5, "1,2")], ",", ReadOptions(header=False)).column_names is None
    assert find_layout([(1, "# a b"), (2, "1 2")], ",", ReadOptions()).column_names == ("a", "b")
