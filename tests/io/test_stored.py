"""Matrices on disk: every format gives its rows, in blocks that fit in memory and end where chunks end."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.stored import FORMATS, SPARSE, write

from nonneg import open_matrix
from nonneg.exceptions import FileFormatError, InvalidParameterError, UnsafeFileError
from nonneg.io.memory import checked_memory, temporary_array
from nonneg.io.read import as_stored
from nonneg.io.stored import ArrayRows, FileRows

pytestmark = pytest.mark.usefixtures("sound_hdf5")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.where(rng.random((60, 9)) < 0.5, rng.gamma(1.0, size=(60, 9)), 0.0)


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_its_rows(X, form, tmp_path):
    path, variable = write(X, form, tmp_path)
    with open_matrix(path, variable=variable, memory=1200) as stored:
        assert stored.shape == X.shape
        assert stored.dtype == X.dtype
        assert stored.is_sparse == (form in SPARSE)
        assert not stored.fits()
        edges = stored.cuts()
        assert edges[0] == 0
        assert edges[-1] == 60
        assert (np.diff(edges) > 0).all()
        assert len(edges) > 10
        np.testing.assert_array_equal(dense(stored.read_rows(7, 23)), X[7:23])
        rows = np.array([0, 7, 8, 59])
        np.testing.assert_array_equal(dense(stored.take_rows(rows)), X[rows])
    with open_matrix(path, variable=variable) as whole:
        assert whole.fits()
        np.testing.assert_array_equal(dense(whole.read_all()), X)
        whole.select(np.array([1, 4]))
        assert whole.shape == (60, 2)
        np.testing.assert_array_equal(dense(whole.read_rows(3, 5)), X[3:5][:, [1, 4]])


@pytest.mark.parametrize("form", ["zarr 3", "chunked hdf5", "parquet"])
def test_blocks_end_where_chunks_end(X, form, tmp_path):
    path, variable = write(X, form, tmp_path, chunk=4)
    edges = open_matrix(path, variable=variable, memory=72 * 9 * 8).cuts()
    assert (edges[:-1] % 4 == 0).all()
    assert (np.diff(edges)[:-1] == 8).all()
    (tmp_path / "large").mkdir()
    path, variable = write(X, form, tmp_path / "large", chunk=40)
    with pytest.raises(FileFormatError, match=r"chunks of 40 rows.* fewer rows"):
        open_matrix(path, variable=variable, memory=4000).cuts()


@pytest.mark.parametrize(
    ("dtype", "working"), [("float32", "float32"), ("uint8", "float64"), ("int32", "float64")]
)
@pytest.mark.parametrize("form", ["npy", "h5ad", "parquet"])
def test_types_stay_on_disk_and_are_cast_by_block(dtype, working, form, tmp_path):
    X = np.random.default_rng(0).integers(0, 9, (30, 5)).astype(dtype)
    path, _ = write(X, form, tmp_path)
    with open_matrix(path, memory=400) as stored:
        assert stored.working_dtype == working
        assert stored.read_rows(0, 7).dtype == working
        np.testing.assert_array_equal(dense(stored.read_rows(0, 7)), X[:7])
    with open_matrix(path, dtype="float32") as stored:
        assert stored.read_all().dtype == np.float32


def test_columns_stored_first_are_read_whole_or_refused(X, tmp_path):
    path, _ = write(X, "csc h5ad", tmp_path)
    np.testing.assert_array_equal(dense(open_matrix(path).read_all()), X)
    with pytest.raises(FileFormatError, match=r"stored by columns .* Store it as CSR"):
        open_matrix(path, memory=1200).cuts()


def test_memory_mapped_arrays_are_read_from_their_file(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    for mode in ("r", "r+", "c"):
        mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
        if mode != "r":
            mapped[3] = 5.0  # which may be in memory alone
        for part in (mapped, mapped[7:], mapped[:, 2:5], mapped[::2]):
            stored = as_stored(part)
            assert isinstance(stored, FileRows) == (mode == "r" and part is mapped)
            np.testing.assert_array_equal(stored.read_rows(2, 6), part[2:6])
    assert as_stored(X) is None
    assert as_stored(sp.csr_array(X)) is None


def test_open_arrays_of_the_libraries_are_taken(X, tmp_path):
    h5py, zarr, anndata = (pytest.importorskip(name) for name in ("h5py", "zarr", "anndata"))
    with h5py.File(write(X, "chunked hdf5", tmp_path)[0]) as file:
        np.testing.assert_array_equal(as_stored(file["group/X"]).read_rows(1, 9), X[1:9])
    array = zarr.open(str(write(X, "zarr 3", tmp_path)[0]), mode="r")
    np.testing.assert_array_equal(as_stored(array).read_rows(1, 9), X[1:9])
    cells = anndata.read_h5ad(write(X, "h5ad", tmp_path)[0], backed="r")
    np.testing.assert_array_equal(as_stored(cells.X).read_rows(1, 9).toarray(), X[1:9])
    cells.file.close()


def test_files_that_are_no_matrix_say_so(X, tmp_path):
    np.savetxt(tmp_path / "X.csv", X, delimiter=",")
    with pytest.raises(FileFormatError, match="can only be read whole"):
        open_matrix(tmp_path / "X.csv")
    np.save(tmp_path / "o.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    with pytest.raises(UnsafeFileError):
        open_matrix(tmp_path / "o.npy")
    np.save(tmp_path / "short.npy", X)
    (tmp_path / "short.npy").write_bytes((tmp_path / "short.npy").read_bytes()[:-100])
    with pytest.raises(FileFormatError, match="truncated"):
        open_matrix(tmp_path / "short.npy")
    h5py = pytest.importorskip("h5py")
    path, _ = write(X, "h5ad", tmp_path)
    with h5py.File(path, "r+") as file:
        file["X/indices"][5] = 99
    stored = open_matrix(path, memory=1200)
    with pytest.raises(FileFormatError, match="impossible indices"):
        stored.read_rows(0, 20)
    with pytest.raises(InvalidParameterError, match="dtype"):
        open_matrix(path, dtype="int8")


@pytest.mark.parametrize(
    ("given", "expected"),
    [("2GB", 2e9), ("500 MB", 5e8), ("1.5GiB", 1.5 * 2**30), (1000, 1000), ("64k", 64e3)],
)
def test_memory_is_read_as_people_write_it(given, expected):
    assert checked_memory(given) == expected


@pytest.mark.parametrize("given", ["much", "-1GB", 0, True, "2GB more", float("nan"), [1]])
def test_other_memory_is_refused(given):
    with pytest.raises(InvalidParameterError, match="--memory"):
        checked_memory(given)


def test_temporary_arrays_leave_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    array = temporary_array((5, 3), np.float32)
    array[:] = 2.0
    assert array.sum() == 30
    assert list(tmp_path.iterdir()) == []


def test_an_array_larger_than_memory_is_read_chunk_by_chunk(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        stored = file.create_dataset("X", data=np.ones((1000, 100)), chunks=(10, 100))
        cuts = ArrayRows(stored, "x.h5", 600_000).cuts()  # the whole has 800,000 bytes
        assert cuts[-1] == 1000
        assert (np.diff(cuts) % 10 == 0).all()
        with pytest.raises(FileFormatError, match="chunks"):
            ArrayRows(stored, "x.h5", 20_000).cuts()


def test_which_files_can_be_read_block_by_block(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.savetxt(tmp_path / "x.csv", X, delimiter=",")
    with pytest.raises(FileFormatError, match="a table in plain text, which can only be read whole"):
        open_matrix(tmp_path / "x.csv")
    with pytest.raises(InvalidParameterError, match="contains only one"):
        open_matrix(tmp_path / "x.npy", variable="X")
