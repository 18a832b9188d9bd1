"""The rule of `device="auto"`: what counts as work, and what does not fit."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import nonneg._devices as devices
from nonneg.exceptions import (
    DeviceMemoryError,
    DeviceWarning,
    InvalidParameterError,
    MissingDependencyError,
)


@pytest.mark.parametrize("too_large", [False, True])
@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_auto_leaves_sparse_data_that_do_not_fit_to_the_processor(device, too_large, monkeypatch):
    monkeypatch.setattr(devices, "pays", lambda *given, **more: True)
    monkeypatch.setattr(devices, "checked_device", lambda *given: "the GPU")
    monkeypatch.setattr(devices, "_too_large", lambda X, found: too_large)
    found = devices.chosen_device(device, np.ones((4, 3)), 2, n_iter=1)
    assert found == (None if too_large and device == "auto" else "the GPU")
    monkeypatch.setattr(devices, "checked_device", lambda *given: None)
    monkeypatch.setattr(devices, "_too_large", lambda *given: pytest.fail("there is no GPU"))
    assert devices.chosen_device("auto", np.ones((4, 3)), 2, n_iter=1) is None


@pytest.mark.parametrize(("stored", "expected"), [(99, False), (101, True)])
def test_sparse_data_fit_in_three_quarters_of_the_memory(stored, expected, monkeypatch):
    monkeypatch.setattr(devices, "free_memory", lambda device: 100 * 24.0 / 0.75)
    indptr = np.array([0, stored])
    X = sp.csr_array((np.ones(stored), np.arange(stored), indptr), shape=(1, stored))
    assert devices._too_large(X, None) is expected
    assert not devices._too_large(np.ones((1, 10**4)), None)


def test_sizes_count_what_is_stored():
    assert devices._size(np.ones((4, 3))) == ((4, 3), 12.0)
    assert devices._size(sp.csr_array(np.eye(3))) == ((3, 3), 3.0)
    assert devices._size(np.ones(3)) == ((0, 0), 0.0)
    assert devices.likely_iterations(1000, 3) == 150
    assert devices.likely_iterations(20, 1, beta=1.0) == 200
    assert devices._container(np.ones(3)) == "a numpy ndarray"


def test_the_work_of_rows_and_columns_counts():
    per_entry = 4.0 * 10 * 100
    entries = devices.LEAST_OPERATIONS / per_entry - 10 * 1500
    assert devices.pays((1000, 500), entries + 1, 10, 100)
    assert not devices.pays((1000, 500), entries - 1, 10, 100)
    assert devices.pays((1000, 500), 1e12, "auto", 50) == devices.pays((1000, 500), 1e12, 10, 50)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("free", "total", "held", "used", "part", "expected"),
    [
        (60, 100, 0, 0, 1.0, 60),
        (60, 100, 30, 10, 1.0, 80),  # what PyTorch holds and does not use can be used
        (60, 100, 30, 10, 0.5, 40),  # a share of the whole is the limit of this process
        (60, 100, 30, 30, None, 60),
    ],
)
def test_memory_that_is_free(torch, kind, free, total, held, used, part, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, total))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: held)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: used)
    name = "get_per_process_memory_fraction"
    if part is None:
        monkeypatch.delattr(torch.cuda, name, raising=False)
    else:
        monkeypatch.setattr(torch.cuda, name, lambda device: part, raising=False)
    found = devices.free_memory(torch.device(kind))
    assert found == (np.inf if kind == "cpu" else expected)


@pytest.mark.torch
def test_names_of_devices(torch, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    for count in (1, 3):
        monkeypatch.setattr(torch.cuda, "device_count", lambda count=count: count)
        last = f"cuda:{count - 1}"
        assert devices.checked_device(last) == torch.device(last)
        said = "there is one GPU, 'cuda:0'" if count == 1 else "GPUs are 'cuda:0' to 'cuda:2'"
        with pytest.raises(InvalidParameterError, match=f"n='cuda:{count}' does not exist: {said}"):
            devices.checked_device(f"cuda:{count}", "n")
    for name in ("auto", "cuda"):
        assert devices.checked_device(name) == torch.device("cuda:1")
    for name in (None, "cpu"):
        assert devices.checked_device(name) is None
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert devices.checked_device("auto") is None
    with pytest.raises(MissingDependencyError, match="Or leave n "):
        devices.checked_device("cuda", "n")


@pytest.mark.parametrize("fitted", [False, True])
def test_a_fitted_model_works_without_its_gpu_with_one_warning(fitted, monkeypatch):
    def absent(device):
        raise MissingDependencyError("There is no GPU.")

    monkeypatch.setattr(devices, "checked_device", absent)
    monkeypatch.setattr(devices, "_warned", set())
    X = np.ones((4, 3))
    if not fitted:
        with pytest.raises(MissingDependencyError):
            devices.chosen_device("cuda", X, 2, n_iter=1)
        return
    with pytest.warns(DeviceWarning, match=r"There is no GPU\. This model runs on the CPU here\."):
        assert devices.chosen_device("cuda", X, 2, n_iter=1, fitted=True) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert devices.chosen_device("cuda", X, 2, n_iter=1, fitted=True) is None


def test_what_a_full_gpu_is_told():
    class OutOfMemoryError(RuntimeError):
        pass

    data = SimpleNamespace(container="dense", shape=(5, 4), dtype="torch.float64")
    for dtype, n_components, words in (
        ("torch.float64", 3, r"5 x 4 float64\).*use float32 .*; ask for fewer than 3 components; pass X"),
        ("float32", 3, r"5 x 4 float32\).*do: ask for fewer than 3 components; pass X"),
        ("float32", None, r"What you can do: pass X as a NumPy array or file .*; or leave device out"),
    ):
        data.dtype = dtype
        with (
            pytest.raises(DeviceMemoryError, match=rf"{words}.*\(first line\)$"),
            devices.device_work(data, n_components),
        ):
            raise OutOfMemoryError("first line\nsecond line")
    with devices.device_work(data):
        pass
