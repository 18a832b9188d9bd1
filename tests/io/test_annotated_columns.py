"""Columns and matrices of .h5ad files, and what goes into them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.exceptions import FileFormatError
from nonneg.io import read_table
from nonneg.io.hdf5 import read_cell_column

h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.usefixtures("sound_hdf5")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "cells.h5ad"
    X = np.arange(12.0).reshape(3, 4)
    with h5py.File(path, "w") as h5:
        h5["X"] = X
        layers = h5.create_group("layers")
        for name, matrix in (("rows", sp.csr_array(X)), ("columns", sp.csc_array(X))):
            group = layers.create_group(name)
            group.attrs["encoding-type"] = f"{matrix.format}_matrix"
            group.attrs["shape"] = X.shape
            group["data"], group["indices"], group["indptr"] = matrix.data, matrix.indices, matrix.indptr
        obs = h5.create_group("obs")
        obs.attrs["_index"] = "name"
        obs["name"] = np.array([b"c0", b"c1", b"c2"])
        obs["count"] = np.array([3, 1, 2])
        obs["words"] = np.array([b"x", b"y", b"x"])
        kind = obs.create_group("kind")
        kind["categories"], kind["codes"] = np.array([b"T", b"B"]), np.array([1, -1, 0])
        whole = obs.create_group("whole")
        whole["values"] = np.array([5, 6, 7])
        damaged = obs.create_group("damaged")
        damaged["categories"], damaged["codes"] = np.array([b"T", b"B"]), np.array([1, 2, 0])
        var = h5.create_group("var")
        var.attrs["_index"] = "name"
        var["name"] = np.array([b"g0", b"g1", b"g2", b"g3"])
        var["highly_variable"] = np.array([True, False, True, False])
    return path


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("count", ("3", "1", "2")),
        ("words", ("x", "y", "x")),
        ("kind", ("B", "none", "T")),
        ("whole", ("5", "6", "7")),
    ],
)
def test_columns_of_cells_are_text(name, values, file):
    assert read_cell_column(file, name) == values


def test_columns_that_there_are_not(file):
    with pytest.raises(
        FileFormatError, match=r"no column 'tissue' of cells. It contains: count, damaged, kind"
    ):
        read_cell_column(file, "tissue")
    with pytest.raises(FileFormatError, match="'damaged' has codes without a category"):
        read_cell_column(file, "damaged")


@pytest.mark.covering(1)
@pytest.mark.parametrize("variable", [None, "X", "layers/rows", "layers/columns"])
@pytest.mark.parametrize("marked", [False, True])
def test_matrices_with_their_names(variable, marked, file):
    found = read_table(file, variable=variable, highly_variable=marked)
    X = np.arange(12.0).reshape(3, 4)
    kept = [0, 2] if marked else [0, 1, 2, 3]
    matrix = found.X.toarray() if sp.issparse(found.X) else found.X
    np.testing.assert_array_equal(matrix, X[:, kept])
    assert list(found.row_names) == ["c0", "c1", "c2"]
    assert list(found.column_names) == [f"g{at}" for at in kept]


@pytest.mark.parametrize(
    ("codes", "names"), [([1, 0, 1], ["B", "T", "B"]), ([0, 2, 1], None), ([0, -2, 1], None)]
)
def test_names_of_cells_may_be_categories(codes, names, file):
    with h5py.File(file, "r+") as h5:
        del h5["obs/name"]
        group = h5["obs"].create_group("name")
        group["categories"], group["codes"] = np.array([b"T", b"B"]), np.array(codes)
    if names is None:
        with pytest.raises(FileFormatError, match="'obs/name' has codes without a category"):
            read_table(file)
    else:
        assert list(read_table(file).row_names) == names


def test_files_without_names_and_of_the_raw_counts(file):
    with h5py.File(file, "r+") as h5:
        del h5["obs/name"], h5["var"]
        raw = h5.create_group("raw")
        raw["X"] = np.arange(6.0).reshape(3, 2)
        var = raw.create_group("var")
        var["_index"] = np.array([b"a", b"b"])
        var["highly_variable"] = np.array([False, True])
    found = read_table(file)
    assert (found.row_names, found.column_names) == (None, None)
    raw = read_table(file, variable="raw/X", highly_variable=True)
    np.testing.assert_array_equal(raw.X, [[1], [3], [5]])
    assert list(raw.column_names) == ["b"]
    with pytest.raises(FileFormatError, match=r"no 'Y'. It contains: X, raw/X, layers/columns, layers/rows"):
        read_table(file, variable="Y")


@pytest.mark.parametrize("marks", [[False] * 4, None])
def test_without_highly_variable_genes_there_is_nothing_to_choose(marks, file):
    with h5py.File(file, "r+") as h5:
        del h5["var/highly_variable"]
        if marks is not None:
            h5["var"].create_group("highly_variable")["values"] = np.array(marks)
    said = r"no column 'highly_variable' of variables \(columns: name\)" if marks is None else "marks none"
    with pytest.raises(FileFormatError, match=said):
        read_table(file, highly_variable=True)


def test_matrices_that_there_are_not(file):
    with pytest.raises(
        FileFormatError, match=r"contains no 'Y'. It contains: X, layers/columns, layers/rows"
    ):
        read_table(file, variable="Y")
