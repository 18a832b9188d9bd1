"""Turns that are settled where the data are end as iterations do; here by a stand-in for the kernel."""

from __future__ import annotations

import contextlib
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.iteration import RelativeMeasure
from nonneg.iteration.loop import Stalled
from nonneg.losses.penalties import Penalties
from nonneg.solvers import alternating, device
from nonneg.solvers.alternating import SCHEDULE, AlternatingState
from nonneg.solvers.device import DeviceProblem
from nonneg.solvers.hals import hals_problem

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
K = 3


def settle(numbers, pending, rules, history, loss, violation, of_W, of_Ht):
    """Decide and commit as the kernel does, in plain Python."""
    growth, ceiling_growth, decay, most, slack, tol, given, max_iter, _ = rules.tolist()
    before, momentum, ceiling, restarts, _, used, n_iter, finished, first = numbers[:9].tolist()
    if finished:
        return
    (W, W_plain, chosen, new), (Ht, begin, new_Ht, next_Ht) = of_W, of_Ht
    numbers[device.RETRY] = float(used > 0 and loss > before)
    if used > 0 and loss > before:
        momentum = 0.0 if restarts + 1 >= most else used / decay
        changed = [before, momentum, used, restarts + 1, 1.0, 0.0, n_iter, 0.0, first]
        numbers[:9] = torch.tensor(changed, dtype=torch.float64)
        begin.copy_(Ht)
        return
    if used > 0:
        ceiling, restarts = min(1.0, ceiling_growth * ceiling), 0.0
        momentum = min(growth * used, ceiling)
    worse = loss > before + slack
    if worse:
        momentum = 0.0
        begin.copy_(Ht)
        W_plain.copy_(W)
    else:
        W.copy_(chosen)
        W_plain.copy_(new)
        Ht.copy_(new_Ht)
        begin.copy_(next_Ht if momentum > 0 else new_Ht)
    first = violation if first < 0 else first
    ended = n_iter + 1 >= max_iter or (tol > 0 and violation <= tol * max(first, given))
    loss = before if worse else loss
    history[int(n_iter) % 64] = torch.tensor([loss, violation])
    changed = [loss, momentum, ceiling, restarts, 0.0, momentum, n_iter + 1, float(ended), first]
    numbers[:9] = torch.tensor(changed, dtype=torch.float64)


@pytest.fixture
def problem_of(monkeypatch):
    """Return problems on the processor that run as on a GPU."""
    monkeypatch.setattr(alternating, "extrapolates", lambda momentum: True)
    stand_in = SimpleNamespace(settle=settle, ROWS=64, is_available=lambda: True)

    def made(max_iter=50, tol=0.0, *, each=True, **fields):
        X = np.random.default_rng(0).random((14, 9))
        data = as_data_matrix(torch.asarray(X))
        problem = hals_problem(data, K, penalties=Penalties(0.01, 0.02, 0.03, 0.04), passes=(2, 2))
        rng = np.random.default_rng(1)
        W, Ht = (data.to_device(rng.random((n, K))) for n in (14, 9))
        state = AlternatingState(W, Ht, momentum=SCHEDULE.initial, **fields)
        found = DeviceProblem(problem, RelativeMeasure("violation", tol), max_iter, each=each)
        found.safeguard = stand_in
        return found, problem, state

    return made


def plain_states(monkeypatch, problem, state, n):
    with monkeypatch.context() as patch:
        patch.setattr(alternating, "extrapolates", lambda momentum: momentum != 0.0)
        found = []
        for _ in range(n):
            state, measures = problem.step(state)
            found.append((state, measures))
        return found


