"""Ordinary tables: columns chosen by name, labels, units, and errors that name line and column."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import load_wine

from nonneg import NMF
from nonneg.cli import main
from nonneg.exceptions import InvalidParameterError
from nonneg.io import read_table

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    """Wine, as a spreadsheet would hold it: names first, the kind of a bottle as text."""
    found = load_wine()
    path = tmp_path_factory.mktemp("tables") / "wine.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["kind", *found.feature_names])
        writer.writerows(
            [found.target_names[kind], *map(float, row)]
            for kind, row in zip(found.target, found.data, strict=True)
        )
    return path


def fit(path, folder, *words):
    return main(["fit", str(path), "-k", "3", "-o", str(folder), "--max-iter", "300", *words])


def record_of(folder):
    return json.loads((folder / "result.json").read_text())


def test_one_large_column_is_named_in_note_and_report(wine, tmp_path, capsys):
    """Proline was behind "99.997%" without a word."""
    assert fit(wine, tmp_path / "out", "--drop", "kind", "--quiet") == 0
    said = capsys.readouterr()
    assert "note: proline outweighs the other 12 columns: 98.4% of what the loss measures" in said.err
    assert "--scale max balances them" in said.err
    page = (tmp_path / "out" / "report.html").read_text()
    assert "proline outweighs the other 12 columns" in page


def test_scaled_columns_come_back_in_the_units_of_the_file(wine, tmp_path, capsys):
    assert fit(wine, tmp_path / "out", "--label-column", "kind", "--scale", "max", "--quiet") == 0
    said = capsys.readouterr()
    assert "of the squared norm of the data, columns scaled." in said.out
    assert "outweigh" not in said.err
    X = load_wine().data
    model = NMF(3, scale="max", max_iter=300, random_state=0).fit(X)
    H = np.load(tmp_path / "out" / "H.npy")
    np.testing.assert_allclose(H, model.components_, rtol=1e-6, atol=1e-9)
    error = np.linalg.norm((X - np.load(tmp_path / "out" / "W.npy") @ H) / X.max(axis=0))
    result = record_of(tmp_path / "out")["result"]
    assert result["relative_error"] == pytest.approx(error / np.linalg.norm(X / X.max(axis=0)))
    # The report ranks the features of a component by their part of a column, not by its unit.
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Columns are relative to their scale" in page
    first = page.index("The components")
    leading = [part.split("<")[0] for part in page[first:].split('--weight: 100%">')[1:4]]
    assert leading != ["proline"] * 3
    # The model knows its units: the same table has the same weights.
    words = ["transform", str(tmp_path / "out"), str(wine), "--drop", "kind", "-o", str(tmp_path / "again")]
    assert main([*words, "--quiet"]) == 0
    again = np.load(tmp_path / "again" / "W.npy")
    np.testing.assert_allclose(again, np.load(tmp_path / "out" / "W.npy"), rtol=1e-6, atol=1e-9)
    assert record_of(tmp_path / "again")["result"]["relative_error"] == pytest.approx(
        result["relative_error"]
    )


def test_labels_are_compared_not_factorized(wine, tmp_path, capsys):
    assert fit(wine, tmp_path / "out", "--label-column", "kind", "--scale", "std", "--quiet") == 0
    said = capsys.readouterr().out
    assert "| class_1 |      71 |" in said
    groups = record_of(tmp_path / "out")["result"]["groups"]
    assert [(one["group"], one["n_samples"]) for one in groups] == [
        ("class_0", 59), ("class_1", 71), ("class_2", 48),
    ]  # fmt: skip
    shares = np.array([one["shares"] for one in groups])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert len(set(shares.argmax(axis=1).tolist())) > 1
    assert np.load(tmp_path / "out" / "H.npy").shape == (3, 13)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Components by kind" in page
    # The page can be made again from the files.
    assert main(["report", str(tmp_path / "out")]) == 0
    assert "Components by kind" in (tmp_path / "out" / "report.html").read_text()


def test_headlines_are_about_the_loss_that_was_minimized(wine, tmp_path, capsys):
    words = ("--columns", "alcohol,ash,hue,magnesium", "--loss", "kullback-leibler", "--quiet")
    assert fit(wine, tmp_path / "out", *words) == 0
    said = capsys.readouterr().out
    loss = record_of(tmp_path / "out")["result"]["loss"]
    assert said.startswith(f"3 components; the Kullback-Leibler loss is {loss:.4g}.")


BROKEN = "name,a,b\nx,1,2\n\ny,3,{}\nz,5,6\n"


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("-4", "line 4 ('y'), column 'b': the entry is -4, and a nonnegative factorization needs"),
        ("", "line 4 ('y'), column 'b': the entry is missing. Fill it in, ignore missing entries with"),
        (
            "inf",
            "line 4 ('y'), column 'b': the entry is inf. Correct it, or leave the column out with --drop b",
        ),
        ("many", "line 4, column 3 ('b'): expected a number, got 'many'"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "rank"])
def test_wrong_entries_are_named_by_line_and_column(command, cell, said, tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text(BROKEN.format(cell))
    assert main([command, str(path), "-o", str(tmp_path / "out"), "--quiet"]) == 2
    assert said in capsys.readouterr().err


def test_all_columns_of_text_are_named_with_one_command(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a,kind,day,b\n1,x,2024-01-02,u\n2,y,2024-01-03,v\n3,x,2024-01-04,w\n")
    assert main(["fit", str(path), "-k", "1", "-o", str(tmp_path / "out"), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert "line 2, column 2 ('kind'): expected a number, got 'x'; line 2, column 3 ('day')" in said
    assert "--drop kind,day,b" in said
    words = ["fit", str(path), "-k", "1", "-o", str(tmp_path / "out"), "--drop", "kind,day,b", "--quiet"]
    assert main(words) == 0


def test_ranks_of_scaled_columns(wine, tmp_path, capsys):
    words = ["rank", str(wine), "--label-column", "kind", "--candidates", "2,3", "--quiet"]
    words += ["--method", "singular-value-ratio", "-o", str(tmp_path / "out")]
    assert main(words) == 0
    assert "proline outweighs the other 12 columns" in capsys.readouterr().err
    plain = record_of(tmp_path / "out")["result"]["table"]
    assert main([*words, "--scale", "max"]) == 0
    assert "outweighs" not in capsys.readouterr().err
    record = record_of(tmp_path / "out")
    assert record["parameters"]["scale"] == "max"
    assert record["result"]["table"] != plain


@pytest.mark.parametrize(
    ("selection", "names", "labels"),
    [
        ({"columns": ("b", "a")}, ("a", "b"), None),
        ({"columns": ("0", "2")}, ("a", "c"), None),
        ({"drop": ("a",)}, ("b", "c"), None),
        ({"drop": ("a",), "label": "c"}, ("b",), ("3", "6")),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_by_name_and_position(selection, names, labels, suffix, tmp_path):
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(
            pa.table({"a": [1, 4], "b": [2, 5], "c": [3, 6]}), path
        )
    else:
        path.write_text("a,b,c\n1,2,3\n4,5,6\n")
    table = read_table(path, **selection)
    assert table.column_names == names
    assert table.labels == labels
    places = ["abc".index(name) for name in names]
    np.testing.assert_array_equal(table.X, np.array([[1, 2, 3], [4, 5, 6]])[:, places])


def test_columns_of_arrays_are_not_chosen(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 3)))
    with pytest.raises(InvalidParameterError, match=r"--columns, --drop .* for text and Parquet files"):
        read_table(tmp_path / "x.npy", drop=("0",), label="2")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--drop", "prolin"), "--drop='prolin' is not known"),
        (("--columns", "kind", "--label-column", "kind"), "leave none of the 14 columns"),
        (("--label-column", "kind", "--transpose"), "Leave one of the two out"),
    ],
)
def test_selections_that_make_no_sense(words, said, wine, tmp_path, capsys):
    words = words if "kind" in words else (*words, "--drop", "kind")
    assert fit(wine, tmp_path / "out", *words, "--quiet") == 2
    assert said in capsys.readouterr().err


def test_the_number_of_components_comes_with_its_reason(wine, tmp_path, capsys):
    words = ["fit", str(wine), "--columns", "alcohol,ash,hue,magnesium", "--max-iter", "50", "--tol", "0"]
    assert main([*words, "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    result = record_of(tmp_path / "out")["result"]
    assert f"NMF: n_components='auto' takes {result['n_components']}: {result['rank_reason']}" in said
    assert result["rank_reason"] in (tmp_path / "out" / "report.html").read_text().replace("&#39;", "'")


def test_of_many_columns_some_are_listed(tmp_path, capsys):
    path = tmp_path / "wide.csv"
    np.savetxt(path, np.ones((3, 500)), delimiter=",", header=",".join(f"gene{at}" for at in range(500)))
    assert fit(path, tmp_path / "out", "--drop", "gene_1") == 2
    said = capsys.readouterr().err
    assert "and 480 more, or a position from 0 to 499. Did you mean 'gene1'" in said
