"""Ctrl-C in work that consists of many runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from nonneg.exceptions import InterruptedFitWarning


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Let Ctrl-C end work that makes many runs, each of which would return its best so far and continue."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            yield
        except InterruptedFitWarning as interrupted:
            raise KeyboardInterrupt from interrupted
