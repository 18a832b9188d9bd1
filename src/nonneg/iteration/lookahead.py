"""Iterations that never increase the loss; on a GPU the next one is queued before the loss is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from nonneg._arrays import on_gpu, to_torch

# Entries of the larger factor up to which the next iteration is queued: both are in memory then. At this size
# each of its copies takes 32 megabytes in float32.
AHEAD_ENTRIES = 1 << 23
# The measures that a state may carry.
MEASURES = ("loss", "violation")


class DeviceNumber:
    """A number on a GPU whose copy to the host is on its way; `float` waits for it, not for later work."""

    def __init__(self, tensor: Any) -> None:
        import torch

        self._host, self._done = tensor, None
        if tensor.is_cuda:
            self._host = torch.empty((), dtype=tensor.dtype, pin_memory=True)
            self._host.copy_(tensor, non_blocking=True)
            self._done = torch.cuda.Event()
            self._done.record()

    def __float__(self) -> float:
        if self._done is not None:
            self._done.synchronize()
        return float(self._host)


def read_later(value: Any) -> Any:
    """Return a number as a float, or as a `DeviceNumber` if it is on a GPU."""
    if isinstance(value, DeviceNumber):
        return value
    return DeviceNumber(to_torch(value)) if on_gpu(value) else float(value)


class Descent:
    """A step that takes the first of several candidates whose loss is not higher; else nothing changes.

    On a GPU the first candidate of the next iteration is queued before the loss of the present one is known,
    because most first candidates are good enough. The decisions are the same.
    """

    # `candidates(state)` yields states with a `loss`, which may be a number on a GPU, and maybe a `violation`
    # and a `slack`: what rounding may have added to the loss. What follows a candidate is computed when it is
    # asked for. `container`: that of the data; passes over those of a cluster or a file keep the host busy.

    def __init__(self, candidates: Callable[[Any], Iterator[Any]], container: str) -> None:
        self._candidates = candidates
        self._ahead = container in ("array", "sparse-array")
        self._queued: tuple[Any, Iterator[Any], Any] | None = None

    def __call__(self, state: Any) -> tuple[Any, dict[str, float]]:
        """Do one iteration that does not increase the loss."""
        if self._queued is not None and self._queued[0] is state:
            _, tries, after = self._queued
        else:
            tries = self._candidates(state)
            after = _measured(next(tries), read_later)
        ahead: tuple[Iterator[Any], Any] | None = None
        if self._ahead and isinstance(after.loss, DeviceNumber) and factor_entries(after) <= AHEAD_ENTRIES:
            following = self._candidates(after)
            ahead = following, _measured(next(following), read_later)
        before = float(state.loss)
        self._queued = None
        # From a state without a loss any step is taken; a loss of NaN is then seen in the history.
        while before < math.inf and not float(after.loss) <= before + getattr(after, "slack", 0.0):
            ahead = after = None  # their memory is free for the next one
            after = next(tries, None)
            if after is None:
                after = state
                break
        after = _measured(after, float)
        if ahead is not None:
            self._queued = (after, *ahead)
        return after, {name: getattr(after, name) for name in MEASURES if hasattr(after, name)}


def _measured(state: Any, read: Callable[[Any], Any]) -> Any:
    """Return the state with its measures as other numbers."""
    return replace(state, **{name: read(getattr(state, name)) for name in MEASURES if hasattr(state, name)})


def factor_entries(state: Any) -> int:
    """Return the number of entries of the larger factor."""
    return int(max(state.W.shape[0], state.Ht.shape[0]) * state.Ht.shape[1])
