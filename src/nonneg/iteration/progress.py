"""Progress of a run: what a callback receives, and the line that `verbose=1` shows."""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
        The state of the method. Do not modify it; copy what is to outlast the callback.
    history : History
        The measures so far.
    """

    n_iter: int
    state: Any
    history: History


def is_live() -> bool:
    """Tell whether a line can be rewritten: on a terminal and in a notebook, but not in a file."""
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    return type(sys.stderr).__module__.startswith("ipykernel.")


def _clear() -> str:
    """Return what goes back to the beginning of the line and clears it."""
    # Notebooks know the carriage return, but not all of them the escape sequence of terminals.
    return "\r" + " " * 120 + "\r" if _in_notebook() else "\r\x1b[K"


def _show(line: str, *, ends: bool = False) -> None:
    """Rewrite the line of a terminal, which `ends` here or is rewritten; elsewhere write a line."""
    with suppress(OSError):  # a full disk behind it is no reason to end a run
        sys.stderr.write(f"{_clear()}{line}" + "\n" * ends if is_live() else f"{line}\n")
        sys.stderr.flush()


class _Line:
    """A line on standard error: rewritten a few times a second, or outside a terminal every ten seconds."""

    prefix: ClassVar[str] = ""  # what a run says while a pass shows its own line

    def __init__(self, name: str, interval: float | None = None) -> None:
        self.name = name
        self.interval = (0.2 if is_live() else 10.0) if interval is None else interval
        self._started = time.monotonic()
        # Outside a terminal the first line comes after a second, so that short work has its last line only.
        patient = self._started - self.interval + min(PATIENCE, self.interval)
        self._shown = -math.inf if is_live() else patient

    def _is_due(self) -> bool:
        now = time.monotonic()
        due = now - self._shown >= self.interval
        self._shown = now if due else self._shown
        return due


class Reporter(_Line):
    """The line of a run, with loss, rate and time left."""

    def __init__(self, name: str, interval: float | None = None) -> None:
        super().__init__(name, interval)
        self._line = ""
        self._first = 0  # iterations of an earlier run

    def resume(self, n_iter: int) -> None:
        """Say where the run continues."""
        self._first = n_iter
        _show(f"{self.name}: resumed at iteration {n_iter}", ends=True)

    def update(self, progress: Progress, max_iter: int) -> None:
        """Rewrite the line."""
        elapsed = max(time.monotonic() - self._started, 1e-9)
        losses = progress.history.loss
        loss = f"loss {losses[-1]:.6g}, " if losses and not hasattr(losses[-1], "shape") else ""
        rate = (progress.n_iter - self._first) / elapsed
        remaining = (max_iter - progress.n_iter) / max(rate, 1e-9)
        self._line = f"{self.name}: iteration {progress.n_iter}/{max_iter}, {loss}"
        self._line += f"{rate:,.0f} iterations/s" if rate > 10 else f"{rate:.2g} iterations/s"
        line = f"{self._line}, at most {remaining:.0f} s left"
        _Line.prefix = f"{line}; "
        if self._is_due():
            _show(line)

    def close(self, sentence: str) -> None:
        """End the line."""
        _Line.prefix = ""
        line = f"{self._line};" if self._line else f"{self.name}:"
        _show(f"{line} stopped because {sentence}.", ends=True)


def reporter(name: str, verbose: int) -> Reporter | None:
    """Return what shows a run, if anything does."""
    return Reporter(name) if checked_verbose(verbose) else None


def announce(sentence: str, verbose: int) -> None:
    """Log a choice that was made for the user; `verbose` shows it as well."""
    logger.info(sentence)
    if verbose:
        _show(sentence, ends=True)  # in place of a line that was not ended


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
    before, _Line.prefix = _Line.prefix, f"{what}; "
    try:
        yield
    finally:
        _Line.prefix = before
        timer.cancel()
        timer.join()
        if shown.is_set() and is_live():
            sys.stderr.write(_clear())
            sys.stderr.flush()


class PassReporter(_Line):
    """The line that says how much of a file a pass has read."""

    def __init__(self, name: str, n_bytes: int, verbose: int) -> None:
        super().__init__(Path(name).name or name)
        self.n_bytes, self.verbose = n_bytes, checked_verbose(verbose)
        self.n_pass, self.seconds = 0, 0.0  # of the last pass

    def begin(self, n_pass: int) -> None:
        """Start a pass."""
        self.n_pass, self._started = n_pass, time.monotonic()

    def update(self, part: float) -> None:
        """Show the bytes read so far."""
        self.seconds = time.monotonic() - self._started
        if self.verbose and self._is_due():
            read, total = part * self.n_bytes / 1e9, self.n_bytes / 1e9
            line = f"pass {self.n_pass}, {read:.3g} of {total:.3g} GB read, "
            line += f"{read / max(self.seconds, 1e-9):.2g} GB/s"
            _show(f"{self.prefix if is_live() else ''}{self.name}: {line}")


class StepCounter(_Line):
    """The line that counts the parts of a job, which many threads may finish."""

    def __init__(self, name: str, n_steps: int, verbose: int, interval: float | None = None) -> None:
        super().__init__(name, interval)
        self.n_steps, self.verbose, self.n_done = n_steps, checked_verbose(verbose), 0
        self._lock = threading.Lock()

    def done(self, what: str, count: int = 1) -> None:
        """Count one more part, or several; `what` is their noun, and details in parentheses."""
        with self._lock:
            self.n_done += count
            ends = self.n_done == self.n_steps
            if self.verbose and (self._is_due() or ends):
                seconds = (time.monotonic() - self._started) / self.n_done * (self.n_steps - self.n_done)
                line = f"{self.name}: {self.n_done:,} of {self.n_steps:,} {what}"
                _show(line if ends else f"{line}, about {seconds:.0f} s left", ends=ends)
