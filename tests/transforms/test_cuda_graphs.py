"""Iterations with few trials, made again where a search has not ended, equal those that read every time."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest

from nonneg.datasets import gaussian_composite
from nonneg.transforms import cuda_graphs, dispatch
from nonneg.transforms.covariances import frame_covariances
from nonneg.transforms.cuda_graphs import GraphedStep
from nonneg.transforms.dispatch import ARRAY_STEPS
from nonneg.transforms.initialization import initial_state
from nonneg.transforms.options import method_options
from nonneg.transforms.rotations import line_search
from nonneg.transforms.state import REORTHOGONALIZATION_PERIOD, TransformState

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def problem(n_realizations, n_init=4):
    Y = torch.asarray(gaussian_composite(n_realizations, 13, 6, 3, rng=0).Y)
    data = frame_covariances(Y)
    return data, initial_state(data, 3, init=None, n_init=n_init, rng=0)


@pytest.mark.covering(1)
@pytest.mark.parametrize("method", ["tl", "jd"])
@pytest.mark.parametrize(("n_realizations", "trials"), [(1, (1,)), (1, (1, 2, 4)), (20, (1, 2))])
def test_the_numbers_are_those_of_the_reading_way(method, n_realizations, trials, monkeypatch):
    monkeypatch.setattr(cuda_graphs, "TRIALS", trials)
    data, state = problem(n_realizations)
    options = method_options(method, eps0=1e-8, n_nmf_updates=2)
    advance = GraphedStep(ARRAY_STEPS[method], data, options, retries=True, skip_failed=method == "jd")
    steps = []
    for _ in range(6):
        new, measures = advance(state)
        expected, values = ARRAY_STEPS[method](state, data, options)
        for name in ("transform", "frames", "activations", "components"):
            np.testing.assert_allclose(getattr(new, name), getattr(expected, name), rtol=1e-9, atol=1e-10)
        for name in values:
            np.testing.assert_allclose(measures[name], values[name], rtol=1e-9, atol=1e-10)
        assert new.n_done == state.n_done + 1
        steps += measures["step"].tolist()
        state = new
    # Longer and shorter steps were among them where there is one realization.
    assert n_realizations > 1 or min(steps) < 1


def test_a_restart_that_is_done_is_not_searched_again(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "TRIALS", (1,))
    # As if rounding were not known: searches at the end then fail after the most trials.
    monkeypatch.setattr(line_search, "NOISE", 0.0)
    data, state = problem(300, n_init=2)
    calls = []

    def counted(part, *rest):
        calls.append((part.batch, rest[1].synchronize))
        return ARRAY_STEPS["jd"](part, *rest)

    advance = GraphedStep(counted, data, method_options("jd", eps0=1e-8), retries=True, skip_failed=True)
    for _ in range(24):
        state, measures = advance(state)
    assert not measures["step"].any()
    calls.clear()
    # The first iteration after a re-orthogonalization searches again; the next ones do not.
    for _ in range(5):
        state, measures = advance(state)
    assert sum(synchronize for _, synchronize in calls) <= 1
    assert not measures["search_succeeded"].any()


def test_more_trials_are_made_where_needed_and_fewer_again_later(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "PATIENCE", 2)
    data, state = problem(1)
    advance = GraphedStep(
        ARRAY_STEPS["tl"], data, method_options("tl", eps0=1e-8), retries=True, skip_failed=False
    )
    for _ in range(6):
        state, measures = advance(state)
        assert measures["search_succeeded"].all()
    # With one realization, first steps are too long.
    needed = advance.level
    assert needed >= 1
    advance.level = len(advance.trials) - 1
    for _ in range(12):
        state, measures = advance(state)
    assert advance.level < len(advance.trials) - 1


def test_a_few_that_need_more_trials_make_them_alone(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "SMALLEST_PART", 2)
    monkeypatch.setattr(cuda_graphs, "FEW", 1.0)
    monkeypatch.setattr(cuda_graphs, "LATE", 100)
    data, state = problem(1, n_init=12)
    sizes = []

    def counted(part, *rest):
        sizes.append(part.batch)
        return ARRAY_STEPS["tl"](part, *rest)

    options = method_options("tl", eps0=1e-8, n_nmf_updates=2)
    advance = GraphedStep(counted, data, options, retries=True, skip_failed=False)
    advance.level = 0
    for _ in range(15):
        new, measures = advance(state)
        expected, values = ARRAY_STEPS["tl"](state, data, options)
        np.testing.assert_allclose(new.transform, expected.transform, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(measures["loss"], values["loss"], rtol=1e-9)
        state = new
    assert set(sizes) > {12}
    assert advance.level == 0


class Scripted:
    """Restarts whose line search needs a given number of trials; notes who was tried with how many."""

    def __init__(self, need):
        self.need, self.calls = np.asarray(need), []

    def __call__(self, state, data, options):
        self.calls.append((state.restarts.tolist(), options.max_trials, options.synchronize))
        succeeded = self.need[state.restarts] <= options.max_trials
        moved = state.transform + succeeded[:, None, None] * 1.0
        measures = {
            "search_succeeded": succeeded.astype(float),
            "trials": options.max_trials * np.ones(state.batch),
        }
        return replace(state, transform=moved, n_done=state.n_done + 1), measures


def scripted(need, **options):
    step = Scripted(need)
    options = {"retries": True, "skip_failed": False} | options
    n = len(need)
    state = TransformState(np.zeros((n, 2, 2)), np.zeros((n, 3, 2)), None, None, np.arange(n))
    return step, GraphedStep(step, None, method_options("tl", eps0=1e-8), **options), state


def test_a_batch_begins_with_two_trials():
    step, advance, state = scripted([1, 2])
    assert advance.trials == [1, 2, 3, 5, 8]
    new, measures = advance(state)
    assert step.calls == [([0, 1], 2, False)]
    assert measures["search_succeeded"].tolist() == [1.0, 1.0]
    np.testing.assert_array_equal(new.transform, 1.0)


def test_many_that_have_not_ended_take_all_to_more_trials():
    step, advance, state = scripted([1, 5, 5])
    _, measures = advance(state)
    assert [trials for _, trials, _ in step.calls] == [2, 3, 5]
    assert advance.level == 3
    assert measures["search_succeeded"].all()


def test_a_few_go_up_two_levels_at_a_time_and_end_with_all_trials():
    # One of 16 are few.
    step, advance, state = scripted([1] * 15 + [20])
    new, measures = advance(state)
    again = [call for call in step.calls if call[0] != list(range(16))]
    assert [(set(who), trials, reads) for who, trials, reads in again] == [
        ({15}, 5, False), ({15}, 8, False), ({15}, 20, True)
    ]  # fmt: skip
    assert again[-1][0] == [15]
    assert advance.level == 1
    np.testing.assert_array_equal(new.transform, 1.0)
    assert measures["trials"].tolist() == [2.0] * 15 + [20.0]


def test_few_that_are_late_again_and_again_take_all_along(monkeypatch):
    step, advance, state = scripted([1] * 15 + [3])
    levels = []
    for _ in range(cuda_graphs.LATE + 1):
        state, _ = advance(state)
        levels.append(advance.level)
    assert levels == [1] * cuda_graphs.LATE + [2]
    # Where fewer were too few, they are tried again after twice the time.
    step.need = np.ones(16)
    for _ in range(2 * cuda_graphs.PATIENCE - 1):
        state, _ = advance(state)
    assert advance.level == 2
    state, _ = advance(state)
    state, _ = advance(state)
    assert advance.level == 1


def test_fewer_trials_are_tried_after_a_while_down_to_one():
    _, advance, state = scripted([1, 1])
    levels = []
    for _ in range(2 * cuda_graphs.PATIENCE + 4):
        state, _ = advance(state)
        levels.append(advance.level)
    assert levels[: cuda_graphs.PATIENCE] == [1] * cuda_graphs.PATIENCE
    assert levels[cuda_graphs.PATIENCE :] == [0] * (cuda_graphs.PATIENCE + 4)


@pytest.mark.parametrize("skip_failed", [False, True])
def test_searches_that_cannot_succeed_are_left_out_until_the_next_period(skip_failed):
    step, advance, state = scripted([1] * 31 + [99], skip_failed=skip_failed)
    advance.level = 4
    reading = []
    for _ in range(REORTHOGONALIZATION_PERIOD + 1):
        step.calls.clear()
        state, measures = advance(state)
        reading.append(sum(reads for *_, reads in step.calls))
        assert measures["search_succeeded"].tolist() == [1.0] * 31 + [0.0]
    expected = [1] + [0] * (REORTHOGONALIZATION_PERIOD - 1) + [1]
    assert reading == (expected if skip_failed else [1] * (REORTHOGONALIZATION_PERIOD + 1))


def test_without_retries_there_is_one_number_of_trials():
    step, advance, state = scripted([1, 99], retries=False)
    _, measures = advance(state)
    assert step.calls == [([0, 1], 20, False)]
    assert measures["search_succeeded"].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("n", "batch", "size"), [(1, 500, 64), (64, 500, 64), (65, 500, 256), (65, 100, 100)]
)
def test_few_restarts_are_padded_to_one_of_a_few_sizes(n, batch, size):
    rows = np.arange(n) + 7
    found = cuda_graphs._padded(rows, batch)
    assert len(found) == size
    np.testing.assert_array_equal(found[:n], rows)
    np.testing.assert_array_equal(found[n:], rows[-1])


class OnGpu(np.ndarray):
    """An array that says it is on a GPU."""

    is_cuda = True


def test_graphs_are_kept_by_size_and_number_of_trials(monkeypatch):
    made = []

    class Captured:
        def __init__(self, step, data, options, state):
            made.append((state.batch, options.max_trials))
            self.step, self.data, self.options = step, data, options

        def __call__(self, state):
            return self.step(state, self.data, self.options)

    monkeypatch.setattr(cuda_graphs, "_CapturedStep", Captured)
    _, advance, state = scripted([1] * 6)
    state = replace(state, transform=state.transform.view(OnGpu))
    for level in (None, None, 3):
        advance.fixed_step(state, level)
    assert made == [(6, 2), (6, 5)]
    advance.fixed_step(state.part(slice(0, 2)))
    # Batches only become smaller: graphs of larger ones are released.
    assert list(advance._graphs) == [(2, 1)]
    advance.fixed_step(state, 3)
    advance.fixed_step(state.part(slice(0, 4)), 3)
    assert sorted(advance._graphs) == [(2, 1), (4, 3), (6, 3)]


def test_a_captured_step_reads_and_writes_its_own_memory(monkeypatch):
    class Stream:
        def wait_stream(self, other):
            pass

    class Graph:
        def replay(self):
            outer.replayed += 1

    outer = type("Outer", (), {"replayed": 0})
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    for name in ("stream", "graph"):
        monkeypatch.setattr(torch.cuda, name, lambda given: contextlib.nullcontext())
    calls = []

    def step(state, data, options):
        calls.append(state)
        moved = replace(state, transform=state.transform + 1.0, frames=state.frames + 2.0)
        return moved, {"loss": torch.tensor([3.0, 4.0]), "step": torch.tensor([0.5, 1.0])}

    state = TransformState(torch.zeros((2, 2, 2)), torch.zeros((2, 3, 2)), None, None, np.arange(2), 7)
    captured = cuda_graphs._CapturedStep(step, None, None, state)
    assert len(calls) == cuda_graphs.WARM_UP + 1
    new, measures = captured(replace(state, transform=torch.ones((2, 2, 2))))
    assert outer.replayed == 1
    assert len(calls) == cuda_graphs.WARM_UP + 1
    assert calls[-1].transform.min() == 1.0  # what the graph reads is what was given
    assert state.transform.max() == 0.0
    assert new.n_done == 8
    assert (new.activations, new.components) == (None, None)
    assert new.frames.tolist() == torch.full((2, 3, 2), 2.0).tolist()
    assert {name: values.tolist() for name, values in measures.items()} == {
        "loss": [3.0, 4.0],
        "step": [0.5, 1.0],
    }
    again, _ = captured(state)
    assert again.frames is not new.frames


@pytest.mark.parametrize(
    ("method", "options", "fused", "retries"),
    [
        ("nmf", {}, False, False),
        ("tl", {}, False, True),
        ("tl", {}, True, False),
        ("tl", {"objective": "I"}, True, True),
        ("jd", {}, True, False),
        ("jd", {}, False, True),
    ],
)
def test_searches_of_kernels_end_by_themselves(monkeypatch, method, options, fused, retries):
    monkeypatch.setattr(dispatch, "has_fused_line_search", lambda *given, learning: fused)
    given = method_options("tl" if method == "nmf" else method, eps0=1e-8, **options)
    assert dispatch._may_retry(method, None, given) is retries


def test_batches_on_a_gpu_are_graphs(monkeypatch):
    data, _ = problem(1)
    options = method_options("tl", eps0=1e-8)
    assert not isinstance(dispatch.batch_step("tl", data, options), GraphedStep)
    on_gpu = replace(data, virtual=np.asarray(data.virtual).view(OnGpu))
    monkeypatch.setattr(dispatch, "compiled_step", lambda *given: None)
    for method in ("tl", "jd"):
        found = dispatch.batch_step(method, on_gpu, method_options(method, eps0=1e-8))
        assert isinstance(found, GraphedStep)
        assert (found.skip_failed, found.retries) == (method == "jd", True)
    assert not isinstance(dispatch.batch_step("tl", on_gpu, replace(options, synchronize=False)), GraphedStep)
