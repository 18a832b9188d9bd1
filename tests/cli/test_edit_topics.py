"""`nonneg edit-topics` and topics over time: tables, model and report say the same."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

from nonneg import load
from nonneg.cli import main

SUBJECTS = {
    "sport": ["game", "team", "player", "coach", "goal"],
    "law": ["court", "judge", "trial", "lawyer", "jury"],
    "money": ["market", "stock", "bond", "price", "bank"],
}


@pytest.fixture(scope="module")
def posts(tmp_path_factory):
    """Sixty posts of three years; law ends where money begins."""
    place = tmp_path_factory.mktemp("posts")
    rng = np.random.default_rng(0)
    with (place / "posts.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "body", "written"])
        for at in range(60):
            subject = "sport" if at % 2 else "law" if at < 30 else "money"
            words = " ".join(rng.choice(SUBJECTS[subject], size=4, replace=False))
            date = {5: "", 7: "some day"}.get(at, f"{2019 + at // 20}-06-{1 + at % 28:02d}")
            writer.writerow([f"post{at}", words, date])
    out = place / "out"
    command = ["topics", str(place / "posts.csv"), "--text-column", "body", "--time-column", "written"]
    assert main([*command, "-k", "3", "--quiet", "-o", str(out)]) == 0
    return place


def read(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def topic_of(record, word):
    return next(entry["topic"] for entry in record["topics"] if word in dict(entry["words"][:5]))


def test_topics_over_time(posts, capsys):
    record = json.loads((posts / "out" / "result.json").read_text())
    found = record["over_time"]
    assert (found["unit"], found["n_missing"]) == ("year", 2)
    assert found["unreadable"] == [["post7", "some day"]]
    law, money = topic_of(record, "judge"), topic_of(record, "stock")
    rows = read(posts / "out" / "over_time.csv")
    assert [row["period"] for row in rows] == found["periods"] == ["2019", "2020", "2021"]
    assert sum(int(row["documents"]) for row in rows) == 58
    assert float(rows[0][f"topic_{law}"]) > 0.4 > 0.01 > float(rows[2][f"topic_{law}"])
    assert float(rows[2][f"topic_{money}"]) > 0.4
    page = (posts / "out" / "report.html").read_text()
    assert "Topics over time" in page
    assert "2 documents without a date left out of the topics over time" in page
    assert "mean share of each topic in the documents of a year" in page
    command = ["topics", str(posts / "posts.csv"), "--text-column", "body", "--quiet", "-k", "3", "-o"]
    assert main([*command, str(posts / "wrong"), "--time-column", "when"]) == 2
    assert "No document has an entry under 'when' (--time-column)" in capsys.readouterr().err
    notes = posts / "notes.txt"
    notes.write_text("one\ntwo\n")
    assert main(["topics", str(notes), "--lines", "--time-column", "when"]) == 2
    assert "No document has an entry under" in capsys.readouterr().err


def test_everything_written_follows_from_the_changes(posts, capsys):
    old = json.loads((posts / "out" / "result.json").read_text())
    law, money, sport = (topic_of(old, word) for word in ("judge", "stock", "coach"))
    before = {row["document"]: row for row in read(posts / "out" / "documents.csv")}
    capsys.readouterr()
    out = posts / "edited"
    changes = ["--merge", f"{law},{money}", "--rename", f"{law}=news", "--rename", f"{sport}=sports"]
    given = ["edit-topics", str(posts / "out"), str(posts / "posts.csv")]
    assert main([*given, *changes, "-o", str(out)]) == 0
    said = capsys.readouterr()
    assert "is now" in said.err or "as before" in said.err
    # The column of the texts is known to the run, also to one that applies its model.
    assert main(["transform", str(posts / "out"), given[-1], "-q", "-o", str(posts / "again")]) == 0
    assert len(read(posts / "again" / "documents.csv")) == 60
    capsys.readouterr()
    assert said.out.startswith("2 topics in 60 documents; the largest (")
    new = json.loads((out / "result.json").read_text())
    assert {entry["name"] for entry in new["topics"]} == {"news", "sports"}
    news = next(entry["topic"] for entry in new["topics"] if entry["name"] == "news")
    for row in read(out / "documents.csv"):
        share = sum(float(before[row["document"]][f"topic_{at}"]) for at in (law, money))
        assert float(row[f"topic_{news}"]) == pytest.approx(share, abs=1e-5)
        assert row["name"] == new["topics"][int(row["topic"])]["name"]
    table = read(out / "topics.csv")
    assert [row["name"] for row in table] == [entry["name"] for entry in new["topics"]]
    assert [float(row["proportion"]) for row in table] == sorted(float(row["proportion"]) for row in table)[
        ::-1
    ]
    model = load(out / "model.npz")
    assert model.topic_names_ == [entry["name"] for entry in new["topics"]]
    np.testing.assert_allclose(np.load(out / "topics.npy"), model.topics_)
    assert new["edits"] == model.edits_
    assert new["edits"][0]["mapping"][law] == [news]
    assert float(read(out / "over_time.csv")[0][f"topic_{news}"]) > 0.4
    page = (out / "report.html").read_text()
    assert ": news</h3>" in page
    assert f"topics {min(law, money)}, {max(law, money)} were merged" in page
    assert "topics-edited" in {entry["name"] for entry in new["certificate"]}
    # What was changed can be changed again, by name, applied to new texts and reported again.
    again = posts / "again2"
    given = ["edit-topics", str(out), str(posts / "posts.csv")]
    assert main([*given, "--split", "news:2", "--quiet", "-o", str(again)]) == 0
    names = {entry["name"] for entry in json.loads((again / "result.json").read_text())["topics"]}
    assert names == {"news 1", "news 2", "sports"}
    assert main(["report", str(again)]) == 0
    text = posts / "new.txt"
    text.write_text("judge jury court\ncoach goal team\n")
    assert main(["transform", str(again), str(text), "--lines", "-o", str(posts / "new"), "--quiet"]) == 0
    assert [row["name"][:4] for row in read(posts / "new" / "documents.csv")] == ["news", "spor"]


def test_seed_words_guide_and_name_topics(posts, tmp_path, capsys):
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("# subjects\nlaw: judge, jury, soccer\nmoney: stock, bond\n")
    command = ["topics", str(posts / "posts.csv"), "--text-column", "body", "-k", "3", "--quiet"]
    out = tmp_path / "out"
    assert main([*command, "--seed-words", str(seeds), "-o", str(out)]) == 0
    assert "'soccer' is not in the vocabulary" in capsys.readouterr().err
    record = json.loads((out / "result.json").read_text())
    for name, word in (("law", "court"), ("money", "market")):
        assert record["topics"][topic_of(record, word)]["name"] == name
    seeds.write_text("law judge\n")
    assert main([*command, "--seed-words", str(seeds), "-o", str(out)]) == 2
    assert (
        "line 1: expected another topic and its words, such as `sports: game, team`"
        in capsys.readouterr().err
    )
    assert main([*command, "--seed-words", str(tmp_path / "none"), "-o", str(out)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_tree_is_cut(posts, capsys):
    assert "Tree over the topics" in (posts / "out" / "report.html").read_text()
    given = ["edit-topics", str(posts / "out"), str(posts / "posts.csv")]
    assert main([*given, "--cut", "2", "--quiet", "-o", str(posts / "cut")]) == 0
    assert capsys.readouterr().out.startswith("2 topics in 60 documents")


def test_errors(posts, tmp_path, capsys):
    out, documents = str(posts / "out"), str(posts / "posts.csv")
    for arguments, message in [
        ([out], "Nothing to change"),
        ([out, "--merge", "3"], "expected several topics, such as --merge 3,7"),
        ([out, documents, "--merge", "0,9"], "numbers from 0 to 2 or names, got 9"),
        ([out, "--split", "0:x"], "expected a number after the colon"),
        ([out, "--rename", "0"], "such as --rename 0=sports"),
        ([out, documents, "--rename", "law=x"], "There is no topic called 'law'"),
        ([out, "--cut", "2", "--merge", "0,1"], "Leave out --merge"),
        ([str(tmp_path), "--merge", "0,1"], "contains no model.npz"),
        ([f"{out}/model.npz", "--merge", "0,1"], "Name the documents"),
        ([out, str(tmp_path / "none.csv"), "--merge", "0,1"], "does not exist"),
        # A record from elsewhere could name any file of this machine, and the report would show it.
        ([out, "--merge", "0,1"], "Name the documents"),
        ([out, documents, "--split", "\u00b2"], "There is no topic called"),
        ([out, documents, "--split", "0:\u00b2"], "expected a number after the colon"),
    ]:
        assert main(["edit-topics", *arguments, "-o", str(tmp_path / "never")]) == 2
        assert message in capsys.readouterr().err
    good = json.loads((posts / "out" / "result.json").read_text())
    hostile = [json.dumps(good | {"inputs": bad}) for bad in (5, "x", [1], {"lines": [1]})]
    for content in ("[" * 100_000, *hostile):
        (posts / "out" / "result.json").write_text(content)
        assert main(["edit-topics", out, documents, "--merge", "0,1", "-o", str(tmp_path / "never")]) == 2
        assert re.search("damaged|expected JSON", capsys.readouterr().err)
    assert not (tmp_path / "never").exists()
