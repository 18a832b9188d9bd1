"""Ctrl-C: that no callback loses it, and in work that consists of many runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from nonneg.exceptions import InterruptedFitWarning

_pending: list[bool] = []  # Ctrl-C of a command, until a run has met it


def interrupt() -> None:
    """Raise KeyboardInterrupt; if a finalizer or a callback loses it, the next iteration raises it again."""
    _pending[:] = [True]
    raise KeyboardInterrupt


def check_interrupt() -> None:
    """Raise KeyboardInterrupt if one was lost."""
    if _pending:
        raise KeyboardInterrupt


def forget_interrupt() -> None:
    """Let later runs continue: Ctrl-C has ended what it was meant for."""
    _pending.clear()


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Let Ctrl-C end work that makes many runs, each of which would return its best so far and continue."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            yield
        except InterruptedFitWarning as interrupted:
            raise KeyboardInterrupt from interrupted
