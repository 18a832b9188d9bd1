"""Ctrl-C: that no callback loses it, and in work that consists of many runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from nonneg._warnings import warn_user
from nonneg.exceptions import InterruptedFitWarning

# Ctrl-C of a command, until a run has met it: a finalizer or a callback may lose the exception.
pending = threading.Event()
_is_part: ContextVar[bool] = ContextVar("nonneg_is_part", default=False)


def end_run(n_iter: int) -> None:
    """Say that Ctrl-C ended a run, which returns its best so far; a part of many raises KeyboardInterrupt."""
    if _is_part.get():
        raise KeyboardInterrupt
    if threading.current_thread() is not threading.main_thread():
        return  # the thread that waits for this one says it
    pending.clear()
    warn_user(
        f"Interrupted after {n_iter} iterations; the best factors so far are returned.", InterruptedFitWarning
    )


@contextmanager
def interrupting_others() -> Iterator[None]:
    """End the runs of other threads at their next iteration, while this one waits for them."""
    known = pending.is_set()
    pending.set()
    try:
        yield
    finally:
        if not known:
            pending.clear()


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Let Ctrl-C end work that makes many runs, each of which would return its best so far and continue."""
    token = _is_part.set(True)
    try:
        yield
    finally:
        _is_part.reset(token)
