"""The smoothed row sparsity, its slope, and both along a line."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from tests.kernels.test_tensor_columns import lists

from nonneg.exceptions import InvalidParameterError
from nonneg.kernels.sparse_columns import columns_of, no_entries
from nonneg.kernels.sparse_columns.torch import columns_to_device, tensor_on
from nonneg.separable.merit.row_sparsity import (
    SparsityOnLine,
    row_sparsity,
    smoothed_row_sparsity,
    tensor_row_sparsity,
)

MU = [1e-4, 1e-2, 1.0, 50.0]


@pytest.fixture
def C(rng):
    """Columns on the simplex; half of the rows are empty, some entries of a row are equal."""
    C = np.zeros((24, 24))
    C[:12] = rng.dirichlet(np.full(12, 0.2), 24).T
    C[C < 0.02] = 0
    C[3, :5] = 0.4
    return C


def value(C, mu):
    return float(np.sum(mu * (logsumexp(C / mu, axis=1) - np.log(C.shape[1]))))


@pytest.mark.parametrize("total", [1.0, 21.0])
@pytest.mark.parametrize("mu", MU)
def test_value_and_slope(mu, total, C):
    found = row_sparsity(columns_of(C, total=total), mu)
    slope = softmax(C / mu, axis=1)
    assert found.value == pytest.approx(value(C, mu), rel=1e-10)
    assert np.allclose(found.base[12:], 1 / 24)
    dense = np.repeat(found.base[:, None], 24, axis=1)
    dense[found.rows, np.repeat(np.arange(24), np.diff(found.indptr))] = found.shares
    assert np.allclose(dense, slope, rtol=1e-12, atol=1e-300)
    assert np.allclose(found.inner, np.sum(C * slope, axis=0), rtol=1e-12, atol=1e-300)
    assert smoothed_row_sparsity(C, mu) == pytest.approx(found.value)
    scan = found.penalty_gradient(0.7)
    assert np.all(scan.extra >= 0)
    assert np.allclose(scan.base, 0.7 * found.base)


def test_the_slope_is_the_derivative(C, rng):
    mu, step = 0.1, 1e-6
    direction = rng.standard_normal(C.shape) * (C > 0)
    slope = np.sum(softmax(C / mu, axis=1) * direction)
    change = smoothed_row_sparsity(C + step * direction, mu) - smoothed_row_sparsity(C - step * direction, mu)
    assert change / (2 * step) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("mu", [5e-324, 1e-300, 1e-12, 1e300])
def test_no_smoothing_overflows(mu, C):
    with np.errstate(all="raise", under="ignore"):
        found = row_sparsity(columns_of(C), mu)
        along = SparsityOnLine(np.arange(24, dtype=np.int32), C.max(axis=1), -0.1 * C.max(axis=1), 24, mu)
        values = along.at(0.5)
    assert np.all(np.isfinite(found.shares))
    assert np.all(np.isfinite(values))
    if mu < 1e-10:
        assert found.value == pytest.approx(C.max(axis=1).sum(), rel=1e-9)


def test_lemma_2(C):
    for mu in MU:
        low, high = C.max(axis=1).sum() - 24 * mu * np.log(24), C.max(axis=1).sum()
        assert low - 1e-12 <= smoothed_row_sparsity(C, mu) <= high + 1e-12


def test_no_entries_have_no_value():
    found = row_sparsity(no_entries(9), 1e-5)
    assert found.value == 0.0
    assert np.allclose(found.base, 1 / 9)
    assert len(found.rows) == 0


@pytest.mark.parametrize("mu", MU)
def test_along_a_line(mu, C, rng):
    other = np.zeros_like(C)
    other[rng.integers(0, 20, 24), np.arange(24)] = 1.0
    places = (C > 0) | (other > 0)
    along = SparsityOnLine(np.nonzero(places)[0].astype(np.int32), C[places], (other - C)[places], 24, mu)
    for size in (0.0, 0.3, 1.0):
        point = C + size * (other - C)
        slope = np.sum(softmax(point / mu, axis=1) * (other - C))
        assert along.at(size) == pytest.approx((value(point, mu), slope), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("mu", [0.0, -1.0, float("nan")])
def test_smoothing_must_be_positive(mu):
    with pytest.raises(InvalidParameterError, match="mu must be a number above 0"):
        smoothed_row_sparsity(np.eye(3), mu)


pytestmark = pytest.mark.torch


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("mu", [1e-320, 1e-5, 0.01, 10.0])
def test_value_and_slope_are_those_of_the_host(exact, mu, rng, torch):
    columns, row_max, row_count = lists(rng, 60, exact)
    expected = row_sparsity(columns, mu)
    facts = (tensor_on(array, "cpu") for array in (row_max, row_count))
    found = tensor_row_sparsity(columns_to_device(columns, "cpu"), mu, *facts)
    assert float(found.value) == pytest.approx(expected.value, rel=1e-13)
    np.testing.assert_allclose(found.base, expected.base, rtol=1e-13)
    np.testing.assert_allclose(found.inner, expected.inner, rtol=1e-13, atol=1e-15)
    slope, there = expected.penalty_gradient(0.7), found.penalty_gradient(0.7)
    dense = np.repeat(slope.base[:, None], 60, axis=1)
    dense[slope.rows, np.repeat(np.arange(60), np.diff(slope.indptr))] += slope.extra
    for row in (0, 3, 59):
        at = there.at(torch.full((60,), row))
        np.testing.assert_allclose(at, dense[row], rtol=1e-12)
