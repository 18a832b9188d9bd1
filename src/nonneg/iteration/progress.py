"""What a callback sees, and the line that `verbose=1` shows."""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from nonneg._arguments import checked_verbose
from nonneg.iteration.history import History

logger = logging.getLogger("nonneg")
PATIENCE = 1.0  # seconds after which a person wonders what happens


@dataclass(frozen=True)
class Progress:
    """The progress of a run, as callbacks receive it.

    Parameters
    ----------
    n_iter : int
        Number of iterations done.
    state : Any
        The state of the method. Do not modify it.
    history : History
        The measures so far.
    """

    n_iter: int
    state: Any
    history: History


def is_live() -> bool:
    """Tell whether a line can be rewritten: on a terminal and in a notebook, but not in a file."""
    return sys.stderr.isatty() or _in_notebook()


def line_start() -> str:
    """Return what goes back to the beginning of the line and clears it."""
    # Notebooks know the carriage return, but not all of them the escape sequence of terminals.
    return "\r" + " " * 120 + "\r" if _in_notebook() else "\r\x1b[K"


def _in_notebook() -> bool:
    return type(sys.stderr).__module__.startswith("ipykernel.")


def _show(line: str, *, ends: bool = False) -> None:
    """Rewrite the line of a terminal, which `ends` here or is rewritten; elsewhere write a line."""
    sys.stderr.write(f"{line_start()}{line}" + "\n" * ends if is_live() else f"{line}\n")
    sys.stderr.flush()


def _usual_interval() -> float:
    """Return the seconds between two lines."""
    return 0.2 if is_live() else 10.0


def _first_shown(interval: float, now: float) -> float:
    """Return when a line was shown last, as it were: outside a terminal short work has its last line only."""
    return -math.inf if is_live() else now - interval + min(PATIENCE, interval)


class Reporter:
    """Shows a run to a person; this one shows nothing."""

    def resume(self, n_iter: int) -> None:
        """Show that it continues an earlier run."""

    def update(self, progress: Progress, max_iter: int) -> None:
        """Show where the run stands."""

    def close(self, sentence: str) -> None:
        """Show how it ended."""


class LineReporter(Reporter):
    """One line on standard error with loss, rate and time left."""

    # It is rewritten a few times a second on a terminal; elsewhere a new line comes every ten seconds.

    def __init__(self, name: str, interval: float | None = None) -> None:
        self.name = name
        self.interval = _usual_interval() if interval is None else interval
        self._started = time.perf_counter()
        self._shown = _first_shown(self.interval, time.monotonic())
        self._line = ""
        self._first = 0  # iterations of an earlier run

    def resume(self, n_iter: int) -> None:
        """Say where the run continues."""
        self._first = n_iter
        _show(f"{self.name}: resumed at iteration {n_iter}", ends=True)

    def update(self, progress: Progress, max_iter: int) -> None:
        """Rewrite the line."""
        now = time.monotonic()
        elapsed = max(time.perf_counter() - self._started, 1e-9)
        losses = progress.history.loss
        loss = f"loss {losses[-1]:.6g}, " if losses and not hasattr(losses[-1], "shape") else ""
        rate = (progress.n_iter - self._first) / elapsed
        remaining = (max_iter - progress.n_iter) / max(rate, 1e-9)
        self._line = (
            f"{self.name}: iteration {progress.n_iter}/{max_iter}, {loss}"
            f"{rate:.3g} iterations/s, at most {remaining:.0f} s left"
        )
        PassReporter.prefix = f"{self._line}; "
        if now - self._shown < self.interval:
            return
        self._shown = now
        _show(self._line)

    def close(self, sentence: str) -> None:
        """End the line."""
        PassReporter.prefix = ""
        line = f"{self._line};" if self._line else f"{self.name}:"
        _show(f"{line} stopped because {sentence}.", ends=True)


def reporter(name: str, verbose: int) -> Reporter:
    """Choose what is shown."""
    return LineReporter(name) if checked_verbose(verbose) else Reporter()


def announce(sentence: str, verbose: int) -> None:
    """Log a choice that was made for the user; `verbose` shows it as well."""
    logger.info(sentence)
    if verbose:
        sys.stderr.write(f"{sentence}\n")


@contextmanager
def phase(what: str, verbose: int) -> Iterator[None]:
    """Show what happens outside the iterations, once it has taken a second."""
    if not checked_verbose(verbose):
        yield
        return
    shown = threading.Event()

    def show() -> None:
        shown.set()
        _show(f"{what} ...")

    timer = threading.Timer(PATIENCE, show)
    timer.daemon = True
    timer.start()
    before, PassReporter.prefix = PassReporter.prefix, f"{what}; "
    try:
        yield
    finally:
        PassReporter.prefix = before
        timer.cancel()
        timer.join()
        if shown.is_set() and is_live():
            sys.stderr.write(line_start())
            sys.stderr.flush()


class PassReporter:
    """Shows how much of a file a pass has read, now and then."""

    prefix: ClassVar[str] = ""  # what a run says meanwhile, on the same line of a terminal

    def __init__(self, name: str, n_bytes: int, verbose: int, interval: float | None = None) -> None:
        self.name = Path(name).name or name
        self.n_bytes = n_bytes
        self.verbose = checked_verbose(verbose)
        self.interval = _usual_interval() if interval is None else interval
        self.n_pass = 0
        self.seconds = 0.0  # of the last pass
        self._started = self._shown = time.monotonic()

    def begin(self, n_pass: int) -> None:
        """Start a pass."""
        self.n_pass, self._started = n_pass, time.monotonic()

    def update(self, part: float) -> None:
        """Show the bytes read so far."""
        now = time.monotonic()
        self.seconds = now - self._started
        if not self.verbose or now - self._shown < self.interval:
            return
        self._shown = now
        rate = part * self.n_bytes / max(self.seconds, 1e-9)
        line = self.prefix if is_live() else ""
        line += (
            f"{self.name}: pass {self.n_pass}, {part * self.n_bytes / 1e9:.3g} of "
            f"{self.n_bytes / 1e9:.3g} GB read, {rate / 1e9:.2g} GB/s"
        )
        _show(line)


class StepCounter:
    """Counts the parts of a job that many threads may finish, and shows the count now and then."""

    def __init__(self, name: str, n_steps: int, verbose: int, interval: float | None = None) -> None:
        self.name = name
        self.n_steps = n_steps
        self.verbose = checked_verbose(verbose)
        self.interval = _usual_interval() if interval is None else interval
        self.n_done = 0
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._shown = _first_shown(self.interval, self._started)

    def done(self, what: str, count: int = 1) -> None:
        """Count one more part, or several."""
        with self._lock:
            self.n_done += count
            now = time.monotonic()
            if not self.verbose or (now - self._shown < self.interval and self.n_done < self.n_steps):
                return
            self._shown = now
            left = (now - self._started) / self.n_done * (self.n_steps - self.n_done)
            line = f"{self.name}: {self.n_done} of {self.n_steps} ({what}), about {left:.0f} s left"
            _show(line, ends=self.n_done == self.n_steps)
