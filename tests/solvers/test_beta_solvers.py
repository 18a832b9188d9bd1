"""Solvers for beta divergences beyond their contracts: masks, zeros, threads."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.gradients import gradients

from nonneg._threads import threads
from nonneg.data import as_data_matrix
from nonneg.losses.penalties import Penalties
from nonneg.solvers.kl_cd import kl_coordinate_descent
from nonneg.solvers.mu import multiplicative
from nonneg.solvers.newton import scaled_newton

NONE = Penalties()


def initial(rng, n, m, k=4):
    return rng.random((n, k)) + 0.1, rng.random((m, k)) + 0.1


def losses(run):
    return np.array(run.history.loss)


def test_a_column_that_is_masked_out_is_a_column_dropped(low_rank, rng):
    W, Ht = initial(rng, 60, 40)
    mask = np.ones((60, 40), dtype=bool)
    mask[:, 5] = False
    kept = np.delete(np.arange(40), 5)
    options = {"penalties": NONE, "beta": 1.0, "max_iter": 20, "tol": 0}
    masked = multiplicative(as_data_matrix(low_rank, mask=mask), W, Ht, **options)
    dropped = multiplicative(as_data_matrix(low_rank[:, kept]), W, Ht[kept], **options)
    np.testing.assert_allclose(masked.state.W, dropped.state.W, rtol=1e-9)
    np.testing.assert_allclose(masked.state.Ht[kept], dropped.state.Ht, rtol=1e-9)


@pytest.mark.parametrize("solver", [multiplicative, kl_coordinate_descent, scaled_newton])
def test_zero_rows_and_columns_work(solver, rng):
    X = rng.poisson(2.0, (30, 20)).astype(float)
    X[4], X[:, 7] = 0.0, 0.0
    W, Ht = initial(rng, 30, 20)
    run = solver(as_data_matrix(X), W, Ht, penalties=NONE, beta=1.0, max_iter=50, tol=0)
    assert np.all(np.isfinite(run.state.W))
    assert np.all(np.isfinite(run.state.Ht))
    model = run.state.W @ run.state.Ht.T
    assert np.abs(model[4]).max() < 1e-6
    assert np.abs(model[:, 7]).max() < 1e-6
    nothing = solver(as_data_matrix(0 * X), W, Ht, penalties=NONE, beta=1.0, max_iter=5, tol=0)
    assert np.all(np.isfinite(nothing.history.loss))


@pytest.mark.parametrize("solver", [kl_coordinate_descent, scaled_newton])
def test_zeros_of_the_start_may_become_positive(solver, low_rank, rng):
    W, Ht = initial(rng, 60, 40)
    W[:, 0] = 0.0
    run = solver(as_data_matrix(low_rank), W, Ht, penalties=NONE, beta=1.0, max_iter=30, tol=0)
    assert run.state.W[:, 0].max() > 0


@pytest.mark.parametrize(
    ("solver", "beta"), [(multiplicative, 1.0), (scaled_newton, 1.0), (scaled_newton, 0.0)]
)
def test_threads_do_not_matter(solver, beta, rng):
    X = rng.gamma(1.0, size=(500, 700)) + 0.01
    W, Ht = initial(rng, 500, 700, k=3)
    found = []
    for n_jobs in (1, 2):
        with threads(n_jobs):
            run = solver(as_data_matrix(X), W, Ht, penalties=NONE, beta=beta, max_iter=5, tol=0)
            found.append(losses(run))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-10)


def test_newton_ends_at_a_stationary_point(rng):
    W, Ht = initial(rng, 40, 30, k=3)
    data = as_data_matrix(rng.poisson(10 * W @ Ht.T).astype(float))
    penalties = Penalties(0.5, 0.5, 0.5, 0.5)
    run = scaled_newton(data, W, Ht, penalties=penalties, beta=1.0, max_iter=300, tol=0)
    left, right = gradients(data, run.state.W, run.state.Ht, beta=1.0, penalties=penalties)
    for factor, slope in ((run.state.W, left), (run.state.Ht, right)):
        assert np.abs(np.minimum(factor, slope)).max() < 1e-3
