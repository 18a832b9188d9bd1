"""The row sparsity of lists that are tensors: the value and slope of the host's."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.test_tensor_columns import lists

from nonneg.kernels.sparse_columns.torch import placed_array, placed_columns
from nonneg.separable.merit.row_sparsity import row_sparsity
from nonneg.separable.merit.tensor_row_sparsity import tensor_row_sparsity

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("mu", [1e-320, 1e-5, 0.01, 10.0])
def test_value_and_slope_are_those_of_the_host(exact, mu, rng, torch):
    columns, row_max, row_count = lists(rng, 60, exact)
    expected = row_sparsity(columns, mu)
    facts = (placed_array(array, "cpu") for array in (row_max, row_count))
    found = tensor_row_sparsity(placed_columns(columns, "cpu"), mu, *facts)
    assert float(found.value) == pytest.approx(expected.value, rel=1e-13)
    np.testing.assert_allclose(found.base, expected.base, rtol=1e-13)
    np.testing.assert_allclose(found.inner, expected.inner, rtol=1e-13, atol=1e-15)
    slope, there = expected.slope(0.7), found.slope(0.7)
    dense = np.repeat(slope.base[:, None], 60, axis=1)
    dense[slope.rows, np.repeat(np.arange(60), np.diff(slope.indptr))] += slope.extra
    for row in (0, 3, 59):
        at = there.at(torch.full((60,), row))
        np.testing.assert_allclose(at, dense[row], rtol=1e-12)
