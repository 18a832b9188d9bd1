"""The trials of an experiment: those that are done are kept, the others are run and recorded one by one."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nonneg._threads import current_threads, threads
from nonneg._version import __version__
from nonneg.cli import terminal
from nonneg.exceptions import InterruptedFitWarning
from nonneg.experiments.experiment import Experiment, Setting, setting_key
from nonneg.report.machine import machine_facts, present_facts
from nonneg.report.records import append_record, plain, read_records

RECORDS = "records.jsonl"


def read_trials(experiment: Experiment, folder: Path, *, quick: bool) -> list[dict[str, Any]]:
    """Return the finished trials that belong to a setting of an experiment.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    folder : Path
        With records.jsonl, or without.
    quick : bool
        Whether the quick setting is meant; the file may hold trials of both.

    Returns
    -------
    list of dict
        Lines of the file in the order of the experiment's trials; of equal settings the last one counts.
    """
    path = folder / RECORDS
    if not path.is_file():
        return []
    _drop_a_torn_line(path)
    found = {setting_key(line["setting"]): line for line in read_records(path)}
    keys = map(setting_key, experiment.trials(quick))
    return [found[key] for key in keys if key in found]


def run_trials(
    experiment: Experiment, folder: Path, *, quick: bool, limit: int | None = None, quiet: bool = False
) -> bool:
    """Run the trials that are not done yet.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    folder : Path
        Where records.jsonl lies or will lie.
    quick : bool
        Whether the quick setting is meant.
    limit : int or None
        Run at most so many.
    quiet : bool
        Show no progress.

    Returns
    -------
    bool
        False where Ctrl-C ended it; the trial that was under way leaves nothing behind.
    """
    wanted = experiment.trials(quick)
    done = {setting_key(line["setting"]) for line in read_trials(experiment, folder, quick=quick)}
    left = [setting for setting in wanted if setting_key(setting) not in done]
    if limit is not None:
        left = left[:limit]
    if not quiet and done:
        terminal.note(f"{experiment.name}: {len(done)} of {len(wanted)} trials are done already")
    about = machine_facts()
    shown = _Progress(experiment, left, quiet)
    try:
        for setting in left:
            shown.begin(setting)
            append_record(folder / RECORDS, _one_trial(experiment, setting, about))
            shown.end(setting)
    except (KeyboardInterrupt, InterruptedFitWarning):
        shown.close()
        terminal.note(
            f"{experiment.name}: interrupted; the finished trials are kept, and the same command goes on "
            "with the others"
        )
        return False
    shown.close()
    return True


def _one_trial(experiment: Experiment, setting: Setting, about: Mapping[str, Any]) -> dict[str, Any]:
    now = present_facts()
    with warnings.catch_warnings(), threads(setting.get("threads")):
        # A solver that is interrupted returns what it has so far, which is no result of the experiment.
        warnings.simplefilter("error", InterruptedFitWarning)
        n_threads = current_threads()
        started = time.perf_counter()
        records = experiment.run(dict(setting))
        seconds = time.perf_counter() - started
    return {
        "setting": dict(setting),
        "records": [plain(record) for record in records],
        "seconds": round(seconds, 4),
        "threads": n_threads,
        "version": __version__,
        **now,
        "machine": about,
    }


def _drop_a_torn_line(path: Path) -> None:
    """Cut off a last line without an end: the process was killed while it was written."""
    text = path.read_bytes()
    if text and not text.endswith(b"\n"):
        path.write_bytes(text[: text.rfind(b"\n") + 1])


class _Progress:
    """A line on standard error: which trial, for how long, and how long it may take."""

    def __init__(self, experiment: Experiment, left: Sequence[Setting], quiet: bool) -> None:
        self.name, self.quiet = experiment.name, quiet
        self.cost = experiment.cost or (lambda setting: 1.0)
        self.total, self.count = sum(map(self.cost, left)), len(left)
        self.done, self.finished = 0.0, 0
        self.started = time.monotonic()
        self.shown = float("-inf")
        self.interval = 0.0 if sys.stderr.isatty() else 10.0

    def begin(self, setting: Setting) -> None:
        now = time.monotonic()
        if self.quiet or now - self.shown < self.interval:
            return
        self.shown = now
        line = f"{self.name}: trial {self.finished + 1} of {self.count}"
        if self.done > 0:
            elapsed = now - self.started
            left = elapsed * (self.total - self.done) / self.done
            line += f", {_duration(elapsed)} so far, about {_duration(left)} left"
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K" + line)
            sys.stderr.flush()
        else:
            terminal.note(line)

    def end(self, setting: Setting) -> None:
        self.done += self.cost(setting)
        self.finished += 1

    def close(self) -> None:
        if self.quiet or not self.count:
            return
        start = "\r\x1b[K" if sys.stderr.isatty() else ""
        elapsed = _duration(time.monotonic() - self.started)
        terminal.note(f"{start}{self.name}: {self.finished} of {self.count} trials in {elapsed}")


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
