"""The published algorithms: what they do, and nothing that speeds them up."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.cr1.plain_algorithms import PLAIN, relative_error, run_plain, uniform_init

from nonneg.data import as_data_matrix
from nonneg.exceptions import UnknownNameError


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.random((30, 4)) @ rng.random((4, 20)) + 0.1 * rng.random((30, 20))
    return X, *uniform_init(X.shape, 4, rng)


def test_multiplicative_updates_are_those_of_lee_and_seung(problem):
    X, W, Ht = problem
    run = run_plain("mult", as_data_matrix(X), W, Ht, max_iter=3)
    H = Ht.T
    for _ in range(3):
        W = W * (X @ H.T) / (W @ H @ H.T)
        H = H * (W.T @ X) / (W.T @ W @ H)
    np.testing.assert_allclose(run.state.W, W, rtol=1e-12)
    np.testing.assert_allclose(run.state.Ht, H.T, rtol=1e-12)
    assert run.history.loss[-1] == pytest.approx(0.5 * np.square(X - W @ H).sum(), rel=1e-10)


def test_hals_is_one_sweep_over_the_columns_of_each_factor(problem):
    X, W, Ht = problem
    run = run_plain("hals", as_data_matrix(X), W, Ht, max_iter=2)
    W, Ht = W.copy(), Ht.copy()
    for _ in range(2):
        for factor, other, target in ((W, Ht, X), (Ht, W, X.T)):
            for k in range(4):
                slope = factor @ (other.T @ other[:, k]) - target @ other[:, k]
                factor[:, k] = np.maximum(factor[:, k] - slope / (other[:, k] @ other[:, k]), 0.0)
    np.testing.assert_allclose(run.state.W, W, atol=1e-11)
    np.testing.assert_allclose(run.state.Ht, Ht, atol=1e-11)


def test_least_squares_are_solved_exactly_without_extrapolation(problem):
    from scipy.optimize import nnls

    X, W, Ht = problem
    run = run_plain("nnlsb", as_data_matrix(X), W, Ht, max_iter=2)
    for _ in range(2):
        W = np.array([nnls(Ht, row)[0] for row in X])
        Ht = np.array([nnls(W, column)[0] for column in X.T])
    np.testing.assert_allclose(run.state.W, W, atol=1e-9)
    np.testing.assert_allclose(run.state.Ht, Ht, atol=1e-9)


@pytest.mark.parametrize("name", PLAIN)
def test_starts_stay_as_they_were_and_the_loss_falls(name, problem):
    X, W, Ht = problem
    before = W.copy(), Ht.copy()
    run = run_plain(name, as_data_matrix(X), W, Ht, max_iter=20)
    np.testing.assert_array_equal(W, before[0])
    np.testing.assert_array_equal(Ht, before[1])
    assert run.n_iter == 20
    assert np.all(np.diff(run.history.loss) <= 1e-12)
    error = relative_error(run.history.loss[-1], float(np.square(X).sum()))
    assert error == pytest.approx(np.linalg.norm(X - run.state.W @ run.state.Ht.T) / np.linalg.norm(X))


def test_an_unknown_algorithm_is_named(problem):
    X, W, Ht = problem
    with pytest.raises(UnknownNameError, match="nnlsb"):
        run_plain("nnls", as_data_matrix(X), W, Ht, max_iter=1)
