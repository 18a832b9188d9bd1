"""Ctrl-C: that no callback loses it, and in work that consists of many runs."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from nonneg.exceptions import InterruptedFitWarning

# Ctrl-C of a command, until a run has met it: a finalizer or a callback may lose the exception.
pending = threading.Event()


def check_interrupt() -> None:
    """Raise KeyboardInterrupt if one was lost."""
    if pending.is_set():
        raise KeyboardInterrupt


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Let Ctrl-C end work that makes many runs, each of which would return its best so far and continue."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            yield
        except InterruptedFitWarning as interrupted:
            raise KeyboardInterrupt from interrupted
