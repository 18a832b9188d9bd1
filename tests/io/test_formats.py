"""Formats of the extra `formats`: Parquet, AnnData, 10x Genomics."""

from __future__ import annotations

import gzip
import sys

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse

from nonneg.exceptions import FileFormatError, MissingDependencyError
from nonneg.io import read_table

CELLS = tuple(f"AAAC-{n}" for n in range(6))
GENES = ("TP53", "MYC", "MYC", "KRAS")
GENE_IDS = ("ENSG1", "ENSG2", "ENSG3", "ENSG4")
UNIQUE_GENES = ("TP53", "MYC (ENSG2)", "MYC (ENSG3)", "KRAS")


@pytest.fixture
def counts():
    return np.random.default_rng(3).integers(0, 4, (6, 4)).astype(np.int32)


def test_parquet_with_and_without_an_index(tmp_path, counts):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(counts + 0.5, columns=list("abcd"), index=list(CELLS))
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    np.testing.assert_array_equal(table.X, counts + 0.5)
    assert table.row_names == CELLS
    assert table.column_names == ("a", "b", "c", "d")
    assert read_table(tmp_path / "t.parquet", index=False).row_names is None
    frame.reset_index(drop=True).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").row_names is None
    frame.reset_index().to_parquet(tmp_path / "t.parquet", index=False)
    assert read_table(tmp_path / "t.parquet").row_names == CELLS


def test_parquet_with_absent_entries_and_text(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": [1, None], "b": [True, False], "c": [0.5, 1.5]}), path)
    np.testing.assert_array_equal(read_table(path).X, [[1, 1, 0.5], [np.nan, 0, 1.5]])
    parquet.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), path)
    with pytest.raises(FileFormatError, match="column 'b': expected numbers, got string"):
        read_table(path)
    parquet.write_table(pa.table({"a": ["x", "y"]}), path)
    with pytest.raises(FileFormatError, match="no numeric column"):
        read_table(path)


def test_columns_of_a_parquet_file_are_chosen(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"kind": ["x", "y"], "a": [1, 2], "b": [3.5, 4.5], "c": [5, 6]}), path)
    table = read_table(path, label="kind", drop=("a",))
    np.testing.assert_array_equal(table.X, [[3.5, 5], [4.5, 6]])
    assert (table.labels, table.label_name) == (("x", "y"), "kind")
    assert (table.column_names, table.row_names) == (("b", "c"), None)
    named = read_table(path, columns=("c",))
    assert (named.labels, named.row_names, named.column_names) == (None, ("x", "y"), ("c",))
    numbers = read_table(path, index=True, columns=("c", "b"))
    np.testing.assert_array_equal(numbers.X, [[3.5, 5], [4.5, 6]])
    parquet.write_table(pa.table({"a": [1, 2], "b": [3.5, 4.5]}), path)
    assert read_table(path).row_names is None
    assert read_table(path, index=True).row_names == ("1", "2")
    assert read_table(path, index=True, columns=("a",)).row_names is None


def write_h5ad(h5py, path, counts, layout):
    text = h5py.string_dtype()
    with h5py.File(path, "w") as file:
        if layout == "dense":
            file["X"] = counts
        else:
            matrix = sparse.csr_array(counts).asformat(layout)
            group = file.create_group("X")
            group.attrs.update({"encoding-type": f"{layout}_matrix", "shape": matrix.shape})
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(matrix, part)
        file["layers/double"] = 2 * counts
        file["raw/X"] = np.hstack([counts, counts])
        obs, var, raw = file.create_group("obs"), file.create_group("var"), file.create_group("raw/var")
        obs.attrs["_index"] = "barcode"
        obs.create_dataset("barcode", data=list(CELLS), dtype=text)
        var.attrs["_index"] = "gene"
        group = var.create_group("gene")
        group["categories"] = np.array(sorted(GENE_IDS), dtype="S")
        group["codes"] = np.arange(4, dtype=np.int8)
        raw.attrs["_index"] = "_index"
        raw.create_dataset("_index", data=[f"g{n}" for n in range(8)], dtype=text)


@pytest.mark.parametrize("layout", ["dense", "csr", "csc"])
def test_h5ad(layout, tmp_path, counts):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "t.h5ad"
    write_h5ad(h5py, path, counts, layout)
    table = read_table(path)
    assert sparse.issparse(table.X) == (layout != "dense")
    np.testing.assert_array_equal(table.X if layout == "dense" else table.X.toarray(), counts)
    assert table.row_names == CELLS
    assert table.column_names == GENE_IDS
    np.testing.assert_array_equal(read_table(path, variable="layers/double").X, 2 * counts)
    assert read_table(path, variable="raw/X").column_names[-1] == "g7"
    with pytest.raises(
        FileFormatError, match=r"contains no 'layers/none'. It contains: X, raw/X, layers/double"
    ):
        read_table(path, variable="layers/none")


