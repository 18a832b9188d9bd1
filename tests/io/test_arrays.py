"""Arrays and matrices on disk: NumPy, SciPy, Matrix Market, MATLAB."""

from __future__ import annotations

import pickle
import re
import zipfile

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse

from nonneg.exceptions import DataTypeError, FileFormatError, UnsafeFileError
from nonneg.io import FORMATS, read_table


@pytest.fixture
def X():
    return np.random.default_rng(0).random((6, 4))


@pytest.fixture
def S():
    return sparse.random_array((30, 20), density=0.2, random_state=np.random.default_rng(1), format="csr")


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8"])
def test_npy_keeps_its_type(dtype, tmp_path, X):
    entries = (10 * X).astype(dtype)
    np.save(tmp_path / "x.npy", entries)
    table = read_table(tmp_path / "x.npy")
    assert table.X.dtype == dtype
    np.testing.assert_array_equal(table.X, entries)
    assert table.row_names is None
    assert table.column_names is None


def test_truth_values_become_numbers(tmp_path, X):
    np.save(tmp_path / "x.npy", X > 0.5)
    assert read_table(tmp_path / "x.npy").X.dtype == np.uint8


def test_npz_takes_the_only_matrix_beside_vectors(tmp_path, X):
    np.savez(tmp_path / "x.npz", data=X, labels=np.arange(6), words=np.array(["a", "b"]))
    np.testing.assert_array_equal(read_table(tmp_path / "x.npz").X, X)


def test_a_map_of_labels_beside_a_cube_is_not_taken_for_the_data(tmp_path):
    np.savez(tmp_path / "scene.npz", cube=np.ones((5, 6, 3)), truth=np.ones((5, 6)))
    with pytest.raises(FileFormatError, match=r"cube \(5 x 6 x 3\), truth \(5 x 6\)"):
        read_table(tmp_path / "scene.npz")


