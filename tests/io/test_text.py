"""Text tables: every layout that programs write, and every fault that people make."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from nonneg.exceptions import FileFormatError, InvalidParameterError
from nonneg.io import read_table

ENTRIES = np.array([[1.0, 2.5, 0.0], [3.0, 0.25, 7.0], [0.0, 1e3, 2.0]])
NAMES = ("a", "b", "c")
ROWS = ("x", "y", "z")


def lines(*rows: str) -> str:
    return "\n".join(rows) + "\n"


LAYOUTS = {
    "bare": ("t.csv", lines("1,2.5,0", "3,0.25,7", "0,1e3,2"), None, None),
    "header": ("t.csv", lines("a,b,c", "1,2.5,0", "3,0.25,7", "0,1e3,2"), None, NAMES),
    "index": ("t.csv", lines("x,1,2.5,0", "y,3,0.25,7", "z,0,1e3,2"), ROWS, None),
    "pandas": ("t.csv", lines(",a,b,c", "x,1,2.5,0", "y,3,0.25,7", "z,0,1e3,2"), ROWS, NAMES),
    "pandas-numbered": (
        "t.csv",
        lines(",a,b,c", "0,1,2.5,0", "1,3,0.25,7", "2,0,1e3,2"),
        ("0", "1", "2"),
        NAMES,
    ),
    "named-index": (
        "t.csv",
        lines("id,a,b,c", "7,1,2.5,0", "8,3,0.25,7", "9,0,1e3,2"),
        ("7", "8", "9"),
        NAMES,
    ),
    "r": (
        "t.tsv",
        lines('"a"\t"b"\t"c"', '"x"\t1\t2.5\t0', '"y"\t3\t0.25\t7', '"z"\t0\t1e3\t2'),
        ROWS,
        NAMES,
    ),
    "quoted": (
        "t.csv",
        lines('"a","b","c"', '"1","2.5","0"', '"3","0.25","7"', '"0","1e3","2"'),
        None,
        NAMES,
    ),
    "tsv": ("t.tsv", lines("a\tb\tc", "1\t2.5\t0", "3\t0.25\t7", "0\t1e3\t2"), None, NAMES),
    "semicolons": ("t.csv", lines("a;b;c", "1;2.5;0", "3;0.25;7", "0;1e3;2"), None, NAMES),
    "decimal-commas": ("t.csv", lines("a;b;c", "1;2,5;0", "3;0,25;7", "0;1e3;2"), None, NAMES),
    "blanks": ("t.csv", lines("1 2.5  0", "3  0.25 7", "0 1e3 2"), None, None),
    "blanks-index": ("t.csv", lines("a b c", "x 1 2.5  0", "y 3  0.25 7", "z 0 1e3 2"), ROWS, NAMES),
    "savetxt": ("t.csv", lines("# made by hand", "# a,b,c", "1,2.5,0", "3,0.25,7", "0,1e3,2"), None, NAMES),
    "txt": ("t.txt", lines("\ta\tb\tc", "x\t1\t2.5\t0", "y\t3\t0.25\t7", "z\t0\t1e3\t2"), ROWS, NAMES),
    "excel": ("t.csv", lines("sep=;", "a;b;c", "1;2,5;0", "3;0,25;7", "0;1e3;2"), None, NAMES),
    "blank-lines": ("t.csv", lines("", "a,b,c", "", "1,2.5,0", "3,0.25,7", "  ", "0,1e3,2", ""), None, NAMES),
    "windows": ("t.csv", "\ufeffa,b,c\r\n1,2.5,0\r\n3,0.25,7\r\n0,1e3,2\r\n", None, NAMES),
    "no-last-newline": ("t.csv", "a,b,c\n1,2.5,0\n3,0.25,7\n0,1e3,2", None, NAMES),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("compressed", [False, True])
def test_a_layout_is_recognized(layout, compressed, tmp_path):
    name, text, rows, columns = LAYOUTS[layout]
    path = tmp_path / (name + ".gz" * compressed)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if compressed else data)
    table = read_table(path)
    np.testing.assert_array_equal(table.X, ENTRIES)
    assert table.row_names == rows
    assert table.column_names == columns
    assert table.source == str(path)


def test_counted_column_names_are_a_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines("country,1990,1991,1992,1993", "F,1,2,0,4", "D,3,1,7,1", "I,9,1,2,0", "E,2,2,2,2"))
    table = read_table(path)
    assert table.column_names == ("1990", "1991", "1992", "1993")
    assert table.row_names == ("F", "D", "I", "E")


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("0,1,2", "0.5,1,0.25"),
        ("400,402,404,406", "0.5,0.25,1,2"),
        ("0,1,2,3", "3,1,4,1"),
        ("id,7,8,9", "x,1,.5,2"),
    ],
)
def test_a_small_table_may_have_numbers_for_names(header, row, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines(header, row, row, row))
    table = read_table(path)
    assert ",".join(table.column_names) == header.removeprefix("id,")
    assert table.X.shape == (3, len(table.column_names))


@pytest.mark.parametrize(
    "rows", ["5,3,9 .5,.25,1", "3,7 .5,.25", "0,1,2 3,1,4", "2,2,2 .5,1,2", "0,1,2 .5,1,2 4,5,6"]
)
def test_a_row_of_whole_numbers_is_no_header(rows, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines(*rows.split()))
    assert read_table(path).X.shape == (len(rows.split()), rows.split()[0].count(",") + 1)


def test_counted_entries_are_not_a_header(tmp_path):
    path = tmp_path / "t.csv"
    np.savetxt(path, np.arange(20).reshape(4, 5), delimiter=",", fmt="%d")
    np.testing.assert_array_equal(read_table(path).X, np.arange(20).reshape(4, 5))


def test_the_caller_overrules_what_is_detected(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines("10,11", "1,2", "3,4"))
    plain = read_table(path)
    assert plain.X.shape == (3, 2)
    named = read_table(path, header=True, index=True)
    assert named.column_names == ("11",)
    assert named.row_names == ("1", "3")
    path.write_text(lines(",b", "1,2", "3,4"))
    assert read_table(path, index=False, header=True).X.shape == (2, 2)
    path.write_text(lines("1!2", "3!4"))
    assert read_table(path, delimiter="!").X.shape == (2, 2)


def test_one_column_and_one_row(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1\n2\n3\n")
    assert read_table(path).X.shape == (3, 1)
    path.write_text("1,2,3\n")
    assert read_table(path).X.shape == (1, 3)


@pytest.mark.parametrize("absent", ["", "n/a", "NaN", " NA ", '""', "null", "#N/A"])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_absent_entries_become_nan(absent, delimiter, tmp_path):
    path = tmp_path / ("t.csv" if delimiter == "," else "t.tsv")
    rows = [["", "a", "b", "c"], ["x", absent, "2", "3"], ["y", "4", absent, absent], ["z", "1", "2", absent]]
    path.write_text(lines(*(delimiter.join(row) for row in rows)))
    table = read_table(path)
    expected = [[np.nan, 2, 3], [4, np.nan, np.nan], [1, 2, np.nan]]
    np.testing.assert_array_equal(table.X, expected)
    assert table.row_names == ("x", "y", "z")


def test_names_with_delimiters_and_quotes_are_kept(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines('"","a, b","say ""c"""', '"x, y",1,2', '"z ""w""",3,4'))
    table = read_table(path)
    assert table.column_names == ("a, b", 'say "c"')
    assert table.row_names == ("x, y", 'z "w"')
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            lines("a,b,c", "1,2,3", "4,oops,6"),
            r"line 3, column 2 \('b'\): expected a number, got 'oops'.*out with --drop b",
        ),
        (lines("1,2,3", "4,5,x6"), "line 2, column 3: expected a number, got 'x6'"),
        (lines(",a,b", "r,1,2", "s,3,4", "t,five,6"), r"line 4, column 2 \('a'\)"),
        (lines("a,b", "1,2", "", "3,1_000"), "line 4, column 2"),
        (lines("1,2,3", "4,5,6", "7,8"), "line 3: expected 3 cells, got 2"),
        (lines("1,2,3", "4,5", "6,7,8"), "line 2: expected 3 cells, got 2"),
        (
            lines("a,b,c,d,e", "1,2,3", "4,5,6"),
            "the header names 5 columns, but the rows below have 3",
        ),
        (lines("a,b,c"), "contains no row of numbers"),
        ("\n \n", "contains no row of numbers"),
        (lines("ann", "bob"), "line 2, column 1 .*got 'bob'"),
        (lines("1,2", "x,4", "5,6"), "line 2, column 1: expected a number, got 'x'.*--index"),
    ],
)
def test_a_fault_is_named_by_line_and_column(text, said, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=said):
        read_table(path)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv"])
