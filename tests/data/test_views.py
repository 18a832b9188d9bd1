"""Scaled and transposed views: the same numbers as scaled and transposed arrays, in every container."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.data import as_data_matrix
from nonneg.data.views import (
    ScaledMatrix,
    can_be_transposed,
    normalized_rows,
    scaled_rows,
    transposed,
)
from nonneg.exceptions import UnknownNameError, UnsupportedInputError

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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("container", CONTAINERS)
def test_products_with_scaled_rows(container, weighted, X, rng):
    weights = WEIGHTS if weighted else None
    data = as_data_matrix(CONTAINERS[container](X), weights=weights)
    scale, right, left = rng.random((23, 1)), rng.random((9, 3)), rng.random((23, 3))
    view = scaled_rows(data, data.to_sample_array(scale))
    scaled, counted = X * scale, np.ones(23) if weights is None else weights
    np.testing.assert_allclose(local(view.times(view.to_device(right))), scaled @ right, rtol=1e-12)
    found = local(view.transposed_times(view.to_sample_array(left)))
    np.testing.assert_allclose(found, scaled.T @ (counted[:, None] * left), rtol=1e-12)
    assert view.squared_norm() == pytest.approx(counted @ np.square(scaled).sum(axis=1), rel=1e-12)
    gram = local(view.weighted_gram(view.to_sample_array(left)))
    np.testing.assert_allclose(gram, left.T @ (counted[:, None] * left), rtol=1e-12)
    assert view.total_weight() == pytest.approx(counted.sum())


def test_a_view_of_some_rows_keeps_their_scales_and_weights(X, rng):
    scale, columns = rng.random((23, 1)), rng.random(9)
    view = ScaledMatrix(as_data_matrix(X, weights=WEIGHTS), row_scale=scale, column_scale=columns)
    part = view.select(slice(3, 8))
    np.testing.assert_allclose(part.dense_rows(0, 5), (X * scale * columns)[3:8], rtol=1e-13)
    np.testing.assert_allclose(part.weights, WEIGHTS[3:8])
    np.testing.assert_allclose(
        view.squared_row_norms(), np.square(X * scale * columns).sum(axis=1), rtol=1e-12
    )


@pytest.mark.parametrize("container", ["numpy", "csr", "torch"])
def test_the_transpose_of_a_view(container, X, rng):
    scale, columns = rng.random((23, 1)), rng.random(9)
    data = as_data_matrix(CONTAINERS[container](X))
    view = ScaledMatrix(data, row_scale=data.to_device(scale), column_scale=data.to_device(columns))
    for source, truth in ((data, X.T), (view, (X * scale * columns).T)):
        turned = transposed(source)
        assert turned.shape == (9, 23)
        right, left = rng.random((23, 2)), rng.random((9, 2))
        np.testing.assert_allclose(local(turned.times(turned.to_device(right))), truth @ right, rtol=1e-12)
        found = local(turned.transposed_times(turned.to_device(left)))
        np.testing.assert_allclose(found, truth.T @ left, rtol=1e-12)
        np.testing.assert_allclose(local(turned.dense_rows(2, 6)), truth[2:6], rtol=1e-12)
        assert turned.squared_norm() == pytest.approx(np.square(truth).sum(), rel=1e-12)


def test_the_entries_are_neither_copied_nor_changed(X):
    before = X.copy()
    X.flags.writeable = False
    data = as_data_matrix(X)
    view = normalized_rows(data)
    assert np.shares_memory(view.base.array, X)
    assert np.shares_memory(transposed(data).array, X)
    view.times(np.ones((9, 2)))
    np.testing.assert_array_equal(X, before)


def test_what_cannot_be_done_is_said(X):
    weighted = as_data_matrix(X, weights=WEIGHTS)
    assert not can_be_transposed(weighted)
    with pytest.raises(UnsupportedInputError, match="row weights or missing entries"):
        transposed(weighted)
    with pytest.raises(UnknownNameError, match="norm='l3' is not known"):
        normalized_rows(as_data_matrix(X), "l3")


def test_single_precision_stays(X):
    view = normalized_rows(as_data_matrix(X.astype(np.float32)))
    assert view.times(np.ones((9, 2), dtype=np.float32)).dtype == np.float32


@pytest.mark.parametrize("container", CONTAINERS)
def test_local_blocks_are_scaled(container, X):
    data = normalized_rows(as_data_matrix(CONTAINERS[container](X)), "l1")
    found = np.concatenate([np.asarray(block.dense_rows(0, block.shape[0])) for block in data.local_blocks()])
    np.testing.assert_allclose(found.sum(axis=1), X.sum(axis=1) > 0)
