"""A contender: a function from the same initialization to factors, and its time."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


class CannotRunError(Exception):
    """A contender is not installed, or cannot take this loss, kind of data or type; the message says why."""


@dataclass(frozen=True)
class Task:
    """Task of a contender."""

    X: Any  # the data and the initialization; a contender must not change them
    W: Any
    H: Any
    loss: str  # "frobenius", "kullback-leibler" or "itakura-saito"
    threads: int = 1  # how many threads it may use

    @property
    def n_components(self) -> int:
        """The rank."""
        return int(self.H.shape[0])


@dataclass(frozen=True)
class Outcome:
    """Answer of a contender."""

    W: Any  # the factors
    H: Any
    seconds: float  # wall time of the whole call
    n_iter: int  # passes
    # What else is worth recording: the solver that was chosen, the time inside the steps, and so on.
    notes: dict[str, Any] = field(default_factory=dict)


Peer = Callable[[Task, int], Outcome]
"""A peer runs a given number of passes with no other stopping rule."""

Ours = Callable[[Task, float, float], Outcome]
"""`nonneg` runs until its loss is at most the target (second argument) or the seconds (third) are over."""


@contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    """Yield a function that gives the seconds since the block began."""
    start = time.perf_counter()
    yield lambda: time.perf_counter() - start


@contextmanager
def quiet() -> Iterator[None]:
    """Keep warnings and what compiled code writes to the terminal out of the tables."""
    sys.stdout.flush()
    saved = os.dup(1)
    try:
        with open(os.devnull, "w") as sink, warnings.catch_warnings():  # noqa: PTH123 (a device, not a path)
            warnings.simplefilter("ignore")
            os.dup2(sink.fileno(), 1)
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
