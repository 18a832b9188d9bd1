from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import NMF, factorize
from nonneg.data import as_data_matrix
from nonneg.initializers.merged import LOOSE, merge_init, merges
from nonneg.initializers.registry import INITS


def test_a_merge_is_the_best_rank_one_approximation_of_a_pair(rng):
    W, Ht = rng.random((30, 2)), rng.random((20, 2))
    to_W, to_H = merges(W.T @ W, Ht.T @ Ht, 1)
    U, s, Vt = np.linalg.svd(W @ Ht.T)
    np.testing.assert_allclose((W @ to_W) @ (Ht @ to_H).T, s[0] * np.outer(U[:, 0], Vt[0]), atol=1e-12)
    assert np.linalg.norm(W @ to_W) == pytest.approx(np.linalg.norm(Ht @ to_H))


def test_the_pair_that_loses_least_is_merged(rng):
    W, Ht = rng.random((30, 3)), rng.random((20, 3))
    # The second and the last component are nearly the same, up to their scale.
    W = np.column_stack([W, 3.0 * W[:, 1] + 1e-3 * rng.random(30)])
    Ht = np.column_stack([Ht, 0.2 * Ht[:, 1] + 1e-3 * rng.random(20)])
    to_W, to_H = merges(W.T @ W, Ht.T @ Ht, 3)
    assert (to_W >= 0).all()
    assert (to_H >= 0).all()
    assert [int(np.count_nonzero(column)) for column in to_W.T] == [1, 2, 1]
    np.testing.assert_allclose((W @ to_W) @ (Ht @ to_H).T, W @ Ht.T, atol=2e-2)


def test_components_of_zeros_are_merged_without_division_by_zero():
    to_W, to_H = merges(np.zeros((3, 3)), np.zeros((3, 3)), 1)
    assert np.isfinite(to_W).all()
    assert np.isfinite(to_H).all()


def test_it_leaves_a_local_minimum_of_the_default():
    # A draw on which the default ends 2% higher; over many draws the two are even (studies/optima).
    from sklearn.datasets import load_digits

    X = load_digits().data[600:1200]
    losses = {init: NMF(16, init=init).fit(X).result_.loss for init in ("merge", "nndsvd-scaled")}
    assert losses["merge"] < 0.98 * losses["nndsvd-scaled"]


def test_the_stopping_rule_compares_with_the_beginning_of_the_initialization(low_rank):
    notes = {}
    W, Ht = merge_init(as_data_matrix(low_rank), 4, notes=notes)
    merged = factorize(low_rank, 4, init="merge")
    alone = factorize(low_rank, 4, W=W, H=Ht.T)
    assert merged.history["violation"][0] < 100 * LOOSE * notes["first_violation"]
    assert merged.history["violation"][-1] <= 1e-4 * notes["first_violation"]
    assert merged.n_iter < alone.n_iter  # given factors are judged by the first iteration from them


def test_no_components_are_left_to_add():
    X = np.random.default_rng(0).random((9, 4))
    W, Ht = merge_init(as_data_matrix(X), 4)
    assert W.shape == (9, 4)
    assert Ht.shape == (4, 4)


def test_extra_components_are_fitted_and_merged(rng):
    X = rng.dirichlet(np.full(6, 0.3), 90) @ rng.gamma(0.5, size=(6, 40)) + 0.01 * rng.random((90, 40))
    errors = {}
    for init in ("cone-or-random", "cone-merge"):
        W, Ht = INITS[init](as_data_matrix(X), 6, rng=0)
        assert (W.shape, Ht.shape) == ((90, 6), (40, 6))
        assert min(W.min(), Ht.min()) > 0
        fit = factorize(X, 6, solver="anls", W=W, H=Ht.T, max_iter=1, tol=0.0)
        errors[init] = np.linalg.norm(X - fit.W @ fit.H)
    assert errors["cone-merge"] < 0.7 * errors["cone-or-random"]


def test_of_many_samples_a_part_is_fitted(rng):
    data = as_data_matrix(rng.random((900, 5)))
    W, Ht = INITS["cone-merge"](data, 4, rng=3)
    expected_W, expected_Ht = INITS["cone-or-random"](data, 4, rng=3)
    np.testing.assert_array_equal(W, expected_W)
    np.testing.assert_array_equal(Ht, expected_Ht)


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_a_merge_in_single_precision_has_the_unit_of_the_data(rng, unit):
    X = rng.random((40, 4)) @ rng.random((4, 30))
    one, scaled = (INITS["cone-merge"](as_data_matrix(c * X), 4, rng=0) for c in (1.0, unit))
    assert {factor.dtype for factor in (*one, *scaled)} == {np.dtype(np.float64)}
    np.testing.assert_allclose(scaled[0] @ scaled[1].T, unit * (one[0] @ one[1].T), rtol=1e-3)
    # The product is near X before any solver begins, and X itself is as it was.
    assert np.linalg.norm(X - one[0] @ one[1].T) < 0.1 * np.linalg.norm(X)


def test_single_precision_stays_single(rng):
    W, Ht = INITS["cone-merge"](as_data_matrix(rng.random((30, 20)).astype(np.float32)), 3, rng=0)
    assert {W.dtype, Ht.dtype} == {np.dtype(np.float32)}


def test_sparse_data_are_not_merged(rng):
    data = as_data_matrix(sp.csr_array(rng.random((60, 40)) * (rng.random((60, 40)) < 0.2)))
    found, expected = (INITS[init](data, 3, rng=5) for init in ("cone-merge", "cone-or-random"))
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("X", [np.zeros((6, 5)), np.outer(np.arange(6.0), np.arange(5.0))])
def test_components_that_vanish_do_not_break_the_merge(X):
    W, Ht = INITS["cone-merge"](as_data_matrix(X), 3, rng=0)
    assert np.isfinite(W).all()
    assert np.isfinite(Ht).all()
    if X.any():
        scale = np.sum(X * (W @ Ht.T)) / np.sum((W @ Ht.T) ** 2)
        np.testing.assert_allclose(scale * W @ Ht.T, X, atol=0.02 * X.max())
