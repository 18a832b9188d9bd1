"""The trials of an experiment: finished ones are kept, the others are run and recorded one by one."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nonneg._threads import current_threads, threads
from nonneg._version import __version__
from nonneg.cli import terminal
from nonneg.exceptions import InterruptedFitWarning
from nonneg.report.record import as_json, plain
from reproduction.device import describe_device
from reproduction.experiment import Experiment, Setting, Workspace, flat_records, setting_key
from reproduction.machine import machine_facts, present_facts
from reproduction.processes import results_of_processes
from reproduction.registry import find_experiment

RECORDS = "records.jsonl"


def read_trials(experiment: Experiment, folder: Path, *, quick: bool) -> list[dict[str, Any]]:
    """Return the finished trials of an experiment's current settings."""
    path = folder / RECORDS
    if not path.is_file():
        return []
    _drop_a_torn_line(path)
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    found = {setting_key(line["setting"]): line for line in lines}
    keys = map(setting_key, experiment.trials(quick))
    return [found[key] for key in keys if key in found]


def run_trials(
    experiment: Experiment,
    folder: Path,
    *,
    quick: bool,
    limit: int | None = None,
    minutes: float | None = None,
    n_processes: int = 1,
    quiet: bool = False,
) -> bool:
    """Run the unfinished trials."""
    wanted = experiment.trials(quick)
    lines = read_trials(experiment, folder, quick=quick)
    done = {setting_key(line["setting"]) for line in lines}
    left = [setting for setting in wanted if setting_key(setting) not in done]
    if limit is not None:
        left = left[:limit]
    if not quiet and done:
        terminal.note(f"{experiment.name}: {len(done)} of {len(wanted)} trials are already finished")
    shown = _Progress(experiment, left, quiet, None if minutes is None else 60.0 * minutes)
    about = machine_facts()
    try:
        for setting, line in (
            _in_processes(experiment, folder, left, about, n_processes, shown)
            if n_processes > 1 and left
            else _here(experiment, folder, left, about, lines, shown)
        ):
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / RECORDS).open("a", encoding="utf-8") as stream:
                stream.write(as_json(line) + "\n")
            shown.end(setting)
    except (KeyboardInterrupt, InterruptedFitWarning):
        shown.close()
        terminal.note(
            f"{experiment.name}: interrupted; finished trials are kept, and the same command resumes "
            "with the others"
        )
        return False
    shown.close()
    return True


def _here(
    experiment: Experiment,
    folder: Path,
    left: Sequence[Setting],
    about: Mapping[str, Any],
    lines: list[dict[str, Any]],
    shown: _Progress,
) -> Iterator[tuple[Setting, dict[str, Any]]]:
    for setting in left:
        if shown.time_is_up():
            return
        shown.begin()
        line = _one_trial(experiment, setting, about, Workspace(folder, flat_records(lines)))
        lines.append(line)
        yield setting, line


def _in_processes(
    experiment: Experiment,
    folder: Path,
    left: Sequence[Setting],
    about: Mapping[str, Any],
    n_processes: int,
    shown: _Progress,
) -> Iterator[tuple[Setting, dict[str, Any]]]:
    shown.begin()
    for pair in results_of_processes(
        _trial_in_process,
        left,
        experiment.name,
        about,
        str(folder),
        n_processes=n_processes,
        time_is_up=shown.time_is_up,
    ):
        yield pair
        shown.begin()


def _trial_in_process(name: str, about: Mapping[str, Any], folder: str, setting: Setting) -> dict[str, Any]:
    return _one_trial(find_experiment(name), setting, about, Workspace(Path(folder), ()), n_threads=1)


def _one_trial(
    experiment: Experiment,
    setting: Setting,
    about: Mapping[str, Any],
    workspace: Workspace,
    n_threads: int | None = None,
) -> dict[str, Any]:
    now = present_facts()
    device = describe_device() if experiment.supports_device else None
    with warnings.catch_warnings(), threads(setting.get("threads", n_threads)):
        # An interrupted solver returns its best factors so far, which are not a result of the experiment.
        warnings.simplefilter("error", InterruptedFitWarning)
        n_threads = current_threads()
        started = time.perf_counter()
        records = experiment.records_of(dict(setting), workspace)
        seconds = time.perf_counter() - started
    return {
        "setting": dict(setting),
        "records": [plain(record) for record in records],
        "seconds": round(seconds, 4),
        "threads": n_threads,
        **({} if device is None else {"device": device}),
        "version": __version__,
        **now,
        "machine": about,
    }


def _drop_a_torn_line(path: Path) -> None:
    """Remove an incomplete last line: the process was killed while writing it."""
    text = path.read_bytes()
    if text and not text.endswith(b"\n"):
        path.write_bytes(text[: text.rfind(b"\n") + 1])


class _Progress:
    """A progress line on standard error: trial, elapsed and estimated remaining time."""

    def __init__(
        self, experiment: Experiment, left: Sequence[Setting], quiet: bool, limit: float | None
    ) -> None:
        self.name, self.quiet, self.limit = experiment.name, quiet, limit
        self.cost = experiment.cost or (lambda setting: 1.0)
        self.total, self.count = sum(map(self.cost, left)), len(left)
        self.done, self.finished = 0.0, 0
        self.started = time.monotonic()
        self.shown = float("-inf")
        self.interval = 0.0 if sys.stderr.isatty() else 10.0

    def time_is_up(self) -> bool:
        return self.limit is not None and time.monotonic() - self.started >= self.limit

    def begin(self) -> None:
        now = time.monotonic()
        if self.quiet or self.finished == self.count or now - self.shown < self.interval:
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
        if self.finished < self.count and self.time_is_up():
            terminal.note(
                f"{self.name}: the time limit is reached; the same command resumes with the other trials"
            )


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
