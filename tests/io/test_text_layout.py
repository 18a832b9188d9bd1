"""How a table is laid out: every decision at its limits."""

from __future__ import annotations

import pytest

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
