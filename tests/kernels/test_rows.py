"""Sums and elementwise operations over rows: the same on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._threads import threads
from nonneg.kernels import rows


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_ranges_of_rows_give_what_whole_arrays_do(n_jobs, order, monkeypatch):
    monkeypatch.setattr(rows, "CHUNK_ENTRIES", 1 << 14)
    rng = np.random.default_rng(0)
    a, b = (np.asarray(rng.random((120_001, 4)), order=order) for _ in range(2))
    with threads(n_jobs):
        mapped = rows.map_rows(lambda x, y: x - 2 * y, a, b)
        total = rows.sum_rows(lambda x, y: np.vdot(x, y), a, b)
        gram, other = rows.gram_of(a), rows.gram_of(a, b)
    assert mapped.flags.c_contiguous
    np.testing.assert_array_equal(mapped, a - 2 * b)
    assert total == pytest.approx(np.sum(a * b))
    np.testing.assert_allclose(gram, a.T @ a)
    np.testing.assert_allclose(other, a.T @ b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_and_extrapolation_do_not_depend_on_the_number_of_threads(dtype):
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((40_001, 5)).astype(dtype) for _ in range(2))
    results = []
    for n_jobs in (1, 3):
        with threads(n_jobs):
            results.append((rows.absolute_sum(a), rows.product_sum(a, b), rows.extrapolated(a, b, 0.4)))
    assert results[0][:2] == results[1][:2]
    np.testing.assert_array_equal(results[0][2], results[1][2])
    np.testing.assert_array_equal(results[0][2], np.maximum(a + 0.4 * (a - b), 0))
    assert results[0][2].dtype == dtype
    assert results[0][0] == pytest.approx(np.abs(a).sum(dtype=np.float64), rel=1e-6)
    assert results[0][1] == pytest.approx(np.sum(a.astype(np.float64) * b), rel=1e-9)
