"""Blocks for a GPU: their sizes, and which memory is locked for them, with a driver that only takes notes."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.data import device_blocks
from nonneg.data.device_blocks import DeviceStream, tensor_dtype
from nonneg.io.stored import ArrayRows

pytestmark = pytest.mark.torch
GPU, HOST = SimpleNamespace(type="cuda"), SimpleNamespace(type="cpu")


class Driver:
    """Notes which memory is locked."""

    def __init__(self):
        self.locked, self.fails = {}, False

    def cudaHostRegister(self, place, n_bytes, flags):
        assert flags == 1
        assert place not in self.locked
        if self.fails:
            return 2
        self.locked[place] = n_bytes
        return 0

    def cudaHostUnregister(self, place):
        del self.locked[place]


@pytest.fixture
def driver(torch, monkeypatch):
    found = Driver()
    monkeypatch.setattr(torch.cuda, "cudart", lambda: found)
    monkeypatch.setattr(device_blocks, "_locked", {})
    monkeypatch.setattr(device_blocks, "memory_limit", lambda: 1000)
    monkeypatch.setattr(device_blocks, "free_memory", lambda device: 1e9)
    monkeypatch.setattr(DeviceStream, "_forget_error", lambda self: None)
    return found


def rows(array, memory=10**6):
    return ArrayRows(array, "X", memory)


def test_an_array_is_locked_once_for_all_its_streams(driver):
    X = np.ones((15, 5))
    first, second = DeviceStream(rows(X), GPU), DeviceStream(rows(X), GPU)
    assert driver.locked == {X.ctypes.data: 600}
    assert first.locked is second.locked is X
    del first
    gc.collect()
    assert list(driver.locked) == [X.ctypes.data]
    del second
    gc.collect()
    assert driver.locked == {}
    assert device_blocks._locked == {}


def test_only_plain_arrays_that_are_as_they_shall_be_are_locked(driver, tmp_path):
    X = np.ones((15, 5))  # 600 bytes, the limit
    mapped = np.memmap(tmp_path / "x", dtype=float, shape=(3, 5), mode="w+")
    others = [X[:3], mapped, np.ones((3, 5), dtype=int), np.asfortranarray(np.ones((3, 5))), np.ones((76, 1))]
    for array in others:
        assert DeviceStream(rows(array), GPU).locked is None
    chosen = rows(X)
    chosen.select(np.array([0, 1]))
    assert DeviceStream(chosen, GPU).locked is None
    assert DeviceStream(rows(X), HOST).locked is None
    assert DeviceStream(rows(X), GPU, lock=False).locked is None
    driver.fails = True
    assert DeviceStream(rows(X), GPU).locked is None
    assert device_blocks._locked == {}


@pytest.mark.parametrize(
    ("n_rows", "memory", "lock", "keeps"),
    [(7, 10**6, True, True), (8, 10**6, True, False), (7, 300, True, False), (7, 10**6, False, False)],
)
def test_blocks_of_small_files_are_kept(n_rows, memory, lock, keeps, driver):
    """Three tenths of the memory, here 300 bytes."""
    X = np.ones((n_rows, 5))[:]  # a view: it is not locked where it is
    stream = DeviceStream(rows(X, memory), GPU, lock=lock)
    assert stream._keeps == keeps
    assert not DeviceStream(rows(X, memory), HOST, lock=lock)._keeps
    assert not DeviceStream(rows(np.ones((5, 5))), GPU)._keeps  # locked where it is


def test_kept_blocks_are_read_once(driver):
    X = np.arange(30.0).reshape(6, 5)[:]
    stream = DeviceStream(rows(X), GPU)
    with ThreadPoolExecutor(1) as writers:
        block = stream._keep(2, 5, writers)
        np.testing.assert_array_equal(block.numpy(), X[2:5])
        assert list(driver.locked.values()) == [3 * 5 * 8]
        assert stream._keep(2, 5, writers) is block
        driver.fails = True
        assert stream._keep(0, 2, writers) is None
        assert not stream._keeps
    del block, stream
    gc.collect()
    assert driver.locked == {}


@pytest.mark.parametrize(
    ("free", "chunk", "edges"),
    [
        (12 * 40 * 3, 1, [0, 3, 6, 9, 10]),  # a twelfth of the free memory
        (12 * 40 * 3 - 1, 1, [0, 2, 4, 6, 8, 10]),
        (12 * 40 * 5, 2, [0, 4, 8, 10]),  # whole chunks
        (12 * 40, 4, [0, 4, 8, 10]),
        (0, 1, list(range(11))),
        (np.inf, 1, [0, 10]),
        (np.inf, 99, [0, 10]),
    ],
)
def test_blocks_take_a_part_of_the_free_memory(free, chunk, edges, monkeypatch):
    monkeypatch.setattr(device_blocks, "free_memory", lambda device: free)
    stored = rows(np.ones((10, 5)))
    stored.chunk_rows = chunk
    assert DeviceStream(stored, HOST).edges == edges
    monkeypatch.setattr(device_blocks, "BLOCK_BYTES", 80)
    assert np.diff(DeviceStream(rows(np.ones((10, 5))), HOST).edges).max() <= 2


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 11])
def test_blocks_come_in_order_whatever_their_number(n_rows, torch, monkeypatch):
    monkeypatch.setattr(device_blocks, "BLOCK_BYTES", 5 * 8)
    X = np.arange(5.0 * n_rows).reshape(n_rows, 5)
    stream = DeviceStream(rows(X), torch.device("cpu"))
    for _ in range(2):
        found = [(start, stop, block.numpy().copy()) for start, stop, block in stream.blocks()]
        assert [(start, stop) for start, stop, _ in found] == [(at, at + 1) for at in range(n_rows)]
        np.testing.assert_array_equal(np.concatenate([block for _, _, block in found]), X)
    assert len(stream._slots) == min(3, n_rows)


def test_tensors_are_single_or_double(torch):
    assert tensor_dtype(np.float32) == torch.float32
    assert tensor_dtype(np.float64) == tensor_dtype(np.int8) == torch.float64
