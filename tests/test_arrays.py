"""Conversion between arrays of different containers."""

from __future__ import annotations

import sys

import array_api_strict
import numpy as np
import pytest

from nonneg._arrays import computed, from_torch, is_dask, on_gpu, to_float64, to_numpy, to_torch, write_npz
from nonneg.cli.files import array_file

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def write_npy(path, array):
    array_file(array)(path)


def _strict(array):
    return array_api_strict.asarray(array)


def _dask(array):
    return pytest.importorskip("dask.array").from_array(array, chunks=(1, 3))


def _torch(array):
    return pytest.importorskip("torch").tensor(array, requires_grad=array.dtype.kind == "f")


@pytest.mark.parametrize(
    "convert", [np.asarray, _strict, _dask, pytest.param(_torch, marks=pytest.mark.torch)]
)
def test_every_container_becomes_numpy_and_keeps_its_dtype(convert):
    found = to_numpy(convert(X))
    assert type(found) is np.ndarray
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, X)
    assert to_float64(convert(X)).dtype == np.float64


def test_dask_arrays_are_recognized_and_computed():
    assert is_dask(_dask(X))
    assert not is_dask(X)
    assert computed(X) is X
    np.testing.assert_array_equal(computed(_dask(X)), X)


def test_archives_are_those_of_numpy_and_readable_as_other_files(tmp_path):
    arrays = {"X": X, "words": np.array(["a", "bc"]), "nothing": np.empty(0)}
    write_npz(tmp_path / "found.npz", arrays)
    np.savez(tmp_path / "expected.npz", **arrays)
    assert (tmp_path / "found.npz").read_bytes() == (tmp_path / "expected.npz").read_bytes()
    assert (tmp_path / "found.npz").stat().st_mode == (tmp_path / "expected.npz").stat().st_mode


@pytest.mark.parametrize("array", [X, np.asfortranarray(X), X[:, ::2], np.empty((0, 3)), X > 2])
def test_a_file_of_an_array_is_that_of_numpy(array, tmp_path):
    write_npy(tmp_path / "found.npy", array)
    np.save(tmp_path / "expected.npy", array)
    assert (tmp_path / "found.npy").read_bytes() == (tmp_path / "expected.npy").read_bytes()


@pytest.mark.parametrize("missing", [1, 100, 1000, 3000])
def test_no_room_for_the_last_bytes_is_an_error(missing, largest_file, tmp_path):
    """numpy.save leaves a file without its end then, and says nothing."""
    array = np.ones(2000)
    write_npy(tmp_path / "a.npy", array)
    whole = (tmp_path / "a.npy").stat().st_size
    with largest_file(whole - missing), pytest.raises(OSError, match="too large"):
        write_npy(tmp_path / "b.npy", array)
    with largest_file(whole):
        write_npy(tmp_path / "b.npy", array)
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), array)


class Shared:
    """An array as CuPy makes them, in host memory."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def get(self):
        return self.array


Shared.__module__ = "cupy"


@pytest.mark.torch
def test_arrays_of_cupy_share_their_memory_with_tensors(torch, monkeypatch):
    array = Shared(np.arange(3.0))
    assert on_gpu(array)
    found = to_torch(array)
    found[1] = 7.0
    assert array.array[1] == 7.0
    assert to_torch(found) is found
    assert from_torch(found, found) is found
    assert to_numpy(array) is array.array
    monkeypatch.setitem(sys.modules, "torch", None)
    assert not on_gpu(array)  # no kernel takes it without PyTorch


def test_objects_are_not_written(tmp_path):
    for write in (
        lambda: write_npy(tmp_path / "x.npy", np.array([{}])),
        lambda: write_npz(tmp_path / "x.npz", {"x": [{}]}),
    ):
        with pytest.raises(ValueError, match="allow_pickle=False"):
            write()
