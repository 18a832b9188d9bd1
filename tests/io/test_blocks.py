"""Blocks of matrices on disk begin where rows and row groups do, and are read into memory that is there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.exceptions import FileFormatError
from nonneg.io import stored
from nonneg.io.stored_dense import ArrayRows
from nonneg.io.stored_sparse import CompressedRows


def compressed(counts, memory, block, monkeypatch):
    """A matrix with so many entries in its rows, in blocks of at most so many entries of twelve bytes."""
    monkeypatch.setattr(stored, "_BLOCK_BYTES", 12 * block)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    n = int(indptr[-1])
    indices = np.concatenate([np.arange(count) for count in counts]).astype(np.int32)
    return CompressedRows(np.ones(n), indices, indptr, (len(counts), 50), "file", memory)


@pytest.mark.parametrize(
    ("counts", "block", "edges"),
    [
        ([2, 2, 2, 2], 4, [0, 2, 4]),
        ([2, 2, 2, 2], 5, [0, 2, 4]),
        ([2, 2, 2, 2], 6, [0, 3, 4]),
        ([2, 2, 2, 2], 1, [0, 1, 2, 3, 4]),
        ([9, 1, 1, 0, 0], 3, [0, 1, 5]),
        ([0, 0, 3, 3], 3, [0, 3, 4]),
        ([1, 1, 1], 99, [0, 3]),
        ([0, 0], 1, [0, 2]),
    ],
)
def test_blocks_of_rows_have_as_many_entries_as_allowed(counts, block, edges, monkeypatch):
    matrix = compressed(counts, 10**6, block, monkeypatch)
    assert matrix.cuts().tolist() == edges
    assert matrix.nnz == sum(counts)
    assert matrix.n_bytes == 12 * sum(counts) + 8 * (len(counts) + 1)
    assert matrix.row_bytes() == 12 * sum(counts) / len(counts)


def test_a_row_of_which_two_do_not_fit_is_refused(monkeypatch):
    assert compressed([10, 1], 360, 99, monkeypatch).cuts()[-1] == 2
    with pytest.raises(FileFormatError, match="a row with 10 entries: two rows of that size do not fit"):
        compressed([10, 1], 359, 99, monkeypatch).cuts()


def test_rows_of_a_sparse_matrix(rng):
    X = sp.random_array((7, 5), density=0.5, random_state=rng, format="csr")
    matrix = CompressedRows(X.data, X.indices, X.indptr, X.shape, "file")
    for start, stop in ((0, 7), (2, 5), (3, 3)):
        np.testing.assert_array_equal(matrix.read_rows(start, stop).toarray(), X.toarray()[start:stop])
    matrix.select(np.array([4, 1]))
    np.testing.assert_array_equal(matrix.read_rows(1, 6).toarray(), X.toarray()[1:6, [4, 1]])


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


def test_chunks_of_an_array(rng):
    class Chunked:
        shape, dtype, chunks = (10, 4), np.dtype(float), (3, 4)

    assert ArrayRows(Chunked(), "a").chunk_rows == 3
    Chunked.chunks = (30, 4)
    assert ArrayRows(Chunked(), "a").chunk_rows == 10
    Chunked.shards = (5, 4)
    assert ArrayRows(Chunked(), "a").chunk_rows == 5
    assert ArrayRows(rng.random((10, 4)), "a").chunk_rows == 1
    assert ArrayRows(rng.random((10, 4)), "a").n_bytes == 320
    with pytest.raises(FileFormatError, match=r"an array of shape \(3,\)"):
        ArrayRows(np.ones(3), "a")


@pytest.mark.parametrize(
    ("chunk", "wanted", "edges"),
    [(1, 3, [0, 3, 6, 9, 10]), (4, 3, [0, 4, 8, 10]), (2, 5, [0, 4, 8, 10]), (1, 20, [0, 10])],
)
def test_blocks_of_chunks(chunk, wanted, edges, monkeypatch, rng):
    monkeypatch.setattr(stored, "_BLOCK_BYTES", 32 * wanted)
    matrix = ArrayRows(rng.random((10, 4)), "a", 10**6)
    matrix.chunk_rows = chunk
    assert matrix.cuts().tolist() == edges


@pytest.mark.parametrize(
    ("size", "wanted", "edges"),
    [(3, 3, [0, 3, 6, 9, 10]), (3, 6, [0, 6, 10]), (3, 2, [0, 3, 6, 9, 10]), (3, 99, [0, 10])],
)
def test_blocks_of_row_groups(size, wanted, edges, tmp_path, monkeypatch, rng):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from nonneg.io.parquet import ParquetRows
    from nonneg.io.table import ReadOptions

    X = rng.random((10, 4))
    table = pa.table({f"c{at}": X[:, at] for at in range(4)})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=size)
    monkeypatch.setattr(stored, "_BLOCK_BYTES", 32 * wanted)
    matrix = ParquetRows(tmp_path / "x.parquet", ReadOptions(), 10**6)
    assert matrix.cuts().tolist() == edges
    assert matrix.chunk_rows == 3
    for start, stop in ((0, 10), (3, 6), (2, 8), (9, 10)):
        np.testing.assert_array_equal(matrix.read_rows(start, stop), X[start:stop])
    matrix.close()
