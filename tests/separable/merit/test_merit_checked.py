"""MERIT against the checked cases: indices, gap, objective and coefficients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import select_anchors
from nonneg.data import as_data_matrix
from nonneg.kernels.sparse_columns import columns_of, no_entries
from nonneg.separable.merit.frank_wolfe import advance, open_loop
from nonneg.separable.merit.merit import merit
from nonneg.separable.merit.problem import SelfDictionary

FOLDER = Path(__file__).parent / "data"


def checked(name):
    """A case with one point a row and the weight of (18), which is half of the one without the 1/2."""
    with np.load(FOLDER / f"merit_case_{name}.npz") as stored:
        case = {key: stored[key] for key in stored.files}
    return case, np.ascontiguousarray(case["X"].T), float(case["lam"]) / 2, float(case["mu"])


def steps_of(problem, state, n_steps):
    """Every answered iterate before its step, and the last one."""
    states = []
    for _ in range(n_steps):
        state, _ = problem.call_oracle(state)
        states.append(state)
        state = advance(problem, state, open_loop(problem, state))
    return states, state


@pytest.mark.parametrize("container", ["dense", "sparse", "torch"])
@pytest.mark.parametrize("name", ["a", "c"])
def test_every_index_gap_and_objective(name, container):
    case, X, lam, mu = checked(name)
    if container == "sparse":
        X = sp.csr_array(X)
    if container == "torch":
        X = pytest.importorskip("torch").tensor(X)
    problem = SelfDictionary.of(as_data_matrix(X), lam, mu)
    states, last = steps_of(problem, problem.initial_iterate(no_entries(X.shape[0])), int(case["iters"]))
    assert np.array_equal([state.vertices for state in states], case["j"])
    # The cases' objective has no 1/2.
    assert np.allclose([2 * state.gap for state in states], case["gap"], rtol=0, atol=1e-9)
    assert np.allclose([2 * state.loss for state in states], case["obj"], rtol=0, atol=1e-9)
    assert np.abs(last.columns.as_csc().toarray() - case["C"]).max() <= 1e-12


@pytest.mark.parametrize("name", ["a", "c"])
def test_the_public_function_gives_the_same_coefficients(name):
    case, X, lam, mu = checked(name)
    n_iter = int(case["iters"])
    found = select_anchors(
        X,
        len(case["pure"]),
        method_params={"lam": lam, "mu": mu, "steps": "open-loop"},
        max_iter=n_iter,
        tol=0.0,
    )
    assert np.abs(found.coefficients.toarray() - case["C"]).max() <= 1e-12
    # The history belongs to the iterate after each step, the case's to the one before.
    assert np.allclose(2 * np.array(found.history["gap"][:-1]), case["gap"][1:], rtol=0, atol=1e-9)
    assert np.allclose(2 * np.array(found.history.loss[:-1]), case["obj"][1:], rtol=0, atol=1e-9)
    assert found.gap == found.history["gap"][-1]
    # In case a the noise hides one of the anchors.
    assert len(set(found.anchors) & set(case["pure"])) >= len(case["pure"]) - (name == "a")


@pytest.mark.parametrize("name", ["a", "c"])
def test_weights_are_whole_numbers(name):
    case, X, lam, mu = checked(name)
    problem = SelfDictionary.of(as_data_matrix(X), lam, mu)
    n = int(case["iters"])
    _, last = steps_of(problem, problem.initial_iterate(no_entries(len(X))), n)
    assert last.weights.dtype == np.int32
    assert last.total == n * (n + 1) / 2
    assert np.array_equal(last.weights.sum(axis=1), np.full(len(X), n * (n + 1) // 2))


def test_warm_start():
    case, X, lam, mu = checked("warm")
    # The case counts iterations from 1 and steps by 2 / (iter + 1): iteration 7 is t = 6.
    t = int(case["iterStart"]) - 1
    n_iter = int(case["maxIters"]) - t
    problem = SelfDictionary.of(as_data_matrix(X), lam, mu)
    states, last = steps_of(
        problem, problem.initial_iterate(columns_of(case["C0"], total=t * (t + 1) / 2), t), n_iter
    )
    assert np.allclose([2 * state.gap for state in states], case["gap"], rtol=0, atol=1e-9)
    assert np.allclose([2 * state.loss for state in states], case["obj"], rtol=0, atol=1e-9)
    assert np.abs(last.columns.as_csc().toarray() - case["C"]).max() <= 1e-12
    found = merit(as_data_matrix(X), 6, lam=lam, mu=mu, init=case["C0"], t_init=t, max_iter=n_iter, tol=0.0)
    assert np.abs(found.coefficients.toarray() - case["C"]).max() <= 1e-12
    assert set(found.anchors) == set(case["pure"])
