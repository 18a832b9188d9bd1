"""`nonneg fit`: what is read, what is handed on, what is written, and what stays when writing fails."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import sys

import numpy as np
import pytest
from scipy import sparse

import nonneg
from nonneg import NMF
from nonneg.cli import main
from nonneg.io import read_table

pytest.importorskip("matplotlib")


def listing(folder):
    return sorted(entry.name for entry in folder.iterdir())


def record_of(folder):
    return json.loads((folder / "result.json").read_text())


def fit(path, folder, *words):
    return main(["fit", str(path), "-o", str(folder), "-k", "2", "--quiet", *words])


@pytest.mark.usefixtures("drawn")
def test_an_array_gives_factors_numbers_model_and_report(array_file, tmp_path, capsys):
    folder = tmp_path / "out"
    assert fit(array_file, folder, "--image-shape", "2x3") == 0
    assert listing(folder) == ["H.npy", "W.npy", "model.npz", "report.html", "result.json"]
    W, H, X = np.load(folder / "W.npy"), np.load(folder / "H.npy"), np.load(array_file)
    record = record_of(folder)
    assert record["data"] == {
        "source": "x.npy", "shape": [12, 6], "dtype": "float64", "n_missing": 0,
    }  # fmt: skip
    expected = np.linalg.norm(X - W @ H) / np.linalg.norm(X)
    assert record["result"]["relative_error"] == pytest.approx(expected)
    assert record["result"]["explained"] == pytest.approx(1 - expected**2)
    assert record["result"]["n_iter"] == record["history"]["n_iter"][-1]
    assert record["result"]["stop_reason"]["name"] == "converged"
    assert record["certificate"][0]["verdict"] == "holds"
    assert record["parameters"]["random_state"] == 0
    assert {"nonneg", "numpy", "python"} <= record["versions"].keys()
    shown = capsys.readouterr()
    assert shown.out.startswith("2 components explain ")
    assert shown.out.splitlines()[-1] == f"Results: {folder / 'report.html'}"
    assert shown.err == ""
    assert "data:image/png" in (folder / "report.html").read_text()


def test_names_come_out_as_they_came_in(csv_file, tmp_path, capsys):
    folder = tmp_path / "out"
    assert fit(csv_file, folder) == 0
    W, H = read_table(folder / "W.csv"), read_table(folder / "H.csv")
    assert W.row_names == tuple(f"shop {at}" for at in range(5))
    assert W.column_names == ("component_0", "component_1") == H.row_names
    assert H.column_names == ("apple", "pear", "plum")
    np.testing.assert_array_equal(W.X, np.load(folder / "W.npy"))
    np.testing.assert_array_equal(H.X, np.load(folder / "H.npy"))
    assert "apple" in (folder / "report.html").read_text()
    # The terminal names the strongest features and samples, too.
    assert "| component | share " in (said := capsys.readouterr().out)
    assert "apple" in said
    assert "shop 3" in said


def test_options_reach_the_model_and_the_others_are_left_to_it(array_file, tmp_path):
    words = [
        *("--loss", "kullback-leibler", "--max-iter", "7"),
        *("--tol", "1e-3", "--seed", "3"),
        *("--missing", "mask", "--n-jobs", "1", "--checkpoint", str(tmp_path / "saved")),
    ]
    assert fit(array_file, tmp_path / "out", *words) == 0
    said = {
        "n_components": 2, "beta_loss": "kullback-leibler", "max_iter": 7, "tol": 1e-3, "random_state": 3,
        "missing": "mask", "n_jobs": 1, "checkpoint": str(tmp_path / "saved"), "verbose": 0,
    }  # fmt: skip
    defaults = {name: value for name, value in NMF().get_params().items() if name != "callback"}
    assert record_of(tmp_path / "out")["parameters"] == defaults | said
    assert main(["fit", str(array_file), "-o", str(tmp_path / "out"), "--loss", "1.5"]) == 0
    expected = defaults | {"random_state": 0, "verbose": 1, "beta_loss": 1.5}
    assert record_of(tmp_path / "out")["parameters"] == expected


def test_reading_options(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("1,2,3\n4,5,6\n7,8,9\n1,0,1\n")
    words = ["fit", str(path), "-k", "1", "-o", str(tmp_path / "o"), "--header", "--index", "--transpose"]
    assert main(words) == 0
    assert "2 samples (named) x 3 features (named)" in capsys.readouterr().err
    assert nonneg.load(tmp_path / "o" / "model.npz").feature_names_in_.tolist() == ["4", "7", "1"]
    assert fit(path, tmp_path / "o", "--no-header", "--no-index") == 0
    assert record_of(tmp_path / "o")["data"]["shape"] == [4, 3]
    np.savez(tmp_path / "t.npz", a=np.ones((3, 2)), b=np.ones((4, 5)))
    assert fit(tmp_path / "t.npz", tmp_path / "o") == 2
    assert "--variable NAME" in capsys.readouterr().err
    assert fit(tmp_path / "t.npz", tmp_path / "o", "--variable", "b") == 0
    assert record_of(tmp_path / "o")["data"]["shape"] == [4, 5]


def test_sparse_and_missing_data(tmp_path):
    sparse.save_npz(
        tmp_path / "s.npz", sparse.random_array((20, 9), density=0.3, random_state=np.random.default_rng(0))
    )
    assert fit(tmp_path / "s.npz", tmp_path / "out", "--image-shape", "3x3") == 0
    (tmp_path / "m.csv").write_text("1,,3\n4,5,6\n7,8,NA\n")
    assert fit(tmp_path / "m.csv", tmp_path / "out", "--missing", "mask") == 0
    assert record_of(tmp_path / "out")["data"]["n_missing"] == 2
    assert "observed entries" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("a,b\n1,2\n3,x\n", [], "line 3, column 2 ('b')"),
        ("1,\n3,4\n", [], "--missing mask"),
        ("a,b,\n1,2,\n3,4,\n", [], "leave the column out with --drop unnamed_2"),
        ("1,2\n3,4\n", ["--image-shape", "2x2"], "needs 4 features, but the data have 2"),
        ("1,2\n3,4\n", ["--device", "gpu"], "device='gpu' (--device) is not a device"),
    ],
)
def test_bad_input_changes_nothing(text, words, said, tmp_path, capsys):
    (tmp_path / "t.csv").write_text(text)
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "result.json").write_text("old")
    assert fit(tmp_path / "t.csv", folder, *words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert {entry.name: entry.read_text() for entry in folder.iterdir()} == {"result.json": "old"}


def test_stale_files_of_an_earlier_fit_go_and_foreign_ones_stay(csv_file, array_file, tmp_path):
    folder = tmp_path / "out"
    assert fit(csv_file, folder) == 0
    (folder / "notes.txt").write_text("mine")
    assert fit(array_file, folder) == 0
    assert listing(folder) == ["H.npy", "W.npy", "model.npz", "notes.txt", "report.html", "result.json"]
    # A record from elsewhere removes nothing outside of its folder.
    record = record_of(folder) | {"files": ["../fruit.csv", "H.npy", 3]}
    (folder / "result.json").write_text(json.dumps(record))
    assert fit(array_file, folder) == 0
    assert csv_file.exists()


def test_a_file_that_no_run_wrote_is_never_replaced(csv_file, tmp_path, capsys):
    data = csv_file.rename(tmp_path / "W.csv")
    content = data.read_text()
    for _ in range(2):
        assert fit(data, tmp_path) == 0
        assert data.read_text() == content
        assert f"{tmp_path} has files of the same names" in capsys.readouterr().err
    assert listing(tmp_path) == ["W.csv", "fit-results"]
    (tmp_path / "fit-results" / "result.json").unlink()  # and now its files are of no run
    assert fit(data, tmp_path) == 0
    assert record_of(tmp_path / "fit-results" / "fit-results")["data"]["shape"] == [5, 3]


@pytest.mark.parametrize("stage", ["numpy.lib.format.write_array", "pathlib.Path.write_text"])
def test_a_full_disk_leaves_the_old_results(stage, csv_file, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "out"
    assert fit(csv_file, folder, "--seed", "1") == 0
    before = {entry.name: entry.read_bytes() for entry in folder.iterdir()}

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(stage, full)
    assert fit(csv_file, folder, "--seed", "2") == 2
    monkeypatch.undo()
    error = capsys.readouterr().err
    assert "No space left on device" in error
    assert "unchanged. Free some space or choose another folder with -o" in error
    assert {entry.name: entry.read_bytes() for entry in folder.iterdir()} == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["fruit.csv", "out"]


def test_json_is_alone_on_standard_output(array_file, tmp_path, capsys):
    assert fit(array_file, tmp_path / "out", "--json") == 0
    shown = capsys.readouterr()
    printed, stored = json.loads(shown.out), record_of(tmp_path / "out")
    assert printed.pop("files")[-1] == str(tmp_path / "out" / "report.html")
    assert stored.pop("files") == ["H.npy", "W.npy", "model.npz"]
    assert stored.pop("sections")  # what the page draws
    assert printed == stored
    assert "2 components explain" in shown.err


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (b"a,b\n1,2\n3,4\n5,7\n", 0, "read stdin.csv: 3 samples x 2 features"),
        (gzip.compress(b"a,b\n1,2\n3,4\n5,7\n", mtime=0), 0, "read stdin.csv.gz: 3 samples x 2 features"),
        (b"a,b\n1,2\n3,x\n", 2, "nonneg: error: standard input: line 3, column 2"),
    ],
)
def test_a_dash_is_standard_input(content, code, said, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "-", "-k", "2"]) == code
    assert said in capsys.readouterr().err
    assert (tmp_path / "stdin-nmf" / "result.json").exists() is not bool(code)


@pytest.mark.parametrize("found", [True, False])
def test_the_report_opens_in_a_browser(found, array_file, tmp_path, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda page: opened.append(page) or found)
    assert fit(array_file, tmp_path / "out", "--open") == 0
    assert opened == [(tmp_path / "out" / "report.html").as_uri()]
    assert ("no browser was found" in capsys.readouterr().err) is not found


def test_without_the_report_libraries_all_else_is_written(array_file, tmp_path, monkeypatch, capsys):
    for name in ("figure", "image"):
        monkeypatch.setitem(sys.modules, f"matplotlib.{name}", None)
    assert fit(array_file, tmp_path / "out") == 0
    assert "no report was written" in (shown := capsys.readouterr()).err
    assert "[report]" in shown.err
    assert (tmp_path / "out" / "result.json").is_file()
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.usefixtures("drawn")
def test_uncertainties_give_q_and_scaled_residuals(tmp_path, capsys):
    rng = np.random.default_rng(0)
    truth = rng.gamma(1.0, size=(30, 2)) @ rng.gamma(1.0, size=(2, 6))
    S = rng.uniform(0.05, 0.3, truth.shape)
    X = truth + S * rng.normal(size=truth.shape)
    X[3, 2] += 20 * S[3, 2]
    X[:, 0], S[:, 0] = 1000 * X[:, 0], 1000 * S[:, 0]
    names = ["Date", *"ABCDEF"]
    turned, other = (S[:, ::-1], ["Date", *"FEDCBA"]), (S, ["Date", *"ABCDEG"])
    for name, table, head in (("con", X, names), ("unc", S, names), ("turned", *turned), ("other", *other)):
        rows = [
            ",".join(head),
            *(",".join([f"day{i}", *map(repr, row.tolist())]) for i, row in enumerate(table)),
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows))
    folder = tmp_path / "out"
    words = ["--uncertainty", str(tmp_path / "unc.csv"), "--negative", "keep"]
    assert fit(tmp_path / "con.csv", folder, *words) == 0
    W, H = np.load(folder / "W.npy"), np.load(folder / "H.npy")
    scaled = (X - W @ H) / S
    found = record_of(folder)["result"]["residuals"]
    assert found["q_true"] == pytest.approx(np.sum(scaled**2), rel=1e-6)
    assert found["q_robust"] == pytest.approx(np.sum(scaled[np.abs(scaled) <= 4] ** 2), rel=1e-6)
    assert found["q_expected"] == 30 * 6 - 2 * 36
    np.testing.assert_allclose(read_table(folder / "scaled_residuals.csv").X, scaled, rtol=1e-6, atol=1e-9)
    said = capsys.readouterr()
    assert "Q(true)" in said.out
    assert "outweigh" not in said.err  # columns count by their uncertainties
    model = NMF(2, negative="keep", random_state=0).fit(X, uncertainty=S)
    assert 0.5 * found["q_true"] == pytest.approx(model.result_.loss, rel=1e-4)
    assert fit(tmp_path / "con.csv", tmp_path / "robust", *words, "--robust") == 0
    assert record_of(tmp_path / "robust")["result"]["loss_name"] == "huber"
    assert fit(tmp_path / "con.csv", tmp_path / "many", *words, "-k", "6") == 0
    assert "no more entries than parameters" in capsys.readouterr().out
    wrong = ["--uncertainty", str(tmp_path / "other.csv"), "--negative", "keep"]
    assert fit(tmp_path / "con.csv", tmp_path / "wrong", *wrong) != 0
    assert "columns of --uncertainty" in capsys.readouterr().err
    sparse.save_npz(tmp_path / "few.npz", sparse.csr_array(S))
    wrong[1] = str(tmp_path / "few.npz")
    assert fit(tmp_path / "con.csv", tmp_path / "wrong", *wrong) == 2
    assert "--uncertainty needs a table of all entries" in capsys.readouterr().err
    # Columns are found by name, and negative entries are what they were to the fit.
    same = ["--uncertainty", str(tmp_path / "turned.csv"), "-q", "-o", str(tmp_path / "w")]
    assert main(["transform", str(folder), str(tmp_path / "con.csv"), *same]) == 0
    np.testing.assert_allclose(np.load(tmp_path / "w" / "W.npy"), W, rtol=1e-6, atol=1e-9)
    row = (tmp_path / "unc.csv").read_text().splitlines()[4].split(",")
    found = []
    for mark, more in (("inf", []), ("", ["--missing", "mask"])):  # an entry that does not count
        text = (tmp_path / "unc.csv").read_text()
        (tmp_path / "one.csv").write_text(text.replace(",".join(row), ",".join([*row[:3], mark, *row[4:]])))
        assert (
            fit(tmp_path / "con.csv", folder, "--uncertainty", str(tmp_path / "one.csv"), *words[2:], *more)
            == 0
        )
        found.append(record_of(folder)["result"]["loss"])
    S[3, 2] = np.inf
    expected = NMF(2, negative="keep", random_state=0).fit(X, uncertainty=S).result_.loss
    assert found == pytest.approx([expected] * 2, rel=1e-6)
