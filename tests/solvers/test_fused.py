"""Iterations of HALS in two tasks: the same numbers as piece by piece, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg import _threads, factorize
from nonneg.data import as_data_matrix
from nonneg.data.compressed import compressed
from nonneg.kernels import factor_update, team
from nonneg.kernels.factor_update import BY_COLUMNS, BY_ROWS, LONGEST, FactorUpdate, block_of, form_of
from nonneg.kernels.hals.native import VECTOR
from nonneg.losses.penalties import Penalties
from nonneg.solvers import acceleration, fused
from nonneg.solvers.alternating import AlternatingProblem, AlternatingState, update_W_block
from nonneg.solvers.hals import hals_problem

K = 4


@pytest.fixture
def any_size(monkeypatch):
    """Run small iterations, too, on all threads that are asked for."""
    monkeypatch.setattr(_threads, "SMALLEST_TASK", 0.0)
    monkeypatch.setattr(_threads, "AWAKE", 1e-12)


@pytest.fixture
def pieces(monkeypatch):
    """Return a function that runs another one without fused iterations."""

    def run(function):
        with monkeypatch.context() as patch:
            patch.setattr(AlternatingProblem, "_fused", None)
            return function()

    return run


def tables(order="C"):
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(150, K)) @ rng.gamma(0.5, size=(K, 70)) + 0.1 * rng.random((150, 70))
    return np.asarray(X, order=order)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("given", [{}, {"l1_W": 0.1, "l2_W": 0.2}])
@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_a_chunk_is_updated_as_its_pieces(order, given, momentum, monkeypatch):
    monkeypatch.setattr(fused, "CHUNK_ROWS", 100)
    monkeypatch.setattr(fused, "CHUNK_SHARE", 10.0)
    rng = np.random.default_rng(1)
    penalties = Penalties(**given)
    for X in (tables(order), 2 * tables(order), tables(order)[:140]):  # the task of one is used for the next
        data = as_data_matrix(X)
        problem = hals_problem(data, K, penalties=penalties, passes=(5, 5))
        W, W_plain, Ht = (rng.random((size, K)) for size in (len(X), len(X), X.shape[1]))
        state = AlternatingState(W, Ht, W_plain=W_plain, Ht_plain=Ht, momentum=momentum)
        arrays, shared = problem.first_half(state, momentum)
        assert update_W_block.takes_whole(data, **shared)
        rows, sums = update_W_block(data, *arrays, **shared)
        with monkeypatch.context() as patch:
            patch.setattr(fused, "takes_chunk", lambda *_, **__: False)
            expected, expected_sums = update_W_block(data, *arrays, **shared)
        assert len(rows) == len(expected) == len(arrays)
        for one, other in zip(rows, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        for one, other in zip(sums, expected_sums, strict=True):
            np.testing.assert_allclose(
                getattr(one, "matrix", one), getattr(other, "matrix", other), rtol=1e-9
            )


def test_chunks_that_no_task_takes(monkeypatch):
    monkeypatch.setattr(fused, "CHUNK_ROWS", 100)
    X = tables()
    weights, mask = np.ones(len(X)), np.ones(X.shape, dtype=bool)
    mask[0, 0] = False

    def takes(data):
        _, shared = hals_problem(data, K, penalties=Penalties(), passes=(5, 5)).first_half(
            AlternatingState(X[:, :K], X[:K].T), 0.0
        )
        return update_W_block.takes_whole(data, **shared)

    monkeypatch.setattr(fused, "CHUNK_SHARE", 0.0)
    assert not takes(as_data_matrix(X))  # its sums would take more memory than allowed
    monkeypatch.setattr(fused, "CHUNK_SHARE", 10.0)
    assert takes(as_data_matrix(X))
    assert not takes(as_data_matrix(X, weights=weights))
    assert not takes(as_data_matrix(X, mask=mask))
    assert not takes(as_data_matrix(X[:90]))
    assert not takes(as_data_matrix(X[:, ::2]))


@pytest.mark.covering(1)
@pytest.mark.parametrize("wide_entries", [0, 1 << 16])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("penalties", [{}, {"alpha_W": 1e-3, "alpha_H": 1e-2, "l1_ratio": 0.5}])
def test_iterations_are_those_of_the_pieces(order, penalties, wide_entries, any_size, pieces, monkeypatch):
    monkeypatch.setattr(fused, "WIDE_ENTRIES", wide_entries)
    X = tables(order)
    options = {"solver": "hals", "init": "random", "rng": 1, "tol": 0.0, "max_iter": 25, "accelerate": False}
    for data in (X, X[:, ::2]):  # the second lies in memory as no task reads it
        found = factorize(data, K, **options, **penalties)
        expected = pieces(lambda data=data: factorize(data, K, **options, **penalties))
        np.testing.assert_allclose(found.history.loss, expected.history.loss, rtol=1e-9)
        np.testing.assert_allclose(found.history["violation"], expected.history["violation"], rtol=1e-5)
        np.testing.assert_allclose(found.W, expected.W, rtol=1e-5, atol=1e-8)


def test_frozen_components_stay(any_size, pieces):
    X = tables()
    H = np.random.default_rng(3).random((K, X.shape[1]))
    options = {"init": "custom", "H": H, "frozen_components": [1], "tol": 0.0, "max_iter": 10}
    found = factorize(X, K, solver="hals", rng=1, **options)
    expected = pieces(lambda: factorize(X, K, solver="hals", rng=1, **options))
    np.testing.assert_array_equal(found.H[1], H[1])
    np.testing.assert_allclose(found.H, expected.H, rtol=1e-6, atol=1e-9)


def test_compressed_data(any_size, pieces):
    data = compressed(as_data_matrix(tables()), 3 * K, dtype=np.float64)
    rng = np.random.default_rng(2)
    state = AlternatingState(*(rng.random((side, K)) for side in data.shape))
    found, expected = [], []
    for losses, run in ((found, lambda function: function()), (expected, pieces)):
        problem = hals_problem(data, K, penalties=Penalties())
        assert run(lambda problem=problem: problem._fused is None) == (run is pieces)
        now = state
        for _ in range(12):
            now, _ = run(lambda problem=problem, now=now: problem.step(now))
            losses.append(now.loss)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_do_not_depend_on_the_number_of_threads(dtype, any_size):
    # To the last digit: rounding decides which extrapolations are accepted.
    rng = np.random.default_rng(1)
    X, factor, other = (rng.random(shape).astype(dtype) for shape in ((330, 40), (330, K), (40, K)))
    gram = other.T @ other
    found = []
    for n_jobs in (1, 2, 5):
        update = FactorUpdate(
            X, 330, K, dtype=dtype, order=range(K), max_passes=3, shrink=0.1, of_new=True, wide=True
        )
        with _threads.threads(n_jobs):
            found.append(update(factor, gram, other, factor, 0.5))
    for updated in found[1:]:
        for part in updated._fields:
            np.testing.assert_array_equal(getattr(updated, part), getattr(found[0], part))
    for updated in found:
        np.testing.assert_allclose(updated.gram, updated.chosen.T @ updated.chosen, rtol=1e-5)
        np.testing.assert_allclose(updated.new_gram, updated.new.T @ updated.new, rtol=1e-5)
        np.testing.assert_allclose(updated.products, X.T @ updated.chosen, rtol=1e-5)
        np.testing.assert_allclose(updated.dot, np.vdot(X @ other, updated.new), rtol=1e-5)
        np.testing.assert_allclose(updated.absolute, np.abs(X @ other).sum(), rtol=1e-5)


@pytest.mark.covering(1)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("accelerate", [False, True])
def test_the_number_of_threads_does_not_change_a_digit(accelerate, order, any_size, monkeypatch):
    # On the way, not only at the end: sixty iterations in float32 would carry a last digit far.
    monkeypatch.setattr(acceleration, "SMALLEST", 0.0)
    rng = np.random.default_rng(0)
    X = np.asarray(rng.gamma(0.5, size=(700, 6)) @ rng.gamma(0.5, size=(6, 150)), order=order)
    X += 0.1 * rng.random(X.shape)
    options = {"init": "random", "rng": 1, "tol": 0.0, "max_iter": 60, "accelerate": accelerate}
    one, *others = (factorize(X, 6, solver="hals", n_jobs=n_jobs, **options) for n_jobs in (1, 2, 7))
    assert one.n_iter == 60
    for other in others:
        np.testing.assert_array_equal(other.history.loss, one.history.loss)
        np.testing.assert_array_equal(other.W, one.W)
        np.testing.assert_array_equal(other.H, one.H)


def test_a_resumed_fit_equals_the_uninterrupted_one(any_size, tmp_path):
    X = tables()
    options = {"solver": "hals", "init": "random", "rng": 1, "tol": 0.0, "max_iter": 20, "accelerate": False}
    whole = factorize(X, K, **options)
    factorize(X, K, checkpoint=tmp_path, callback=lambda progress: progress.n_iter >= 7, **options)
    resumed = factorize(X, K, checkpoint=tmp_path, **options)
    np.testing.assert_array_equal(resumed.W, whole.W)
    np.testing.assert_array_equal(resumed.H, whole.H)


def test_an_iteration_is_handed_over_twice(any_size, monkeypatch):
    calls = []
    run = team.run_at
    monkeypatch.setattr(
        factor_update, "run_at", lambda *args, **named: calls.append(1) or run(*args, **named)
    )
    monkeypatch.setattr(_threads, "parallel_for", lambda *args, **named: pytest.fail("a piece on its own"))
    problem = hals_problem(as_data_matrix(tables()), K, penalties=Penalties())
    rng = np.random.default_rng(2)
    state = AlternatingState(*(rng.random((side, K)) for side in problem.data.shape))
    with _threads.threads(2):
        state, _ = problem.step(state)
        calls.clear()
        for _ in range(5):
            state, _ = problem.advance(state, 0.5)
    assert len(calls) == 10


def test_weights_take_the_other_way():
    X = tables()
    assert hals_problem(as_data_matrix(X[:20, :10]), K, penalties=Penalties())._fused is not None
    weighted = as_data_matrix(X, weights=np.ones(len(X)))
    assert hals_problem(weighted, K, penalties=Penalties())._fused is None


def test_how_data_lie_in_memory():
    X = np.ones((6, 4))
    assert form_of(X) == form_of(X[:, :3]) == (BY_ROWS, 4)
    assert form_of(X[::2]) == (BY_ROWS, 8)
    assert form_of(X.T) == (BY_COLUMNS, 4)
    assert form_of(np.asfortranarray(X)) == (BY_COLUMNS, 6)
    assert form_of(np.asfortranarray(X)[:5]) == (BY_COLUMNS, 6)
    shifted = np.zeros(8 * 24 + 1, dtype=np.uint8)[1:].view(np.float64).reshape(6, 4)
    for other in (X[:, ::2], X[::-1], np.broadcast_to(X[0], (6, 4)), shifted):
        assert form_of(other) is None


@pytest.mark.parametrize("itemsize", [4, 8])
def test_blocks_are_whole_vectors_two_for_each_of_sixteen_threads(itemsize):
    lanes = VECTOR // itemsize
    assert block_of(1, itemsize) == block_of(32 * lanes, itemsize) == lanes
    assert block_of(32 * lanes + 1, itemsize) == 2 * lanes
    assert block_of(32 * LONGEST, itemsize) == block_of(32 * LONGEST + 1, itemsize) == LONGEST
    many = 128 * 2 * LONGEST  # no more than 128 blocks
    assert block_of(many, itemsize) == 2 * LONGEST
    assert block_of(many + 1, itemsize) == 2 * LONGEST + lanes
