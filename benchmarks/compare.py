"""Compare two trees of this repository, such as before and after a change.

``python -m benchmarks.compare OLD NEW``. Both trees run the same work from the same initialization, in turns
and in processes of their own, on one thread. Races start from several random factors and run to 1.0001 times
the loss that the old tree reached in 1.5 seconds: on the plateau below it last digits decide how many
iterations a run takes. Times are geometric means over initializations. Iterations are measured as in the
other benchmarks.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from benchmarks.tables import machine_lines, markdown

RACES = ("frobenius_dense", "frobenius_sparse", "kl")
ITERATIONS = {"merit_iteration": "N=1000,N=10000", "transforms": "music"}
N_INIT = 3
# Runs inside a tree: the fits of one claim, each to its target, or for 1.5 seconds where there is none yet.
FITS = """
import importlib, json, sys
import numpy as np
from benchmarks.contender import Task
from benchmarks.ours import nonneg_factorize
from benchmarks.race import tiny_task
claim = importlib.import_module("benchmarks." + sys.argv[1]).CLAIM
targets, repeats, n_init = json.loads(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
for case in claim.cases:
    if not any(part in case.name for part in sys.argv[5].split(",")):
        continue
    X, _ = case.load(np.dtype("float64"))
    k = case.n_components
    scale = np.sqrt(X.mean() / k)
    for seed in range(n_init):
        rng = np.random.default_rng(seed)
        W, H = scale * rng.random((X.shape[0], k)), scale * rng.random((k, X.shape[1]))
        task = Task(X, W, H, claim.loss, 1)
        if seed == 0:
            nonneg_factorize(tiny_task(task), -np.inf, 1.0)
            nonneg_factorize(task, -np.inf, 0.0)
        name = f"{case.name} #{seed}"
        if name not in targets:
            loss = nonneg_factorize(task, -np.inf, 1.5).notes["loss_seen"]
            print(json.dumps([name, 1.0001 * loss]), flush=True)
            continue
        outcomes = [nonneg_factorize(task, targets[name], 60.0) for _ in range(repeats)]
        print(json.dumps([name, min(outcome.seconds for outcome in outcomes)]), flush=True)
"""


def environment(tree: Path) -> dict[str, str]:
    """Return the variables under which a tree runs its own code on one thread."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    inherited = os.environ.get("PYTHONPATH", "")
    variables = (
        os.environ | single | {"PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree), inherited])}
    )
    command = [sys.executable, "-c", "import nonneg; print(nonneg.__file__)"]
    imported = Path(
        subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout.strip()
    )
    if tree not in imported.parents:
        # The finder of an editable installation comes before PYTHONPATH.
        raise SystemExit(
            f"{tree} is not what Python imports, but {imported}. Run this without an installed nonneg."
        )
    return variables


def fits(tree: Path, claim: str, cases: str, targets: dict[str, float], repeats: int) -> dict[str, float]:
    """Return seconds by case and initialization, or losses to reach where there is no target yet."""
    command = [sys.executable, "-c", FITS, claim, json.dumps(targets), str(repeats), str(N_INIT), cases]
    done = subprocess.run(
        command, cwd=tree, env=environment(tree), stdout=subprocess.PIPE, text=True, check=True
    )
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


def iterations(tree: Path, claim: str, cases: str) -> dict[str, float]:
    """Return the seconds of an iteration by case."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks", "--only", claim, "--cases", cases, "--threads", "1"]
        command += ["--no-peers", "--results", folder]
        subprocess.run(command, cwd=tree, env=environment(tree), stdout=subprocess.DEVNULL, check=True)
        lines = (Path(folder) / f"{claim}.jsonl").read_text("utf-8").splitlines()
    records: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return {record["case"]: record["seconds"] for record in records if record.get("seconds")}


def main() -> None:
    """Print the table of both trees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", default=",".join([*RACES, *ITERATIONS]))
    parser.add_argument("--cases", default="", help="parts of the names of cases, separated by commas")
    parser.add_argument("--turns", type=int, default=3, help="turns of each tree")
    options = parser.parse_args()
    trees = {"before": options.old.resolve(), "after": options.new.resolve()}
    rows = []
    for claim in options.only.split(","):
        targets = fits(trees["before"], claim, options.cases, {}, 1) if claim in RACES else {}
        taken: dict[str, dict[str, list[float]]] = {}
        for _ in range(options.turns):
            for name, tree in trees.items():
                measured = (
                    fits(tree, claim, options.cases, targets, 2)
                    if targets
                    else iterations(tree, claim, options.cases or ITERATIONS[claim])
                )
                for case, seconds in measured.items():
                    taken.setdefault(case, {}).setdefault(name, []).append(seconds)
        cases: dict[str, list[list[float]]] = {}
        for case, by_tree in taken.items():
            best = [min(by_tree[name]) for name in trees]
            cases.setdefault(case.partition(" #")[0], []).append(best)
        for case, pairs in cases.items():
            before, after = (statistics.geometric_mean(column) for column in zip(*pairs, strict=True))
            rows.append([claim, case, f"{before:.4g}", f"{after:.4g}", f"{after / before:.2f}"])
            sys.stderr.write(" ".join(rows[-1]) + "\n")
    print(markdown(["claim", "case", "before (s)", "after (s)", "after / before"], rows))
    print(f"\n{machine_lines(describe(), 'python -m benchmarks.compare OLD NEW')}")


if __name__ == "__main__":
    main()
