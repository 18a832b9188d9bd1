"""What an experiment is: settings to try, a function that runs one of them, and one that sums up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonneg.datasets.store import ENVIRONMENT_VARIABLE, DatasetNotFoundError, is_available
from nonneg.exceptions import UnsupportedError
from reproduction.artifacts import Artifact

Setting = Mapping[str, Any]
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Workspace:
    """What a trial of an experiment in stages finds beside its setting."""

    folder: Path  # where the records lie; a trial may keep a checkpoint there until it has ended
    records: Sequence[Record]  # of the trials that are done, each with the entries of its setting


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper."""

    name: str  # such as "cr1/table-1"; the folder of its results has this name
    title: str  # one line, as in `reproduction.registry.TITLES`
    # Takes `quick` (bool) and returns the settings to run, plain values that JSON can hold, in the order in
    # which they are run. A trial is what is done again as a whole after an interruption, so it should take
    # seconds to a few minutes. A setting names its seed. The entry ``threads``, where there is one, holds
    # nonneg and BLAS to so many threads.
    trials: Callable[[bool], Sequence[Setting]]
    # Takes a setting and returns its records, plain values that JSON can hold.
    run: Callable[..., Sequence[Record]]
    # Takes the records of all trials done so far, each with the entries of its setting, and returns the
    # artifacts. It is called with a part of the trials too, never with none.
    summarize: Callable[[Sequence[Record]], Sequence[Artifact]]
    # Names of real data sets (folders of the data home) that the experiment needs.
    data_sets: tuple[str, ...] = ()
    # The same for the quick setting; None where it needs the same.
    quick_data_sets: tuple[str, ...] | None = None
    # Takes a setting and returns how long it takes in proportion to the others, for the time left.
    cost: Callable[[Setting], float] | None = None
    # Whether `run` takes a `Workspace` too, because later trials rest on earlier ones.
    in_stages: bool = False
    # Whether trials may run in several processes at once. Not where times are measured.
    side_by_side: bool = True
    on_devices: bool = False  # whether the points go where `reproduction.device` says
    # Takes `quick` and returns what this machine would need and has not, in a sentence; None for nothing.
    lacks: Callable[[bool], str | None] | None = None

    def records_of(self, setting: Setting, workspace: Workspace) -> Sequence[Record]:
        """Run one trial."""
        return self.run(setting, workspace) if self.in_stages else self.run(setting)

    def missing_data_sets(self, quick: bool) -> list[str]:
        """Return the data sets that are needed and are not on this machine."""
        needed = self.quick_data_sets if quick and self.quick_data_sets is not None else self.data_sets
        return [name for name in needed if not is_available(name)]

    def check_machine(self, quick: bool) -> None:
        """Make sure before any work that the data sets are at hand and the machine can do it."""
        missing = self.missing_data_sets(quick)
        if missing:
            raise DatasetNotFoundError(
                f"{self.name} needs the data sets {', '.join(missing)}, which are not on this machine. Put "
                f"each into a folder of its name in a data home (`nonneg.datasets.store` says which files), "
                f"and name the data home by the environment variable {ENVIRONMENT_VARIABLE}."
            )
        lacking = None if self.lacks is None else self.lacks(quick)
        if lacking:
            raise UnsupportedError(f"{self.name}: {lacking}")


def setting_key(setting: Setting) -> str:
    """Return the text by which two settings are compared."""
    return json.dumps(setting, sort_keys=True, allow_nan=False)


def flat_records(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Turn the lines of a file of trials into records for `Experiment.summarize`."""
    return [{**line["setting"], **record} for line in lines for record in line["records"]]
