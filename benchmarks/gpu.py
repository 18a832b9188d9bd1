"""NMF on one GPU: time per iteration beside bare products and the limit of the formula, and whole fits.

``python -m benchmarks.gpu`` runs every case (about three minutes on an H200, once Triton has compiled the
kernels) and appends its records to those of ``python -m benchmarks --only gpu``; parts of names of cases as
arguments choose some. A case that fails is recorded with its reason, and the others run: every group of cases
has a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import gpu_peers, machine, records
from benchmarks.gpu_fits import PARTS
from benchmarks.gpu_iterations import ITERATIONS, guarded, iterations
from benchmarks.gpu_tables import table
from benchmarks.race import Settings
from benchmarks.tables import DASH

__all__ = ["NAME", "TITLE", "run", "table"]

NAME = "gpu"
TITLE = "NMF on a GPU: time per iteration, the limit of the card, and whole fits"

# Seconds that a group of cases may take in its process: a kernel that hangs shall not lose the rest.
LIMIT = 75


def groups() -> list[str]:
    """Return the groups of cases, each of which is measured in a process of its own."""
    return [*dict.fromkeys(case.family for case in ITERATIONS), *PARTS]


def cases_of(group: str, chosen: tuple[str, ...]) -> list[str]:
    """Return the cases of a group whose names contain one of the words."""
    names = [group] if group in PARTS else [case.title for case in ITERATIONS if case.family == group]
    return [name for name in names if not chosen or any(word in name for word in chosen)]


def measured_here(group: str, chosen: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Measure the cases of a group in this process."""
    import torch

    card = {
        "card": torch.cuda.get_device_name(0), "driver": gpu_peers.driver(),
        "torch": torch.__version__, "cuda": torch.version.cuda, "triton": gpu_peers.version("triton"),
        "peers": {name: gpu_peers.version(name) for name in ("torchnmf", "nmf-torch", "scikit-learn")},
    }  # fmt: skip
    names = cases_of(group, chosen)
    found = guarded(group, PARTS[group]) if group in PARTS else iterations(lambda title: title in names)
    for record in found:
        yield {"gpu": card} | record


def _send(group: str, chosen: tuple[str, ...], sender: Any) -> None:
    for record in measured_here(group, chosen):
        sender.send(record)
    sender.close()


def in_process(work: Callable[[Any], None]) -> Iterator[Any]:
    """Yield what a function sends from a process of its own, and then, if it failed, the reason."""
    context = multiprocessing.get_context("fork")  # imports PyTorch once for all groups
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(sender,))
    process.start()
    sender.close()
    until, failure = time.monotonic() + LIMIT, ""
    while not failure:
        if not receiver.poll(max(0.0, until - time.monotonic())):
            failure = f"not done after {LIMIT} s"
            process.kill()
            break
        try:
            yield receiver.recv()
        except EOFError:
            break
    process.join()
    if process.exitcode and not failure:
        failure = f"its process ended with code {process.exitcode}"
    if failure:
        yield failure


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Measure every case; nothing without a GPU."""
    from nonneg._optional import is_installed

    if not is_installed("torch") or sys.platform == "win32":
        return
    import torch

    # Here CUDA must not start: it does not survive a fork.
    if True not in in_process(lambda sender: sender.send(torch.cuda.is_available())):
        return
    head = {"claim": NAME, "threads": settings.threads}
    for group in groups():
        if not cases_of(group, settings.only_cases):
            continue
        for record in in_process(partial(_send, group, settings.only_cases)):
            if isinstance(record, str):
                record = {
                    "kind": "failed", "case": group, "dtype": DASH, "contender": "nonneg", "failure": record
                }  # fmt: skip
            yield head | record


def main() -> None:
    """Run the cases whose names contain one of the arguments, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--results", type=Path, default=records.RESULTS)
    given = parser.parse_args()
    chosen = tuple(given.cases)
    about = machine.describe()
    for record in run(Settings(threads=os.cpu_count() or 1, only_cases=chosen)):
        records.append(NAME, [record | {"machine": about}], given.results)
        shown = {name: value for name, value in record.items() if name not in ("gpu", "claim", "threads")}
        sys.stdout.write(f"{shown}\n")
        sys.stdout.flush()
    found = records.read(NAME, given.results)
    sys.stdout.write((table(found) if found else "No records: there is no GPU.") + "\n")


if __name__ == "__main__":
    main()
