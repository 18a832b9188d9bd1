"""Recorded work gives what the function gives; stand-ins for a GPU show when it is recorded."""

from __future__ import annotations

import contextlib
import gc
from dataclasses import dataclass

import numpy as np
import pytest

from nonneg.iteration import captured
from nonneg.iteration.captured import WARM_UP, Captured, record

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class OnGpu(torch.Tensor):
    """A tensor that stands for one on a GPU."""


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    monkeypatch.setattr(captured, "is_cuda_tensor", lambda array: isinstance(array, OnGpu))


@dataclass(frozen=True)
class Factors:
    W: torch.Tensor
    Ht: torch.Tensor
    loss: float = 0.0


def on_gpu(*shape, value=1.0):
    return torch.full(shape, value).as_subclass(OnGpu)


def scaled(state, *numbers):
    return {"W": state.W * numbers[0] + numbers[1], "Ht": None}


@pytest.fixture
def recorded(monkeypatch):
    """Graphs that run the function again, and the pools that they were given."""
    pools = []

    class Graph:
        def __init__(self, launch, results):
            self.launch, self.results = launch, results

        def replay(self):
            self.results["W"].copy_(self.launch()["W"])

        def pool(self):
            return f"pool {len(pools)}"

    def stand_in(launch, pool=None):
        pools.append(pool)
        results = launch()
        return Graph(launch, results), results

    monkeypatch.setattr(captured, "record", stand_in)
    return pools


def test_nothing_is_recorded_on_a_processor(recorded):
    work = Captured()
    for at in range(WARM_UP + 2):
        changes = work(scaled, Factors(torch.ones((3, 1)), torch.zeros((2, 1))), 2.0, float(at))
        np.testing.assert_array_equal(np.asarray(changes["W"]), 2.0 + at)
    assert recorded == []


def test_later_calls_are_replayed_with_their_own_arrays_and_numbers(recorded):
    work, results = Captured(), []
    for at in range(5):
        state = Factors(on_gpu(3, 1, value=1.0 + at), on_gpu(2, 1), loss=float(at))
        results.append(work(scaled, state, 2.0, 10.0 * (at + 1)))
        # Two calls as they are, and then one graph for all others.
        assert len(recorded) == (0 if at < WARM_UP else 1)
    for at, changes in enumerate(results):
        np.testing.assert_array_equal(np.asarray(changes["W"]), 2.0 * (1.0 + at) + 10.0 * (at + 1))
        assert changes["Ht"] is None
    # Without a momentum there is a graph of its own, in the memory of the first.
    for _ in range(WARM_UP + 1):
        work(scaled, Factors(on_gpu(3, 1), on_gpu(2, 1)), 1.0, 0.0)
    assert recorded == [None, "pool 1"]


def test_what_cannot_be_recorded_is_called_each_time(monkeypatch):
    tries, calls = [], []
    monkeypatch.setattr(captured, "record", lambda launch, pool=None: tries.append(1) or (False, None))
    work = Captured()
    for _ in range(WARM_UP + 3):
        work(lambda *given: calls.append(1) or scaled(*given), Factors(on_gpu(3, 1), on_gpu(2, 1)), 2.0, 1.0)
    assert len(calls) == WARM_UP + 3
    assert len(tries) == 1


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("collects", [False, True])
def test_no_garbage_is_collected_while_recording(monkeypatch, fails, collects):
    events = []

    class Stream:
        def wait_stream(self, other):
            events.append("wait")

    class Graph:
        def capture_begin(self, **options):
            events.append("begin")

        def capture_end(self):
            events.append("end")

    monkeypatch.setattr(captured, "_side_stream", lambda device: Stream())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: Stream())
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())

    def launch():
        events.append(gc.isenabled())
        if fails:
            raise RuntimeError("operation not permitted when stream is capturing")
        return "found"

    was_enabled = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        graph, result = record(launch)
        assert gc.isenabled() == collects
    finally:
        (gc.enable if was_enabled else gc.disable)()
    assert events == ["wait", "begin", False, "end", "wait"]
    assert (graph is False, result) == ((True, None) if fails else (False, "found"))
