"""`nonneg transform`: models of every command on new data, and what it says when something is wrong."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
from tests.cli.transform_runs import record_of, run, the_error

import nonneg
from nonneg.cli import main
from nonneg.io import read_table

NAMES = ["apple", "pear", "plum", "fig", "lime", "kiwi"]


def planted(n_rows, seed):
    H = np.random.default_rng(7).random((2, 6))
    return np.random.default_rng(seed).random((n_rows, 2)) @ H


def write_csv(path, X, columns=NAMES, index="shop"):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["", *columns])
        writer.writerows([f"{index} {at}", *row] for at, row in enumerate(X.tolist()))
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The folder of a fit to a named table; not to be changed."""
    place = tmp_path_factory.mktemp("fit")
    write_csv(place / "old.csv", planted(20, 0))
    assert main(["fit", str(place / "old.csv"), "-k", "2", "--quiet", "-o", str(place / "out")]) == 0
    return place / "out"


@pytest.fixture
def saved(tmp_path):
    """A model of an array, without names."""
    path = tmp_path / "saved.npz"
    nonneg.NMF(2, random_state=0).fit(planted(20, 0)).save(path)
    return path


def test_new_samples_get_the_weights_of_python(fitted, tmp_path, capsys):
    X, out = planted(5, 1), tmp_path / "weights"
    path = write_csv(tmp_path / "new.csv", X, index="market")
    assert run(fitted, path, "--quiet", "-o", out) == 0
    shown = capsys.readouterr()
    assert sorted(entry.name for entry in out.iterdir()) == ["W.csv", "W.npy", "result.json"]
    W = np.load(out / "W.npy")
    model = nonneg.load(fitted / "model.npz")
    np.testing.assert_array_equal(W, model.transform(pd.DataFrame(X, columns=NAMES)))
    table = read_table(out / "W.csv")
    np.testing.assert_array_equal(table.X, W)
    assert table.row_names == tuple(f"market {at}" for at in range(5))
    assert table.column_names == ("component_0", "component_1")
    error = np.linalg.norm(X - W @ model.components_) / np.linalg.norm(X)
    assert record_of(out)["result"]["relative_error"] == pytest.approx(error)
    assert shown.out == (f"5 samples, 2 components, relative error {error:.4g}\nResults: {out}\n")
    assert shown.err == ""


def test_the_file_of_the_fit_gives_its_weights_again(fitted, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(fitted / "model.npz", fitted.parent / "old.csv") == 0
    shown = capsys.readouterr()
    assert "read old.csv: " in shown.err
    np.testing.assert_allclose(np.load("old-weights/W.npy"), np.load(fitted / "W.npy"), atol=1e-6)


def test_columns_are_brought_into_the_order_of_the_model(fitted, tmp_path, capsys):
    X, order = planted(5, 1), [3, 0, 5, 1, 4, 2]
    path = write_csv(tmp_path / "new.csv", X[:, order], [NAMES[at] for at in order])
    assert run(fitted, path, "--quiet", "-o", tmp_path / "out") == 0
    assert "columns were reordered to match the model" in capsys.readouterr().err
    expected = nonneg.load(fitted / "model.npz").transform(pd.DataFrame(X, columns=NAMES))
    np.testing.assert_allclose(np.load(tmp_path / "out" / "W.npy"), expected, atol=1e-12)


def test_names_of_a_data_frame_are_kept_in_the_model(tmp_path, capsys):
    X = planted(20, 0)
    model = nonneg.NMF(2, random_state=0).fit(pd.DataFrame(X, columns=NAMES))
    model.save(tmp_path / "m.npz")
    path = write_csv(tmp_path / "new.csv", X[:, ::-1], NAMES[::-1])
    assert run(tmp_path / "m.npz", path, "--quiet", "-o", tmp_path / "out") == 0
    # Nothing is said of names that the array lacks: they have been compared.
    assert capsys.readouterr().err.count("\n") == 1
    expected = model.transform(pd.DataFrame(X, columns=NAMES))
    np.testing.assert_allclose(np.load(tmp_path / "out" / "W.npy"), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["apple", "pear", "plum", "fig", "lime", "nut"], "lacks 1 of its 6 features ('kiwi')"),
        (NAMES[:1], "lacks 5 of its 6 features ('pear', 'plum', 'fig', 'lime', 'kiwi')"),
        ([f"x{at}" for at in range(8)], "lacks 6 of its 6 features"),
    ],
    ids=str,
)
def test_other_features_are_named(columns, said, fitted, tmp_path, capsys):
    path = write_csv(tmp_path / "new.csv", np.ones((4, len(columns))), columns)
    assert run(fitted, path, "--quiet", "-o", tmp_path / "out") == 2
    assert said in the_error(capsys)
    assert not (tmp_path / "out").exists()
    # Also where there is a column of text, which the model has no use for.
    lines = path.read_text().splitlines()
    text = [f"{line},{'note' if at == 0 else 'hello'}" for at, line in enumerate(lines)]
    path.write_text("\n".join(text))
    assert run(fitted, path, "--quiet", "-o", tmp_path / "out") == 2
    assert said in (error := the_error(capsys)) or "has no feature of the model, such as" in error


