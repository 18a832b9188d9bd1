"""Contents of stored arrays: the smallest types, what differs, and where known entries are found."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from nonneg.datasets.content import described, differences, narrowed, read_archive, sparse_arrays
from nonneg.datasets.conversion.located import located, located_sparse
from nonneg.exceptions import FileFormatError


def matrix(arrays):
    return scipy.sparse.csr_array(
        (arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"])
    ).toarray()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 255], np.uint8),
        ([0, 256], np.uint16),
        ([65535.0], np.uint16),
        ([65536.0], np.uint32),
        ([2**32 - 1], np.uint32),
        ([2**32], np.int64),
        ([-1, 3], np.int64),
        ([0.5, 1.0], np.float64),
        ([1.5], np.float64),
        ([True], np.uint8),
        ([], np.float64),
        (["a"], np.dtype("<U1")),
    ],
)
def test_whole_numbers_take_the_smallest_type(values, kind):
    found = narrowed(np.array(values))
    assert found.dtype == kind
    np.testing.assert_array_equal(found, values)


def test_differences_are_listed_by_name():
    X, y = np.arange(4.0), np.array([1, 2], dtype=np.uint8)
    known = {"X": described(X), "y": described(y)}
    assert differences({"X": X.copy(), "y": y.astype(">u1")}, known) == []
    assert differences({"X": X[::-1], "z": y}, known) == [
        "X has other entries", "y is missing", "z is not expected",
    ]  # fmt: skip
    assert differences({"X": X.astype(np.float32), "y": y[None]}, known) == [
        "X is <f4 of shape (4,), not <f8 of (4,)",
        "y is |u1 of shape (1, 2), not |u1 of (2,)",
    ]


def test_sparse_matrices_are_stored_by_sorted_rows_without_zeros():
    places = ([1, 0, 1, 1], [2, 1, 0, 2])
    found = sparse_arrays(scipy.sparse.coo_array(([3.0, 0.0, 5.0, 4.0], places), shape=(2, 3)))
    np.testing.assert_array_equal(matrix(found), [[0, 0, 0], [5, 0, 7]])
    np.testing.assert_array_equal(found["indices"], [0, 2])
    assert found["data"].dtype == np.uint8


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_sparse_matrices_are_found_by_their_entries(dense, turned):
    X = scipy.sparse.csr_array(np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]]))
    known = {name: described(part) for name, part in sparse_arrays(X).items()}
    given = X.T if turned else X
    variables = {"words": np.array(["a"]), "row": np.ones((1, 6)), "cube": np.ones((2, 2, 2)), "e": np.eye(2)}
    variables["X"] = given.toarray() if dense else given
    np.testing.assert_array_equal(matrix(located_sparse(variables, known, "X")), X.toarray())
    del variables["X"]
    with pytest.raises(FileFormatError, match=r"among the variables of the source, which contains: words"):
        located_sparse(variables, known, "X")


def test_arrays_are_found_however_they_lie():
    scene = np.arange(12).reshape(3, 4).astype(np.uint8)
    for value in (scene, scene.T, scene.reshape(1, 12), scene.ravel(order="F"), scene.astype(float)):
        np.testing.assert_array_equal(located({"a": np.eye(2), "b": value}, described(scene), "X"), scene)
    labels = np.array([0, 2, 1], dtype=np.uint8)
    for value in (labels, labels[:, None] + 1.0, labels + 1):
        np.testing.assert_array_equal(located({"y": value}, described(labels), "y"), labels)
    for value in (scene + 1, scene + 0.5, labels + 2):
        with pytest.raises(FileFormatError, match=r"Expected X, \|u1 of shape \(3, 4\), with known entries"):
            located({"b": value}, described(scene), "X")


def test_objects_and_other_files_are_no_archives(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.array([{}]))
    with pytest.raises(FileFormatError, match=r"cannot be read as an \.npz file of plain arrays"):
        read_archive(path)
    path.write_bytes(b"no archive")
    with pytest.raises(FileFormatError, match="Replace it"):
        read_archive(path)
    np.savez(path, x=np.arange(3), y=np.ones(1))
    assert list(read_archive(path)) == ["x", "y"]
