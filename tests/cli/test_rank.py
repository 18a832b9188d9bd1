"""`nonneg rank`: the table, the files, the recommendation with its reason, and mistakes in one line."""

from __future__ import annotations

import csv
import json
import threading
from _thread import interrupt_main

import numpy as np
import pytest

from nonneg.cli import main

QUICK = ["--quiet", "--candidates", "2,3,4,5"]


@pytest.fixture
def planted_file(tmp_path, low_rank):
    path = tmp_path / "planted.npy"
    np.save(path, low_rank)
    return path


@pytest.mark.usefixtures("drawn")
def test_the_whole_job(planted_file, tmp_path, capsys):
    folder = tmp_path / "out"
    assert main(["rank", str(planted_file), "-o", str(folder), *QUICK]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.startswith("4 components are recommended.\n")
    lines = said.out.splitlines()
    heading = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert heading == ["k", "ratio", "held-out error", "chosen by"]
    assert "recommended, singular-value ratio, cross-validation" in said.out
    names = {path.name for path in folder.iterdir()}
    assert names == {"rank.csv", "report.html", "result.json"}
    assert lines[-1].endswith("report.html")
    with (folder / "rank.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["k"] for row in rows] == ["2", "3", "4", "5"]
    assert float(rows[2]["held_out_error"]) < float(rows[1]["held_out_error"])
    record = json.loads((folder / "result.json").read_text())
    assert record["result"]["rank"] == 4
    assert record["result"]["estimates"]["cross-validation"]["curves"][0]["candidates"] == [2, 3, 4, 5]
    page = (folder / "report.html").read_text()
    for words in (
        "4 components are recommended",
        "Held-out error against components",
    ):
        assert words in page
    assert "<script" not in page


def test_one_method_writes_its_own_columns(planted_file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["rank", str(planted_file), "--method", "singular-value-ratio", "-k", "2:7", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "The singular-value ratio alone was used" in out
    record = json.loads((tmp_path / "planted-rank" / "result.json").read_text())
    assert list(record["result"]["table"][0]) == ["k", "ratio"]
    assert [row["k"] for row in record["result"]["table"]] == [2, 3, 4, 5, 6, 7]


def test_missing_cells(tmp_path, low_rank, capsys):
    X = low_rank.copy()
    X[2, 3] = np.nan
    np.save(tmp_path / "x.npy", X)
    assert main(["rank", str(tmp_path / "x.npy"), "-o", str(tmp_path / "out"), *QUICK]) == 2
    assert "row 2 (from 0), column 3: the entry is missing" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert (
        main(["rank", str(tmp_path / "x.npy"), "-o", str(tmp_path / "out"), "--missing", "mask", *QUICK]) == 0
    )


def test_a_method_that_cannot_be_used_is_noted(tmp_path, capsys, rng):
    np.save(tmp_path / "small.npy", rng.random((6, 5)))
    words = ["rank", str(tmp_path / "small.npy"), "-o", str(tmp_path / "out"), "--quiet"]
    assert main(words) == 0
    assert "note: cross-validation was left out" in capsys.readouterr().err
    assert "was left out" in (tmp_path / "out" / "report.html").read_text()


def test_a_matrix_of_zeros_still_has_an_answer(tmp_path, capsys):
    np.save(tmp_path / "zero.npy", np.zeros((12, 9)))
    assert main(["rank", str(tmp_path / "zero.npy"), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    assert "1 component is recommended.\nX is zero" in capsys.readouterr().out
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "elbow"], "methods='elbow' is not known"),
        (["--candidates", "5:3"], "expected an integer of at least 1"),
        (["--candidates", "2,x"], "expected an integer of at least 1"),
    ],
)
def test_mistakes_are_one_line(words, message, planted_file, tmp_path, capsys):
    assert main(["rank", str(planted_file), "-o", str(tmp_path / "out"), "--quiet", *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("ctrl_c")
def test_control_c_in_one_of_many_fits_ends_the_command(planted_file, tmp_path, capsys):
    # A fit returns its best so far; the comparison of ranks must not go on with that.
    assert main(["rank", str(planted_file), "-o", str(tmp_path / "imports"), *QUICK]) == 0
    np.save(tmp_path / "X.npy", np.random.default_rng(0).random((900, 300)))
    ctrl_c = threading.Timer(0.5, interrupt_main)
    ctrl_c.start()
    words = ["rank", str(tmp_path / "X.npy"), "-o", str(tmp_path / "out"), "--candidates", "2:39"]
    words += ["--n-jobs", "1"]
    assert main(words) == 130
    ctrl_c.join()
    assert "interrupted; nothing was written" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_stopped_run_resumes(planted_file, tmp_path, capsys, monkeypatch):
    from nonneg.iteration.progress import StepCounter

    done = StepCounter.done

    def stopped(counter, what, parts=1):
        done(counter, what, parts)
        if what == "candidates (k=5)":
            raise KeyboardInterrupt

    words = ["rank", str(planted_file), "--checkpoint", str(tmp_path / "saved"), *QUICK[1:]]
    with monkeypatch.context() as patch:
        patch.setattr(StepCounter, "done", stopped)
        assert main([*words, "-o", str(tmp_path / "out")]) == 130
    assert "interrupted; nothing was written" in capsys.readouterr().err
    assert main([*words, "-o", str(tmp_path / "out")]) == 0
    assert "4 of 4 candidates (resumed)" in capsys.readouterr().err
    assert main(["rank", str(planted_file), "-o", str(tmp_path / "whole"), *QUICK]) == 0
    found, whole = (json.loads((tmp_path / name / "result.json").read_text()) for name in ("out", "whole"))
    assert found["result"]["table"] == whole["result"]["table"]
    assert found["parameters"] == whole["parameters"]
