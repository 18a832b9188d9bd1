"""Restarts as one batch: each ends as a run of its own does."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg import NMF
from nonneg._arrays import to_numpy
from nonneg._random import generator
from nonneg.data import as_data_matrix
from nonneg.exceptions import InterruptedFitWarning
from nonneg.iteration import StopReason
from nonneg.losses.penalties import Penalties
from nonneg.solvers import batched
from nonneg.solvers.restarts import run_restarts

pytestmark = pytest.mark.torch


@pytest.fixture
def counts(rng):
    """Counts with three patterns, 24 x 40, as float64."""
    return rng.poisson(20 * rng.gamma(0.5, size=(24, 3)) @ rng.gamma(0.5, size=(3, 40))).astype(float)


@pytest.fixture
def data(torch, counts, monkeypatch):
    """The counts on a GPU, or else on the processor, batched all the same."""
    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        monkeypatch.setattr(batched, "_on_gpu", lambda data: data.container == "array")
    return as_data_matrix(torch.asarray(counts, device="cuda" if on_gpu else "cpu"))


def alone(monkeypatch, *given, **options):
    """Run restarts one after another."""
    with monkeypatch.context() as patch:
        patch.setattr(batched, "can_be_batched", lambda *given: False)
        return run_restarts(*given, **options)


@pytest.mark.covering(1)
@pytest.mark.parametrize("beta", [2.0, 1.0])
@pytest.mark.parametrize("tol", [0, 1e-3])
def test_restarts_end_as_single_runs_do(data, monkeypatch, beta, tol):
    options = {"beta": beta, "max_iter": 25 if tol == 0 else 300, "tol": tol}
    together = run_restarts(data, 3, generator(0).spawn(5), **options)
    single = alone(monkeypatch, data, 3, generator(0).spawn(5), **options)
    for a, b in zip(together, single, strict=True):
        assert a.n_iter == b.n_iter
        assert a.stop_reason is b.stop_reason
        assert a.history.names == b.history.names
        # Rounding grows with the iterations.
        np.testing.assert_allclose(a.history.loss[:20], b.history.loss[:20], rtol=1e-9)
        np.testing.assert_allclose(a.history.loss[-1], b.history.loss[-1], rtol=1e-6)
        assert a.history.loss == sorted(a.history.loss, reverse=True)
        if tol == 0:
            assert a.stop_reason is StopReason.MAX_ITER
            np.testing.assert_allclose(a.state.Ht.cpu(), b.state.Ht.cpu(), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(a.state.W.cpu(), b.state.W.cpu(), rtol=1e-4, atol=1e-5)
    if tol:
        assert len({run.n_iter for run in together}) > 1  # each ends by itself


@pytest.mark.parametrize("beta", [2.0, 1.0])
def test_restarts_that_go_on_do_so_in_a_smaller_batch(data, monkeypatch, beta):
    options = {"beta": beta, "max_iter": 300, "tol": 1e-3}
    whole = run_restarts(data, 3, generator(0).spawn(5), **options)
    monkeypatch.setattr(batched, "SMALLEST", 1)
    monkeypatch.setattr(batched, "LEAVING", 0.0)
    monkeypatch.setattr(batched, "SECONDS", 0.0)  # a look after every turn
    parts = run_restarts(data, 3, generator(0).spawn(5), **options)
    for a, b in zip(whole, parts, strict=True):
        assert a.n_iter == b.n_iter
        assert a.stop_reason is b.stop_reason
        np.testing.assert_allclose(a.history.loss, b.history.loss, rtol=1e-9)
        np.testing.assert_allclose(a.state.Ht.cpu(), b.state.Ht.cpu(), rtol=1e-6, atol=1e-8)
        assert a.history.seconds == sorted(a.history.seconds)


@pytest.mark.parametrize("beta", [2.0, 1.0])
def test_an_interrupted_batch_returns_what_it_has(data, monkeypatch, beta):
    whole = run_restarts(data, 3, generator(0).spawn(3), beta=beta, max_iter=9, tol=0)
    rules, calls = batched.Batch.rules, []

    def interrupted(*given):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return rules(*given)

    monkeypatch.setattr(batched.Batch, "rules", interrupted)
    monkeypatch.setattr(batched, "WARM_UP", 100)  # turns of a graph are not interrupted
    with pytest.warns(InterruptedFitWarning):
        runs = run_restarts(data, 3, generator(0).spawn(3), beta=beta, max_iter=9, tol=0)
    for run, other in zip(runs, whole, strict=True):
        assert 0 < run.n_iter <= 5
        assert run.stop_reason is StopReason.INTERRUPTED
        np.testing.assert_allclose(run.history.loss, other.history.loss[: run.n_iter], rtol=1e-10)


def test_batches_are_as_large_as_memory_allows(data, monkeypatch):
    whole = run_restarts(data, 3, generator(0).spawn(5), beta=1.0, max_iter=12, tol=0)
    monkeypatch.setattr(batched, "free_memory", lambda device: 0.0)
    assert batched.batch_size(data, "newton", 3) == 1
    monkeypatch.setattr(batched, "batch_size", lambda *given: 2)
    parts = run_restarts(data, 3, generator(0).spawn(5), beta=1.0, max_iter=12, tol=0)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a.history.loss, b.history.loss, rtol=1e-10)


@pytest.mark.parametrize("beta", [2.0, 1.0])
def test_the_estimator_uses_it(data, counts, monkeypatch, beta):
    calls = []
    run = batched.run_batched
    monkeypatch.setattr(batched, "run_batched", lambda *given: calls.append(len(given[2])) or run(*given))
    found = NMF(3, beta_loss=beta, n_init=4, random_state=1, tol=1e-3).fit(data.array)
    assert calls == [4]
    host = NMF(3, beta_loss=beta, n_init=4, random_state=1, tol=1e-3).fit(counts)
    np.testing.assert_allclose(found.reconstruction_err_, host.reconstruction_err_, rtol=1e-3)


def test_other_cases_run_one_after_another(data, torch, counts):
    plain = {"beta": 1.0, "penalties": Penalties(), "tol": 0.0, "free": None}
    assert batched.can_be_batched(data, "newton", plain)
    assert batched.can_be_batched(data, "hals", plain | {"beta": 2.0, "accelerate": False})
    weighted = as_data_matrix(data.array, weights=np.ones(24))
    masked = as_data_matrix(data.array, mask=counts > 0)
    for other, solver, options in (
        (weighted, "newton", plain),
        (masked, "newton", plain),
        (data, "mu", plain),
        (data, "newton", plain | {"beta": 0.0}),
        (data, "newton", plain | {"penalties": Penalties(l1_W=1.0)}),
        (data, "newton", plain | {"free": np.array([0])}),
        (data, "newton", plain | {"offset": 1.0}),
        (as_data_matrix(counts), "newton", plain),
    ):
        assert not batched.can_be_batched(other, solver, options)


def test_no_iterations_return_the_initial_factors(data):
    for run in run_restarts(data, 3, generator(0).spawn(2), beta=2.0, max_iter=0):
        assert (run.n_iter, run.stop_reason, len(run.history)) == (0, StopReason.MAX_ITER, 0)


def test_the_time_of_a_batch_is_divided_among_its_restarts(data):
    options = {"beta": 2.0, "max_iter": 4, "tol": 0}
    runs = run_restarts(data, 3, generator(0).spawn(2), **options)
    for run in runs:
        assert run.history.n_iter == [1, 2, 3, 4]
        assert run.history.seconds == sorted(run.history.seconds)
        assert run.history.seconds[0] > 0
    W, Ht = (to_numpy(factor) for factor in (runs[0].state.W, runs[0].state.Ht))
    assert (W.shape, Ht.shape) == ((24, 3), (40, 3))
    error = 0.5 * np.sum((to_numpy(data.array) - W @ Ht.T) ** 2)
    assert runs[0].state.loss == pytest.approx(error, rel=1e-6)
    assert runs[0].history.loss[-1] == pytest.approx(error, rel=1e-6)
