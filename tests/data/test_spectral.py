"""Singular values and vectors from products alone, against NumPy's, in every container; the lower bound."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from nonneg.data import as_data_matrix
from nonneg.data import spectral as spectral_module
from nonneg.data.spectral import (
    block_lanczos,
    eckart_young_bound,
    leading_singular_values,
    leading_vectors,
    resolve_small_singular_values,
)
from nonneg.rank_selection.candidates import numerical_noise


def dask_array(X, rows=13):
    return pytest.importorskip("dask.array").from_array(X, chunks=(rows, -1))


def torch_array(X):
    return pytest.importorskip("torch").asarray(X)


def strict_array(X):
    return pytest.importorskip("array_api_strict").asarray(X)


CONTAINERS = {
    "numpy": lambda X: X,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "torch": torch_array,
    "array_api_strict": strict_array,
    "dask": dask_array,
}


@pytest.fixture
def lanczos(monkeypatch):
    """Take the route of many columns, however few there are."""
    monkeypatch.setattr(spectral_module, "DENSE_COLUMNS", 0)
    monkeypatch.setattr(spectral_module, "_DENSE_LIMIT", 0)


@pytest.fixture
def matrix(rng):
    return rng.gamma(0.5, size=(50, 30))


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("route", ["gram", "lanczos"])
def test_values_and_vectors_match_numpy(container, route, matrix, request):
    if route == "lanczos":
        request.getfixturevalue("lanczos")
    k = 5
    data = as_data_matrix(CONTAINERS[container](matrix))
    V = leading_vectors(data, k)
    _, values, right = np.linalg.svd(matrix, full_matrices=False)
    np.testing.assert_allclose(leading_singular_values(data, k), values[:k], rtol=1e-12)
    signs = np.sign(np.sum(right[:k].T * V, axis=0))
    np.testing.assert_allclose(V, right[:k].T * signs, atol=1e-10)
    assert np.all(V[np.argmax(np.abs(V), axis=0), range(k)] > 0)


@pytest.mark.parametrize("route", ["gram", "lanczos"])
def test_weights_equal_repetition_and_order_does_not_matter(route, matrix, rng, request):
    if route == "lanczos":
        request.getfixturevalue("lanczos")
    weights = rng.integers(1, 4, size=50)
    order = rng.permutation(int(weights.sum()))
    repeated = np.repeat(matrix, weights, axis=0)[order]
    first, second = as_data_matrix(matrix, weights=weights.astype(float)), as_data_matrix(repeated)
    np.testing.assert_allclose(
        leading_singular_values(first, 4), leading_singular_values(second, 4), rtol=1e-12
    )
    np.testing.assert_allclose(leading_vectors(first, 4), leading_vectors(second, 4), atol=1e-10)


def test_wide_data_go_through_lanczos_and_match_numpy(rng):
    X = rng.gamma(1.0, size=(70, 9)) @ rng.gamma(1.0, size=(9, 900)) + rng.random((70, 900))
    values = np.linalg.svd(X, compute_uv=False)
    np.testing.assert_allclose(leading_singular_values(as_data_matrix(X), 12), values[:12], rtol=1e-10)


def test_small_singular_values_survive_the_squaring(rng):
    left = np.linalg.qr(rng.standard_normal((60, 12)))[0]
    right = np.linalg.qr(rng.standard_normal((20, 12)))[0]
    true = 10.0 ** -np.arange(12.0)
    found = leading_singular_values(as_data_matrix((left * true) @ right.T), 12)
    # The roots of the eigenvalues of X'X would be wrong from 1e-8 on.
    np.testing.assert_allclose(found[:10], true[:10], rtol=1e-3)


def test_one_small_singular_value_after_large_ones_survives_the_squaring(rng):
    left = np.linalg.qr(rng.standard_normal((60, 4)))[0]
    right = np.linalg.qr(rng.standard_normal((20, 4)))[0]
    true = np.array([1.0, 0.9, 0.8, 1e-9])
    found = leading_singular_values(as_data_matrix((left * true) @ right.T), 4)
    np.testing.assert_allclose(found, true, rtol=1e-3)


@pytest.mark.parametrize("k", [3, 12, 20])
def test_repeated_singular_values_are_all_found(k, lanczos):
    X = np.kron(np.eye(20), np.ones((2, 5)))
    np.testing.assert_allclose(leading_singular_values(as_data_matrix(X), k), np.sqrt(10.0), rtol=1e-12)


def test_data_of_low_rank_have_zeros_after_their_rank(rng, lanczos):
    X = rng.random((40, 3)) @ rng.random((3, 60))
    data = as_data_matrix(X)
    s = leading_singular_values(data, 6)
    np.testing.assert_allclose(s[:3], np.linalg.svd(X, compute_uv=False)[:3], rtol=1e-12)
    assert np.all(s[3:] < numerical_noise(data, s[0]))


def test_a_matrix_of_zeros_has_zeros(lanczos):
    assert not leading_singular_values(as_data_matrix(np.zeros((9, 7))), 2).any()


def test_the_start_depends_on_the_number_of_columns_alone(rng):
    X = rng.random((20, 600))
    first, again = (leading_vectors(as_data_matrix(X), 3) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def true_error(X, k):
    values = np.linalg.svd(X, compute_uv=False)
    return np.sqrt(np.sum(values[k:] ** 2) / np.sum(values**2))


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6), decay=st.floats(0.0, 3.0), route=st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_bound_is_never_above_the_error_of_the_best_rank_k(seed, k, decay, route):
    X = np.random.default_rng(seed).standard_normal((15, 12)) * np.exp(-decay * np.arange(12))
    with pytest.MonkeyPatch.context() as patch:
        if route:
            patch.setattr(spectral_module, "gram_is_cheaper", lambda data, k: False)
        assert eckart_young_bound(as_data_matrix(X), k).relative_error <= true_error(X, k) * (1 + 1e-12)


def orthogonal_to_the_fixed_start(rng, n_columns=700, k=5):
    """Return a matrix whose leading right singular vector is orthogonal to the first block of Lanczos."""
    start = np.random.default_rng(n_columns).standard_normal((n_columns, max(8, k // 2)))
    hidden = rng.standard_normal(n_columns)
    hidden -= start @ np.linalg.lstsq(start, hidden, rcond=None)[0]
    others = np.linalg.qr(np.column_stack([hidden, rng.standard_normal((n_columns, 99))]))[0]
    left = np.linalg.qr(rng.standard_normal((900, 100)))[0]
    return (left * np.r_[20.0, np.linspace(19.0, 15.0, 5), np.linspace(0.1, 0.01, 94)]) @ others.T


def test_a_matrix_built_against_the_start_of_lanczos_gets_no_false_bound(rng, monkeypatch):
    X = orthogonal_to_the_fixed_start(rng)
    monkeypatch.setattr(spectral_module, "gram_is_cheaper", lambda data, k: False)
    bound = eckart_young_bound(as_data_matrix(X), 5)
    assert bound.relative_error <= true_error(X, 5)
    assert bound.relative_error == pytest.approx(true_error(X, 5), rel=1e-6)
    assert 0.0 < bound.failure_probability <= 1e-9


def test_a_missed_singular_value_is_noticed(rng, monkeypatch):
    X = orthogonal_to_the_fixed_start(rng)
    search = spectral_module.leading_eigenpairs

    def without_the_first(data, k, rng):
        values, vectors = search(data, k + 1, rng=rng)
        return values[1:], vectors[:, 1:]

    monkeypatch.setattr(spectral_module, "gram_is_cheaper", lambda data, k: False)
    monkeypatch.setattr(spectral_module, "leading_eigenpairs", without_the_first)
    bound = eckart_young_bound(as_data_matrix(X), 5)
    # The search misses the leading value, and its own sum would be a false bound.
    assert bound.estimate > 1.01 * true_error(X, 5)
    assert bound.relative_error <= true_error(X, 5)


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_bound_is_not_overstated_and_nearly_exact(container, matrix):
    bound = eckart_young_bound(as_data_matrix(CONTAINERS[container](matrix)), 4)
    values = np.linalg.svd(matrix, compute_uv=False)
    true = np.sqrt(np.sum(values[4:] ** 2) / np.sum(values**2))
    assert bound.relative_error <= true
    assert bound.relative_error == pytest.approx(true, rel=1e-9)
    assert bound.norm == pytest.approx(np.linalg.norm(matrix))


def test_an_unfinished_lanczos_run_still_gives_a_floor(rng, lanczos, monkeypatch):
    X = rng.random((80, 60))
    monkeypatch.setattr(spectral_module, "_MAX_PASSES", 2)
    bound = eckart_young_bound(as_data_matrix(X), 10)
    assert bound.relative_error < true_error(X, 10) < bound.estimate


def test_float32_floors_are_not_overstated(rng):
    exact = rng.gamma(1.0, size=(90, 5)) @ rng.gamma(1.0, size=(5, 40)) + rng.random((90, 40))
    X = exact.astype(np.float32)
    values = np.linalg.svd(X.astype(float), compute_uv=False)
    true = np.sqrt(np.sum(values[5:] ** 2) / np.sum(values**2))
    bound = eckart_young_bound(as_data_matrix(X), 5).relative_error
    assert true * 0.99 < bound <= true


def test_the_bound_of_as_many_components_as_columns_is_zero(matrix):
    assert eckart_young_bound(as_data_matrix(matrix), 30).relative_error == 0.0
    assert eckart_young_bound(as_data_matrix(np.zeros((4, 3))), 1).relative_error == 0.0


@pytest.mark.parametrize("max_passes", [1, 3, 4, 5, 6])
def test_lanczos_may_end_after_any_pass(max_passes, rng, monkeypatch):
    monkeypatch.setattr(spectral_module, "_MAX_PASSES", max_passes)
    square = rng.standard_normal((90, 90))
    values, vectors = block_lanczos(lambda V: square.T @ (square @ V), 90, 5, rng, tol=0.0)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(np.sum((square @ vectors) ** 2, axis=0), values)


def test_lanczos_restarts_reach_the_same_answer(rng):
    square = rng.standard_normal((200, 200))
    square = square @ square.T
    calls = []

    def apply(V):
        calls.append(V.shape[1])
        return square @ V

    values, vectors = block_lanczos(apply, 200, 4, np.random.default_rng(0), tol=1e-12)
    assert sum(calls) > 36  # more than the basis holds: there was a restart
    np.testing.assert_allclose(values, np.linalg.eigvalsh(square)[::-1][:4], rtol=1e-10)
    np.testing.assert_allclose(square @ vectors, vectors * values, atol=1e-8 * values[0])


@pytest.mark.torch
def test_lanczos_keeps_its_basis_where_the_data_are(torch, rng):
    square = torch.from_numpy(rng.standard_normal((120, 120)))
    square = square @ square.T
    kinds = []

    def apply(V):
        kinds.append(type(V))
        return square @ V

    like = torch.empty(0, dtype=torch.float64)
    values, vectors = block_lanczos(apply, 120, 4, np.random.default_rng(0), tol=1e-12, like=like)
    assert set(kinds) == {torch.Tensor}
    np.testing.assert_allclose(values, np.linalg.eigvalsh(square.numpy())[::-1][:4], rtol=1e-10)
    np.testing.assert_allclose(square.numpy() @ vectors, vectors * values, atol=1e-8 * values[0])


@pytest.mark.parametrize("shape", [(30, 700), (700, 30), (260, 240)])
@pytest.mark.parametrize("container", ["numpy", "csr", "torch"])
def test_singular_values_of_wide_and_tall_data(shape, container, rng):
    X = np.where(rng.random(shape) < 0.4, rng.random(shape), 0.0)
    found = leading_singular_values(as_data_matrix(CONTAINERS[container](X)), 20)
    np.testing.assert_allclose(found, np.linalg.svd(X, compute_uv=False)[:20], rtol=1e-11)


def test_small_values_of_many_columns_are_as_exact_as_those_of_few(rng, lanczos):
    left = np.linalg.qr(rng.standard_normal((120, 30)))[0]
    right = np.linalg.qr(rng.standard_normal((90, 30)))[0]
    true = np.geomspace(1.0, 1e-5, 30)
    found = leading_singular_values(as_data_matrix((left * true) @ right.T), 30)
    np.testing.assert_allclose(found, true, rtol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_small_singular_values_are_resolved_in_order(weighted, rng):
    U, V = (np.linalg.qr(rng.standard_normal((n, 5)))[0] for n in (30, 8))
    sizes = np.array([3.0, 1.0, 1e-9, 5e-10, 1e-10])
    weights = rng.random(30) + 0.5 if weighted else None
    A = U * sizes @ V.T
    X = A if weights is None else A / np.sqrt(weights)[:, None]
    # As the Gram matrix gives them: those of small values turned among themselves, and in any order.
    turned = V[:, [1, 0, 2, 3, 4]].copy()
    turned[:, 2:] = turned[:, 2:] @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    found, values = resolve_small_singular_values(as_data_matrix(X, weights=weights), turned)
    np.testing.assert_allclose(values, sizes, rtol=1e-5)
    np.testing.assert_allclose(np.abs(np.sum(found * V, axis=0)), 1.0, rtol=1e-5)
