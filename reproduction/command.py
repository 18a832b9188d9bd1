"""``python -m reproduction``: list the experiments, run them, write their pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nonneg.cli import INTERRUPTED, arguments, guarded, terminal
from nonneg.exceptions import UnsupportedError
from reproduction.registry import TITLES, find_experiment

if TYPE_CHECKING:
    from reproduction.experiment import Experiment

ALL = "all"
OUTPUT = Path("reproduced")
QUICK_OUTPUT = OUTPUT / "quick"


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the words ask for."""
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    add_arguments(parser)
    words = list(sys.argv[1:] if argv is None else argv)
    terminal.begin(json=False)
    return guarded(lambda: run(parser.parse_args(words)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "experiment",
        nargs="?",
        metavar="ID",
        help=f"experiment to run, for example cr1/table-1, or {ALL!r} (default: list the experiments)",
    )
    parser.add_argument("--quick", action="store_true", help="use small problems; takes seconds")
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="DIR",
        help=f"output folder (default: ./{OUTPUT}, with --quick ./{QUICK_OUTPUT})",
    )
    parser.add_argument(
        "--trials",
        type=arguments.count,
        metavar="N",
        help="maximum number of trials to run now; finished trials are kept, and the same command resumes",
    )
    parser.add_argument(
        "--minutes",
        type=arguments.positive_number,
        metavar="N",
        help="start no new trial after N minutes; the same command resumes later",
    )
    parser.add_argument(
        "--processes",
        type=arguments.count,
        metavar="N",
        default=1,
        help="number of worker processes, one thread each (not for experiments that measure time)",
    )
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="PyTorch device for the data, for example cuda (default: NumPy arrays)",
    )
    parser.add_argument(
        "--only-summarize", action="store_true", help="run nothing; rewrite the pages from the records"
    )
    parser.add_argument("--quiet", action="store_true", help="do not show progress")


def run(options: argparse.Namespace) -> int:
    """List the experiments, or run one or all of them."""
    if options.experiment is None:
        width = max(map(len, TITLES), default=0)
        for name, title in TITLES.items():
            terminal.say(f"{name.ljust(width)}  {title}")
        return 0
    from reproduction.device import use_device
    from reproduction.page import PAGE, write_index, write_page
    from reproduction.trials import read_trials, run_trials

    out = options.out or (QUICK_OUTPUT if options.quick else OUTPUT)
    chosen = _chosen(options.experiment, options.quick, options.only_summarize)
    _check_options(options, chosen)
    arguments.check_output_folder(out)
    for experiment in chosen:
        folder = out / experiment.name
        whole = True
        if not options.only_summarize:
            with terminal.warnings_as_notes(), use_device(options.device):
                whole = run_trials(
                    experiment,
                    folder,
                    quick=options.quick,
                    limit=options.trials,
                    minutes=options.minutes,
                    n_processes=options.processes if experiment.parallel else 1,
                    quiet=options.quiet,
                )
        lines = read_trials(experiment, folder, quick=options.quick)
        if lines:
            write_page(experiment, folder, lines, quick=options.quick)
            terminal.say(str(folder / "index.md"))
        else:
            terminal.note(f"{experiment.name}: there are no records of finished trials in {folder}")
        if not whole:
            return INTERRUPTED
    if (out / PAGE).is_file():
        write_index(out)
    return 0


def _check_options(options: argparse.Namespace, chosen: list[Experiment]) -> None:
    """Refuse options that a single experiment does not support; with 'all' each uses those it supports."""
    if options.experiment == ALL or options.only_summarize:
        return
    (experiment,) = chosen
    if options.processes > 1 and not experiment.parallel:
        raise UnsupportedError(
            f"{experiment.name} measures time or depends on earlier trials: "
            "its trials run one after another. Leave out --processes."
        )
    if options.device is not None and not experiment.supports_device:
        raise UnsupportedError(f"{experiment.name} does not support --device. Leave out --device.")


def _chosen(name: str, quick: bool, only_summarize: bool) -> list[Experiment]:
    """Return the experiments to run; this machine has what they need."""
    if name != ALL:
        experiment = find_experiment(name)
        if not only_summarize:
            experiment.check_machine(quick)
        return [experiment]
    chosen = []
    for experiment in map(find_experiment, TITLES):
        missing = [] if only_summarize else experiment.missing_data_sets(quick)
        if missing:
            terminal.note(
                f"{experiment.name} is skipped: its datasets {', '.join(missing)} are not in the folder "
                "named by NONNEG_DATA"
            )
            continue
        lacking = None if only_summarize or experiment.lacks is None else experiment.lacks(quick)
        if lacking:
            terminal.note(f"{experiment.name} is skipped: {lacking}")
        else:
            chosen.append(experiment)
    return chosen
