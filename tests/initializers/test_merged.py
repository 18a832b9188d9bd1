from __future__ import annotations

import numpy as np
import pytest

from nonneg import NMF, factorize
from nonneg.data import as_data_matrix
from nonneg.initializers.merged import LOOSE, merge_init, merges


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
