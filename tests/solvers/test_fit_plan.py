"""Which fits `run_factorization` does, and with which options; the solver is a stand-in."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError
from nonneg.iteration import History, Run, StopReason
from nonneg.losses.penalties import Penalties
from nonneg.solvers.factorize import run_factorization
from nonneg.solvers.restarts import Paused

module = importlib.import_module("nonneg.solvers.factorize")  # the package has a function of that name
X = np.random.default_rng(0).random((12, 7)) + 0.1
NONE = {"beta": 2.0, "penalties": Penalties()}


@pytest.fixture
def plan(monkeypatch):
    """Note the fits; say how they end and whether the certificate holds."""
    made = SimpleNamespace(
        calls=[], reason=StopReason.CONVERGED, n_iter=5, verdict=Verdict.FAILS, losses=[3.0], seconds=0
    )

    def solve(run, data, W, Ht, **options):
        made.calls.append(options | {"W": W, "Ht": Ht})
        rows = range(1, len(made.losses) + 1)
        history = History({"n_iter": list(rows), "seconds": [0.1] * len(rows), "loss": list(made.losses)})
        return Run(SimpleNamespace(W=W, Ht=Ht), made.n_iter, made.reason, history, "")

    statement = lambda *given, **options: [Statement("stationarity", "", 1.0, 1.0, made.verdict)]  # noqa: E731
    monkeypatch.setattr(module, "solve", solve)
    monkeypatch.setattr(module, "certify", statement)
    monkeypatch.setattr(module, "is_small", lambda data, k: False)
    return made


def tols(plan):
    return [call["tol"] for call in plan.calls]


def test_a_default_fit_goes_on_with_smaller_tolerances(plan):
    run_factorization(as_data_matrix(X), 2, **NONE, tol=1e-8)
    np.testing.assert_allclose(tols(plan), [1e-8, 1e-9, 1e-10], rtol=1e-6)
    assert isinstance(plan.calls[1]["checkpoint"], Paused)
    assert plan.calls[1]["checkpoint"].found[1] == 5
    plan.calls.clear()
    run_factorization(as_data_matrix(X), 2, **NONE, tol=1e-4)
    assert len(plan.calls) > 3


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        ({"solver": "hals"}, {}),
        ({"init": "random"}, {}),
        ({"tol": 1e-3}, {}),
        ({"tol": 0.0}, {}),
        ({"shuffle": True}, {}),
        ({"max_iter": 5}, {}),
        ({}, {"reason": StopReason.MAX_ITER}),
        ({}, {"verdict": Verdict.HOLDS}),
    ],
    ids=str,
)
def test_what_was_asked_for_is_obeyed(plan, options, ends):
    vars(plan).update(ends)
    run_factorization(as_data_matrix(X), 2, **NONE, rng=0, **options)
    assert len(plan.calls) == 1


@pytest.mark.parametrize(
    ("options", "small", "fits"),
    [
        ({}, True, 2),
        ({}, False, 1),
        ({"n_init": 1}, True, 1),
        ({"beta": 1.0}, True, 1),
        ({"H": np.ones((2, 7))}, True, 1),
        ({"W": np.ones((12, 2))}, True, 1),
        ({"solver": "hals"}, True, 1),
        ({"tol": 1e-3}, True, 1),
        ({"shuffle": True}, True, 1),
        ({"init": "random"}, True, 1),
    ],
    ids=str,
)
def test_small_data_are_fitted_a_second_time(plan, monkeypatch, options, small, fits):
    monkeypatch.setattr(module, "is_small", lambda data, k: small)
    plan.verdict = Verdict.HOLDS
    run_factorization(as_data_matrix(X), 2, **NONE | {"n_init": "auto", "rng": 0} | options)
    assert len(plan.calls) == fits
    if fits == 2:
        assert not np.allclose(plan.calls[0]["Ht"], plan.calls[1]["Ht"])


def test_options_are_passed_to_the_solver(plan):
    plan.verdict = Verdict.HOLDS
    callback = lambda progress: None  # noqa: E731
    options = {"max_iter": 9, "tol": 1e-3, "callback": callback, "solver_options": {"extrapolate": False}}
    run_factorization(as_data_matrix(X), 2, **NONE, **options, solver="hals", accelerate=False)
    call = plan.calls[0]
    assert (call["max_iter"], call["tol"], call["callback"], call["accelerate"]) == (9, 1e-3, callback, False)
    assert call["extrapolate"] is False
    assert call["checkpoint"] is None
    assert "shuffle" not in call
    run_factorization(as_data_matrix(X), 2, **NONE | {"beta": 1.0}, solver="mu", shuffle=True, rng=0)
    assert "accelerate" not in plan.calls[1]
    assert "shuffle" not in plan.calls[1]  # only coordinate descent has an order
    run_factorization(as_data_matrix(X), 2, **NONE, solver="hals", shuffle=True, rng=0)
    assert isinstance(plan.calls[2]["shuffle"], np.random.Generator)


def test_a_loss_that_is_not_a_number_is_refused(plan):
    plan.losses = [np.nan]
    with pytest.raises(
        InvalidDataError, match=r"The loss became NaN: .* range of float64\. NMF needs other units"
    ):
        run_factorization(as_data_matrix(X), 2, **NONE, caller="NMF")


def test_without_iterations_or_on_demand_samples_are_encoded(plan):
    plan.losses, plan.verdict = [3.0], Verdict.HOLDS
    assert run_factorization(as_data_matrix(X), 2, **NONE).loss == 3.0
    for losses, wanted in (([], False), ([3.0], True)):
        plan.losses = losses
        found = run_factorization(as_data_matrix(X), 2, **NONE, final_encoding=wanted)
        assert found.loss == pytest.approx(0.5 * np.sum((X - found.W @ found.H) ** 2))


def test_the_way_of_restarts(plan, monkeypatch):
    seen = []

    def best_run(data, k, rngs, **options):
        seen.append((len(rngs), options))
        return module.solve(None, data, np.ones((12, 2)), np.ones((7, 2)), tol=0.0)

    monkeypatch.setattr(module, "best_run", best_run)
    plan.verdict = Verdict.HOLDS
    for options, plain in (
        ({}, True), ({"shuffle": True}, False), ({"init": "spherical-kmeans"}, False),
        ({"init": "random", "H": np.ones((2, 7)), "frozen_components": [0]}, False),
    ):  # fmt: skip
        run_factorization(as_data_matrix(X), 2, **NONE, n_init=3, rng=0, **options)
        n, given = seen.pop()
        assert n == 3
        assert (given["begin"] is None) == plain
        assert given["init"] == options.get("init", "random")
    with pytest.raises(InvalidParameterError, match="n_init=3 with init='custom'"):
        run_factorization(as_data_matrix(X), 2, **NONE, n_init=3, H=np.ones((2, 7)))


def test_frozen_components_are_those_given(plan):
    plan.verdict = Verdict.HOLDS
    H = np.random.default_rng(1).random((3, 7))
    run_factorization(as_data_matrix(X), 3, **NONE, init="random", H=H, frozen_components=[0, 2], rng=0)
    Ht = plan.calls[0]["Ht"]
    np.testing.assert_array_equal(Ht[:, [0, 2]], H[[0, 2]].T)
    assert not np.allclose(Ht[:, 1], H[1])
    assert plan.calls[0]["free"].tolist() == [1]
    with pytest.raises(InvalidParameterError, match="W or H is given together with init='random'"):
        run_factorization(as_data_matrix(X), 3, **NONE, init="random", H=H, rng=0)
