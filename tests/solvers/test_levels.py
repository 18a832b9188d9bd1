"""Cheaper iterations: what they cost, which pay, and what a step makes of them; parts of a factorization."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg._threads import BLAS
from nonneg.data import as_data_matrix
from nonneg.data.compressed import CompressedMatrix
from nonneg.exceptions import InvalidParameterError
from nonneg.losses.penalties import Penalties
from nonneg.solvers import acceleration
from nonneg.solvers.acceleration import AcceleratedProblem, _converted, operations
from nonneg.solvers.alternating import SCHEDULE, AlternatingState
from nonneg.solvers.factorize import _balanced, _checked_init, checked_rank, initial_factors
from nonneg.solvers.hals import hals_problem, inner_passes
from nonneg.solvers.registry import SOLVERS, automatic, choose_solver

OWN = Penalties(0.1, 0.2, 0.3, 0.4)


def problem_of(X, k=2, *, penalties=OWN, max_iter=50, tol=1e-4, weights=None):
    data = as_data_matrix(X, weights=weights)
    return AcceleratedProblem(
        hals_problem(data, k, penalties=penalties), k, inner_passes, max_iter=max_iter, tol=tol
    )


@pytest.mark.parametrize("passes", [(1, 1), (2, 5), (60, 60)])
def test_operations_are_products_and_passes(passes):
    rows = 100 * (2 * BLAS + 2 * min(passes[0], 3)) + 30 * (2 * BLAS + 2 * min(passes[1], 3))
    assert operations((100, 30), 4, 5000, passes) == pytest.approx(4 * BLAS * 4 * 5000 + rows * 16)


def test_zeros_of_dense_data_are_read_and_those_of_sparse_data_are_not(rng):
    X = np.where(rng.random((50, 20)) < 0.2, 1.0, 0.0)
    dense, sparse = problem_of(X), problem_of(sp.csr_array(X))
    assert dense.entries == 1000
    assert sparse.entries == np.count_nonzero(X)
    weighted = problem_of(X, weights=np.full(50, 2.0))
    assert weighted.shape == (100.0, 20.0)
    assert weighted.entries == 2000


@pytest.fixture
def everything(monkeypatch):
    """No data are too small."""
    monkeypatch.setattr(acceleration, "SMALLEST", 0.0)


def kinds(problem):
    return [kind.__name__ for kind in problem._kinds]


def test_levels_that_pay_are_chosen(everything, rng, monkeypatch):
    X = rng.random((300, 200))
    assert kinds(problem_of(X)) == ["_compressed", "_single"]
    assert kinds(problem_of(X.astype(np.float32))) == ["_compressed"]
    assert kinds(problem_of(sp.csr_array(X))) == ["_single"]
    assert kinds(problem_of(X, max_iter=1)) == ["_single"]  # too few to save what compressing costs
    assert kinds(problem_of(X[:, :6])) == ["_single"]  # as many columns as compressed data would have
    assert kinds(problem_of(np.zeros((300, 200)))) == []
    monkeypatch.setattr(acceleration, "COPY_BYTES", 4 * X.size - 1)
    assert kinds(problem_of(X)) == ["_compressed"]
    assert kinds(problem_of(sp.csr_array(X))) == []
    monkeypatch.setattr(acceleration, "SMALLEST", 1e12)
    assert not problem_of(X).pays


@pytest.mark.parametrize("unit", [1.0, 16.0, 1e-3])
def test_the_unit_is_a_power_of_four_near_a_mean_square_of_one(everything, rng, unit):
    X = unit * rng.random((40, 30))
    scale = problem_of(X)._scale()
    assert math.log(scale, 4) == round(math.log(scale, 4))
    assert 0.5 / 2.0 < np.mean((scale * X) ** 2) ** 0.5 < 2.0 * 2.0


@pytest.mark.parametrize("kind", ["_single", "_compressed"])
def test_a_level_is_the_same_problem_in_its_unit(everything, rng, kind):
    X = 10.0 * rng.random((60, 40))
    problem = problem_of(X)
    level, scale = getattr(problem, kind)(), problem._scale()
    assert level.unit == pytest.approx(math.sqrt(scale))
    assert level.comparable is (kind == "_single")
    assert 0 < level.cost <= 0.5 if kind == "_single" else 0 < level.cost <= 1.0
    assert level.problem.data.dtype == np.float32
    own = level.problem.penalties
    expected = (0.1 * level.unit**3, 0.2 * scale, 0.3 * level.unit**3, 0.4 * scale)
    assert (own.l1_W, own.l2_W, own.l1_H, own.l2_H) == pytest.approx(expected)
    assert isinstance(level.problem.data, CompressedMatrix) is (kind == "_compressed")
    if kind == "_single":
        np.testing.assert_allclose(level.problem.data.array, scale * X, rtol=1e-6)
        passes = inner_passes(problem.data, 2)
        assert level.cost == pytest.approx(0.5 * operations((60, 40), 2, 2400, passes) / problem.cost)


def test_converted_states_keep_what_belongs_together(rng):
    data = as_data_matrix(rng.random((6, 4)))
    W, Ht = rng.random((6, 2)), rng.random((4, 2))
    state = AlternatingState(W, Ht, W_plain=2 * W, Ht_plain=Ht, Ht_next=None)
    found = _converted(data, state, np.float32, 0.5)
    np.testing.assert_array_equal(found.W, (0.5 * W).astype(np.float32))
    np.testing.assert_array_equal(found.W_plain, W.astype(np.float32))
    np.testing.assert_array_equal(found.Ht, (0.5 * Ht).astype(np.float32))
    assert found.Ht_plain is found.Ht
    assert found.Ht_next is None
    assert _converted(data, replace(state, W_plain=None), np.float32, 0.5).W_plain is None


def test_a_step_counts_cheap_iterations_by_their_cost_and_ends_exactly(everything, rng):
    X = rng.random((80, 50))
    problem = problem_of(X, 3, penalties=Penalties())
    W, Ht = rng.random((80, 3)), rng.random((50, 3))
    state = AlternatingState(W, Ht, momentum=SCHEDULE.initial)
    state, first = problem.step(state)
    assert first["iterations"] == state.n_iter == 1  # the first one is exact
    assert state.first == first["violation"] > 0
    losses = [first["loss"]]
    for _ in range(3):
        before = state.n_iter
        state, measures = problem.step(state)
        assert measures["iterations"] == state.n_iter - before >= 1
        exact = 0.5 * np.sum((X - state.W @ state.Ht.T) ** 2)
        assert measures["loss"] == pytest.approx(exact, rel=1e-9)
        losses.append(measures["loss"])
    assert losses == sorted(losses, reverse=True)
    assert state.n_iter > 4  # cheap iterations were made
    last = AcceleratedProblem(problem.exact, 3, inner_passes, max_iter=state.n_iter + 1, tol=0.0)
    end, measures = last.step(state)
    assert (end.n_iter, measures["iterations"]) == (state.n_iter + 1, 1)


@pytest.mark.parametrize(
    ("shape", "k", "chosen"),
    [
        ((320, 5), 1, "anls"),  # narrow, and 64 times as tall
        ((319, 5), 1, "hals"),
        ((64 * 32, 32), 1, "anls"),
        ((64 * 33, 33), 1, "hals"),
        ((64 * 33, 33), 2, "anls"),
        ((5, 320), 1, "anls"),
        ((50, 40), 3, "hals"),
    ],
)
def test_narrow_data_are_left_to_exact_steps(shape, k, chosen):
    assert automatic("dense", shape, k, 2.0, missing=False) == chosen
    assert automatic("dense", shape, k, 2.0, missing=True) == "hals"
    assert automatic("sparse", shape, k, 1.0, missing=False) == "kl-cd"
    assert automatic("sparse", shape, k, 1.0, missing=True) == "newton"
    assert automatic("dense", shape, k, 1.0, missing=False) == "newton"
    assert automatic("sparse", shape, k, 1.5, missing=False) == "newton"
    assert choose_solver("cd", container="dense", shape=shape, k=k, beta=1.0, missing=False) == "kl-cd"


def test_what_solvers_take():
    newton, hals, kl = SOLVERS["newton"], SOLVERS["hals"], SOLVERS["kl-cd"]
    assert newton.takes("sparse-array", 1.5)
    assert not newton.takes("sparse-array", 0.5)
    assert not kl.takes("sparse-array", 1.0)
    assert kl.takes("sparse", 1.0)
    assert not kl.takes("dask", 1.0)
    assert [hals.minimizes(beta) for beta in (1.9, 2.0, 2.1)] == [False, True, False]
    assert [hals.takes_missing(beta) for beta in (1.9, 2.0, 2.1)] == [False, True, False]
    assert not SOLVERS["anls"].takes_missing(2.0)


def test_restarts_need_random_numbers():
    assert _checked_init(None, 1, (9, 7), 3, given=False) == "nndsvd-scaled"
    assert _checked_init(None, 1, (9, 7), 8, given=False) == "random"
    assert _checked_init(None, 1, (9, 7), 3, given=True) == "custom"
    assert _checked_init(None, 2, (9, 7), 3, given=False) == "random"
    assert _checked_init("nndsvd", 1, (9, 7), 3, given=False) == "nndsvd"
    with pytest.raises(
        InvalidParameterError, match="n_init=2 with init='nndsvd': all restarts would be equal"
    ):
        _checked_init("nndsvd", 2, (9, 7), 3, given=False)


def test_numbers_of_components():
    assert checked_rank(np.int64(3), (5, 4), "it") == 3
    assert checked_rank(5, (5, 4), "it") == 5
    for wrong in (0, -1, 2.0, True, "2", None):
        with pytest.raises(InvalidParameterError, match=r"of it must be an int in the range \[1, inf\)"):
            checked_rank(wrong, (5, 4), "it")
    with pytest.raises(
        InvalidParameterError,
        match=r"n_components=6 is larger than both sides of X, 5 x 4.*Use at most 5;.*below 4",
    ):
        checked_rank(6, (5, 4), "it")


@pytest.mark.parametrize("weights", [None, np.arange(1.0, 7.0)])
def test_balanced_factors_have_the_same_norm_and_product(weights, rng):
    data = as_data_matrix(rng.random((6, 4)), weights=weights)
    W, Ht = rng.random((6, 2)), 100 * rng.random((4, 2))
    new_W, new_Ht = _balanced(data, W, Ht)
    np.testing.assert_allclose(new_W @ new_Ht.T, W @ Ht.T)
    counted = np.ones(6) if weights is None else weights
    assert counted @ np.sum(new_W**2, axis=1) == pytest.approx(np.sum(new_Ht**2))
    for empty in ((0 * W, Ht), (W, 0 * Ht)):
        assert _balanced(data, *empty) == empty


def test_initial_factors_are_given_or_made(rng):
    data, H = as_data_matrix(rng.random((6, 4))), rng.random((2, 4))
    source = np.random.default_rng(0)
    _, Ht = initial_factors(data, 2, init=None, W=None, H=H, rng=source)
    np.testing.assert_allclose(Ht, H.T)
    _, Ht = initial_factors(data, 2, init="random", W=None, H=H, rng=source, free=np.array([0]))
    np.testing.assert_allclose(Ht[:, 1], H[1])
    assert not np.allclose(Ht[:, 0], H[0])
    for W, given in ((rng.random((6, 2)), None), (None, H)):
        with pytest.raises(InvalidParameterError, match="W or H is given together with init='random'"):
            initial_factors(data, 2, init="random", W=W, H=given, rng=source)
    with pytest.raises(InvalidParameterError, match="W or H is given together"):
        initial_factors(data, 2, init="random", W=rng.random((6, 2)), H=H, rng=source, free=np.array([0]))
    W, Ht = initial_factors(data, 2, init="random", W=None, H=None, rng=source)
    assert (W.shape, Ht.shape) == ((6, 2), (4, 2))


@pytest.mark.parametrize("k", [1, 3, 20])
def test_passes_are_paid_for_by_products(k, rng):
    X = np.where(rng.random((50, 30)) < 0.5, 1.0, 0.0)
    n = np.count_nonzero(X)
    of_W = 1 + 0.45 * (n / 50 + 30 * k / 50) / k
    of_H = 1 + 0.45 * (n / 30 + 50 * k / 30) / k
    assert inner_passes(as_data_matrix(X), k) == (int(of_W), int(of_H))
    assert inner_passes(as_data_matrix(X), k, 1e9) == (60, 60)