def test_repeated_entries_are_added_up_without_wrapping_around(tmp_path):
    twice = sparse.csr_array((np.array([200, 100, 7], np.uint8), [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    sparse.save_npz(tmp_path / "s.npz", twice)
    np.testing.assert_array_equal(read_table(tmp_path / "s.npz").X.toarray(), [[300, 0], [0, 7]])


def test_npz_with_several_arrays_asks_which(tmp_path, X):
    np.savez(tmp_path / "x.npz", train=X, test=2 * X)
    with pytest.raises(FileFormatError, match=r"train \(6 x 4\), test \(6 x 4\).*--variable NAME"):
        read_table(tmp_path / "x.npz")
    np.testing.assert_array_equal(read_table(tmp_path / "x.npz", variable="test").X, 2 * X)
    with pytest.raises(FileFormatError, match=r"no variable 'valid'. It contains: train"):
        read_table(tmp_path / "x.npz", variable="valid")


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("cls", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_npz_stays_sparse(layout, cls, tmp_path, S):
    sparse.save_npz(tmp_path / "s.npz", cls(S).asformat(layout))
    table = read_table(tmp_path / "s.npz")
    assert table.X.format == (layout if layout in ("csr", "csc") else "csr")
    np.testing.assert_array_equal(table.X.toarray(), S.toarray())


def test_sparse_npz_that_is_none(tmp_path):
    np.savez(tmp_path / "s.npz", format=b"csr", shape=[2, 2], data=[1.0], indices=[0])
    with pytest.raises(FileFormatError, match=r"no sound sparse matrix.*'indptr'"):
        read_table(tmp_path / "s.npz")
    sparse.save_npz(tmp_path / "s.npz", sparse.dia_array(np.eye(2)))
    with pytest.raises(FileFormatError, match="the format 'dia' where csr, csc or coo was expected"):
        read_table(tmp_path / "s.npz")
    np.savez(tmp_path / "s.npz", format=b"csr", shape=[2, 2, 2], data=[1.0])
    with pytest.raises(FileFormatError, match="no sound sparse matrix"):
        read_table(tmp_path / "s.npz")
    # Chosen by name, its parts are arrays like others.
    np.savez(tmp_path / "s.npz", format=b"csr", shape=[2, 2], data=np.ones((2, 3)))
    assert read_table(tmp_path / "s.npz", variable="data").X.shape == (2, 3)


def test_headers_may_declare_as_much_as_there_is(tmp_path):
    for shape in ((1, 1), (500, 3)):
        np.save(tmp_path / "x.npy", np.ones(shape))
        assert read_table(tmp_path / "x.npy").X.shape == shape
    np.save(tmp_path / "x.npy", np.ones((500, 3)))
    path = tmp_path / "x.npy"
    path.write_bytes(path.read_bytes()[:11_999])
    with pytest.raises(FileFormatError, match="mmap length is greater"):
        read_table(path)


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("the file ran code",)


def test_pickles_are_refused_and_do_not_run(tmp_path):
    bomb = np.array([[Bomb()]], dtype=object)
    np.save(tmp_path / "x.npy", bomb, allow_pickle=True)
    np.savez(tmp_path / "x.npz", bomb)
    np.savez(tmp_path / "s.npz", format=b"csr", shape=[1, 1], data=bomb, indices=[0], indptr=[0, 1])
    (tmp_path / "p.npy").write_bytes(pickle.dumps(Bomb()))
    for name in ("x.npy", "x.npz", "s.npz"):
        with pytest.raises(UnsafeFileError, match="rejected"):
            read_table(tmp_path / name)
    with pytest.raises(FileFormatError, match="magic string"):
        read_table(tmp_path / "p.npy")


def test_objects_beside_numbers_are_left_alone(tmp_path, X):
    np.savez(tmp_path / "x.npz", data=X, notes=np.array([[Bomb()]], dtype=object))
    np.testing.assert_array_equal(read_table(tmp_path / "x.npz").X, X)
    with pytest.raises(UnsafeFileError):
        read_table(tmp_path / "x.npz", variable="notes")


def test_matlab_dense_and_sparse(tmp_path, S, X):
    scipy_io.savemat(tmp_path / "x.mat", {"X": X, "k": 3, "words": "text"}, do_compression=True)
    np.testing.assert_array_equal(read_table(tmp_path / "x.mat").X, X)
    scipy_io.savemat(tmp_path / "s.mat", {"S": S.tocsc()})
    np.testing.assert_array_equal(read_table(tmp_path / "s.mat").X.toarray(), S.toarray())


def test_matlab_with_several_variables_asks_which(tmp_path, X):
    scipy_io.savemat(tmp_path / "x.mat", {"A": X, "B": X[:3], "k": 3})
    with pytest.raises(FileFormatError, match=r"A \(6 x 4\), B \(3 x 4\), k \(1 x 1\).*--variable"):
        read_table(tmp_path / "x.mat")
    assert read_table(tmp_path / "x.mat", variable="B").X.shape == (3, 4)
    scipy_io.savemat(tmp_path / "t.mat", {"words": "text"})
    with pytest.raises(FileFormatError, match="no numeric array"):
        read_table(tmp_path / "t.mat")


def written(kind, path, X):
    if kind == "npy":
        np.save(path, X)
    elif kind == "npz":
        np.savez(path, X)
    elif kind == "mtx":
        scipy_io.mmwrite(path, sparse.coo_array(X))
    elif kind == "mat":
        scipy_io.savemat(path, {"X": X})


@pytest.mark.parametrize("kind", ["npy", "npz", "mtx", "mat"])
def test_truncated_and_corrupt_files_are_refused(kind, tmp_path, X):
    path = tmp_path / f"x.{kind}"
    written(kind, path, X)
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:10], b"this is no such file\n" * 20):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match=re.escape(str(path))):
            read_table(path)


def test_a_zip_with_a_damaged_member_is_refused(tmp_path, X):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, X)
    with zipfile.ZipFile(path) as archive:
        start = archive.infolist()[0].header_offset + 80
    damaged = bytearray(path.read_bytes())
    damaged[start : start + 40] = bytes(40)
    path.write_bytes(damaged)
    with pytest.raises(FileFormatError):
        read_table(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(FileFormatError, match="without NumPy arrays"):
        read_table(path)


def test_empty_missing_and_unknown_files(tmp_path):
    for suffix in FORMATS:
        path = tmp_path / f"empty{suffix}"
        path.touch()
        with pytest.raises(FileFormatError, match="is empty"):
            read_table(path)
    with pytest.raises(FileFormatError, match=r"other.npy does not exist.$"):
        read_table(tmp_path / "other.npy")
    with pytest.raises(FileFormatError, match="Nor does the folder"):
        read_table(tmp_path / "nowhere" / "x.npy")
    (tmp_path / "x.docx").write_text("hello")
    with pytest.raises(FileFormatError, match=r"unknown ending \(.docx\).*\.csv, .*\.npy"):
        read_table(tmp_path / "x.docx")


@pytest.mark.parametrize(
    ("array", "error", "said"),
    [
        (np.ones(5), FileFormatError, r"shape \(5,\); expected a table with two dimensions"),
        (np.ones((4, 3, 2)), FileFormatError, r"shape \(4, 3, 2\); .* X.reshape\(len\(X\), -1\)"),
        (np.ones((0, 3)), FileFormatError, r"empty table of shape \(0, 3\)"),
        (np.ones((2, 2), complex), DataTypeError, "complex numbers"),
        (np.array([["a", "b"]]), DataTypeError, "text"),
        (np.zeros((2, 2), [("x", float)]), DataTypeError, "records"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(array, error, said, tmp_path):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(error, match=said):
        read_table(tmp_path / "x.npy")
