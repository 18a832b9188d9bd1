"""Work on a GPU that is recorded as a CUDA graph: starting it again takes the host no time."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from nonneg._arrays import is_cuda_tensor

# Calls before a function is recorded: the first ones compile kernels and let cuBLAS choose.
WARM_UP = 2
# Entries of the larger factor up to which an iteration is recorded: beyond, launches take less time than the
# work, and a recording holds the factors once more.
RECORDED_ENTRIES = 1 << 22


def factor_entries(state: Any) -> int:
    """Return the number of entries of the larger factor."""
    return int(max(state.W.shape[0], state.Ht.shape[0]) * state.Ht.shape[1])


@lru_cache(maxsize=8)
def _side_stream(device: int) -> Any:
    """Return the stream on which all graphs of a device are recorded."""
    # One only: cuBLAS keeps 32 megabytes for every stream it has worked on, and never frees them. Taken here,
    # they are no part of the memory of a graph.
    import torch

    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        one = torch.ones((2, 2), device=stream.device)
        torch.mm(one, one)
    return stream


def record(launch: Callable[[], Any], pool: Any = None) -> tuple[Any, Any]:
    """Return a graph of what a function starts, and what it returns; False if something needs the host."""
    import torch

    graph, stream = torch.cuda.CUDAGraph(), _side_stream(torch.cuda.current_device())
    stream.wait_stream(torch.cuda.current_stream())
    result: Any = None
    collects = gc.isenabled()
    gc.disable()  # graphs of earlier fits must not be freed meanwhile
    try:
        with torch.cuda.stream(stream), warnings.catch_warnings():
            # What only passes on its arguments is recorded, too.
            warnings.filterwarnings("ignore", message="The CUDA Graph is empty")
            try:
                graph.capture_begin(pool=pool, capture_error_mode="thread_local")
                try:
                    result = launch()
                finally:
                    graph.capture_end()
            except RuntimeError:
                graph = False
    finally:
        if collects:
            gc.enable()
    torch.cuda.current_stream().wait_stream(stream)
    return graph, result


@dataclass(frozen=True)
class _Recording:
    """A graph with the memory that it reads and writes."""

    graph: Any
    inputs: list[Any]
    numbers: list[Any]
    outputs: dict[str, Any]


# Returns new arrays by name, given a state and numbers.
Function = Callable[..., dict[str, Any]]


class Captured:
    """The recordings of a function of a state of arrays and of numbers, where launches take the longest."""

    # Results are copies: the recorded ones are written again by the next call. The function is not kept: it
    # may belong to who keeps this, and such circles are freed at any time. It uses no numbers of the state,
    # and a number that is zero is not on the GPU.

    def __init__(self) -> None:
        self._calls: dict[Hashable, int] = {}
        self._recordings: dict[Hashable, _Recording | None] = {}
        self._pool: Any = None

    def __call__(self, function: Function, state: Any, *numbers: float) -> dict[str, Any]:
        """Call the function."""
        if not is_cuda_tensor(state.W) or factor_entries(state) > RECORDED_ENTRIES:
            return function(state, *numbers)
        arrays = {item.name: getattr(state, item.name) for item in fields(state)}
        arrays = {name: array for name, array in arrays.items() if is_cuda_tensor(array)}
        kind = function.__name__, tuple(arrays), tuple(number != 0 for number in numbers)
        if kind not in self._recordings and self._calls.get(kind, 0) >= WARM_UP:
            self._recordings[kind] = self._record(function, state, arrays, numbers)
        self._calls[kind] = self._calls.get(kind, 0) + 1
        recording = self._recordings.get(kind)
        if recording is None:
            return function(state, *_on_device(numbers, state.W.device))
        for place, array in zip(recording.inputs, arrays.values(), strict=True):
            place.copy_(array)
        for place, number in zip(recording.numbers, numbers, strict=True):
            if number:
                place.fill_(number)
        recording.graph.replay()
        return {name: array if array is None else array.clone() for name, array in recording.outputs.items()}

    def _record(
        self, function: Function, state: Any, arrays: dict[str, Any], numbers: Sequence[float]
    ) -> _Recording | None:
        inputs = {name: array.clone() for name, array in arrays.items()}
        places = _on_device(numbers, state.W.device)
        held = replace(state, **inputs)
        graph, outputs = record(lambda: function(held, *places), self._pool)
        if not graph:
            return None
        self._pool = self._pool or graph.pool()
        return _Recording(graph, list(inputs.values()), places, outputs)


def _on_device(numbers: Sequence[float], device: Any) -> list[Any]:
    import torch

    return [
        torch.full((), number, dtype=torch.float64, device=device) if number else 0.0 for number in numbers
    ]