def test_samples_in_columns_are_noticed(fitted, saved, tmp_path, capsys):
    X = planted(6, 1)[:5]
    path = tmp_path / "across.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["", *(f"s{at}" for at in range(5))])
        writer.writerows([name, *row] for name, row in zip(NAMES, X.T.tolist(), strict=True))
    assert run(fitted, path, "--quiet", "-o", tmp_path / "out") == 2
    assert "rows have the names of the features: exchange rows and columns with --transpose" in the_error(
        capsys
    )
    assert run(fitted, path, "--transpose", "--quiet", "-o", tmp_path / "out") == 0
    assert read_table(tmp_path / "out" / "W.csv").row_names == tuple(f"s{at}" for at in range(5))
    capsys.readouterr()
    np.save(tmp_path / "across.npy", X.T)
    assert run(saved, tmp_path / "across.npy", "--quiet", "-o", tmp_path / "out") == 2
    said = the_error(capsys)
    assert "across.npy has 5 features" in said
    assert "was fitted to 6. Give the features of the fit, in their order, or exchange rows" in said


def test_names_on_one_side_alone_are_said(saved, fitted, tmp_path, capsys):
    X = planted(5, 1)
    path = write_csv(tmp_path / "new.csv", X)
    assert run(saved, path, "-o", tmp_path / "out") == 0
    assert "note: the model has no feature names" in capsys.readouterr().err
    np.save(tmp_path / "new.npy", X)
    assert run(fitted, tmp_path / "new.npy", "-o", tmp_path / "out") == 0
    assert "note: new.npy has no feature names" in capsys.readouterr().err
    # The table of the run before is gone: its rows are not those of the array.
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == ["W.npy", "result.json"]


def test_missing_entries_as_in_the_fit_or_as_asked(saved, tmp_path, capsys):
    X = planted(20, 4)
    X[3, 2] = X[7, 0] = np.nan
    np.save(tmp_path / "new.npy", X)
    assert run(saved, tmp_path / "new.npy", "--quiet", "-o", tmp_path / "out") == 2
    assert "row 3 (from 0), column 2: the entry is missing" in the_error(capsys)
    assert run(saved, tmp_path / "new.npy", "--missing", "mask", "--quiet", "-o", tmp_path / "out") == 0
    masked = nonneg.NMF(2, missing="mask", random_state=0).fit(X)
    masked.save(tmp_path / "masked.npz")
    assert run(tmp_path / "masked.npz", tmp_path / "new.npy", "--quiet", "-o", tmp_path / "out") == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "W.npy"), masked.transform(X))
    assert record_of(tmp_path / "out")["result"]["relative_error"] < 0.05
    nonneg.SeparableNMF(2, method="spa").fit(planted(20, 0)).save(tmp_path / "s.npz")
    capsys.readouterr()
    assert run(tmp_path / "s.npz", tmp_path / "new.npy", "--missing", "mask", "--quiet") == 2
    assert "--missing mask and --uncertainty are for models of class NMF" in the_error(capsys)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        nonneg.NMF(2, beta_loss="kullback-leibler", solver="mu", max_iter=50, random_state=0),
        nonneg.ConeNMF(2, random_state=0),
        nonneg.SeparableNMF(2, method="spa", sum_to_one=True),
        nonneg.PurificationNMF(2, random_state=0),
        nonneg.TransformNMF(2, max_iter=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_model_of_a_table(model, tmp_path, capsys):
    model.fit(planted(20, 0))
    model.save(tmp_path / "m.npz")
    X = planted(7, 5)
    np.save(tmp_path / "new.npy", X)
    assert run(tmp_path / "m.npz", tmp_path / "new.npy", "--quiet", "-o", tmp_path / "out") == 0
    np.testing.assert_allclose(np.load(tmp_path / "out" / "W.npy"), model.transform(X), atol=1e-10)
    # Frames of signals are no product of activations and templates.
    has_error = type(model).__name__ != "TransformNMF"
    assert ("relative error" in capsys.readouterr().out) == has_error


def test_what_is_no_model(fitted, tmp_path, capsys):
    np.savez(tmp_path / "x.npz", X=np.eye(3))
    for given, said in (
        (tmp_path / "x.npz", "is not a saved model"),
        (fitted / "W.csv", "The model comes before the data: transform MODEL FILE."),
        (tmp_path / "none.npz", "none.npz does not exist. Give a saved model, or the folder"),
        (tmp_path, "contains no model.npz. Give a saved model, or the folder"),
    ):
        assert run(given, fitted / "W.csv", "-o", tmp_path / "out") == 2
        assert said in the_error(capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--lines"], "--lines does not apply here"),
        (["--no-data", "0"], "--no-data does not apply here"),
        (["more.npy"], "expected one file, got 2"),
    ],
    ids=str,
)
def test_what_the_model_has_no_use_for(words, said, saved, tmp_path, capsys):
    np.save(tmp_path / "new.npy", planted(5, 1))
    assert run(saved, tmp_path / "new.npy", *words) == 2
    assert said in the_error(capsys)


def test_the_results_of_the_fit_are_not_replaced(fitted, tmp_path, capsys):
    before = (fitted / "W.npy").read_bytes()
    path = write_csv(tmp_path / "new.csv", planted(5, 1))
    assert run(fitted, path, "-o", fitted) == 2
    assert "Choose another folder with -o" in the_error(capsys)
    assert (fitted / "W.npy").read_bytes() == before
    assert run(fitted, path, "--quiet", "-o", tmp_path / "out") == 0
    capsys.readouterr()
    assert main(["report", str(tmp_path / "out")]) == 2
    assert "There is no report of `nonneg transform`" in the_error(capsys)
