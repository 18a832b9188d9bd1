"""Records survive the disk, and tables read well as text."""

from __future__ import annotations

import enum
import json
from pathlib import Path

import numpy as np
import pytest

from nonneg.exceptions import FileFormatError
from nonneg.report.records import (
    COMMON,
    SECTIONS,
    append_record,
    as_json,
    plain,
    read_record,
    read_records,
    read_run,
    run_record,
    write_records,
)
from nonneg.report.tables import format_cell, markdown_table


class Color(enum.Enum):
    RED = "red"


def test_all_kinds_of_values_become_strict_json():
    value = {
        "array": np.arange(3, dtype=np.int8),
        "scalar": np.float32(0.5),
        "nan": float("nan"),
        "infinite": [np.inf, -np.inf],
        "enum": Color.RED,
        "path": Path("a/b"),
        "tuple": (1, True, None),
        3: "key",
    }
    assert json.loads(as_json(value)) == {
        "array": [0, 1, 2],
        "scalar": 0.5,
        "nan": None,
        "infinite": [None, None],
        "enum": "red",
        "path": "a/b",
        "tuple": [1, True, None],
        "3": "key",
    }
    assert plain(True) is True


def test_records_are_appended_replaced_and_read(tmp_path):
    path = tmp_path / "runs" / "records.jsonl"
    append_record(path, {"a": 1})
    append_record(path, {"a": np.float64(2.5), "name": "é"})
    assert read_records(path) == [{"a": 1}, {"a": 2.5, "name": "é"}]
    write_records(path, [{"b": 3}])
    assert read_records(path) == [{"b": 3}]


def test_a_failure_while_replacing_leaves_the_old_records(tmp_path):
    path = tmp_path / "records.jsonl"
    write_records(path, [{"a": 1}])

    def failing():
        yield {"a": 2}
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_records(path, failing())
    assert read_records(path) == [{"a": 1}]
    assert [entry.name for entry in tmp_path.iterdir()] == ["records.jsonl"]


def test_a_damaged_record_is_named_by_its_line(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text('{"a": 1}\n\n{"a": \n')
    with pytest.raises(FileFormatError, match="line 3: expected JSON"):
        read_records(path)
    path.write_text("[1]\n")
    with pytest.raises(FileFormatError, match="line 1: expected a JSON object, got list"):
        read_records(path)
    with pytest.raises(FileFormatError, match="does not exist"):
        read_record(tmp_path / "none.json")


def test_a_table_is_aligned_and_escaped():
    records = [{"solver": "hals", "seconds": 0.123456, "n": 3}, {"solver": "a|b", "seconds": None, "n": 12}]
    assert markdown_table(records, {"solver": "solver", "seconds": "time", "n": "n"}) == (
        "| solver |   time |   n |\n"
        "|--------|-------:|----:|\n"
        "| hals   | 0.1235 |   3 |\n"
        "| a\\|b   |      - |  12 |\n"
    )


def test_columns_are_taken_as_they_first_appear():
    first_line = markdown_table([{"b": 1}, {"a": 2, "b": 3}]).splitlines()[0]
    assert first_line == "|   b |   a |"
    assert markdown_table([]) == ""
    assert format_cell(True) == "True"


def test_every_run_has_the_same_record(tmp_path):
    record = run_record(
        "transform", "Weights", data={"source": "x"}, result={"seconds": 1.0}, model={"class": "NMF"}
    )
    assert set(record) == {*COMMON, *SECTIONS["transform"]}
    (tmp_path / "result.json").write_text(as_json(record))
    assert read_run(tmp_path / "result.json") == record
    with pytest.raises(KeyError, match="has the sections"):
        run_record("transform", "Weights", data={}, result={}, other=1)
