"""Norms, places, patterns and advice against plain NumPy, at the ends of their ranges too."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.containers import SPARSE_TENSOR, TORCH, as_container, plain

from nonneg.data import as_data_matrix
from nonneg.data.checks import _both, _checked_weights, _observed_from_nan, check_entries, checked_data
from nonneg.data.chunk_advice import CHUNKS_PER_THREAD, GOOD_BYTES, MOST_TASKS, SMALL_BYTES, chunk_advice
from nonneg.data.compressed import CompressedMatrix, compressed, leading_range, orthonormal
from nonneg.data.eckart_young import _largest_outside
from nonneg.data.locate import locate
from nonneg.data.observed import MissingEntries
from nonneg.data.placement import bundles, group_size, moves, passes_at_risk, shares, worker_sizes
from nonneg.data.row_norms import normalized_rows, row_norms
from nonneg.data.singular_values import leading_singular_values
from nonneg.data.streamed import Statistics
from nonneg.exceptions import InvalidDataError, NonFiniteDataError
from nonneg.io.stored_sparse import by_rows

FORMS = ("dense", "csr", "dask", TORCH, SPARSE_TENSOR)


@pytest.fixture
def signed(rng):
    X = np.where(rng.random((9, 6)) < 0.5, 0.0, rng.standard_normal((9, 6)))
    X[4] = 0.0
    X[0, 0] = -3.0
    return X


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("norm", "order"), [("l1", 1), ("l2", 2), ("max", np.inf)])
def test_norms_of_rows(form, norm, order, signed):
    data = as_data_matrix(as_container(signed, form))
    expected = np.linalg.norm(signed, ord=order, axis=1)
    np.testing.assert_allclose(plain(row_norms(data, norm))[:, 0], expected)
    unit = normalized_rows(data, norm)
    rows = plain(unit.times(unit.to_device(np.eye(6))))
    np.testing.assert_allclose(rows, signed / np.where(expected > 0, expected, 1.0)[:, None])


@pytest.mark.parametrize("form", FORMS)
def test_the_first_place_of_a_condition(form, signed):
    data = as_data_matrix(as_container(signed, form))
    for condition in (lambda x: x < 0, lambda x: x > 0.5, lambda x: x == 0):
        i, j = (int(part[0]) for part in np.nonzero(condition(signed)))
        found = locate(data, lambda xp, block, condition=condition: condition(block))
        assert found == (i, j, signed[i, j])
    with pytest.raises(LookupError):
        locate(data, lambda xp, block: block > 99.0)


def test_entries_that_were_not_observed_meet_no_condition(signed):
    mask = np.ones(signed.shape, dtype=bool)
    mask[0, 0] = False
    data = as_data_matrix(np.where(mask, signed, np.nan), mask=mask)
    places = np.argwhere((signed < 0) & mask)
    assert locate(data, lambda xp, block: block < 0)[:2] == tuple(places[0])


def test_a_block_names_the_row_of_the_whole():
    data = as_data_matrix(np.array([[1.0, 2.0], [np.inf, 3.0]]))
    names = ([f"r{at}" for at in range(9)], ["a", "b"])
    with pytest.raises(NonFiniteDataError, match=r"infinity: entry \[6, 0\] \(row 'r6', column 'a'\)"):
        check_entries(data, first_row=5, labels=names)
    with pytest.raises(NonFiniteDataError, match=r"entry \[1, 0\] is inf"):
        check_entries(data)


@pytest.mark.parametrize(("value", "words"), [(1e160, "overflow.*divide"), (1e-160, "vanish.*multiply")])
def test_squares_outside_the_range(value, words):
    with pytest.raises(InvalidDataError, match=words):
        checked_data(np.full((2, 3), value))
    limit = np.finfo(np.float64)
    largest = np.sqrt(limit.max / 6.0)
    assert checked_data(np.full((2, 3), 0.999999 * largest)).shape == (2, 3)
    with pytest.raises(InvalidDataError):
        checked_data(np.full((2, 3), 1.000001 * largest))
    assert checked_data(np.full((2, 3), 1.000001 * np.sqrt(limit.tiny))).shape == (2, 3)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_mask_and_nan_hide_what_either_hides(sparse, rng):
    X = np.where(rng.random((6, 5)) < 0.3, np.nan, rng.random((6, 5)))
    mask = rng.random((6, 5)) < 0.7
    form = sp.csr_array(X) if sparse else X
    observed = _observed_from_nan(form)
    found = _both(form, sp.csr_array(mask) if sparse else mask, observed)
    found = found.toarray() if sp.issparse(found) else np.asarray(found)
    np.testing.assert_array_equal(found, mask & ~np.isnan(X))
    assert _both(form, None, observed) is observed
    assert _both(form, mask, None) is mask
    whole = np.nan_to_num(X)
    assert _observed_from_nan(sp.csr_array(whole) if sparse else whole) is None
    assert _observed_from_nan(np.ones((2, 2), dtype=int)) is None
    if sparse:
        assert isinstance(observed, MissingEntries)
        np.testing.assert_array_equal(observed.pattern.toarray() != 0, np.isnan(X))


def test_one_positive_weight_is_enough():
    np.testing.assert_array_equal(_checked_weights([0.0, 2.0], 2), [0.0, 2.0])
    np.testing.assert_array_equal(_checked_weights(3, 2), [3.0, 3.0])


def test_advice_begins_where_chunks_cost_time():
    rows, columns, size = 1_000_000, 100, 8  # 800 MB
    good = round(GOOD_BYTES / (columns * size))
    assert chunk_advice([rows], (rows, columns), 1, size, []) == []
    (said,) = chunk_advice([rows], (rows, columns), 2, size, [])
    assert "by columns into 2 parts" in said
    assert f"X.rechunk(({good}, -1))" in said
    few = int(SMALL_BYTES / (columns * size))
    assert chunk_advice([few], (few, columns), 2, size, []) == []
    n_chunks = (MOST_TASKS - 1) * 8 // 9
    assert chunk_advice([1] * n_chunks, (n_chunks, columns), 1, size, []) == []
    (said,) = chunk_advice([100] * (n_chunks + 3), (100 * (n_chunks + 3), columns), 1, size, [])
    assert f"X has {n_chunks + 3} chunks of about 0.08 MB" in said
    assert f"takes {(n_chunks + 3) * 9 // 8 + 1} tasks" in said
    # Memory per thread: a chunk and what is beside it must fit.
    chunk = 100_000
    needed = CHUNKS_PER_THREAD * chunk * columns * size
    assert chunk_advice([chunk], (chunk, columns), 1, size, [(2 * needed, 2)]) == []
    (said,) = chunk_advice([chunk], (chunk, columns), 1, size, [(2 * needed - 2, 2), (9 * needed, 1)])
    assert "The largest chunk of X has 80 MB, but a worker has 240 MB" in said
    fitting = int((needed - 1) / (2 * CHUNKS_PER_THREAD * columns * size))
    assert f"X.rechunk(({min(fitting, -(-chunk // 3))}, -1))" in said
    assert chunk_advice([chunk], (chunk, columns), 1, size, [(0, 2)]) == []  # no limit


def test_advised_chunks_fit_and_are_neither_too_many_nor_too_large():
    columns, size = 100, 8
    row = columns * size
    # Rows wider than a good chunk: one each.
    (said,) = chunk_advice([5], (5, 10**9), 2, size, [])
    assert "X.rechunk((1, -1))" in said
    # Few data for many threads: a part for each; much for few: good chunks.
    for rows, threads, good in ((10**6, 100, 10**4), (10**6, 2, round(GOOD_BYTES / row)), (7, 100, 1)):
        wide = columns if rows > 7 else 10**8
        (said,) = chunk_advice([1], (rows, wide), 2, size, [(10**15, threads)])
        assert f"X.rechunk(({good}, -1))" in said
    # As much as fits twice into the memory of a thread.
    memory = 4 * CHUNKS_PER_THREAD * row * 1000
    (said,) = chunk_advice([10**6], (10**6, columns), 1, size, [(memory, 2)])
    assert "X.rechunk((1000, -1))" in said
    (said,) = chunk_advice([10**6], (10**6, columns), 1, size, [(1, 1)])
    assert "X.rechunk((1, -1))" in said
    uneven = [200, *[100] * MOST_TASKS]
    (said,) = chunk_advice(uneven, (sum(uneven), columns), 1, size, [])
    assert "chunks of about 0.16 MB" in said


def test_what_to_do_about_nan_depends_on_who_reads_it():
    data = as_data_matrix(np.array([[1.0, np.nan]]))
    with pytest.raises(NonFiniteDataError, match=r"factorize needs finite entries; pass missing='mask'"):
        check_entries(data)
    with pytest.raises(NonFiniteDataError, match="replace it by a number, or leave that sample or feature"):
        check_entries(data, masks=False)
    with pytest.raises(NonFiniteDataError, match=r"infinity: .* replace it by a number\."):
        check_entries(as_data_matrix(np.array([[1.0, -np.inf]])))


def test_groups_of_chunks_are_shared_by_threads():
    workers = {"a": 2, "b": 1, "c": 1}
    assert shares(8, workers) == [("a", range(4)), ("b", range(4, 6)), ("c", range(6, 8))]
    assert [passes_at_risk(n, workers) for n in (1, 4, 8, 16, 23, 27)] == [1, 1, 2, 2, 1, 2]
    assert bundles(["a", "a", "b", None, "a"], workers) == [[0, 1], [2], [3], [4]]
    assert bundles(["gone", "b"], workers) == [[0], [1]]
    # Groups go from the worker with the most for each thread to the one with the fewest.
    assert moves(["a"] * 8, workers) == [(7, "b"), (6, "c"), (5, "b"), (4, "c")]
    assert moves(["a", "a", "b", "c"], workers) == []
    assert moves([None, "b", "b", "b", "b"], {"a": 1, "b": 1}) == [(4, "a"), (3, "a")]
    client = type(
        "C", (), {"scheduler_info": lambda self: {"workers": {1: {"memory_limit": None, "nthreads": 3}}}}
    )
    assert worker_sizes(client()) == [(0, 3)]
    for n_chunks in (1, 7, 16, 33, 64, 100, 1000):
        size = group_size(n_chunks, workers)
        assert size == 1 or n_chunks // size >= 16
        assert size & (size - 1) == 0


def test_statistics_of_blocks_add_up():
    one = Statistics(1.0, 2.0, 3.0, 4, (-5.0,), (6.0,), 7)
    two = Statistics(10.0, 20.0, 30.0, 40, (-50.0,), (3.0,), 70)
    assert one + two == Statistics(11.0, 22.0, 33.0, 44, (-50.0,), (6.0,), 77)
    assert two + one == one + two


def test_compressed_data_are_products_with_few_columns(rng):
    X = rng.random((20, 4)) @ rng.random((4, 9))
    weights = rng.random(20)
    data = as_data_matrix(X, weights=weights)
    V = leading_range(data, 5)
    np.testing.assert_allclose(V.T @ V, np.eye(5), atol=1e-10)
    found = compressed(data, 5, dtype=np.float64, scale=2.0)
    assert isinstance(found, CompressedMatrix)
    expected = 2.0 * X @ V @ V.T
    np.testing.assert_allclose(expected, 2.0 * X, atol=1e-9)  # five columns span four components
    np.testing.assert_allclose(found.dense_rows(3, 8), expected[3:8])
    np.testing.assert_allclose(found.take_rows([5, 2]), expected[[5, 2]])
    np.testing.assert_allclose(found.select(slice(2, 9)).dense_rows(0, 7), expected[2:9])
    Ht, W = rng.random((9, 2)), rng.random((20, 2))
    np.testing.assert_allclose(found.times(Ht), expected @ Ht)
    np.testing.assert_allclose(found.transposed_times(W), expected.T @ (weights[:, None] * W))
    assert found.squared_norm() == pytest.approx(np.sum(weights[:, None] * expected**2))
    assert found.total() == pytest.approx(np.sum(weights[:, None] * expected))
    assert found.extremes() == pytest.approx((expected.min(), expected.max()))
    assert found.count_nonzero() == 5 * 29
    dependent = np.column_stack([X[:, :2], X[:, :1], np.zeros(20)])
    Q = orthonormal(dependent)
    np.testing.assert_allclose(Q.T @ Q, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(Q @ (Q.T @ dependent), dependent, atol=1e-10)


@pytest.mark.parametrize("columns", [[0, 0, 1], [0, 1, 2], [0, 1, 1, 1]])
def test_columns_that_depend_on_each_other_have_an_orthonormal_basis(columns):
    given = 3.0 * np.eye(6)[:, columns]
    Q = orthonormal(given)
    assert Q.shape == given.shape
    np.testing.assert_allclose(Q.T @ Q, np.eye(len(columns)), atol=1e-12)
    np.testing.assert_allclose(Q @ (Q.T @ given), given, atol=1e-12)


@pytest.mark.parametrize("k", [1, 3])
def test_the_bound_outside_some_directions_is_above_the_largest_eigenvalue(k, rng):
    X = rng.random((60, 40))
    V = np.linalg.qr(rng.standard_normal((40, k)))[0]
    outside = X - (X @ V) @ V.T
    largest = np.linalg.norm(outside, 2) ** 2
    bound = _largest_outside(as_data_matrix(X), V, np.random.default_rng(0))
    assert largest <= bound <= 1.6 * largest


@pytest.mark.parametrize("k", [1, 2, 5])
def test_small_singular_values_are_resolved(k, rng):
    left, right = (np.linalg.qr(rng.standard_normal((n, 5)))[0] for n in (30, 12))
    values = np.array([1.0, 1e-2, 1e-9, 1e-10, 1e-12])
    found = leading_singular_values(as_data_matrix(left * values @ right.T), k)
    np.testing.assert_allclose(found, values[:k], rtol=1e-3)
    np.testing.assert_array_equal(leading_singular_values(as_data_matrix(np.zeros((6, 4))), 3), 0.0)


@pytest.mark.filterwarnings("ignore:.*stored by columns")
@pytest.mark.parametrize("memory", [1, 600, 10**6])
def test_columns_are_rewritten_by_rows_a_part_at_a_time(memory, rng):
    X = np.where(rng.random((7, 5)) < 0.5, 0.0, rng.random((7, 5)))
    X[3] = 0.0
    csc = sp.csc_array(X)
    values, columns, pointers = by_rows(csc.data, csc.indices, csc.indptr, X.shape, "x", memory)
    found = sp.csr_array((np.asarray(values), np.asarray(columns), pointers), shape=X.shape)
    np.testing.assert_array_equal(found.toarray(), X)
    assert found.has_sorted_indices
    np.testing.assert_array_equal(pointers, np.r_[0, np.cumsum(np.count_nonzero(X, axis=1))])
