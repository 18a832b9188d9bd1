"""Runs the benchmarks: every claim and number of threads in a process of its own, then the tables."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks import (  # noqa: E402 (the folder must be importable first when this file is run as a script)
    anchor_peers,
    cluster,
    cone_init,
    default_loss,
    first_answer,
    frobenius_dense,
    frobenius_held_out,
    frobenius_mu,
    frobenius_sparse,
    gpu,
    itakura_saito,
    kl,
    machine,
    memory,
    merit_iteration,
    out_of_core,
    purification,
    records,
    start_up,
    tables,
    threads,
    topics,
    transforms,
)
from benchmarks.race import Settings, run_claim  # noqa: E402
from nonneg._threads import available_threads  # noqa: E402

RACES = {
    module.CLAIM.name: module.CLAIM
    for module in (frobenius_dense, frobenius_held_out, frobenius_sparse, kl, itakura_saito, frobenius_mu)
}
MEASUREMENTS: dict[str, ModuleType] = {
    module.NAME: module
    for module in (
        cone_init,
        anchor_peers,
        merit_iteration,
        topics,
        purification,
        transforms,
        memory,
        out_of_core,
        start_up,
        default_loss,
        first_answer,
        threads,
        cluster,
        gpu,
    )
}
NAMES = (*RACES, *MEASUREMENTS)
DOCS = ROOT / "docs" / "benchmarks"
NO_RECORDS = "No records yet."


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    given = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    size = given.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small cases, one type, one thread, one repeat")
    size.add_argument("--full", action="store_true", help="five repeats, and the race against sklearn's mu")
    given.add_argument("--only", default="", help=f"claims, with commas between; of {', '.join(NAMES)}")
    given.add_argument("--cases", default="", help="parts of the names of cases, with commas between")
    given.add_argument(
        "--threads",
        default="",
        help="numbers of threads, with commas between (default 1, 2 and 16, where there are as many cores)",
    )
    given.add_argument("--dtypes", default="", help="with commas between (default float64,float32)")
    given.add_argument("--repeats", type=int, default=0, help="turns of each contender (default 3)")
    given.add_argument("--no-peers", action="store_true", help="only scikit-learn, not the further peers")
    given.add_argument("--results", type=Path, default=records.RESULTS, help="folder of the records")
    given.add_argument("--tables", action="store_true", help="only print the tables of earlier records")
    given.add_argument("--write-docs", action="store_true", help="also write the tables to docs/benchmarks")
    given.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return given


def default_threads(quick: bool) -> list[int]:
    """Return the numbers of threads that this machine has cores for."""
    return [count for count in (1, 2, 16) if count <= available_threads()][: 1 if quick else None]


def settings_from(given: argparse.Namespace, threads: int) -> Settings:
    """Return the settings that the words on the command line ask for."""
    dtypes = given.dtypes or ("float64" if given.quick else "float64,float32")
    return Settings(
        threads=threads,
        dtypes=tuple(dtypes.split(",")),
        repeats=given.repeats or (1 if given.quick else 5 if given.full else 3),
        quick=given.quick,
        others=not (given.no_peers or given.quick),
        only_cases=tuple(part for part in given.cases.split(",") if part),
    )


def claims_from(given: argparse.Namespace) -> list[str]:
    """Return the names of the claims to run."""
    wanted = [name for name in given.only.split(",") if name]
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        raise SystemExit(f"--only {','.join(unknown)}: expected some of {', '.join(NAMES)}")
    if wanted:
        return wanted
    # One installs packages, the other takes long.
    left_out = {first_answer.NAME} | (set() if given.full else {frobenius_mu.CLAIM.name})
    return [name for name in NAMES if name not in left_out]


def command_of(name: str, given: argparse.Namespace) -> str:
    """Return the command that makes the records of one claim and number of threads."""
    words = ["python -m benchmarks --only", name, "--threads", given.threads]
    words += [f"--{size}" for size in ("quick", "full") if getattr(given, size)]
    for option in ("cases", "dtypes", "repeats"):
        if value := getattr(given, option):
            words += [f"--{option}", shlex.quote(str(value))]
    return " ".join([*words, *(["--no-peers"] if given.no_peers else [])])


def run_here(name: str, settings: Settings, folder: Path, command: str) -> None:
    """Run one claim in this process and add its records to their file."""
    about = machine.describe() | {"command": command}
    if name in RACES:
        with machine.limited(settings.threads) as told:
            for record in run_claim(
                RACES[name], settings, about_to_run=partial(records.mark, name, folder=folder)
            ):
                records.append(name, [record | {"machine": about, "libraries": told}], folder)
                _say(_line(record))
    else:
        for record in MEASUREMENTS[name].run(settings):
            records.append(name, [record | {"machine": about}], folder)
            _say(_line(record))


def _line(record: dict[str, Any]) -> str:
    where = f"{record['claim']}: {record['case']}, {record.get('dtype', '')} {record['threads']} thread(s)"
    if record.get("failure") or record.get("reason"):
        return f"{where}: {record.get('contender', 'nonneg')}: {record.get('failure') or record['reason']}"
    shown = ("contender", "ratio", "seconds", "peak", "reached", "met")
    told = {key: record[key] for key in shown if key in record}
    return f"{where}: " + ", ".join(
        f"{key} {tables.number(value) if isinstance(value, float) else value}" for key, value in told.items()
    )


def page(name: str, folder: Path) -> str:
    """Return the page of a claim."""
    found = records.known(name, folder, DOCS / "records")
    title = RACES[name].title if name in RACES else MEASUREMENTS[name].TITLE
    if not found:
        return f"# {title}\n\n{NO_RECORDS}\n"
    table = tables.race_table(RACES[name], found) if name in RACES else MEASUREMENTS[name].table(found)
    newest = records.latest(found, "case", "dtype", "threads", "contender")
    sources = dict.fromkeys(f"- {r['case']}: {r['source']}" for r in newest if "source" in r)
    parts = [f"# {title}", table, tables.machines(newest)]
    if sources:
        parts.append("Data:\n\n" + "\n".join(sources))
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for, then print the tables."""
    arguments = sys.argv[1:] if arguments is None else arguments
    given = parser().parse_args(arguments)
    claims = claims_from(given)
    threads = [int(word) for word in given.threads.split(",") if word] or default_threads(given.quick)
    if given.child:
        command = command_of(claims[0], given)
        run_here(claims[0], settings_from(given, threads[0]), given.results, command)
        return 0
    failed = False
    if not given.tables:
        for name in claims:
            for count in threads:
                child = [*arguments, "--child", "--only", name, "--threads", str(count)]
                failed |= _in_a_process(child, name, given.results)
    for name in claims:
        text = page(name, given.results)
        _say("\n" + text)
        if given.write_docs and NO_RECORDS not in text:  # keep the page of an earlier machine
            DOCS.mkdir(parents=True, exist_ok=True)
            (DOCS / f"{name}.md").write_text(text, encoding="utf-8")
            records.keep_newest(name, given.results, DOCS / "records")
    return int(failed)


def _in_a_process(words: list[str], name: str, folder: Path) -> bool:
    """Run this file again with other words; return whether it failed, and record a peer that ended it."""
    records.unmark(name, folder)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *words],
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
    running = records.unmark(name, folder)
    if done.returncode and running:
        reason = f"it ended the process (code {done.returncode}); what came after it was not run"
        lost = running | {"status": "failed", "reason": reason, "machine": machine.describe()}
        records.append(name, [lost], folder)
        _say(_line(lost))
    return done.returncode != 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
