"""Iterations on a GPU without waiting: the next one is queued before the loss of the present one is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from nonneg._arrays import on_gpu, to_torch

# Entries of the larger factor up to which the next iteration is queued: both are in memory then. At this size
# each of its copies takes 32 megabytes in float32.
AHEAD_ENTRIES = 1 << 23


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
    return DeviceNumber(to_torch(value)) if on_gpu(value) else float(value)


class Descent:
    """A step that takes the first of several candidates whose loss is not higher; else nothing changes.

    On a GPU the first candidate of the next iteration is queued before the loss of the present one is known,
    because most first candidates are good enough. The decisions are the same.
    """

    # `candidates(state)` yields states with a `loss`, which `read_later` may have made. What follows a
    # candidate is computed when it is asked for. `ahead` is False where an iteration keeps the host busy.

    def __init__(self, candidates: Callable[[Any], Iterator[Any]], *, ahead: bool = True) -> None:
        self._candidates = candidates
        self._ahead = ahead
        self._queued: tuple[Any, Iterator[Any], Any] | None = None

    def __call__(self, state: Any) -> tuple[Any, dict[str, float]]:
        """Do one iteration that does not increase the loss."""
        if self._queued is not None and self._queued[0] is state:
            _, tries, after = self._queued
        else:
            tries = self._candidates(state)
            after = next(tries)
        ahead: tuple[Iterator[Any], Any] | None = None
        if self._ahead and isinstance(after.loss, DeviceNumber):
            following = self._candidates(after)
            ahead = following, next(following)
        loss, before = float(after.loss), float(state.loss)
        self._queued = None
        while not loss <= before:
            ahead = after = None  # their memory is free for the next one
            after = next(tries, None)
            if after is None:
                after, loss = state, before
                break
            loss = float(after.loss)
        after = replace(after, loss=loss)
        if ahead is not None:
            self._queued = (after, *ahead)
        return after, {"loss": loss}
