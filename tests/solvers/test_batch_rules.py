"""What a turn decides for every restart of a batch, against the rules of single runs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.iteration.captured import WARM_UP
from nonneg.losses.beta import BetaLoss
from nonneg.solvers import alternating, newton
from nonneg.solvers import batch as batch_module
from nonneg.solvers.batch import (
    CEILING,
    CONVERGED,
    FINISHED,
    FIRST,
    LOSS,
    MAX_ITER,
    MOMENTUM,
    N_ITER,
    ROWS,
    Batch,
    Outcome,
    first_batch,
    run_turns,
)
from nonneg.solvers.batched import ARRAYS, batch_size, dense_twin
from nonneg.solvers.batched_alternating import BatchedAlternating
from nonneg.solvers.batched_newton import BatchedNewton, bounded, choose, correlations_of, shared_correlations
from nonneg.solvers.extrapolation import LOWEST_FRACTION

pytestmark = pytest.mark.torch
RESTARTS, USED = 6, 7  # places of the numbers of HALS
MARK, TRIED = 6, 7  # and of those of Newton's method


@pytest.fixture
def data(torch, rng):
    return as_data_matrix(torch.asarray(rng.random((12, 9))))


@pytest.fixture
def hals(torch, data, rng):
    """Four restarts after one turn, and their problem."""
    problem = BatchedAlternating.of(data, 2, max_iter=9, tol=0.0)
    W, Ht = (torch.asarray(rng.random((4, n, 2)) + 0.1) for n in (12, 9))
    batch = problem.begin(W, Ht)
    assert batch.numbers[:3, 0].tolist() == [np.inf, alternating.SCHEDULE.initial, 1.0]
    assert not batch.numbers[3:].any()
    problem.turn(batch)
    return problem, batch


def loss_of(batch, data, at):
    W, Ht = (batch.arrays[name][at].numpy() for name in ("W", "Ht"))
    return 0.5 * np.sum((np.asarray(data.array) - W.T @ Ht) ** 2)


def test_the_first_turn_has_no_momentum_and_takes_its_result(hals, data):
    problem, batch = hals
    numbers = batch.numbers.numpy()
    for at in range(4):
        assert numbers[LOSS, at] == pytest.approx(loss_of(batch, data, at))
        assert batch.history[0, 0, at] == numbers[LOSS, at]
        assert batch.history[1, 0, at] == numbers[FIRST, at] > 0
    assert (numbers[N_ITER] == 1).all()
    assert (numbers[USED] == alternating.SCHEDULE.initial).all()
    assert not numbers[[FINISHED, RESTARTS]].any()
    assert problem.slack == pytest.approx(1e-13 * data.squared_norm())


@pytest.mark.parametrize("rejections", [0, 1, 2, 3])
def test_rejected_turns_slow_down(hals, torch, rejections):
    problem, batch = hals
    before = {name: array.clone() for name, array in batch.arrays.items()}
    batch.numbers[LOSS], batch.numbers[RESTARTS] = -1.0, float(rejections)  # no loss is below that
    used = batch.numbers[USED].clone()
    problem.turn(batch)
    wanted = alternating.SCHEDULE.rejected(float(used[0]), rejections)
    numbers = batch.numbers.numpy()
    np.testing.assert_allclose(numbers[MOMENTUM], wanted.momentum)
    np.testing.assert_allclose(numbers[CEILING], wanted.ceiling)
    np.testing.assert_array_equal(numbers[RESTARTS], wanted.restarts)
    np.testing.assert_array_equal(numbers[LOSS], -1.0)
    np.testing.assert_array_equal(numbers[N_ITER], 1)
    assert not numbers[[USED, FINISHED]].any()
    for name, array in before.items():
        kept = before["Ht"] if name == "Ht_next" else array
        assert torch.equal(batch.arrays[name], kept), name


def test_accepted_turns_speed_up(hals):
    problem, batch = hals
    batch.numbers[RESTARTS], batch.numbers[CEILING] = 2.0, 0.6
    used = float(batch.numbers[USED, 0])
    problem.turn(batch)
    wanted = alternating.SCHEDULE.accepted(used, 0.6)
    numbers = batch.numbers.numpy()
    np.testing.assert_allclose(numbers[[MOMENTUM, USED]], wanted.momentum)
    np.testing.assert_allclose(numbers[CEILING], wanted.ceiling)
    np.testing.assert_array_equal(numbers[RESTARTS], 0)
    np.testing.assert_array_equal(numbers[N_ITER], 2)


def test_a_turn_without_momentum_that_rounding_made_worse_keeps_its_pair(hals, torch):
    problem, batch = hals
    before = {name: batch.arrays[name].clone() for name in ("W", "Ht")}
    batch.numbers[USED], batch.numbers[LOSS] = 0.0, -1.0
    problem.turn(batch)
    numbers = batch.numbers.numpy()
    np.testing.assert_array_equal(numbers[LOSS], -1.0)
    np.testing.assert_array_equal(numbers[N_ITER], 2)  # it counts, and goes on without momentum
    assert not numbers[[MOMENTUM, USED]].any()
    for name, array in before.items():
        assert torch.equal(batch.arrays[name], array)
    assert torch.equal(batch.arrays["W_plain"], before["W"])


def test_restarts_end_by_the_number_of_iterations_or_the_violation(hals):
    problem, batch = hals
    loose = BatchedAlternating(problem.X, problem.squared_norm, problem.passes, 2, 1e9)
    strict = BatchedAlternating(problem.X, problem.squared_norm, problem.passes, 2, 0.0)
    other = batch.take([0, 1])
    strict.turn(batch)
    loose.turn(other)
    assert (batch.numbers[FINISHED] == MAX_ITER).all()
    assert (other.numbers[FINISHED] == CONVERGED).all()
    ended = {name: batch.arrays[name].clone() for name in ("W", "W_plain", "Ht")}
    numbers = batch.numbers.clone()
    strict.turn(batch)
    assert (batch.numbers == numbers).all()
    assert all((batch.arrays[name] == array).all() for name, array in ended.items())


@pytest.fixture
def kl(torch, data, rng):
    """Three restarts, of which the second has data of its own."""
    other = as_data_matrix(torch.asarray(2.0 * rng.random((12, 9))))
    sets = [data, other, data]
    problem = BatchedNewton.of(sets, max_iter=9, tol=1e-3)
    W, Ht = (torch.asarray(rng.random((3, n, 2)) + 0.1) for n in (12, 9))
    return sets, problem, problem.begin(sets, W, Ht)


def test_the_first_state_knows_bounds_and_units_of_its_data(kl):
    sets, problem, batch = kl
    assert problem.X is None
    assert problem.n_rows == 12
    for at, each in enumerate(sets):
        assert batch.arrays["bounds"][at] == BetaLoss.of(each, 1.0).lower_bound
        assert batch.arrays["units"][at] == pytest.approx(float(each.array.sum()) / 12)
        X, W, Ht = (np.asarray(part) for part in (each.array, batch.arrays["W"][at], batch.arrays["Ht"][at]))
        v = W.T @ Ht
        assert batch.numbers[LOSS, at] == pytest.approx(np.sum(X * np.log(X / v) - X + v))
        np.testing.assert_allclose(batch.arrays["total"][at], W.sum(axis=1))
        np.testing.assert_allclose(batch.arrays["gradient"][at], W @ (1 - X / v), rtol=1e-9, atol=1e-9)
        second = np.vstack([W**2, np.ones(12)]) @ (X / v**2)
        np.testing.assert_allclose(batch.arrays["diagonal"][at], second, rtol=1e-9)
        scale = np.maximum(Ht.sum(axis=1) / (X.sum() / 12) @ W, 1e-6)
        np.testing.assert_allclose(batch.arrays["gram"][at], W / scale @ W.T, rtol=1e-9)
        np.testing.assert_allclose(
            batch.arrays["columns"][at], np.sum(X * np.log(X / v) - X + v, axis=0), rtol=1e-9
        )
    assert batch.numbers[CEILING].tolist() == [1.0] * 3
    assert BatchedNewton.of([sets[0]] * 2, 9, 0.0).X is sets[0].array


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("ceiling", [1.0, 0.5])
@pytest.mark.parametrize("outcome", ["good", "stuck", "again"])
def test_rules_are_those_of_a_single_run(kl, torch, momentum, ceiling, outcome):
    _, problem, _ = kl
    numbers = torch.zeros((8, 1), dtype=torch.float64)
    numbers[[MOMENTUM, CEILING, N_ITER, FIRST, MARK, TRIED], 0] = torch.tensor(
        [momentum, ceiling, 3.0, 50.0, 40.0, 2.0], dtype=torch.float64
    )
    good, stuck = (torch.tensor([outcome == name]) for name in ("good", "stuck"))
    found = problem.rules(numbers, torch.tensor([7.0], dtype=torch.float64), good, stuck)[:, 0].tolist()
    if outcome == "good":
        below = not momentum and ceiling < 1.0
        wanted = newton.SCHEDULE.rejected(ceiling) if below else newton.SCHEDULE.accepted(momentum, ceiling)
        assert found[MOMENTUM] == pytest.approx(wanted.momentum)
        assert found[CEILING] == pytest.approx(wanted.ceiling)
    else:
        assert found[MOMENTUM] == 0.0
        assert found[CEILING] == (1.0 if outcome == "stuck" else momentum or ceiling)
    assert found[LOSS] == 7.0
    assert found[N_ITER] == (3 if outcome == "again" else 4)
    assert found[TRIED] == {"good": 0.0, "stuck": newton.TRIES - 1.0, "again": 3.0}[outcome]
    assert (found[FIRST], found[MARK], found[FINISHED]) == (50.0, 40.0, 0.0)


@pytest.mark.parametrize(
    ("n_iter", "loss", "tol", "ended", "mark"),
    [
        (0, 7.0, 1e-3, 0.0, 7.0),  # the first iteration
        (9, 40.0, 1e-3, 0.0, 40.0),  # 10 is no look
        (10, 40.0, 1e-3, CONVERGED, 40.0),  # the second look: nothing was gained since the first
        (10, 30.0, 1e-3, 0.0, 30.0),
        (10, 30.0, 0.5, CONVERGED, 30.0),
        (10, 40.0, 0.0, 0.0, 40.0),
        (29, 40.0, 0.0, MAX_ITER, 40.0),
        (30, 40.0, 1e-3, CONVERGED, 40.0),
    ],
)
def test_the_stopping_rule_looks_every_ten_iterations(data, torch, n_iter, loss, tol, ended, mark):
    problem = BatchedNewton(data.array, 12, 30, tol)
    numbers = torch.zeros((8, 1), dtype=torch.float64)
    numbers[[N_ITER, FIRST, MARK], 0] = torch.tensor([n_iter, 50.0, 40.0], dtype=torch.float64)
    yes, no = torch.tensor([True]), torch.tensor([False])
    found = problem.rules(numbers, torch.tensor([loss], dtype=torch.float64), yes, no)[:, 0]
    assert found[FINISHED] == ended
    assert found[MARK] == (mark if n_iter % 10 == 0 else 40.0)
    assert found[FIRST] == (loss if n_iter == 0 else 50.0)


def test_arrays_of_a_batch_against_numpy(torch, rng):
    new, old = rng.random((2, 3, 4)), 3.0 * rng.random((2, 3, 4))
    momentum = np.array([0.0, 0.8])[:, None, None]
    wanted = np.maximum(new + momentum * (new - old), LOWEST_FRACTION * new)
    found = bounded(*(torch.asarray(part) for part in (new, old, momentum)))
    np.testing.assert_allclose(found, wanted)
    chosen = choose(torch.tensor([True, False]), torch.asarray(new), torch.asarray(old))
    np.testing.assert_array_equal(chosen, [new[0], old[1]])
    A = rng.random((2, 3, 5))
    A[1, 2] = 0.0
    gram = A @ A.swapaxes(1, 2)
    found = correlations_of(torch.asarray(gram)).numpy()
    for at in range(2):
        norms = np.sqrt(np.where(np.diag(gram[at]) > 0, np.diag(gram[at]), 1.0))
        expected = gram[at] / np.outer(norms, norms)
        np.fill_diagonal(expected, 1.0)
        np.testing.assert_allclose(found[at], expected)
    means = rng.random((2, 5)) + 0.1
    means[0, 1] = 0.0
    shared = shared_correlations(torch.asarray(A), torch.asarray(means)).numpy()
    for at in range(2):
        weights = 1 / np.maximum(means[at] / means[at].max(), 1e-6)
        expected = correlations_of(torch.asarray((A[at] * weights @ A[at].T)[None]))[0]
        np.testing.assert_allclose(shared[at], expected, rtol=1e-9)


def test_memory_of_a_batch(torch):
    arrays = {"W": torch.arange(12.0).reshape(3, 2, 2), "Ht": torch.ones((3, 2, 2))}
    numbers = torch.zeros((6, 3), dtype=torch.float64)
    numbers[N_ITER] = torch.tensor([0.0, ROWS + 1.0, 2.0])
    numbers[FINISHED, 2] = 1.0
    batch = first_batch(arrays, numbers, 2)
    assert batch.history.shape == (2, ROWS, 3)
    assert batch.members.tolist() == [0, 1, 2]
    new = numbers + 1.0
    batch.commit({"W": arrays["W"] + 1.0}, new, (torch.tensor([5.0, 6.0, 7.0]).double(), new[0]))
    assert batch.history[0, 0, 0] == 5.0
    assert batch.history[0, 1, 1] == 6.0
    assert batch.history[1, 1, 1] == 1.0
    assert batch.numbers[N_ITER].tolist() == [1.0, ROWS + 2.0, 2.0]
    part = batch.take([2, 0])
    assert part.members.tolist() == [2, 0]
    assert part.numbers[N_ITER].tolist() == [2.0, 1.0]
    assert torch.equal(part.arrays["W"], batch.arrays["W"][[2, 0]])
    assert part.history[0, 0, 1] == 5.0


def test_iterations_since_the_last_look_are_recorded(torch):
    outcome = Outcome(3, 1)
    members = np.array([0, 2])
    numbers, history = np.zeros((6, 2)), np.zeros((1, ROWS, 2))
    history[0, :4] = [[10.0, 20.0], [9.0, 19.0], [8.0, 18.0], [7.0, 17.0]]
    numbers[N_ITER] = [2, 1]
    outcome.record(members, numbers, history, 0.0, 1.0)
    assert outcome.n_iter.tolist() == [2, 0, 1]
    numbers[N_ITER], numbers[FINISHED] = [4, 2], [0.0, CONVERGED]
    outcome.record(members, numbers, history, 1.0, 3.0)
    assert outcome.n_iter.tolist() == [4, 0, 2]
    assert outcome.finished.tolist() == [0.0, 0.0, CONVERGED]
    assert outcome.measures[0, 0, :4].tolist() == [10.0, 9.0, 8.0, 7.0]
    assert outcome.measures[0, 2, :2].tolist() == [20.0, 19.0]
    assert outcome.measures[-1, 0, :4].tolist() == [0.5, 1.0, 2.0, 3.0]
    assert outcome.measures[-1, 2, :2].tolist() == [1.0, 3.0]
    # More iterations than fit are no loss of those before.
    numbers[N_ITER] = [ROWS + 4, 2]
    outcome.record(members, numbers, history, 3.0, 4.0)
    assert outcome.measures.shape[2] == 2 * ROWS
    assert outcome.measures[0, 0, :4].tolist() == [10.0, 9.0, 8.0, 7.0]
    arrays = {"W": torch.arange(8.0).reshape(2, 2, 2), "Ht": torch.ones((2, 2, 2))}
    numbers[LOSS] = [3.0, 4.0]
    outcome.keep(Batch(arrays, None, None, members), numbers, [1])
    W, _, loss = outcome.factors[2]
    assert loss == 4.0
    assert torch.equal(W, arrays["W"][1].T)


@pytest.mark.parametrize("solver", ARRAYS)
def test_a_batch_takes_half_of_the_memory(data, torch, monkeypatch, solver):
    of_X, of_factors = ARRAYS[solver]
    one = 8 * (of_X * 12 * 9 + of_factors * 2 * 21)
    monkeypatch.setattr("nonneg.solvers.batched.free_memory", lambda device: 2 * 7.5 * one)
    assert batch_size(data, solver, 2) == 7
    single = as_data_matrix(data.array.to(torch.float32))
    assert batch_size(single, solver, 2) == 15
    assert dense_twin(data) is data


def scripted_batch(torch, lengths):
    """Restarts that end after given numbers of iterations, and the sizes of the batches of all turns."""
    n = len(lengths)
    arrays = {"W": torch.zeros((n, 1, 2)), "Ht": torch.zeros((n, 1, 3)), "wanted": torch.tensor(lengths)}
    sizes = []

    def turn(batch):
        sizes.append(len(batch.members))
        numbers = batch.numbers.clone()
        numbers[N_ITER] += 1
        numbers[LOSS] = 100.0 - numbers[N_ITER]
        numbers[FINISHED] = torch.where(numbers[N_ITER] >= batch.arrays["wanted"], CONVERGED, 0.0)
        going = (batch.numbers[FINISHED] == 0)[:, None, None]
        W = torch.where(going, batch.arrays["W"] + 1.0, batch.arrays["W"])
        batch.commit({"W": W}, numbers, (numbers[LOSS],))

    return turn, first_batch(arrays, torch.zeros((6, n), dtype=torch.float64), 1), sizes


@pytest.mark.parametrize("lengths", [[3], [5, 5, 1, 9], [1, 2, 3, 40, 4, 5, 6, 7, 8, 150, 2, 3]], ids=str)
def test_turns_go_on_until_all_restarts_have_ended(torch, lengths):
    turn, batch, sizes = scripted_batch(torch, lengths)
    outcome = Outcome(len(lengths), 1)
    assert run_turns(turn, batch, max(lengths), outcome)
    assert outcome.n_iter.tolist() == lengths
    assert outcome.finished.tolist() == [CONVERGED] * len(lengths)
    for member, length in enumerate(lengths):
        W, Ht, loss = outcome.factors[member]
        assert (W.shape, Ht.shape) == ((2, 1), (3, 1))
        assert W.tolist() == [[length], [length]]
        assert loss == 100.0 - length
        assert outcome.measures[0, member, :length].tolist() == [99.0 - at for at in range(length)]
        seconds = outcome.measures[1, member, :length]
        assert (np.diff(seconds) >= 0).all()
    # Large batches shrink once half of the restarts have ended; small ones do not.
    assert (min(sizes) < len(lengths)) == (len(lengths) > batch_module.SMALLEST)
    assert all(size == len(lengths) or 2 * size <= len(lengths) for size in sizes)


def test_turns_are_recorded_on_a_gpu_after_the_first_ones(torch, monkeypatch):
    turn, batch, _ = scripted_batch(torch, [50, 50])
    recorded = []

    def record(launch):
        recorded.append(launch)
        return SimpleNamespace(replay=launch), None

    monkeypatch.setattr(batch_module, "record", record)
    plain = batch_module.Turns(turn, batch)
    numbers, history = plain.run(WARM_UP + 3)
    assert recorded == []
    assert numbers[N_ITER].tolist() == [WARM_UP + 3.0] * 2
    assert history.shape == (1, ROWS, 2)
    assert plain.count == WARM_UP + 3

    class OnGpu(torch.Tensor):
        is_cuda = True

    turn, batch, _ = scripted_batch(torch, [50, 50])
    batch.numbers = batch.numbers.as_subclass(OnGpu)
    turns = batch_module.Turns(turn, batch)
    turns.run(WARM_UP + 3)
    assert len(recorded) == 1
    assert turns.count == WARM_UP + 3


def test_an_interrupted_batch_keeps_what_was_done(torch):
    turn, batch, sizes = scripted_batch(torch, [50, 50])

    def interrupted(batch):
        if len(sizes) == 4:
            raise KeyboardInterrupt
        turn(batch)

    outcome = Outcome(2, 1)
    assert not run_turns(interrupted, batch, 50, outcome)
    assert outcome.n_iter.tolist() == [4, 4]
    assert outcome.finished.tolist() == [0.0, 0.0]
    assert (outcome.factors[1][0] == 4).all()
