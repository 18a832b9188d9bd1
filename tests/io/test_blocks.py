"""Blocks of matrices on disk begin where rows and row groups do, and are read into memory that is there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from nonneg.exceptions import FileFormatError
from nonneg.io.stored import ArrayRows, CompressedRows, FileRows


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


@pytest.mark.parametrize("dtype", [np.float64, np.int16])
def test_rows_of_a_file(dtype, tmp_path, rng):
    X = rng.integers(99, size=(50, 7)).astype(dtype)
    path = tmp_path / "X.bin"
    path.write_bytes(b"header" + X.tobytes() + b"more")
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


def test_a_file_is_as_long_as_its_rows(tmp_path):
    path = tmp_path / "X.bin"
    path.write_bytes(bytes(10 + 48))
    with FileRows(path, (3, 2), np.float64, 10) as matrix:
        np.testing.assert_array_equal(matrix.read_all(), np.zeros((3, 2)))
        path.write_bytes(bytes(57))
        with pytest.raises(FileFormatError, match="has become shorter while it was read"):
            matrix.read_all()
        with ThreadPoolExecutor(1) as writers, pytest.raises(FileFormatError, match="truncated"):
            matrix.read_into(np.empty((3, 2)), 0, 3, writers)
