"""The data operator: every method of every container against the formula in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.containers import DASK_FORMS, FILE_FORMS, FORMS, as_container, container_of, plain

from nonneg.data import DataMatrix, as_data_matrix

SHAPE = (24, 11)
WEIGHTS = np.random.default_rng(9).gamma(1.0, size=SHAPE[0])


@pytest.fixture
def X():
    rng = np.random.default_rng(3)
    return np.where(rng.random(SHAPE) < 0.5, 0.0, rng.gamma(1.0, size=SHAPE))


@pytest.fixture
def mask():
    mask = np.random.default_rng(4).random(SHAPE) < 0.7
    mask[2], mask[:, 3] = False, False
    return mask


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


@pytest.fixture(params=[None, WEIGHTS], ids=["unweighted", "weighted"])
def weights(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["complete", "masked"])
def container(request, form, weights, X, mask):
    """A container, the entries that it should see and their observed places."""
    if not request.param:
        return as_data_matrix(as_container(X, form), weights=weights), X, np.ones(SHAPE, dtype=bool)
    # What lies under the mask must not matter.
    spoiled = np.where(mask, X, np.nan)
    data = as_data_matrix(as_container(spoiled, form), weights=weights, mask=mask)
    return data, np.where(mask, X, 0.0), mask


def test_it_says_what_it_holds(container, form):
    data, _, _ = container
    assert isinstance(data, DataMatrix)
    assert data.shape == SHAPE
    assert data.container == container_of(form)
    assert "float64" in str(data.dtype)


@pytest.mark.covering(2)
def test_products_are_those_of_the_formula(container, weights):
    data, entries, _ = container
    rng = np.random.default_rng(5)
    right, left = rng.random((SHAPE[1], 3)), rng.random((SHAPE[0], 3))
    scale = np.ones(SHAPE[0]) if weights is None else weights
    placed = data.to_sample_array(left)
    np.testing.assert_allclose(plain(data.times(data.to_device(right))), entries @ right, rtol=1e-12)
    np.testing.assert_allclose(
        plain(data.transposed_times(placed)), entries.T @ (scale[:, None] * left), rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(
        plain(data.weighted_gram(placed)), left.T @ (scale[:, None] * left), rtol=1e-12
    )


@pytest.mark.covering(2)
def test_sums_are_those_of_the_formula(container, weights):
    data, entries, seen = container
    scale = np.ones(SHAPE[0]) if weights is None else weights
    assert data.squared_norm() == pytest.approx(scale @ (entries**2).sum(axis=1), rel=1e-12)
    assert data.total() == pytest.approx(scale @ entries.sum(axis=1), rel=1e-12)
    assert data.count_nonzero() == np.count_nonzero(entries)
    assert data.total_weight() == pytest.approx(scale.sum())
    assert data.observed_weight() == pytest.approx(scale @ seen.sum(axis=1))
    assert data.mean() == pytest.approx(scale @ entries.sum(axis=1) / (scale @ seen.sum(axis=1)))
    assert data.extremes() == (entries.min(), entries.max())


def test_a_row_pass_keeps_rows_and_sums_small_results(container):
    data, entries, _ = container
    left = np.random.default_rng(6).random((SHAPE[0], 2))

    def function(block, rows, *, factor):
        return (rows * factor, block.times(block.to_device(np.ones((SHAPE[1], 1))))), (
            block.shape[0],
            rows.sum(),
        )

    if data.container == "array":

        def function(block, rows, *, factor):
            ones = block.to_device(np.ones((SHAPE[1], 1)))
            return (rows * factor, block.times(ones)), (block.shape[0], float(block.xp.sum(rows)))

    (doubled, sums), (n_rows, total) = data.map_reduce_rows(
        function, data.to_sample_array(left), n_out=2, factor=2.0
    )
    np.testing.assert_array_equal(plain(doubled), 2.0 * left)
    np.testing.assert_allclose(plain(sums)[:, 0], entries.sum(axis=1), rtol=1e-12)
    assert n_rows == SHAPE[0]
    assert total == pytest.approx(left.sum())


def test_rows_can_be_taken(container):
    data, entries, seen = container
    taken = plain(data.take_rows(np.array([5, 0, 23])))
    wanted = seen[[5, 0, 23]]
    np.testing.assert_array_equal(np.where(wanted, taken, 0), entries[[5, 0, 23]])


@pytest.mark.covering(2)
def test_gram_matrices_of_local_blocks_see_weights_and_mask(container, weights):
    data, _, seen = container
    rng = np.random.default_rng(7)
    right, left = rng.random((SHAPE[1], 3)), rng.random((SHAPE[0], 3))
    scale = np.ones(SHAPE[0]) if weights is None else weights

    def matrices(gram, count):
        found = plain(gram.dense().matrices) if hasattr(gram, "dense") else plain(gram.matrix)
        return np.broadcast_to(found, (count, 3, 3))

    def by_rows(block, rows, *, right):
        found = matrices(block.row_grams(right), block.shape[0]).reshape(-1, 9)
        return (block.xp.asarray(found.copy()),), (block.column_grams(rows),)

    rows = np.array([right.T @ (right * row[:, None]) for row in seen])
    columns = np.array([left.T @ (left * (scale * column)[:, None]) for column in seen.T])
    (found,), (gram,) = data.map_reduce_rows(by_rows, data.to_sample_array(left), right=data.to_device(right))
    np.testing.assert_allclose(plain(found).reshape(-1, 3, 3), rows, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(matrices(gram, SHAPE[1]), columns, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("form", [form for form in FORMS if form not in (*DASK_FORMS, *FILE_FORMS)])
def test_a_part_of_a_local_container_has_its_rows_weights_and_mask(container, weights):
    data, entries, seen = container
    part = data.select(slice(4, 9))
    scale = np.ones(SHAPE[0]) if weights is None else weights
    assert part.shape == (5, SHAPE[1])
    np.testing.assert_array_equal(plain(part.dense_rows(1, 3)), entries[5:7])
    assert part.squared_norm() == pytest.approx(scale[4:9] @ (entries[4:9] ** 2).sum(axis=1))
    assert part.observed_weight() == pytest.approx(scale[4:9] @ seen[4:9].sum(axis=1))
    np.testing.assert_allclose(plain(part.squared_row_norms()), (entries[4:9] ** 2).sum(axis=1))


@pytest.mark.parametrize("form", [form for form in FORMS if form not in (*DASK_FORMS, *FILE_FORMS)])
def test_inverse_norms_of_rows_are_zero_for_rows_of_zeros(form, X):
    entries = X.copy()
    entries[3] = 0.0
    norms = np.linalg.norm(entries, axis=1)
    inverse = plain(as_data_matrix(as_container(entries, form)).inverse_row_norms())
    np.testing.assert_allclose(
        inverse[:, 0], np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    )


def test_the_input_is_not_changed(form, X, mask):
    brought = as_container(X, form)
    data = as_data_matrix(brought, weights=WEIGHTS, mask=mask)
    data.transposed_times(data.times(data.to_device(np.ones((SHAPE[1], 2)))))
    data.squared_norm()
    np.testing.assert_array_equal(plain(brought), X)


@pytest.mark.parametrize("form", FORMS)
def test_local_blocks_hold_all_rows(form, X):
    blocks = list(as_data_matrix(as_container(X, form)).local_blocks())
    found = np.concatenate([plain(block.dense_rows(0, block.shape[0])) for block in blocks])
    np.testing.assert_array_equal(found, X)


def test_means_and_counted_rows():
    X = np.arange(1.0, 13.0).reshape(4, 3)
    data = as_data_matrix(X)
    assert (data.total_weight(), data.counted_rows(), data.mean()) == (4.0, 4.0, 6.5)
    light = as_data_matrix(X, weights=np.array([0.1, 0.0, 0.1, 0.2]))
    assert light.total_weight() == pytest.approx(0.4)
    assert light.counted_rows() == 3.0  # rows with a weight
    assert light.mean() == pytest.approx(np.average(X.mean(axis=1), weights=[0.1, 0.0, 0.1, 0.2]))
    heavy = as_data_matrix(X, weights=np.array([3.0, 0.0, 1.0, 2.0]))
    assert heavy.counted_rows() == 6.0
    mask = np.zeros((4, 3), dtype=bool)
    assert as_data_matrix(X, mask=mask).mean() == 0.0
    mask[1, 2] = True
    assert as_data_matrix(X, mask=mask).mean() == 6.0
