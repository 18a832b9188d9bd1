"""Documents from files: names, texts and times, and what is said of files that cannot be read."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.topics.files import read_documents
from nonneg.exceptions import FileFormatError, InvalidParameterError


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("name", "text", "names", "times"),
    [
        ("a.csv", "name,body,when\nx,one,1999\n\ny,two,\nz,three\n", ["x", "y", "z"], ["1999", "", None]),
        ("a.tsv", "body\twhen\ttitle\none\t1\tA\ntwo\t2\ntree\n", ["A", "row 3", "row 4"], ["1", "2", None]),
        ("a.csv", "id,title,when,body\n1,A,3,one\n2,B,4,two\n", ["A", "B"], ["3", "4"]),
        ("a.csv", "sep=;\r\nname;body;when\r\nA;one;3\r\nB;two;4\r\n", ["A", "B"], ["3", "4"]),
    ],
)
def test_columns_of_a_table(write, name, text, names, times):
    path = write(name, text)
    found = read_documents([path], column="body", time_column="when")
    assert found.names == names
    assert found.contents[:2] == ["one", "two"]
    assert found.times == times
    assert (found.source, found.words, found.are_texts) == (name, None, True)
    assert read_documents([path], column="body").times is None


def test_keys_of_json_lines(write):
    path = write(
        "a.jsonl",
        '{"text": "one", "id": 7, "t": 5}\n\n{"text": "", "name": "n", "title": "x"}\n{"text": "3"}\n',
    )
    found = read_documents([path], time_column="t")
    assert found.names == ["7", "n", "line 4"]
    assert (found.contents, found.times) == (["one", "", "3"], [5, None, None])
    other = write("b.ndjson", '{"body": "one", "text": 3}\n{"body": "two"}\n')
    assert read_documents([other], column="body").contents == ["one", "two"]


def test_folders_and_lines(write, tmp_path):
    write("f/b.txt", "first\n \nsecond\n")
    write("f/a.md", "whole\ntext\n")
    write("f/c.png", "no text")
    found = read_documents([tmp_path / "f"])
    assert found.names == ["a.md", "b.txt"]
    assert found.contents == ["whole\ntext\n", "first\n \nsecond\n"]
    assert found.source == "f"
    by_line = read_documents([tmp_path / "f"], lines=True)
    assert by_line.names == ["a.md:1", "a.md:2", "b.txt:1", "b.txt:3"]
    assert by_line.contents == ["whole", "text", "first", "second"]
    three = read_documents([tmp_path / "f", tmp_path / "f" / "b.txt", tmp_path / "f" / "a.md"])
    assert (len(three.contents), three.source) == (4, "f and 2 more")


def test_counts_with_names(write):
    path = write("counts.csv", "name,cat,dog\nx,1,2\ny,0,3\n")
    found = read_documents([path])
    np.testing.assert_array_equal(np.asarray(found.contents), [[1, 2], [0, 3]])
    assert (found.names, found.words, found.are_texts) == (["x", "y"], ["cat", "dog"], False)
    plain = path.with_name("plain.npy")
    np.save(plain, np.ones((2, 3)))
    found = read_documents([plain])
    assert (found.names, found.words, found.source) == (["row 0", "row 1"], None, "plain.npy")
    words = write("words.txt", "one\n\n two \nthree\n")
    assert read_documents([plain], vocabulary=words).words == ["one", "two", "three"]
    with pytest.raises(FileFormatError, match=r"has 2 words, but .* has 3 columns"):
        read_documents([plain], vocabulary=write("few.txt", "one\ntwo\n"))
    with pytest.raises(InvalidParameterError, match="is read as word counts"):
        read_documents([plain], time_column="when")
    with pytest.raises(InvalidParameterError, match="A vocabulary is for a matrix"):
        read_documents([words, words], vocabulary=words)


def test_a_number_of_documents_is_needed(write, tmp_path):
    one, empty = write("one.txt", "word"), write("none.jsonl", "\n")
    with pytest.raises(
        FileFormatError, match=r"There is one document in .*; topics need several\. .*--lines"
    ):
        read_documents([one])
    with pytest.raises(FileFormatError, match="There is one document") as told:
        read_documents([one], lines=True)
    assert "--lines" not in str(told.value)
    assert read_documents([one], at_least=1).contents == ["word"]
    with pytest.raises(FileFormatError, match="There is no document") as told:
        read_documents([empty], at_least=1)
    assert "topics need several" not in str(told.value)
    assert len(read_documents([one, one]).contents) == 2
    with pytest.raises(InvalidParameterError, match="No files were given"):
        read_documents([])
    (tmp_path / "bare").mkdir()
    with pytest.raises(FileFormatError, match="contains no text files"):
        read_documents([tmp_path / "bare"])


def test_texts_beside_a_table_have_no_date(write):
    paths = [write("a.txt", "words"), write("b.csv", "body,when\nmore words,2020\n")]
    assert read_documents(paths, column="body", time_column="when").times == [None, "2020"]


@pytest.mark.parametrize(
    ("name", "text", "options", "error", "message"),
    [
        ("a.csv", "n,a\n1,some words\n2,x\n", {}, FileFormatError, "--text-column: one of ..n., .a."),
        ("a.csv", "", {"column": "body"}, FileFormatError, "There is no document"),
        ("a.txt", "words", {"time_column": "t"}, InvalidParameterError, "No document has an entry under 't'"),
        ("a.jsonl", '{"text": "x"}\n' * 2, {"time_column": "t"}, InvalidParameterError, "under 't'"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(write, name, text, options, error, message):
    with pytest.raises(error, match=message):
        read_documents([write(name, text)], **options)
