"""Lists of columns as tensors: the same as those on the host."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.test_sparse_columns import random_matrix

from nonneg.kernels import sparse_columns as host
from nonneg.kernels.sparse_columns import torch as on_device

pytestmark = pytest.mark.torch


def lists(rng, n, exact):
    """Columns with a few entries, some of them full, and their facts."""
    columns = host.no_entries(n, exact=exact, capacity=5)
    for t in range(5):
        columns, _ = host.step_columns(columns, rng.integers(0, 6, n), t + 1, total=(t + 1) * (t + 2) / 2)
    return columns, *host.row_facts(columns)


@pytest.mark.parametrize("exact", [True, False])
def test_gains_are_those_of_the_host(exact, rng, torch):
    columns, row_max, row_count = lists(rng, 60, exact)
    there = on_device.columns_to_device(columns, "cpu")
    facts = [on_device.tensor_on(array, "cpu") for array in (row_max, row_count)]
    assert columns.counts.max() == columns.rows.shape[1]
    for t in range(5, 9):
        entering, total = rng.integers(0, 60, 60), (t + 1) * (t + 2) / 2
        new, reached = host.step_columns(columns, entering, t + 1, total=total)
        row_max, row_count = host.raised_row_facts(
            row_max, row_count, entering, reached, new.counts > columns.counts
        )
        moved, got = on_device.add_to_columns(there, torch.tensor(entering), t + 1, total=total)
        facts = on_device.raised_row_facts(*facts, torch.tensor(entering), got, moved.counts > there.counts)
        columns, there = new, moved
        as_numpy = on_device.columns_to_numpy(there)
        for name in ("rows", "weights", "counts"):
            expected, found = getattr(columns, name), getattr(as_numpy, name)
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected)
        assert as_numpy.total == columns.total
        assert np.array_equal(got, reached)
        assert np.array_equal(facts[0], row_max)
        assert np.array_equal(facts[1], row_count)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("scale", [1e-310, 1e-3, 0.4, 1e12])
def test_near_entries_are_those_of_the_host(exact, scale, rng, torch):
    columns, row_max, _ = lists(rng, 60, exact)
    expected = host.near_maxima(columns, row_max, scale)
    there = on_device.columns_to_device(columns, "cpu")
    found = on_device.near_maxima(there, on_device.tensor_on(row_max, "cpu"), scale)
    assert np.array_equal(found.rows, expected.rows)
    assert np.array_equal(found.columns, np.repeat(np.arange(60), np.diff(expected.indptr)))
    assert np.array_equal(found.weights, expected.weights)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-13, atol=0)


def test_sums_do_not_depend_on_the_order(rng, torch):
    values = torch.tensor(rng.random(5000) ** 40)
    places = torch.tensor(rng.integers(0, 7, 5000))
    sums = on_device.exact_sums(places, values, 9)
    expected = np.bincount(places, weights=values, minlength=9)
    np.testing.assert_allclose(sums, expected, rtol=1e-13)
    for _ in range(3):
        order = torch.tensor(rng.permutation(5000))
        assert torch.equal(on_device.exact_sums(places[order], values[order], 9), sums)


def test_a_matrix_of_any_entries_comes_home(rng, torch):
    columns = host.columns_of(random_matrix(rng, 12))
    as_numpy = on_device.columns_to_numpy(on_device.columns_to_device(columns, "cpu"))
    assert abs(as_numpy.as_csc() - columns.as_csc()).max() == 0
