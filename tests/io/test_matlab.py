"""Elements of MATLAB files, sound and damaged, byte by byte."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from nonneg.exceptions import DataTypeError, FileFormatError
from nonneg.io import read_table

HEADER = {"<": b"MATLAB 5.0".ljust(124) + b"\0\1IM", ">": b"MATLAB 5.0".ljust(124) + b"\1\0MI"}


def element(order, kind, data=b"", size=None):
    """An element with its tag, filled up to eight bytes."""
    return struct.pack(f"{order}II", kind, len(data) if size is None else size) + data + bytes(-len(data) % 8)


def matrix(order, *parts, numeric=6, shape=(1, 3), name=b"X"):
    """A matrix: its flags, its shape, its name and further elements."""
    flags = element(order, 6, struct.pack(f"{order}II", numeric, 0))
    sides = element(order, 5, struct.pack(f"{order}{len(shape)}i", *shape))
    return element(order, 14, flags + sides + element(order, 1, name) + b"".join(parts))


def read(path, order, *elements):
    path.write_bytes(HEADER[order] + b"".join(elements))
    return read_table(path).X


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.mat"


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("packed", [False, True])
def test_elements_of_either_byte_order(order, packed, path):
    def stored(whole):
        return element(order, 15, zlib.compress(whole))[: 8 + len(zlib.compress(whole))] if packed else whole

    doubles = struct.pack(f"{order}3d", 1, 2, 3)
    good = matrix(order, element(order, 9, doubles))
    np.testing.assert_array_equal(read(path, order, stored(good)), [[1, 2, 3]])
    # Up to four bytes stand in the tag itself; MATLAB stores small whole numbers in fewer bytes.
    small = struct.pack(f"{order}I", (3 << 16) | 2) + bytes([7, 8, 9, 0])
    np.testing.assert_array_equal(read(path, order, stored(matrix(order, small))), [[7, 8, 9]])
    # Text, cells and structures are not read.
    text = matrix(order, element(order, 8, bytes(8)), numeric=4, name=b"text")
    np.testing.assert_array_equal(read(path, order, stored(text), stored(good)), [[1, 2, 3]])
    for numeric in (5, 6, 15):
        with pytest.raises(FileFormatError, match="an element of type 8 in a matrix"):
            read(path, order, stored(matrix(order, element(order, 8, bytes(8)), numeric=numeric)))


def test_damaged_elements(path):
    good = matrix("<", element("<", 9, bytes(24)))
    for damaged, said in (
        # SciPy reads both, and crashes where one is a text of an unknown type.
        (good + matrix("<", element("<", 8, bytes(8)), numeric=4), "two variables have the same name"),
        (bytes(7), "could not be read as a MATLAB file"),
        (good[:-12], "it ends within an element"),
        (matrix("<", element("<", 9, bytes(24), size=2**31)), "it ends within an element"),
        (matrix("<", struct.pack("<II", (5 << 16) | 1, 0)), "it ends within an element"),
        (element("<", 14), "could not be read as a MATLAB file"),
        (element("<", 9, bytes(8)), "an element of type 9 where a matrix was expected"),
        (element("<", 15, zlib.compress(element("<", 9, bytes(8)))), "type 9 where a matrix was expected"),
        (element("<", 15, b"no zlib!"), "incorrect header check"),
        (element("<", 15, zlib.compress(good)[:20]), "it ends within an element"),
    ):
        with pytest.raises(FileFormatError, match=said):
            read(path, "<", damaged)


@pytest.mark.parametrize("packed", [False, True])
def test_variables_are_those_that_scipy_wrote(packed, path, rng):
    X = rng.integers(200, size=(40, 30))
    types = ["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"]
    variables = {f"of_{dtype.strip('?')}": X.astype(dtype) for dtype in types}
    variables |= {"S": sp.csc_array(X * (X > 150) / 2), "flags": sp.csc_array(X > 150), "complex": X + 2j}
    variables |= {"words": "text", "cells": np.array([1, "a"], dtype=object), "struct": {"a": X}}
    scipy.io.savemat(path, variables, do_compression=packed)
    for name, value in list(variables.items())[:-4]:
        stored = read_table(path, variable=name).X
        np.testing.assert_array_equal(plain(stored), plain(value))
        assert stored.dtype == (np.uint8 if value.dtype == bool else value.dtype)
    with pytest.raises(DataTypeError, match="complex numbers"):
        read_table(path, variable="complex")
    with pytest.raises(FileFormatError, match="no variable 'words'"):
        read_table(path, variable="words")


def plain(value):
    return value.toarray() if sp.issparse(value) else value


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