def test_columns_and_labels_are_chosen(ending, tmp_path):
    text = "name,kind,a,b\nr,x,1,2\n\ns,y,,4\n".replace(",", "\t" if ending == "tsv" else ",")
    path = tmp_path / f"t.{ending}"
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    table = read_table(path, label="kind")
    np.testing.assert_array_equal(table.X, [[1, 2], [np.nan, 4]])
    assert (table.labels, table.label_name) == (("x", "y"), "kind")
    assert (table.column_names, table.row_names) == (("a", "b"), ("r", "s"))
    table = read_table(path, columns=("b",))
    np.testing.assert_array_equal(table.X, [[2], [4]])
    assert (table.labels, table.label_name, table.column_names) == (None, None, ("b",))
    path = tmp_path / "bare.csv"
    path.write_text("x,1,2")
    plain = read_table(path, header=False, index=False, label="0")
    assert (plain.labels, plain.label_name, plain.column_names) == (("x",), "0", None)


def test_what_is_left_out_may_be_text_but_no_row_may_be_short(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines("a,b,c", "1,x,2", "3,y,oops"))
    np.testing.assert_array_equal(read_table(path, columns=("a",)).X, [[1], [3]])
    with pytest.raises(FileFormatError, match=r"line 3, column 3 \('c'\): expected a number, got 'oops'"):
        read_table(path, drop=("b",))
    path.write_text(lines("a,b,c", "1,x,2", "3,y"))
    with pytest.raises(FileFormatError, match="line 3: expected 3 cells, got 2"):
        read_table(path, columns=("a",))


