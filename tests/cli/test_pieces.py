"""Files that commands write, and what they say of wrong entries and other features."""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import NMF, SeparableNMF, datasets
from nonneg.cli import demo, unmix_inputs
from nonneg.cli.results import write_csv, write_factor, write_names, write_proportions
from nonneg.cli.table_inputs import _check_entries, _first, _listed, _reading, largest_entry, table_name
from nonneg.cli.transform_inputs import SavedModel, feature_names, in_model_order, opened_model
from nonneg.exceptions import (
    FileFormatError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
)
from nonneg.io.table import Table


def lines_of(path):
    with path.open(newline="") as stream:
        return list(csv.reader(stream))


def test_factors_are_written_with_names(tmp_path):
    factor = np.array([[0.5, 1 / 3], [2.0, 0.0]])
    write_factor(tmp_path / "a.csv", factor, "sample", ["r", "s"], ["x", "y"])
    assert lines_of(tmp_path / "a.csv") == [
        ["sample", "x", "y"],
        ["r", "0.5", repr(1 / 3)],
        ["s", "2.0", "0.0"],
    ]
    write_factor(tmp_path / "b.csv", factor.astype(np.float32), "sample", None, None)
    assert lines_of(tmp_path / "b.csv")[0] == ["feature_0", "feature_1"]
    assert np.float32(lines_of(tmp_path / "b.csv")[1][1]) == np.float32(1 / 3)
    assert len(lines_of(tmp_path / "b.csv")[1][1]) <= 12
    write_names(tmp_path, None, ["x"])
    assert json.loads((tmp_path / "names.json").read_text()) == {"rows": None, "columns": ["x"]}
    (tmp_path / "other").mkdir()
    write_names(tmp_path / "other", None, None)
    assert not list((tmp_path / "other").iterdir())
    write_csv(tmp_path / "c.csv", ["a"], [["x,y"]])
    assert lines_of(tmp_path / "c.csv") == [["a"], ["x,y"]]


def test_proportions_are_written_after_the_largest(tmp_path):
    proportions = np.array([[0.25, 0.75], [0.0, 0.0], [1.0, 0.0]])
    write_proportions(tmp_path / "a.csv", proportions, ["d", "e", "f"])
    assert lines_of(tmp_path / "a.csv") == [
        ["document", "topic", "topic_0", "topic_1"], ["d", "1", "0.25", "0.75"], ["e", "-1", "0", "0"],
        ["f", "0", "1", "0"],
    ]  # fmt: skip
    write_proportions(tmp_path / "b.csv", proportions, ["d", "e", "f"], [None, "trade"])
    rows = lines_of(tmp_path / "b.csv")
    assert [row[:3] for row in rows] == [
        ["document", "topic", "name"], ["d", "1", "trade"], ["e", "-1", ""], ["f", "0", ""],
    ]  # fmt: skip


def table(X, **facts):
    plain = {
        "source": "somewhere/data.npy",
        "kind": "npy",
        "row_names": None,
        "column_names": None,
        "labels": None,
    }
    return Table(X=X, **{**plain, **facts})


@pytest.mark.parametrize("sparse", [False, True])
def test_wrong_entries_are_named_by_row_and_column(sparse):
    X = np.array([[1.0, 2.0], [np.nan, -3.0]])
    wrap = sp.csr_array if sparse else np.asarray
    options = argparse.Namespace(missing=None)
    with pytest.raises(
        NonFiniteDataError, match=r"row 1 \(from 0\), column 0: the entry is missing. Fill it in.*--drop 0"
    ):
        _check_entries(table(wrap(X)), options, signed=True)
    with pytest.raises(NonFiniteDataError, match=r"is missing. Correct it"):
        _check_entries(table(wrap(X)), argparse.Namespace(), signed=True)
    options.missing = "mask"
    with pytest.raises(NegativeDataError, match=r"row 1 \(from 0\) \('s'\), column 'b': the entry is -3"):
        _check_entries(table(wrap(X), row_names=("r", "s"), column_names=("a", "b")), options, signed=False)
    _check_entries(table(wrap(X)), options, signed=True)
    X[1, 0] = np.inf
    with pytest.raises(NonFiniteDataError, match="is inf"):
        _check_entries(table(wrap(X)), options, signed=True)
    assert _first(table(wrap(X)), (wrap(X).data if sparse else X) < 0) == ((1, 1), -3.0)
    centered = np.array([[1.0, -1.0], [-1.0, 1.0]])
    with pytest.raises(NegativeDataError, match="mean of the table is about zero"):
        _check_entries(table(wrap(centered)), argparse.Namespace(), signed=False)
    shifted = np.array([[5.0, -1.0], [1.0, 1.0]])
    with pytest.raises(NegativeDataError, match="shift the column, or leave"):
        _check_entries(table(wrap(shifted)), argparse.Namespace(), signed=False)
    with pytest.raises(NegativeDataError, match=r"scanpy.pp.scale.*--layer"):
        _check_entries(table(wrap(shifted), kind="h5ad"), argparse.Namespace(), signed=False)
    assert largest_entry(table(wrap(shifted))) == 5.0
    assert table_name(table(wrap(shifted))) == "data.npy"


