"""Scaled and transposed views: the same numbers as scaled and transposed arrays, in every container."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.data import as_data_matrix
from nonneg.data.views import normalized_rows, tall, transposed

CONTAINERS = {
    "numpy": lambda X: X.copy(),
    "csr": sp.csr_array,
    "torch": lambda X: pytest.importorskip("torch").asarray(X.copy()),
    "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(7, -1)),
}
WEIGHTS = np.linspace(0.0, 2.0, 23)


@pytest.fixture
def X(rng):
    X = np.where(rng.random((23, 9)) < 0.5, rng.random((23, 9)) * 5, 0.0)
    X[4] = 0.0
    return X


def local(left):
    return np.asarray(left.compute() if hasattr(left, "compute") else left)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_points_of_norm_one(container, norm, X):
    data = as_data_matrix(CONTAINERS[container](X))
    sizes = {"l1": X.sum(axis=1), "l2": np.linalg.norm(X, axis=1)}[norm]
    unit = X / np.where(sizes > 0, sizes, 1.0)[:, None]
    view = normalized_rows(data, norm)
    np.testing.assert_allclose(local(view.take_rows(range(23))), unit, rtol=1e-12)
    assert view.squared_norm() == pytest.approx(np.square(unit).sum(), rel=1e-12)
    assert view.total() == pytest.approx(unit.sum(), rel=1e-12)
    assert view.extremes() == pytest.approx((0.0, unit.max()))
    assert view.count_nonzero() == np.count_nonzero(X)


def test_the_entries_are_neither_copied_nor_changed(X):
    before = X.copy()
    X.flags.writeable = False
    data = as_data_matrix(X)
    view = normalized_rows(data)
    assert np.shares_memory(view.base.array, X)
    assert np.shares_memory(transposed(data).array, X)
    view.times(np.ones((9, 2)))
    np.testing.assert_array_equal(X, before)


def test_what_is_wide_is_made_tall_where_it_can_be(X):
    wide = X[:5]
    assert tall(as_data_matrix(wide)).shape == wide.T.shape
    for stays in (as_data_matrix(X), as_data_matrix(wide, weights=WEIGHTS[:5])):
        assert tall(stays) is stays


def test_single_precision_stays(X):
    view = normalized_rows(as_data_matrix(X.astype(np.float32)))
    assert view.times(np.ones((9, 2), dtype=np.float32)).dtype == np.float32