def test_only_names_of_rows_are_no_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines("1", "2"))
    with pytest.raises(FileFormatError, match="a single column, which was read as row names"):
        read_table(path, index=True)


def test_a_fault_far_behind_the_sampled_lines_is_found(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 3000 + "3,bad\n")
    with pytest.raises(FileFormatError, match=r"line 3002, column 2 \('b'\).*'bad'"):
        read_table(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("1,2\n3,é\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match=r"not text in UTF-8.*0xe9"):
        read_table(path)
    path.write_bytes(np.random.default_rng(0).bytes(1000))
    with pytest.raises(FileFormatError):
        read_table(path)


def test_a_truncated_gzip_is_refused(tmp_path):
    path = tmp_path / "t.csv.gz"
    entries = np.random.default_rng(0).random((300, 20))
    whole = gzip.compress("\n".join(",".join(map(str, row)) for row in entries.tolist()).encode())
    path.write_bytes(whole)
    np.testing.assert_array_equal(read_table(path).X, entries)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileFormatError, match=r"ended before.*corrupt or truncated"):
        read_table(path)
    path.write_bytes(b"1,2\n3,4\n")
    with pytest.raises(FileFormatError, match="corrupt or truncated"):
        read_table(path)


@pytest.mark.parametrize("delimiter", ["ab", ""])
def test_a_delimiter_is_one_character(delimiter, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,2\n3,4\n")
    with pytest.raises(InvalidParameterError, match=r"--delimiter.*one character"):
        read_table(path, delimiter=delimiter)


def test_a_tab_may_be_written_as_shells_pass_it_on(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1\t2\n3\t4\n")
    np.testing.assert_array_equal(read_table(path, delimiter=r"\t").X, [[1, 2], [3, 4]])


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.mtx", "t.npy"])
def test_a_choice_of_an_array_is_refused_where_there_is_one(tmp_path, name):
    path = tmp_path / name
    path.write_text("1,2\n3,4\n")
    with pytest.raises(
        InvalidParameterError,
        match=rf"^variable='X' \(--variable\) chooses .*\.mat.*{name} is .*leave it out",
    ):
        read_table(path, variable="X")


def test_blanks_before_the_name_of_a_row(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines('  "x y" 1 2', "   z 3 4", ' "u ""v""" 5 6'))
    found = read_table(path)
    assert found.row_names == ("x y", "z", 'u "v"')
    np.testing.assert_array_equal(found.X, [[1, 2], [3, 4], [5, 6]])


def test_a_row_without_a_name_keeps_its_entries(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text(lines("\ta\tb", "x\t1\t2", "\t3\t4", " y \t5\t6"))
    found = read_table(path)
    assert found.row_names == ("x", "", "y")
    np.testing.assert_array_equal(found.X, [[1, 2], [3, 4], [5, 6]])


def test_an_empty_first_cell_makes_a_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines(",2,9", "x,1,2", "y,3,4"))
    found = read_table(path)
    assert (found.column_names, found.row_names) == (("2", "9"), ("x", "y"))
    path.write_text(lines(",2,9", ",3,4", "5,6,7"))  # entries that are missing
    np.testing.assert_array_equal(read_table(path).X, [[np.nan, 2, 9], [np.nan, 3, 4], [5, 6, 7]])


def test_commas_in_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines("a,b", '"1,234",2', '"12,345,678.5",3'))
    np.testing.assert_array_equal(read_table(path).X, [[1234, 2], [12345678.5, 3]])
    path.write_text(lines("a;b", "1,234;2,5", "0,125;3"))
    np.testing.assert_array_equal(read_table(path).X, [[1.234, 2.5], [0.125, 3]])
    path = tmp_path / "t.tsv"
    path.write_text(lines("a\tb", "1\t2,5"))
    with pytest.raises(FileFormatError, match="expected a number, got '2,5'"):
        read_table(path)


def test_names_of_columns_that_occur_twice_are_numbered(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines("sales,costs,sales,sales", "1,2,3,4"))
    assert read_table(path).column_names == ("sales", "costs", "sales.1", "sales.2")


def test_all_columns_of_text_are_named_at_once(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines("day,town,a,b", "2024-01-05,Ulm,1,0", '2024-01-06,"a, ""b"" \nc",2,x'))
    with pytest.raises(FileFormatError) as caught:
        read_table(path, index=False)
    said = str(caught.value)
    assert "line 2, column 1 ('day'): expected a number, got the date '2024-01-05'; line 2, column 2" in said
    assert "('town'): expected a number, got 'Ulm'; line 4, column 4 ('b')" in said
    assert "--drop day,town,b;" in said
    table = read_table(path, index=False, drop=("day", "town", "b"))
    np.testing.assert_array_equal(table.X, [[1], [2]])
    assert table.lines == [2, 4]


def test_a_line_of_units_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines("date,Fe,Zn", ",ng/m3,ng/m3", "d1,1,2", "d2,3,4"))
    with pytest.raises(FileFormatError, match=r"line 2: no cell is a number\. Remove units"):
        read_table(path)


def test_excel_names_the_delimiter_of_two_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines("sep=,", "1,2", "3,4"))
    table = read_table(path)
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])
    assert table.column_names is None