def test_how_a_table_is_read():
    given = {
        "columns": ["a, b", "c"], "drop": None, "variable": None, "layer": None, "file": Path("x.h5ad"),
        "header": None, "index": True, "highly_variable": False, "delimiter": None,
    }  # fmt: skip
    found = _reading(argparse.Namespace(**given))
    assert found["selection"].columns == ("a", "b", "c")
    assert (found["header"], found["index"], found["variable"]) == ("auto", True, None)
    assert _reading(argparse.Namespace(**{**given, "layer": "raw"}))["variable"] == "layers/raw"
    for wrong in ({"layer": "raw", "variable": "X"}, {"layer": "raw", "file": Path("x.csv")}):
        with pytest.raises(InvalidParameterError, match="--layer names a layer"):
            _reading(argparse.Namespace(**{**given, **wrong}))
    assert _listed(None) == ()
    assert _listed(["a,,b "]) == ("a", "b")


@pytest.fixture(scope="module")
def model():
    return NMF(2, max_iter=5, tol=0, random_state=0).fit(np.random.default_rng(0).random((6, 3)))


def test_columns_are_brought_into_the_order_of_the_model(model, rng):
    saved = SavedModel(model, Path("m/model.npz"), "table")
    X = rng.random((4, 3))
    found = in_model_order(table(X, column_names=("b", "c", "a")), saved, ["a", "b", "c"])
    np.testing.assert_array_equal(found.X, X[:, [2, 0, 1]])
    assert found.column_names == ("a", "b", "c")
    same = table(X, column_names=("a", "b", "c"))
    assert in_model_order(same, saved, ["a", "b", "c"]) is same
    unnamed = table(X)
    assert in_model_order(unnamed, saved, ["a", "b", "c"]) is unnamed
    with pytest.raises(
        ShapeError,
        match=r"has 2 features, but m/model.npz was fitted to 3\. Give the features .* order\.$",
    ):
        in_model_order(table(X[:, :2]), saved, None)
    with pytest.raises(ShapeError, match="exchange rows and columns"):
        in_model_order(table(X[:3].T[:, :2].T.T), saved, None)
    with pytest.raises(
        ShapeError, match=r"lacks 1 of its 3 features \('c'\) and has 1 that it does not know \('d'\). Give"
    ):
        in_model_order(table(X, column_names=("a", "b", "d")), saved, ["a", "b", "c"])
    wide = table(np.hstack([X, X[:, :1]]), column_names=("a", "b", "d", "c"), kind="h5ad")
    np.testing.assert_array_equal(in_model_order(wide, saved, ["a", "b", "c"]).X, wide.X[:, [0, 1, 3]])
    with pytest.raises(ShapeError, match="exchange rows and columns with --transpose"):
        in_model_order(
            table(X[:3], column_names=("x", "y", "z"), row_names=("a", "b", "c")), saved, ["a", "b", "c"]
        )
    with pytest.raises(ShapeError, match=r"unique \('a'\)"):
        in_model_order(table(X, column_names=("b", "a", "a")), saved, ["a", "a", "b"])


def test_models_and_the_names_beside_them(model, tmp_path):
    folder = tmp_path / "fit"
    folder.mkdir()
    with pytest.raises(FileFormatError, match=r"contains no model.npz"):
        opened_model(folder)
    with pytest.raises(FileFormatError, match="does not exist"):
        opened_model(tmp_path / "none.npz")
    model.save(folder / "model.npz")
    saved = opened_model(folder)
    assert (saved.class_name, saved.kind) == ("NMF", "table")
    assert feature_names(saved) is None
    (folder / "names.json").write_text(json.dumps({"rows": None, "columns": ["a", "b", "c"]}))
    assert feature_names(saved) == ["a", "b", "c"]
    (folder / "names.json").write_text(json.dumps({"rows": None, "columns": ["a", "b"]}))
    with pytest.raises(FileFormatError, match="names of 3 features"):
        feature_names(saved)
    (folder / "names.json").write_text(json.dumps({"rows": ["r"], "columns": None}))
    assert feature_names(saved) is None
    other = SimpleNamespace(feature_names_in_=np.array(["x", "y"], dtype=object))
    assert feature_names(SavedModel(other, folder / "model.npz", "table")) == ["x", "y"]
    elsewhere = SavedModel(SeparableNMF(2), folder / "other.npz", "table")
    assert feature_names(elsewhere) is None


def test_a_real_scene_has_the_wavelengths_of_its_sensor(monkeypatch):
    found = SimpleNamespace(X=np.ones((6, 4)), y=None, sample_shape=(2, 3), extras={}, names=None)
    for name in ("samson", "moffett", "indian_pines", "pavia_u_crop"):
        monkeypatch.setattr(datasets, f"load_{name}", lambda: found)
    for name in ("samson", "moffett", "indian-pines", "pavia-crop"):
        cube = unmix_inputs._real(name, 2).cube
        ends = unmix_inputs.RANGES.get(name)
        if ends is None:
            assert cube.wavelengths is None
        else:
            np.testing.assert_allclose(cube.wavelengths, np.linspace(*ends, 4))
    assert "samson" in unmix_inputs.RANGES


def test_the_race_of_the_demo_measures_time(monkeypatch):
    monkeypatch.setattr(demo, "RACE", {"n_components": 2, "max_iter": 3, "random_state": 0})
    began = time.perf_counter()
    found = demo._scikit_learn(np.random.default_rng(0).random((20, 8)))
    assert 0 < found["seconds"] < time.perf_counter() - began
    assert found["n_iter"] == 3
    assert 0 < found["relative_error"] < 1
