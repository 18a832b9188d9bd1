"""Recorded work gives what the function gives; stand-ins for a GPU show when it is recorded."""

from __future__ import annotations

import contextlib
import gc

import numpy as np
import pytest

from nonneg.iteration import captured
from nonneg.iteration.captured import WARM_UP, Captured, factor_entries, record

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class OnGpu(torch.Tensor):
    """A tensor that says it is on a GPU."""

    is_cuda = True


def scaled(kind, arrays, numbers):
    return [arrays[0] * numbers[0] + numbers[1], arrays[1] - numbers[1]]


@pytest.fixture
def recorded(monkeypatch):
    """Graphs that run the function again, and the pools that they were given."""
    pools = []

    class Graph:
        def __init__(self, launch, results):
            self.launch, self.results = launch, results

        def replay(self):
            for old, new in zip(self.results, self.launch(), strict=True):
                old.copy_(new)

        def pool(self):
            return f"pool {len(pools)}"

    def stand_in(launch, pool=None):
        pools.append(pool)
        results = launch()
        return Graph(launch, results), results

    monkeypatch.setattr(captured, "record", stand_in)
    return pools


def test_the_larger_factor_counts():
    assert factor_entries(np.ones((7, 2)), np.ones((5, 2))) == 14
    assert factor_entries(np.ones((3, 2)), np.ones((5, 2))) == 10


def test_nothing_is_recorded_on_a_processor(recorded):
    work = Captured()
    seen = []

    def function(kind, arrays, numbers):
        seen.append((kind, [number.dtype for number in numbers], [float(number) for number in numbers]))
        return scaled(kind, arrays, numbers)

    for at in range(WARM_UP + 2):
        found = work(function, "a", [torch.ones(3), torch.zeros(2)], [2.0, float(at)])
        assert torch.equal(found[0], torch.full((3,), 2.0 + at))
    assert seen[1] == ("a", [torch.float64] * 2, [2.0, 1.0])
    assert len(seen) == WARM_UP + 2
    assert recorded == []


def test_later_calls_are_replayed_with_their_own_arrays_and_numbers(recorded):
    work, results, calls = Captured(), [], []

    def function(kind, arrays, numbers):
        calls.append(kind)
        return scaled(kind, arrays, numbers)

    for at in range(5):
        arrays = [torch.full((3,), 1.0 + at).as_subclass(OnGpu), torch.arange(2.0)]
        results.append(work(function, "a", arrays, [2.0, 10.0 * at]))
        # Two calls as they are, and then one graph for all others.
        assert len(recorded) == (0 if at < WARM_UP else 1)
    for at, (first, second) in enumerate(results):
        np.testing.assert_array_equal(np.asarray(first), 2.0 * (1.0 + at) + 10.0 * at)
        np.testing.assert_array_equal(np.asarray(second), np.arange(2.0) - 10.0 * at)
    # Work of another kind has a graph of its own, in the memory of the first.
    for _ in range(WARM_UP + 1):
        work(function, "b", [torch.ones(2).as_subclass(OnGpu), torch.ones(2)], [1.0, 0.0])
    assert recorded == [None, "pool 1"]


def test_what_cannot_be_recorded_is_called_each_time(monkeypatch):
    tries, calls = [], []
    monkeypatch.setattr(captured, "record", lambda launch, pool=None: tries.append(1) or (False, None))
    work = Captured()
    for _ in range(WARM_UP + 3):
        work(
            lambda *given: calls.append(1) or scaled(*given),
            "a", [torch.ones(3).as_subclass(OnGpu), torch.ones(2)], [2.0, 1.0],
        )  # fmt: skip
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