@pytest.mark.parametrize("compressed", [False, True])
def test_10x_folder(compressed, tmp_path, counts):
    folder = tmp_path / "filtered"
    folder.mkdir()
    scipy_io.mmwrite(tmp_path / "matrix.mtx", sparse.coo_array(counts.T))
    features = "".join(f"{i}\t{g}\tGene Expression\n" for i, g in zip(GENE_IDS, GENES, strict=True))
    parts = {
        "matrix.mtx": (tmp_path / "matrix.mtx").read_bytes(),
        "barcodes.tsv": "\n".join(CELLS).encode(),
        "features.tsv" if compressed else "genes.tsv": features.encode(),
    }
    for name, data in parts.items():
        (folder / (name + ".gz" * compressed)).write_bytes(gzip.compress(data) if compressed else data)
    table = read_table(folder)
    np.testing.assert_array_equal(table.X.toarray(), counts)
    assert table.row_names == CELLS
    assert table.column_names == UNIQUE_GENES
    barcodes = folder / ("barcodes.tsv" + ".gz" * compressed)
    short = "\n".join(CELLS[:3]).encode()
    barcodes.write_bytes(gzip.compress(short) if compressed else short)
    with pytest.raises(FileFormatError, match="6 barcodes, but 4 features and 3 barcodes are named"):
        read_table(folder)
    barcodes.unlink()
    with pytest.raises(FileFormatError, match=r"folder without barcodes.tsv"):
        read_table(folder)


@pytest.mark.parametrize(
    ("features", "names"),
    [
        ("ENSG1\nENSG2\n", ("ENSG1", "ENSG2")),
        ("ENSG1\tTP53\nENSG2\tMYC\n", ("TP53", "MYC")),
        ("ENSG1\tTP53\tGene\r\n\nENSG2\r\n", ("TP53", "ENSG2")),
    ],
)
def test_features_of_a_10x_folder_have_one_or_more_names(features, names, tmp_path):
    scipy_io.mmwrite(tmp_path / "matrix.mtx", sparse.coo_array(np.array([[1, 0, 2], [0, 3, 0]])))
    (tmp_path / "barcodes.tsv").write_text("a\nb\nc\n")
    (tmp_path / "features.tsv").write_bytes(features.encode())
    table = read_table(tmp_path)
    np.testing.assert_array_equal(table.X.toarray(), [[1, 0], [0, 3], [2, 0]])
    assert table.column_names == names


def test_10x_hdf5(tmp_path, counts):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "t.h5"
    stored = sparse.csc_array(counts.T)
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix")
        for part in ("data", "indices", "indptr", "shape"):
            group[part] = getattr(stored, part)
        group["barcodes"] = np.array(CELLS, dtype="S")
        group["features/id"], group["features/name"] = np.array(GENE_IDS, "S"), np.array(GENES, "S")
        file["other/X"] = counts
    table = read_table(path)
    np.testing.assert_array_equal(table.X.toarray(), counts)
    assert table.row_names == CELLS
    assert table.column_names == UNIQUE_GENES
    np.testing.assert_array_equal(read_table(path, variable="other/X").X, counts)
    with pytest.raises(FileFormatError, match=r"contains no 'hg19'. It contains: matrix, other"):
        read_table(path, variable="hg19")


def test_other_hdf5_files_are_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["results"] = np.ones((2, 2))
    with pytest.raises(FileFormatError, match=r"not a 10x Genomics matrix.*It contains: results"):
        read_table(tmp_path / "t.h5")


@pytest.mark.parametrize("suffix", ["h5ad", "h5", "parquet"])
def test_damaged_files_are_refused(suffix, tmp_path):
    pytest.importorskip("h5py")
    pytest.importorskip("pyarrow")
    path = tmp_path / f"t.{suffix}"
    for damaged in (b"no such thing " * 40, b"\x89HDF\r\n\x1a\n" + bytes(200), b"PAR1" + bytes(50)):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match=r"t."):
            read_table(path)


@pytest.mark.parametrize(
    ("name", "library"), [("t.h5ad", "h5py"), ("t.h5", "h5py"), ("t.parquet", "pyarrow")]
)
def test_a_missing_library_is_named_with_its_extra(name, library, tmp_path, monkeypatch):
    for module in [known for known in sys.modules if known.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)
    (tmp_path / name).write_bytes(b"anything")
    with pytest.raises(MissingDependencyError, match=rf"{library}.*pip install .*\[formats\]"):
        read_table(tmp_path / name)
