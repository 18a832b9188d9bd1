from __future__ import annotations

import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import NMF, factorize
from nonneg._random import generator
from nonneg._threads import threads
from nonneg.data import as_data_matrix
from nonneg.exceptions import InterruptedFitWarning
from nonneg.initializers.registry import INITS
from nonneg.iteration import History, Run, StopReason
from nonneg.losses.penalties import Penalties
from nonneg.solvers.registry import SOLVERS
from nonneg.solvers.restarts import run_restarts


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
def test_restarts_side_by_side_end_as_single_runs_do(X, make, options):
    data = as_data_matrix(make(X))
    options = {"max_iter": 30, "tol": 1e-4} | options
    alone = [single(data, 3, rng, **options) for rng in generator(1).spawn(5)]
    with threads(2):
        together = run_restarts(data, 3, generator(1).spawn(5), **{"solver": "hals"} | options)
    for one, other in zip(alone, together, strict=True):
        if str(data.dtype) == "float32":
            # Rounding decides which extrapolations are accepted, and with them when a run ends.
            assert other.history.loss[-1] == pytest.approx(one.history.loss[-1], rel=1e-4)
            continue
        assert (one.n_iter, one.stop_reason) == (other.n_iter, other.stop_reason)
        np.testing.assert_allclose(other.history.loss, one.history.loss, rtol=1e-9)
        np.testing.assert_allclose(other.state.Ht, one.state.Ht, rtol=0, atol=1e-9 * one.state.Ht.max())


def test_what_is_kept_of_a_run(X):
    data = as_data_matrix(X)
    kept = run_restarts(
        data, 3, generator(0).spawn(4), max_iter=5, finish=lambda number, run: (number, run.state.Ht.shape)
    )
    assert kept == [(number, (40, 3)) for number in range(4)]


def test_the_number_of_threads_does_not_change_the_best_restart(X):
    best = factorize(X, 4, n_init=6, rng=1, max_iter=40, n_jobs=1)
    assert factorize(X, 4, n_init=6, rng=1, max_iter=40, n_jobs=2).H.tobytes() == best.H.tobytes()
    assert best.loss == min(
        single(as_data_matrix(X), 4, rng, max_iter=40).state.loss for rng in generator(1).spawn(6)
    )


def test_progress_counts_restarts(X, capsys):
    factorize(X, 3, n_init=3, rng=0, verbose=1)
    assert "factorize: 3 of 3 restarts" in capsys.readouterr().err


def test_no_restart_begins_after_the_user_stopped_one(X):
    seen = []

    def stop(progress):
        seen.append(progress.n_iter)
        return len(seen) == 30

    options = {"solver": "hals", "max_iter": 20, "tol": 0.0, "callback": stop}
    runs = run_restarts(as_data_matrix(X), 4, generator(0).spawn(6), **options)
    assert [run.stop_reason for run in runs] == [StopReason.MAX_ITER, StopReason.CALLBACK]
    assert len(seen) == 30


def made_run(losses, n_iter=None, reason=StopReason.MAX_ITER):
    numbers = list(range(1, len(losses) + 1)) if n_iter is None else n_iter
    history = History({"n_iter": numbers, "seconds": [0.1] * len(numbers), "loss": losses})
    return Run(None, numbers[-1] if numbers else 0, reason, history, reason.value)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ctrl_c_ends_restarts_on_other_threads(X):
    """Once Ctrl-C ended the wait alone, and the restarts that had begun ran to their last iteration."""
    model = NMF(2, n_init=100, max_iter=10**7, tol=0, n_jobs=2, random_state=0)
    NMF(2, n_init=2, max_iter=3, n_jobs=2).fit(X)  # imports and threads
    # A signal, as from a terminal: `interrupt_main` does not end the wait for a lock.
    threading.Timer(1.0, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
    with pytest.warns(InterruptedFitWarning):
        model.fit(X, sample_weight=np.ones(60))
    assert np.isfinite(model.reconstruction_err_)
    assert model.set_params(max_iter=3, n_init=1).fit(X).n_iter_ == 3  # nothing is left pending
