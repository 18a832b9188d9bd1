from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer
from tests.references.containers import as_container

from nonneg import factorize
from nonneg._random import spawn
from nonneg._threads import threads
from nonneg.data import as_data_matrix
from nonneg.initializers.registry import INITS
from nonneg.iteration import History, Run, StopReason
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


def made_run(losses, n_iter=None, reason=StopReason.MAX_ITER):
    numbers = list(range(1, len(losses) + 1)) if n_iter is None else n_iter
    history = History({"n_iter": numbers, "seconds": [0.1] * len(numbers), "loss": losses})
    return Run(None, numbers[-1] if numbers else 0, reason, history, reason.value)


@pytest.mark.parametrize(
    ("max_iter", "rounds"), [(5, [5]), (10, [10]), (11, [10, 11]), (45, [10, 20, 40, 45])]
)
def test_rounds_double(max_iter, rounds):
    assert restarts._rounds(max_iter) == rounds


def test_the_final_loss_is_the_last_or_infinite():
    assert restarts.final_loss(made_run([3.0, 2.0])) == 2.0
    assert restarts.final_loss(made_run([])) == restarts.final_loss(made_run([3.0, np.nan])) == np.inf


@pytest.mark.parametrize(("n_iter", "loss"), [(1, 9.0), (4, 9.0), (5, 7.0), (6, 7.0), (8, 4.0), (99, 4.0)])
def test_the_loss_after_some_iterations_is_that_of_the_last_row_so_far(n_iter, loss):
    assert restarts._loss_after(made_run([9.0, 7.0, 4.0], [2, 5, 8]), n_iter) == loss


@pytest.mark.parametrize(("lowest", "pruned"), [(np.inf, [False, True, False]), (5.0, [True, True, False])])
def test_restarts_that_fall_behind_any_other_are_pruned(lowest, pruned):
    # After 20 iterations, compared with the losses after ten.
    falling = np.linspace(20.0, 9.0, 20)
    falling[10:] = np.linspace(falling[9], falling[9] - 0.1, 10)
    slow = np.full(20, 60.0)
    ended = made_run([100.0] * 20, reason=StopReason.CONVERGED)
    runs = [made_run(falling.tolist()), made_run(slow.tolist()), ended]
    each = [restarts.Restart(None, None, run=run) for run in runs]
    restarts._prune([*each, restarts.Restart(None, None)], 20, lowest)
    assert [one.run.stop_reason is StopReason.PRUNED for one in each] == pruned
    assert each[2].run is ended


@pytest.mark.parametrize(
    ("run", "live", "stopped"),
    [
        (None, True, False),
        (made_run([1.0]), True, False),
        (made_run([1.0], reason=StopReason.CONVERGED), False, False),
        (made_run([1.0], reason=StopReason.CALLBACK), False, True),
        (made_run([1.0], reason=StopReason.INTERRUPTED), False, True),
    ],
)
def test_what_becomes_of_a_restart(run, live, stopped):
    each = restarts.Restart(None, None, run=run)
    assert (each.is_live, each.was_stopped) == (live, stopped)


@pytest.mark.parametrize(
    ("form", "callback", "n", "spread"),
    [
        ("dense", None, 3, True),
        ("csr", None, 2, True),
        ("dense", None, 1, False),
        ("dense", print, 3, False),
        ("strict", None, 3, False),
    ],
)
def test_restarts_are_spread_over_threads_where_each_gets_one(X, form, callback, n, spread, monkeypatch):
    monkeypatch.setattr(restarts, "current_threads", lambda: 2)
    monkeypatch.setattr(
        restarts, "parallel_for", lambda work, n, chunk_size: [work(at, at + 1) for at in range(n)]
    )
    cohort = restarts.Cohort(as_data_matrix(as_container(X, form)), "hals", {}, callback)
    calls = cohort.spread(lambda start, stop: (start, stop), n)
    assert calls == ([(at, at + 1) for at in range(n)] if spread else [(0, n)])


def test_a_paused_run_is_kept_in_memory_until_its_rows_are_lost():
    paused = restarts.Paused()
    assert paused.load(None) is None
    run = made_run([3.0, 2.0])
    paused = restarts.Paused(run)
    assert paused.load(None) == (run.state, 2, 0.1, run.history)
    assert not paused.due()
    assert not paused.on_disk
    assert not paused.has_rows()
    assert paused.load(None) is None


def test_the_first_of_equal_restarts_is_the_best(X, monkeypatch):
    runs = [made_run([loss]) for loss in (4.0, 2.0, 2.0, np.nan)]
    monkeypatch.setattr(
        restarts, "run_restarts", lambda data, k, rngs, *, finish: [finish(run) for run in runs]
    )
    assert restarts.best_run(None, 3, []) is runs[1]


def test_restarts_wait_where_memory_is_short(X, monkeypatch):
    begun = []
    advance = restarts.Cohort.advance
    monkeypatch.setattr(
        restarts.Cohort,
        "advance",
        lambda self, some, until: begun.append(len(some)) or advance(self, some, until),
    )
    monkeypatch.setattr(restarts, "MEMORY", 2 * 5 * 3 * sum(X.shape) * 8)
    assert len(run_restarts(as_data_matrix(X), 3, spawn(0, 5), max_iter=1, tol=0)) == 5
    assert begun == [2, 2, 1]
    begun.clear()
    monkeypatch.setattr(restarts, "MEMORY", 1)
    run_restarts(as_data_matrix(X), 3, spawn(0, 2), max_iter=12, tol=0, prune=True)
    assert begun == [1, 1, 1, 1]  # two rounds of each
