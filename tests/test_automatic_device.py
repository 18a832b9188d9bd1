"""The rule of `device="auto"`: what counts as work, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import nonneg._devices as devices


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
