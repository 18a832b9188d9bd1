"""`nonneg topics`: what it reads and writes, and what it says when something is wrong."""

from __future__ import annotations

import csv
import gzip
import json

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import load
from nonneg.applications.topics.files import read_documents
from nonneg.cli import main
from nonneg.exceptions import FileFormatError, InvalidParameterError

ANIMALS = ["the cat chased the dog", "a dog and a cat sleep", "cat <b>dog</b> pet", "pet cat sleep"]
MONEY = ["stocks and bonds fell", "the market for bonds", "market stocks rose", "bonds market rose fell"]


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "articles"
    (place / "money").mkdir(parents=True)
    for at, text in enumerate(ANIMALS):
        (place / f"animal{at}.txt").write_text(text)
    for at, text in enumerate(MONEY):
        (place / "money" / f"{at}.md").write_text(text)
    (place / "picture.png").write_bytes(b"\x89PNG")
    return place


@pytest.mark.parametrize("method", ["nmf", "spa"])
def test_writes_topics_documents_and_a_report(folder, tmp_path, capsys, method):
    out = tmp_path / "out"
    assert main(["topics", str(folder), "-k", "2", "--method", method, "--quiet", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 topics in 8 documents; the largest (")
    names = {"topics.csv", "documents.csv", "topics.npy", "result.json", "model.npz", "report.html"}
    assert {path.name for path in out.iterdir()} == names
    record = json.loads((out / "result.json").read_text())
    words = [{word for word, _ in topic["words"][:3]} for topic in record["topics"]]
    animals = next(at for at in range(2) if words[at] & {"cat", "dog", "pet"})
    assert words[1 - animals] <= {"bonds", "market", "stocks", "rose", "fell"}
    with (out / "documents.csv").open() as stream:
        rows = {row["document"]: int(row["topic"]) for row in csv.DictReader(stream)}
    assert rows["animal0.txt"] == animals
    assert rows["money/1.md"] == 1 - animals
    np.testing.assert_allclose(np.load(out / "topics.npy").sum(axis=1), 1.0)
    assert load(out / "model.npz").predict(["a dog is a pet"]) == [animals]
    page = (out / "report.html").read_text()
    assert "<b>dog</b>" not in page
    assert "&lt;b&gt;dog&lt;/b&gt;" in page
    assert (", anchor " in page) == (method == "spa")
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


@pytest.mark.slow
def test_the_docstrings_of_the_standard_library(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["topics", "--stdlib", "-k", "12", "--quiet", "-o", str(out)]) == 0
    capsys.readouterr()
    record = json.loads((out / "result.json").read_text())
    assert record["data"]["n_documents"] > 1000
    tops = [{word for word, _ in topic["words"]} for topic in record["topics"]]
    assert any({"path", "directory"} <= words for words in tops)
    # Thousands of docstrings, and no topic of a few of them, such as the example bytes of pickletools.
    assert not any(topic["few_documents"] for topic in record["topics"])
    assert {example["topic"] for example in record["examples"] if example["text"]} == set(range(12))


@pytest.mark.usefixtures("drawn")
def test_the_number_of_topics_is_recommended(folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["topics", str(folder), "-k", "2,3", "--quiet", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    record = json.loads((out / "result.json").read_text())
    chosen = record["selection"]
    assert chosen["candidates"] == [2, 3]
    assert record["result"]["n_topics"] == chosen["n_topics"] == len(record["topics"])
    assert chosen["reason"] in said
    page = (out / "report.html").read_text()
    assert "How many topics" in page
    assert chosen["reason"] in page
    assert load(out / "model.npz").selection_ == chosen
    for wrong in ("many", "0", "2,x"):
        assert main(["topics", str(folder), "-k", wrong, "-o", str(out)]) == 2
        assert "a list such as 5,7,9" in capsys.readouterr().err


def test_a_matrix_with_a_vocabulary(tmp_path, capsys):
    counts = np.kron(np.eye(2), np.ones((3, 4))) + np.eye(6, 8)
    sp.save_npz(tmp_path / "counts.npz", sp.csr_array(counts))
    (tmp_path / "words.txt").write_text("\n".join(f"word{at}" for at in range(8)))
    files = [str(tmp_path / "counts.npz"), "--vocabulary", str(tmp_path / "words.txt")]
    out = tmp_path / "out"
    words = ["topics", *files, "-k", "2", "--quiet", "-o", str(out), "--anchors", "word0, word5"]
    assert main([*words, "--method", "spa"]) == 0
    assert "word0" in capsys.readouterr().out
    record = json.loads((out / "result.json").read_text())
    assert [topic["anchor"] for topic in record["topics"]] == ["word0", "word5"]
    (tmp_path / "words.txt").write_text("too\nfew\n")
    assert main(["topics", *files, "-k", "2", "-o", str(out)]) == 2
    assert "has 2 words, but" in capsys.readouterr().err


def test_errors(tmp_path, capsys, folder):
    assert main(["topics", "-k", "2"]) == 2
    assert "Give either files of documents or --stdlib" in capsys.readouterr().err
    assert main(["topics", str(folder), "--stop-words", "nowhere.txt", "-o", str(tmp_path / "out")]) == 2
    assert "--stop-words english, none or nowhere.txt cannot be read" in capsys.readouterr().err
    one = tmp_path / "one.txt"
    one.write_text("only one")
    for paths, more, error, message in [
        ([one], {}, FileFormatError, "use --lines"),
        ([tmp_path / "none.txt", one], {}, FileFormatError, "does not exist"),
        ([folder / "picture.png", one], {}, FileFormatError, "is not read as texts"),
        ([tmp_path / "articles" / "money" / "empty", one], {}, FileFormatError, "does not exist"),
        ([one, folder], {"vocabulary": one}, InvalidParameterError, "texts bring their own words"),
        ([], {}, InvalidParameterError, "No files"),
    ]:
        with pytest.raises(error, match=message):
            read_documents(paths, **more)
    table, records = tmp_path / "t.csv", tmp_path / "t.jsonl"
    table.write_text("id;body\n1;hello, you\n2\n")
    with pytest.raises(FileFormatError, match=r"no text under 'text'; there are \['id', 'body'\]. Name"):
        read_documents([table, one])
    with pytest.raises(FileFormatError, match="row 3: no text under 'body'"):
        read_documents([table], column="body")
    for line, said in (('{"body": 1}', "there"), ('{"text": null}', "it is None"), ('["x"]', "it is no")):
        records.write_text(f"{line}\n")
        with pytest.raises(FileFormatError, match=f"line 1: no text under 'text'; {said}"):
            read_documents([records])
    records.write_text("{broken\n")
    with pytest.raises(FileFormatError, match="line 1: not JSON"):
        read_documents([records])
    (tmp_path / "bare").mkdir()
    with pytest.raises(FileFormatError, match="contains no text files"):
        read_documents([tmp_path / "bare"])


def test_marks_within_sentences_do_not_end_lines_or_rows(tmp_path):
    texts = ["cat\u2028dog", "pet\x85 vet", "bond", "stock\x0cmarket"]
    records, table, lines = tmp_path / "t.jsonl", tmp_path / "t.csv", tmp_path / "t.txt"
    written = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    records.write_text("\n".join(written), encoding="utf-8")
    table.write_text("body\n" + "\n".join(texts), encoding="utf-8")
    lines.write_text("\r\n".join(texts), encoding="utf-8", newline="")
    assert read_documents([records]).contents == texts
    assert read_documents([table], column="body").contents == texts
    assert read_documents([lines], lines=True).contents == texts


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_encodings_of_texts(tmp_path, encoding):
    path = tmp_path / "t.txt"
    path.write_bytes("caf\xe9 \u2026 \u2018noir\u2019\nth\xe9\n".encode(encoding))
    assert read_documents([path], lines=True).contents == ["caf\xe9 \u2026 \u2018noir\u2019", "th\xe9"]


def test_long_cells_and_packed_texts_are_read_and_cut_ones_told(tmp_path):
    table, packed = tmp_path / "t.csv", tmp_path / "t.txt.gz"
    text = "word " * 40000
    table.write_text(f"body\n{text}\nshort\n")
    before = csv.field_size_limit()
    assert read_documents([table], column="body").contents == [text, "short"]
    assert csv.field_size_limit() == before
    packed.write_bytes(gzip.compress(b"one\ntwo\n"))
    assert read_documents([packed], lines=True).contents == ["one", "two"]
    packed.write_bytes(gzip.compress(b"one\ntwo\n")[:-9])
    with pytest.raises(FileFormatError, match="cannot be read: Compressed file ended"):
        read_documents([packed], lines=True)


def test_as_many_topics_as_anchors_and_only_words_with_weight_are_listed(folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["topics", str(folder), "--anchors", "cat,bonds", "--quiet", "-o", str(out)]) == 0
    assert capsys.readouterr().out.startswith("2 topics in 8 documents")
    record = json.loads((out / "result.json").read_text())
    words = [{word for word, _ in topic["words"]} for topic in record["topics"]]
    assert not words[0] & words[1]


def test_topics_of_a_single_word_have_no_npmi(tmp_path, capsys):
    # They ended in a traceback.
    words = tmp_path / "words.txt"
    words.write_text("cat\ndog\n" * 3 + "bird\n" * 2)
    command = ["topics", str(words), "--lines", "--quiet", "-o", str(tmp_path / "out")]
    assert main([*command, "-k", "3"]) == 0
    assert "3 topics in 8 documents" in capsys.readouterr().out
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    assert None in [entry["npmi"] for entry in record["topics"]]
    # Without -k, the recommended number is taken.
    assert main(command) == 0
    assert "is the only number that was compared" in capsys.readouterr().out
