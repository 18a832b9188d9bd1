"""`nonneg anchors`: what it writes, and what it says when something is wrong."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

from nonneg import load
from nonneg.cli import main
from nonneg.datasets import separable_dirichlet


@pytest.fixture
def planted():
    return separable_dirichlet(60, 12, 4, rng=0)


@pytest.fixture
def named_file(tmp_path, planted):
    path = tmp_path / "scene.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["pixel", *(f"band {at}" for at in range(12))])
        writer.writerows([f"pixel <{at}>", *row] for at, row in enumerate(planted.X))
    return path


@pytest.mark.parametrize("method", ["spa", "fast-gradient", "vca"])
def test_writes_table_factors_model_and_report(method, named_file, planted, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["anchors", str(named_file), "-k", "4", "--method", method, "--quiet", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("4 samples explain 100.0% of the squared norm of the data.")
    assert {path.name for path in out.iterdir()} == {
        "anchors.csv", "W.npy", "H.npy", "result.json", "model.npz", "report.html",
    }  # fmt: skip
    record = json.loads((out / "result.json").read_text())
    rows = [entry["row"] for entry in record["anchors"]]
    assert set(rows) == set(planted.anchors.tolist())
    with (out / "anchors.csv").open() as stream:
        table = list(csv.DictReader(stream))
    assert [int(entry["row"]) for entry in table] == rows
    assert [entry["name"] for entry in table] == [f"pixel <{row}>" for row in rows]
    for row in rows:
        assert re.search(rf"\| +{row} \| pixel <{row}>", said)
    W, H = np.load(out / "W.npy"), np.load(out / "H.npy")
    np.testing.assert_allclose(W @ H, planted.X, atol=1e-6)
    assert load(out / "model.npz").anchor_indices_.tolist() == rows


def test_known_classes_are_compared_and_no_features(tmp_path, planted, capsys):
    path = tmp_path / "scene.csv"
    classes = ["pure" if at in planted.anchors else "mixed" for at in range(len(planted.X))]
    lines = [",".join([*map(str, row), known]) for row, known in zip(planted.X, classes, strict=True)]
    path.write_text("\n".join([",".join([*(f"x{at}" for at in range(12)), "kind"]), *lines]))
    words = f"anchors {path} -k 4 --method spa --label-column kind -q -o {tmp_path / 'out'}"
    assert main(words.split()) == 0
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [entry["class"] for entry in record["anchors"]] == ["pure"] * 4
    assert any(section and section[0] == "Anchors by kind" for section in record["sections"])


@pytest.mark.usefixtures("drawn")
def test_report_is_one_file_with_escaped_names(named_file, tmp_path):
    out = tmp_path / "out"
    assert main(["anchors", str(named_file), "-k", "4", "--method", "spa", "-o", str(out)]) == 0
    page = (out / "report.html").read_text()
    assert "pixel &lt;" in page
    assert "pixel <" not in page.replace("pixel <b", "")
    assert not re.findall(r"(?:src|href)=[\"'](?!data:|#)", page)
    assert "<script" not in page
    assert page.count("<svg") == 1


def test_default_method_finds_the_number(tmp_path, planted, capsys):
    path = tmp_path / "points.npy"
    np.save(path, planted.X)
    assert main(["anchors", str(path), "--quiet", "-o", str(tmp_path / "out")]) == 0
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    assert record["result"]["method"] == "spa"
    assert record["parameters"]["n_components"] is None
    assert {entry["row"] for entry in record["anchors"]} == set(planted.anchors.tolist())
    page = (tmp_path / "out" / "report.html").read_text()
    assert "up to rounding" in page
    assert "Certificate" in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-k", "0"], "an integer of at least 1"),
        (["-k", "99"], "n_components=99 is more than the 60 samples"),
        (["-k", "3", "--method", "sap"], "Did you mean 'spa'"),
    ],
    ids=str,
)
def test_errors_are_one_line(words, said, tmp_path, planted, capsys):
    path = tmp_path / "points.npy"
    np.save(path, planted.X)
    assert main(["anchors", str(path), "--quiet", "-o", str(tmp_path / "out"), *words]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert not (tmp_path / "out").exists()


def test_a_sample_of_zeros_among_the_anchors_is_noted(tmp_path, planted, capsys):
    X = planted.X.copy()
    X[5] = 0
    np.save(tmp_path / "points.npy", X)
    words = ["anchors", str(tmp_path / "points.npy"), "-k", "4", "--method", "fast-anchor", "-o"]
    assert main([*words, str(tmp_path / "out")]) == 0
    assert "Sample 5 was found as an anchor, but it is all zeros" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "other"), "--normalize", "l1"]) == 0
    assert "zeros" not in capsys.readouterr().err
