"""Solvers for beta divergences: descent, one optimum, containers, weights, masks, frozen columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg._threads import threads
from nonneg.data import as_data_matrix
from nonneg.iteration import Checkpoint
from nonneg.losses.beta import gradients, objective
from nonneg.losses.penalties import Penalties
from nonneg.solvers.kl_cd import kl_coordinate_descent
from nonneg.solvers.mu import multiplicative
from nonneg.solvers.newton import scaled_newton

BETAS = [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
NONE = Penalties()
ROW_SOLVERS = [(kl_coordinate_descent, 1.0), (scaled_newton, 1.0), (scaled_newton, 0.0)]
SOME = Penalties(0.3, 0.2, 0.4, 0.5)


def initial(rng, n, m, k=4, dtype=float):
    return (rng.random((n, k)) + 0.1).astype(dtype), (rng.random((m, k)) + 0.1).astype(dtype)


def losses(run):
    return np.array(run.history.loss)


# The contracts of the solvers have every dtype with and without penalties.
@pytest.mark.covering(2)
@pytest.mark.parametrize(("dtype", "penalties"), [(np.float32, SOME), (np.float64, NONE)])
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("solver", [multiplicative, scaled_newton])
def test_loss_never_increases(solver, beta, penalties, dtype, low_rank, rng):
    data = as_data_matrix(low_rank.astype(dtype))
    W, Ht = initial(rng, 60, 40, dtype=dtype)
    kept = W.copy(), Ht.copy()
    run = solver(data, W, Ht, penalties=penalties, beta=beta, max_iter=40, tol=0)
    found = losses(run)
    assert np.all(np.isfinite(found))
    assert np.all(np.diff(found) <= (1e-12 if dtype == np.float64 else 1e-5) * found[0])
    assert found[-1] < found[0]
    assert run.state.W.dtype == run.state.Ht.dtype == dtype
    assert min(run.state.W.min(), run.state.Ht.min()) >= 0
    value = objective(data, run.state.W, run.state.Ht, beta=beta, penalties=penalties)
    np.testing.assert_allclose(found[-1], value, rtol=1e-10 if dtype == np.float64 else 1e-4)
    np.testing.assert_array_equal(W, kept[0])
    np.testing.assert_array_equal(Ht, kept[1])


@pytest.mark.parametrize("penalties", [NONE, SOME])
def test_coordinate_descent_never_increases_the_loss(penalties, counts, rng):
    data = as_data_matrix(counts)
    W, Ht = initial(rng, 80, 50)
    run = kl_coordinate_descent(data, W, Ht, penalties=penalties, max_iter=60, tol=0)
    found = losses(run)
    assert np.all(np.diff(found) <= 1e-12 * found[0])
    value = objective(data, run.state.W, run.state.Ht, beta=1.0, penalties=penalties)
    np.testing.assert_allclose(found[-1], value, rtol=1e-11)


@pytest.mark.covering(0)
@pytest.mark.parametrize("penalties", [NONE, SOME])
def test_solvers_reach_one_optimum(penalties, counts, rng):
    # One component: the problem has a single minimum up to scale, and with L2 a single one.
    dense, sparse = as_data_matrix(counts.toarray()), as_data_matrix(counts)
    W, Ht = initial(rng, 80, 50, k=1)
    options = {"penalties": penalties, "beta": 1.0, "max_iter": 400, "tol": 0}
    found = [
        losses(solver(data, W, Ht, **options))[-1]
        for solver, data in [(multiplicative, dense), (kl_coordinate_descent, sparse)]
    ]
    found.append(losses(scaled_newton(dense, W, Ht, **options | {"max_iter": 100}))[-1])
    np.testing.assert_allclose(found, found[0], rtol=1e-6)


def test_solvers_reach_one_optimum_near_the_truth(rng):
    # Started beside the planted factors, all descend into the same valley.
    W, Ht = rng.gamma(0.7, size=(40, 3)) + 0.05, rng.gamma(0.7, size=(30, 3)) + 0.05
    data = as_data_matrix(rng.poisson(20 * W @ Ht.T).astype(float))
    options = {"penalties": NONE, "beta": 1.0, "tol": 0}
    runs = [
        multiplicative(data, 5 * W, 4 * Ht, max_iter=5000, **options),
        kl_coordinate_descent(data, 5 * W, 4 * Ht, max_iter=150, **options),
        scaled_newton(data, 5 * W, 4 * Ht, max_iter=60, **options),
    ]
    found = [losses(run)[-1] for run in runs]
    np.testing.assert_allclose(found, found[0], rtol=1e-8)
    models = [run.state.W @ run.state.Ht.T for run in runs]
    np.testing.assert_allclose(models[1], models[0], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(models[2], models[0], rtol=1e-3, atol=1e-3)


@pytest.mark.covering(2)
@pytest.mark.parametrize("beta", [0.0, 1.0, 1.5])
@pytest.mark.parametrize("solver", [multiplicative, scaled_newton])
def test_arrays_of_every_namespace_agree_with_numpy(solver, beta, xp, low_rank, rng):
    W, Ht = initial(rng, 60, 40)
    weights = rng.integers(1, 4, 60).astype(float)
    # Twenty iterations, without held components, are compared with the other contracts of the solvers.
    options = {"penalties": SOME, "beta": beta, "max_iter": 8, "tol": 0, "free": np.array([0, 2, 3])}
    expected = solver(as_data_matrix(low_rank, weights=weights), W, Ht, **options)
    data = as_data_matrix(xp.asarray(low_rank), weights=xp.asarray(weights))
    run = solver(data, xp.asarray(W), xp.asarray(Ht), **options)
    np.testing.assert_allclose(losses(run), losses(expected), rtol=1e-8)
    np.testing.assert_allclose(np.asarray(run.state.W), expected.state.W, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("beta", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("solver", [multiplicative, scaled_newton])
def test_sparse_agrees_with_dense(solver, beta, counts, rng):
    W, Ht = initial(rng, 80, 50)
    options = {"penalties": SOME, "beta": beta, "max_iter": 20, "tol": 0}
    sparse = solver(as_data_matrix(counts), W, Ht, **options)
    dense = solver(as_data_matrix(counts.toarray()), W, Ht, **options)
    np.testing.assert_allclose(losses(sparse), losses(dense), rtol=1e-8)
    np.testing.assert_allclose(sparse.state.W, dense.state.W, rtol=1e-8, atol=1e-8)


@pytest.mark.covering(1)
@pytest.mark.parametrize(("beta", "rows"), [(0.0, 30), (1.0, 7), (2.0, 30)])
@pytest.mark.parametrize("solver", [multiplicative, scaled_newton])
def test_dask_agrees_with_dense(solver, beta, rows, low_rank, rng):
    da = pytest.importorskip("dask.array")
    W, Ht = initial(rng, 60, 40)
    weights = rng.random(60) + 0.5
    options = {"penalties": SOME, "beta": beta, "max_iter": 12, "tol": 0}
    expected = solver(as_data_matrix(low_rank, weights=weights), W, Ht, **options)
    data = as_data_matrix(da.from_array(low_rank, chunks=(rows, 40)), weights=weights)
    run = solver(data, data.to_sample_array(W), Ht, **options)
    np.testing.assert_allclose(losses(run), losses(expected), rtol=1e-8)
    np.testing.assert_allclose(run.state.W.compute(), expected.state.W, rtol=1e-8, atol=1e-9)


@pytest.mark.covering(1)
@pytest.mark.parametrize("kind", ["dense", "sparse", "array"])
@pytest.mark.parametrize("solver", [multiplicative, scaled_newton])
def test_missing_entries_do_not_count(solver, kind, counts, rng):
    X = counts.toarray()
    mask = rng.random(X.shape) < 0.7
    W, Ht = initial(rng, 80, 50)
    options = {"penalties": NONE, "beta": 1.0, "max_iter": 15, "tol": 0}
    runs = []
    for filled in (0.0, 7.0):
        changed = np.where(mask, X, filled)
        if kind == "dense":
            data = as_data_matrix(changed, mask=mask)
        elif kind == "sparse":
            data = as_data_matrix(sp.csr_array(changed), mask=sp.csr_array(mask))
        else:
            strict = pytest.importorskip("array_api_strict")
            data = as_data_matrix(strict.asarray(changed), mask=strict.asarray(mask))
        runs.append(solver(data, data.to_device(W), data.to_device(Ht), **options))
    np.testing.assert_array_equal(np.asarray(runs[0].state.W), np.asarray(runs[1].state.W))
    V = np.asarray(runs[0].state.W) @ np.asarray(runs[0].state.Ht).T
    X, V = X[mask], V[mask]
    terms = V - X + X * np.log(np.where(X > 0, X, 1.0) / np.where(X > 0, V, 1.0))
    np.testing.assert_allclose(losses(runs[0])[-1], terms.sum(), rtol=1e-10)


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


@pytest.mark.parametrize(
    ("solver", "beta"),
    [*[(multiplicative, beta) for beta in (0.0, 1.0, 1.5, 2.0)], *ROW_SOLVERS],
)
def test_integer_weights_are_repetition(solver, beta, low_rank, rng):
    W, Ht = initial(rng, 60, 40)
    times = rng.integers(1, 4, 60)
    options = {"penalties": SOME, "beta": beta, "max_iter": 10, "tol": 0}
    weighted = solver(as_data_matrix(low_rank, weights=times.astype(float)), W, Ht, **options)
    repeated = solver(
        as_data_matrix(np.repeat(low_rank, times, axis=0)), np.repeat(W, times, axis=0), Ht, **options
    )
    np.testing.assert_allclose(losses(weighted), losses(repeated), rtol=1e-9)
    np.testing.assert_allclose(weighted.state.Ht, repeated.state.Ht, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("solver", "beta"),
    [*[(multiplicative, beta) for beta in (0.0, 1.0, 2.0)], *ROW_SOLVERS],
)
def test_frozen_components_stay(solver, beta, low_rank, rng):
    W, Ht = initial(rng, 60, 40)
    free = np.array([1, 3])
    run = solver(as_data_matrix(low_rank), W, Ht, penalties=SOME, beta=beta, max_iter=15, tol=0, free=free)
    np.testing.assert_array_equal(run.state.Ht[:, [0, 2]], Ht[:, [0, 2]])
    assert np.all(np.any(run.state.Ht[:, free] != Ht[:, free], axis=0))
    assert np.all(np.diff(losses(run)) <= 1e-12 * losses(run)[0])


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


@pytest.mark.parametrize(
    ("solver", "kind"),
    [(multiplicative, "dense"), (kl_coordinate_descent, "sparse"), (scaled_newton, "dense")],
)
def test_a_resumed_run_equals_the_uninterrupted_one(solver, kind, counts, rng, tmp_path):
    data = as_data_matrix(counts if kind == "sparse" else counts.toarray())
    W, Ht = initial(rng, 80, 50)
    options = {"penalties": SOME, "beta": 1.0, "tol": 0}
    whole = solver(data, W, Ht, max_iter=12, **options)
    for max_iter in (5, 12):
        run = solver(data, W, Ht, max_iter=max_iter, checkpoint=Checkpoint(tmp_path, "key", 0.0), **options)
    # Up to rounding: BLAS may add up in another order where an array lies at another place.
    np.testing.assert_allclose(losses(run), losses(whole), rtol=1e-12)
    np.testing.assert_allclose(run.state.W, whole.state.W, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(run.state.Ht, whole.state.Ht, rtol=1e-9, atol=1e-12)


def test_newton_ends_at_a_stationary_point(rng):
    W, Ht = initial(rng, 40, 30, k=3)
    data = as_data_matrix(rng.poisson(10 * W @ Ht.T).astype(float))
    penalties = Penalties(0.5, 0.5, 0.5, 0.5)
    run = scaled_newton(data, W, Ht, penalties=penalties, beta=1.0, max_iter=300, tol=0)
    left, right = gradients(data, run.state.W, run.state.Ht, beta=1.0, penalties=penalties)
    for factor, slope in ((run.state.W, left), (run.state.Ht, right)):
        assert np.abs(np.minimum(factor, slope)).max() < 1e-3