@pytest.mark.parametrize("each", [False, True])
def test_turns_make_the_iterations_of_a_processor(problem_of, monkeypatch, each):
    on_device, problem, state = problem_of(max_iter=25, each=each)
    given = state.W.clone()
    expected = plain_states(monkeypatch, problem, state, 25)
    rows, kept = [], []
    while len(rows) < 25:
        state, measures = on_device.step(state)
        if each:
            assert len(measures) == 1
        rows += measures
        kept.append((len(rows), state, state.W.clone()))
        assert state.n_iter == on_device.n_iter == len(rows)
        wanted = expected[len(rows) - 1][0]
        torch.testing.assert_close(state.W, wanted.W, rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(state.Ht, wanted.Ht, rtol=1e-7, atol=1e-9)
        assert (state.momentum, state.ceiling) == pytest.approx((wanted.momentum, wanted.ceiling))
    for found, (_, measures) in zip(rows, expected, strict=True):
        assert found == pytest.approx(measures, rel=1e-6, abs=1e-9)
    assert torch.equal(given, problem_of()[2].W)  # what was given is not written to
    if each:
        # One who looks at every iteration may keep what he sees.
        assert all(torch.equal(one.W, then) for _, one, then in kept)
    # After the end nothing is left to do.
    with pytest.raises(Stalled):
        on_device.step(state)


def test_a_run_goes_on_where_it_was(problem_of):
    whole, _, state = problem_of()
    for _ in range(6):
        state, measures = whole.step(state)
    first, _, other = problem_of()
    for _ in range(3):
        other, _ = first.step(other)
    second, _, _ = problem_of()
    for _ in range(3):
        other, again = second.step(other)
    assert other.n_iter == 6
    assert again == [pytest.approx(measures[0])]
    torch.testing.assert_close(other.W, state.W)


def test_a_run_ends_by_its_rule(problem_of):
    on_device, _, state = problem_of(max_iter=900, tol=0.2, each=False)
    rows = []
    with contextlib.suppress(Stalled):
        while True:
            state, measures = on_device.step(state)
            rows += measures
    violations = [row["violation"] for row in rows]
    assert violations[-1] <= 0.2 * violations[0] < min(violations[:-1])
    assert state.first == pytest.approx(violations[0])


@pytest.mark.parametrize(
    ("each", "seconds", "turns"),
    [(True, 1e-9, 1), (False, math.inf, 1), (False, 1e-3, 4), (False, 1e-9, device.MOST_TURNS)],
)
def test_turns_between_two_looks_take_some_milliseconds(problem_of, monkeypatch, each, seconds, turns):
    on_device, _, state = problem_of(max_iter=900, each=each)
    looks, launches = [], []
    launch, read = DeviceProblem._launch, DeviceProblem._read
    monkeypatch.setattr(DeviceProblem, "_launch", lambda self: launches.append(1) or launch(self))
    monkeypatch.setattr(DeviceProblem, "_read", lambda self: looks.append(len(launches)) or read(self))
    on_device.seconds = seconds
    on_device.step(state)
    assert looks[0] == turns
    # A rejected turn is followed by its repetition.
    assert all(after == before + 1 for before, after in itertools.pairwise(looks))
    assert 0 < on_device.seconds < 10


def test_ctrl_c_is_raised_after_what_was_done(problem_of, monkeypatch):
    on_device, _, state = problem_of(each=False)
    state, _ = on_device.step(state)
    launch, count = DeviceProblem._launch, []

    def interrupted(self):
        count.append(1)
        if len(count) == 3:
            raise KeyboardInterrupt
        launch(self)

    monkeypatch.setattr(DeviceProblem, "_launch", interrupted)
    on_device.seconds = 1e-9
    state, measures = on_device.step(state)
    assert 1 <= len(measures) <= 3
    assert state.n_iter == 1 + len(measures)
    with pytest.raises(KeyboardInterrupt):
        on_device.step(state)


@pytest.mark.parametrize(("turns", "captures"), [(device.WARM_UP, 0), (device.WARM_UP + 1, 1), (9, 1)])
def test_turns_are_recorded_after_the_first_ones(problem_of, monkeypatch, turns, captures):
    on_device, _, state = problem_of()
    on_device._begin(state)
    recorded = []

    def record(launch):
        graph = SimpleNamespace(replay=launch)
        recorded.append(graph)
        return graph, None

    monkeypatch.setattr(device, "record", record)
    monkeypatch.setattr(DeviceProblem, "_captures", lambda self: True)
    for _ in range(turns):
        on_device._turn()
    assert len(recorded) == captures
    assert on_device._read()[0][device.N_ITER] >= turns // 2


def test_long_turns_and_other_containers_are_not_recorded(problem_of):
    on_device, _, state = problem_of()
    on_device._begin(state)
    on_device.buffers = SimpleNamespace(W=SimpleNamespace(is_cuda=True))
    for container, seconds, expected in (
        ("array", 1e-3, True), ("sparse-array", 1e-3, True), ("array", 3e-3, False), ("dask", 1e-3, False)
    ):  # fmt: skip
        on_device.problem = SimpleNamespace(data=SimpleNamespace(container=container))
        on_device.seconds = seconds
        assert on_device._captures() is expected


def test_there_is_no_such_problem_on_a_processor(problem_of):
    _, problem, _ = problem_of()
    assert DeviceProblem.of(problem, RelativeMeasure("violation"), 9, each=True) is None


def test_buffers_are_copies_in_the_order_of_components():
    array = torch.arange(6.0).reshape(2, 3)
    copy = device._copy(array)
    assert torch.equal(copy, array)
    assert copy.T.is_contiguous()
    assert copy.data_ptr() != array.data_ptr()
    assert device._flat(copy) is copy
    assert device._flat(array).T.is_contiguous()
