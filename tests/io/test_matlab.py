"""Elements of MATLAB files, checked before SciPy reads them: byte by byte at the limits."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from nonneg.exceptions import FileFormatError
from nonneg.io import read_table
from nonneg.io.matlab import check_elements

HEADER = {"<": b"MATLAB 5.0".ljust(124) + b"\0\1IM", ">": b"MATLAB 5.0".ljust(124) + b"\1\0MI"}


def element(order, kind, data=b"", size=None):
    """An element with its tag, filled up to eight bytes."""
    return struct.pack(f"{order}II", kind, len(data) if size is None else size) + data + bytes(-len(data) % 8)


def matrix(order, *parts, kind=14, numeric=6, size=None):
    """A matrix: its flags and further elements."""
    flags = element(order, 6, struct.pack(f"{order}II", numeric, 0))
    return element(order, kind, flags + b"".join(parts), size)


def checked(path, order, *elements):
    path.write_bytes(HEADER[order] + b"".join(elements))
    check_elements(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.mat"


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("packed", [False, True])
def test_elements_are_looked_at_one_after_another(order, packed, path):
    def stored(whole):
        return element(order, 15, zlib.compress(whole))[: 8 + len(zlib.compress(whole))] if packed else whole

    good = matrix(order, element(order, 5, bytes(8)), element(order, 9, bytes(24)))
    small = struct.pack(f"{order}II", (4 << 16) | 5, 7)  # four bytes in the tag itself
    bad = matrix(order, element(order, 5, bytes(8)), element(order, 8, bytes(8)))
    checked(path, order)
    checked(path, order, stored(good), stored(matrix(order, small, element(order, 1, b"abc"))))
    for before in ((), (stored(good),), (element(order, 1, bytes(16)),)):
        with pytest.raises(FileFormatError, match="an element of type 8 and 8 bytes"):
            checked(path, order, *before, stored(bad))
    # Text, cells and structures are not read.
    checked(path, order, stored(matrix(order, element(order, 8, bytes(8)), numeric=4)))
    for numeric in (5, 6, 15):
        with pytest.raises(FileFormatError, match="an element of type 8"):
            checked(path, order, stored(matrix(order, element(order, 8, bytes(8)), numeric=numeric)))


def test_small_elements_hold_four_bytes(path):
    for size, good in ((1, True), (4, True), (5, False)):
        whole = matrix("<", struct.pack("<II", (size << 16) | 1, 0))
        if good:
            checked(path, "<", whole)
        else:
            with pytest.raises(FileFormatError, match="an element of type 1 and 0 bytes"):
                checked(path, "<", whole)
    with pytest.raises(FileFormatError, match="an element of type 8 and 0 bytes"):
        checked(path, "<", matrix("<", struct.pack("<II", (4 << 16) | 8, 0)))


@pytest.mark.parametrize(("length", "good"), [(8, True), (16, False), (2**31, False)])
def test_elements_end_within_their_matrix(length, good, path):
    whole = matrix("<", element("<", 9, bytes(8), size=length))
    if good:
        checked(path, "<", whole)
    else:
        with pytest.raises(FileFormatError, match=f"an element of type 9 and {length} bytes"):
            checked(path, "<", whole)


def test_files_that_end_within_an_element(path):
    with pytest.raises(FileFormatError, match="it ends within an element"):
        checked(path, "<", bytes(7))
    with pytest.raises(FileFormatError, match="it ends within an element"):
        checked(path, "<", matrix("<", element("<", 9, bytes(8)))[:-12])
    with pytest.raises(FileFormatError, match="an element of type 9 where a matrix was expected"):
        checked(path, "<", element("<", 15, zlib.compress(element("<", 9, bytes(8)))))
    with pytest.raises(FileFormatError, match=r"is damaged: .*incorrect header check"):
        checked(path, "<", element("<", 15, b"no zlib!"))
    with pytest.raises(FileFormatError, match="it ends within an element"):
        checked(path, "<", element("<", 15, zlib.compress(matrix("<"))[:6]))


def test_large_compressed_elements_are_read_in_parts(path, rng):
    X = rng.integers(255, size=(400, 300)).astype(np.uint8)
    scipy.io.savemat(path, {"X": X, "Y": X[:2]}, do_compression=True)
    check_elements(path)
    np.testing.assert_array_equal(read_table(path, variable="X").X, X)


def test_variables_of_version_73(path):
    h5py = pytest.importorskip("h5py")
    S = sp.csc_array(np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]]))
    with h5py.File(path, "w") as file:
        file["X"] = np.arange(6.0).reshape(3, 2)
        for name, mark in (("none", "MATLAB_empty"), ("words", "MATLAB_class")):
            file[name] = np.ones((2, 2))
            file[name].attrs[mark] = np.bytes_("char") if mark == "MATLAB_class" else 1
        file["#refs#"] = np.ones((2, 2))
        file["complex"] = np.ones((2, 2), dtype=[("real", float), ("imag", float)])
        file.create_group("struct")["data"] = np.ones((2, 2))
        group = file.create_group("S")
        group.attrs["MATLAB_sparse"] = 2
        group["data"], group["ir"], group["jc"] = S.data, S.indices, S.indptr
    np.testing.assert_array_equal(read_table(path, variable="X").X, np.arange(6.0).reshape(3, 2).T)
    np.testing.assert_array_equal(read_table(path, variable="S").X.toarray(), S.toarray())
    with pytest.raises(FileFormatError, match=r"several variables: S \(2 x 3\), X \(2 x 3\)\."):
        read_table(path)
