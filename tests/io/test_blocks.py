"""Blocks of matrices on disk begin where rows and row groups do, and are read into memory that is there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.exceptions import FileFormatError, NonnegWarning, OutputError
from nonneg.io import stored
from nonneg.io.stored import ArrayRows, CompressedRows, FileRows, by_rows


@pytest.mark.parametrize("columns", [None, np.array([3, 0])])
@pytest.mark.parametrize("listed", [False, True])
def test_rows_are_read_into_memory(columns, listed, rng):
    X = rng.integers(9, size=(11, 4)).astype(np.int32)

    class Slices:
        """An array of a library, of which only slices are known."""

        shape, dtype = X.shape, X.dtype

        def __getitem__(self, rows):
            return X[rows]

    matrix = ArrayRows(Slices() if listed else X, "array")
    if columns is not None:
        matrix.select(columns)
    out = np.full((6, matrix.shape[1]), -1.0)
    with ThreadPoolExecutor(2) as writers:
        matrix.read_into(out, 3, 9, writers)
    np.testing.assert_array_equal(out, X[3:9] if columns is None else X[3:9][:, columns])


@pytest.mark.parametrize("memory", [1, 200, 500, 10**6])
@pytest.mark.parametrize("kind", [np.float64, np.int8])
def test_a_matrix_by_columns_is_rewritten_by_rows(memory, kind, rng):
    X = sp.random_array((9, 7), density=0.5, random_state=rng, format="csc")
    X.data = np.arange(1, X.nnz + 1).astype(kind)
    parts = X.data, X.indices.astype(np.int32), X.indptr  # old versions of SciPy count with 64 bits here
    with pytest.warns(
        NonnegWarning, match=f"temporary file of {X.nnz * (np.dtype(kind).itemsize + 4)} bytes"
    ):
        values, columns, pointers = by_rows(*parts, X.shape, "file", memory)
    found = sp.csr_array((values, columns, pointers), shape=X.shape)
    np.testing.assert_array_equal(found.toarray(), X.toarray())
    assert found.has_sorted_indices
    assert (values.dtype, columns.dtype) == (kind, np.int32)
    whole = CompressedRows(*parts, X.shape, "file", by_columns=True)
    np.testing.assert_array_equal(whole.read_all().toarray(), X.toarray())
    assert whole.nnz == X.nnz
    assert whole.row_bytes() == X.nnz * 12 / 9
    with pytest.warns(NonnegWarning, match="rewritten by rows once"):
        np.testing.assert_array_equal(whole.read_rows(0, 8).toarray(), X.toarray()[:8])


def test_no_room_for_the_rewritten_matrix(rng, monkeypatch):
    X = sp.csc_array(np.eye(5))
    parts = X.data, X.indices, X.indptr
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=59))
    with pytest.raises(OutputError, match=r"takes 60 bytes; .* has 59 bytes left"):
        by_rows(*parts, X.shape, "file", 100)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=60))
    with pytest.warns(NonnegWarning, match="temporary file of 60 bytes"):
        by_rows(*parts, X.shape, "file", 100)


@pytest.mark.parametrize(
    ("indptr", "n_data"),
    [([[0, 1]], 2), ([0.0, 1.0, 2.0], 2), ([0, 2], 2), ([0, 1, 2, 2], 2), ([0, 1, 2], 3), ([1, 1, 2], 2),
     ([0, 1, 3], 2), ([0, 2, 1], 2)],
)  # fmt: skip
def test_row_pointers_rise_from_zero_to_the_number_of_entries(indptr, n_data):
    indices = np.zeros(2, dtype=np.int32)
    with pytest.raises(FileFormatError, match="indptr must rise from 0 to 2 in 3 entries"):
        CompressedRows(np.ones(n_data), indices, np.array(indptr), (2, 5), "file")
    sound = CompressedRows(np.ones(2), indices, np.array([0, 1, 1]), (2, 5), "file")
    assert sound.nnz == 1


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.int16])
def test_rows_of_a_file(direct, dtype, tmp_path, monkeypatch, rng):
    X = rng.integers(99, size=(50, 7)).astype(dtype)
    path = tmp_path / "X.bin"
    path.write_bytes(b"header" + X.tobytes() + b"more")
    monkeypatch.setattr(stored, "_SEGMENT", 64)  # several reads for each block
    if direct:
        monkeypatch.setattr(stored, "memory_limit", lambda: 100)
        monkeypatch.setattr(stored, "_SEGMENT", 4096)
    with FileRows(path, X.shape, dtype, 6) as matrix:
        assert matrix.n_bytes == X.nbytes
        for start, stop in ((0, 50), (13, 14), (7, 43), (49, 50), (5, 5)):
            np.testing.assert_array_equal(matrix.read_rows(start, stop), X[start:stop])
            for kind in (np.float64, np.float32):
                out = np.full((stop - start, 7), -1, dtype=kind)
                if stop > start:
                    with ThreadPoolExecutor(2) as writers:
                        matrix.read_into(out, start, stop, writers)
                np.testing.assert_array_equal(out, X[start:stop])
        matrix.select(np.array([6, 2]))
        out = np.empty((5, 2))
        with ThreadPoolExecutor(2) as writers:
            matrix.read_into(out, 3, 8, writers)
        np.testing.assert_array_equal(out, X[3:8, [6, 2]])


@pytest.mark.parametrize("missing", [0, 1])
def test_a_file_is_as_long_as_its_rows(missing, tmp_path):
    path = tmp_path / "X.bin"
    path.write_bytes(bytes(10 + 48 - missing))
    if missing:
        with pytest.raises(FileFormatError, match=r"it has 57 bytes, but .* float64 needs 58"):
            FileRows(path, (3, 2), np.float64, 10)
        return
    with FileRows(path, (3, 2), np.float64, 10) as matrix:
        np.testing.assert_array_equal(matrix.read_all(), np.zeros((3, 2)))
        path.write_bytes(bytes(40))
        with pytest.raises(FileFormatError, match="has become shorter while it was read"):
            matrix.read_all()
        with (
            ThreadPoolExecutor(1) as writers,
            pytest.raises(FileFormatError, match="has become shorter"),
        ):
            matrix.read_into(np.empty((3, 2)), 0, 3, writers)
