"""An experiment: its settings, a function that runs one, and a function that summarizes the records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonneg.datasets import DatasetNotFoundError
from nonneg.exceptions import UnsupportedError
from reproduction.artifacts import Artifact
from reproduction.data.store import ENVIRONMENT_VARIABLE, is_available

Setting = Mapping[str, Any]
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Workspace:
    """What a trial of an experiment in stages gets in addition to its setting."""

    folder: Path  # folder of the records; a trial may keep a checkpoint there while it runs
    records: Sequence[Record]  # of the finished trials, each with the entries of its setting


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper."""

    name: str  # such as "cr1/table-1"; the folder of its results has this name
    title: str  # one line, as in `reproduction.registry.TITLES`
    # Takes `quick` (bool) and returns the settings to run, plain values that JSON can hold, in the order in
    # which they are run. After an interruption a trial is repeated as a whole, so it should take
    # seconds to a few minutes. A setting names its seed. The optional entry ``threads`` is the number of
    # threads for nonneg and BLAS.
    trials: Callable[[bool], Sequence[Setting]]
    # Takes a setting and returns its records, plain values that JSON can hold.
    run: Callable[..., Sequence[Record]]
    # Takes the records of all trials done so far, each with the entries of its setting, and returns the
    # artifacts. It is also called with part of the trials, never with none.
    summarize: Callable[[Sequence[Record]], Sequence[Artifact]]
    # Names of the real data sets (folders of the data home) that the experiment needs.
    data_sets: tuple[str, ...] = ()
    # The same for the quick setting; None if it needs the same.
    quick_data_sets: tuple[str, ...] | None = None
    # Takes a setting and returns its relative cost, to estimate the remaining time.
    cost: Callable[[Setting], float] | None = None
    # Whether `run` also takes a `Workspace`, because later trials use earlier ones.
    in_stages: bool = False
    # Whether trials may run in parallel processes. Not if they measure time.
    parallel: bool = True
    supports_device: bool = False  # whether the data go to the device of `reproduction.device`
    # Takes `quick` and returns what this machine lacks, in a sentence; None for nothing.
    lacks: Callable[[bool], str | None] | None = None

    def records_of(self, setting: Setting, workspace: Workspace) -> Sequence[Record]:
        """Run one trial."""
        return self.run(setting, workspace) if self.in_stages else self.run(setting)

    def missing_data_sets(self, quick: bool) -> list[str]:
        """Return the required data sets that are not on this machine."""
        needed = self.quick_data_sets if quick and self.quick_data_sets is not None else self.data_sets
        return [name for name in needed if not is_available(name)]

    def check_machine(self, quick: bool) -> None:
        """Check before any work that the data sets and the hardware are available."""
        missing = self.missing_data_sets(quick)
        if missing:
            raise DatasetNotFoundError(
                f"{self.name} needs the data sets {', '.join(missing)}, which are not on this machine. Put "
                "each into a folder of its name in a data home (files: `reproduction.data.store`), "
                f"and set the environment variable {ENVIRONMENT_VARIABLE} to the data home."
            )
        lacking = None if self.lacks is None else self.lacks(quick)
        if lacking:
            raise UnsupportedError(f"{self.name}: {lacking}")


def setting_key(setting: Setting) -> str:
    """Return a canonical text of a setting, for comparison."""
    return json.dumps(setting, sort_keys=True, allow_nan=False)


def flat_records(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Turn lines of the records file into records for `Experiment.summarize`."""
    return [{**line["setting"], **record} for line in lines for record in line["records"]]
