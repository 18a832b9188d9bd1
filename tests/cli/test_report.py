"""`nonneg report` makes the same page again, and names what is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nonneg.cli import main

pytest.importorskip("matplotlib")


@pytest.fixture
def results(csv_file, tmp_path, capsys):
    folder = tmp_path / "out"
    assert main(["fit", str(csv_file), "-k", "2", "-o", str(folder), "--quiet", "--image-shape", "1x3"]) == 0
    capsys.readouterr()
    return folder


@pytest.mark.usefixtures("drawn")
def test_the_report_is_made_again_from_the_files(results, capsys):
    page = (results / "report.html").read_text()
    names = sorted(entry.name for entry in results.iterdir())
    (results / "report.html").unlink()
    assert main(["report", str(results)]) == 0
    assert capsys.readouterr().out == f"{results / 'report.html'}\n"
    assert (results / "report.html").read_text() == page
    assert sorted(entry.name for entry in results.iterdir()) == names


def damage(folder: Path, how: str) -> None:
    if how == "no result":
        (folder / "result.json").unlink()
    elif how == "broken result":
        (folder / "result.json").write_text('{"data": ')
    elif how == "another section":
        record = json.loads((folder / "result.json").read_text())
        (folder / "result.json").write_text(json.dumps(record | {"sections": [["a", {"block": "b"}]]}))
    elif how == "other shades":
        record = json.loads((folder / "result.json").read_text())
        pictures = {"block": "pictures", "pictures": [[{"shape": [9, 9], "bytes": "AAAA"}, "a", None]]}
        (folder / "result.json").write_text(json.dumps(record | {"sections": [["a", pictures]]}))
    elif how == "an older record":
        record = json.loads((folder / "result.json").read_text())
        (folder / "result.json").write_text(json.dumps(record | {"format": 1}))
    elif how == "a part":
        record = json.loads((folder / "result.json").read_text())
        del record["versions"]
        (folder / "result.json").write_text(json.dumps(record))
    elif how == "bare":
        (folder / "result.json").write_text("{}")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("no result", "contains no result.json"),
        ("broken result", "expected JSON"),
        ("another section", "is damaged"),
        ("other shades", "is damaged"),
        ("an older record", "has the format 1; expected 5. Run `nonneg fit` again"),
        ("a part", "lacks versions. Run `nonneg fit` again"),
        ("bare", "is not the record of a nonneg run"),
    ],
)
def test_damaged_results_are_named(how, said, results, capsys):
    page = (results / "report.html").read_text()
    damage(results, how)
    assert main(["report", str(results)]) == 2
    assert said in capsys.readouterr().err
    assert (results / "report.html").read_text() == page


def test_a_folder_that_is_not_there(tmp_path, capsys):
    assert main(["report", str(tmp_path / "none")]) == 2
    assert "contains no result.json" in capsys.readouterr().err


TEXTS = [
    "cat dog pet",
    "dog cat sleep",
    "pet cat sleep dog",
    "bond stock market",
    "stock bond rose",
    "market rose",
]


@pytest.mark.parametrize("command", ["rank", "anchors", "topics", "communities"])
def test_reports_of_other_commands_are_made_again(command, tmp_path, capsys):
    data, out = tmp_path / "data.npy", tmp_path / "out"
    rng = np.random.default_rng(0)
    np.save(data, rng.random((30, 3)) @ rng.random((3, 12)))
    words = {"rank": [str(data), "--method", "singular-value-ratio"]}
    words["anchors"] = [str(data), "-k", "3", "--method", "spa"]
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    words["topics"] = [str(tmp_path / "texts.txt"), "--lines", "-k", "2", "--method", "spa", "--min-df", "1"]
    edges = [f"{a} {b}" for group in ("abcd", "efgh") for a in group for b in group if a < b]
    (tmp_path / "edges.txt").write_text("\n".join([*edges, "a e"]))
    words["communities"] = [str(tmp_path / "edges.txt"), "-k", "2", "--method", "spa"]
    assert main([command, *words[command], "-o", str(out), "--quiet"]) == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    (out / "report.html").unlink()
    assert main(["report", str(out)]) == 0
    assert (out / "report.html").read_text(encoding="utf-8") == page
