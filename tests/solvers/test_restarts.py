from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer

from nonneg import factorize
from nonneg._random import spawn
from nonneg._threads import threads
from nonneg.data import as_data_matrix
from nonneg.initializers.registry import INITS
from nonneg.iteration import StopReason
from nonneg.losses.penalties import Penalties
from nonneg.solvers import restarts
from nonneg.solvers.registry import SOLVERS
from nonneg.solvers.restarts import hopeless, run_restarts


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.gamma(0.4, 1.0, (60, 4)) @ rng.gamma(0.4, 1.0, (4, 40)) + 0.3 * rng.random((60, 40))


def single(data, k, rng, solver="hals", beta=2.0, **options):
    W, Ht = INITS["random"](data, k, rng=rng)
    return SOLVERS[solver].run(
        data, W, Ht, penalties=options.pop("penalties", Penalties()), beta=beta, **options
    )


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (np.asarray, {}),
        # After more iterations rounding shows in the third digit of the factors, though not in the loss.
        (lambda X: X.astype(np.float32), {"max_iter": 10}),
        (lambda X: sp.csr_array(np.where(X > 1, X, 0)), {}),
        (np.asarray, {"penalties": Penalties(0.1, 0.2, 0.3, 0.1)}),
        (np.asarray, {"free": np.array([0, 2])}),
        (np.asarray, {"solver": "anls"}),
        (np.asarray, {"solver": "newton", "beta": 1.0}),
    ],
    ids=["dense", "float32", "sparse", "penalties", "frozen", "anls", "Kullback-Leibler"],
)
def test_restarts_that_share_work_end_as_single_runs_do(X, make, options):
    data = as_data_matrix(make(X))
    options = {"max_iter": 30, "tol": 1e-4} | options
    alone = [single(data, 3, rng, **options) for rng in spawn(1, 5)]
    with threads(2):
        together = run_restarts(data, 3, spawn(1, 5), **{"solver": "hals"} | options)
    for one, other in zip(alone, together, strict=True):
        if str(data.dtype) == "float32":
            # Rounding decides which extrapolations are accepted, and with them when a run ends.
            assert other.history.loss[-1] == pytest.approx(one.history.loss[-1], rel=1e-4)
            continue
        assert (one.n_iter, one.stop_reason) == (other.n_iter, other.stop_reason)
        np.testing.assert_allclose(other.history.loss, one.history.loss, rtol=1e-9)
        np.testing.assert_allclose(other.state.Ht, one.state.Ht, rtol=0, atol=1e-9 * one.state.Ht.max())


def test_sample_weights_count_in_shared_products(X):
    weights = np.arange(len(X)) % 3 + 0.5
    data = as_data_matrix(X, weights=weights)
    together = run_restarts(data, 3, spawn(1, 4), max_iter=12)
    alone = [single(data, 3, rng, max_iter=12, tol=1e-4) for rng in spawn(1, 4)]
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(other.history.loss, one.history.loss, rtol=1e-9)


def test_restarts_share_products_with_the_data(X, monkeypatch):
    data = as_data_matrix(X)
    products = []
    times = type(data).times
    monkeypatch.setattr(type(data), "times", lambda self, Ht: products.append(Ht.shape) or times(self, Ht))
    runs = run_restarts(data, 3, spawn(1, 8), max_iter=10, tol=0, begin=_given(data, 3))
    assert [run.n_iter for run in runs] == [10] * 8
    # One product for all, until the first has done its iterations. A rejected extrapolation takes a restart
    # one product more, which it shares with the next iteration of the others.
    assert 10 <= len(products) <= 20
    shared = sum(shape == (40, 24) for shape in products)
    assert shared >= 10
    assert all(shape == (40, 24) for shape in products[:shared])


def _given(data, k):
    # An initialization without a product of its own.
    return lambda number, rng: restarts.Restart(
        rng.random((data.shape[0], k)), rng.random((data.shape[1], k))
    )


def test_a_restart_that_falls_behind_is_pruned_and_the_winner_is_not(monkeypatch):
    X = load_breast_cancer().data[:150]
    data = as_data_matrix(X)
    full = run_restarts(data, 4, spawn(1, 8), max_iter=90)
    pruned = run_restarts(data, 4, spawn(1, 8), max_iter=90, prune=True)
    assert 0 < [run.stop_reason for run in pruned].count(StopReason.PRUNED) < 8
    final = [restarts.final_loss(run) for run in full]
    winner = int(np.argmin(final))
    assert int(np.argmin([restarts.final_loss(run) for run in pruned])) == winner
    for one, other in zip(full, pruned, strict=True):
        # The beginning of the same run, and all of it if it was not pruned.
        np.testing.assert_allclose(other.history.loss, one.history.loss[: other.n_iter], rtol=1e-6)
        assert other.stop_reason is StopReason.PRUNED or other.n_iter == one.n_iter
    # Neither threads nor the memory for waiting restarts change which factors win.
    best = factorize(X, 4, n_init=8, rng=1, max_iter=90, n_jobs=1)
    assert best.loss == pytest.approx(final[winner], rel=1e-6)
    assert factorize(X, 4, n_init=8, rng=1, max_iter=90, n_jobs=2).H.tobytes() == best.H.tobytes()
    monkeypatch.setattr(restarts, "MEMORY", 1 << 17)
    assert factorize(X, 4, n_init=8, rng=1, max_iter=90).loss == pytest.approx(best.loss, rel=1e-6)


def test_the_rule_of_pruning():
    assert restarts.OPTIMISM == 8.0
    # 0.5 was gained in the second half of the iterations; eight times as much would end at 6.
    assert hopeless(10.5, 10.0, 5.9)
    assert not hopeless(10.5, 10.0, 6.1)
    assert not hopeless(10.0, 10.0, 10.0)


def test_what_is_kept_of_a_run(X):
    found = run_restarts(as_data_matrix(X), 3, spawn(0, 4), max_iter=5, finish=lambda run: run.state.Ht.shape)
    assert found == [(40, 3)] * 4


def test_progress_counts_restarts(X, capsys):
    factorize(X, 3, n_init=3, rng=0, verbose=1)
    assert "factorize, restarts: 3 of 3" in capsys.readouterr().err


def test_no_restart_begins_after_the_user_stopped_one(X, monkeypatch):
    monkeypatch.setattr(restarts, "MEMORY", 2 * 5 * 4 * sum(X.shape) * 8)  # two at a time
    seen = []

    def stop(progress):
        seen.append(progress.n_iter)
        return len(seen) == 30

    options = {"solver": "hals", "max_iter": 20, "tol": 0.0, "callback": stop}
    found = run_restarts(as_data_matrix(X), 4, spawn(0, 6), **options)
    assert len(found) == 2
    assert [run.stop_reason for run in found].count(StopReason.CALLBACK) == 1
    assert len(seen) == 30
