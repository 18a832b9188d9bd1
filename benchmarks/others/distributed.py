"""Time to a given loss beside the programs for clusters: PLANC (as pyplanc) and pyDNMFk.

    python -m benchmarks.others.distributed [--shape 6000,4000] [--pydnmfk MPIRUN PYTHON] [--write]

X is a product of two uniform random factors of rank k with 10% of noise, as in the demonstrations of both
programs; all start from the same random factors, on the same cores (threads for nonneg, PLANC and
scikit-learn; one MPI process per core for pyDNMFk). The target is the loss of scikit-learn's coordinate
descent after 30 iterations. nonneg stops when it reaches it; the others get about the smallest number of
iterations that does, and the time of that run counts. `--pydnmfk` names `mpirun` and the interpreter of an
environment with pyDNMFk. For the size of PLANC's articles: --shape 57600,38400 --k 50.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contender import CannotRunError, Task
from benchmarks.machine import limited
from benchmarks.others.records import merge
from benchmarks.ours import nonneg_factorize
from benchmarks.peers import PEERS
from benchmarks.tables import markdown

MOST = 2000
PYDNMFK = """
import sys, time
import pyDNMFk.config as config
config.init(0)
from pyDNMFk.pyDNMF import *
from pyDNMFk.dist_comm import *
import numpy as np
folder, k, iterations, method = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
sys.argv = sys.argv[:1]
world = MPI.COMM_WORLD
grid = MPI_comm(world, world.size, 1)
X = np.load(folder + "/X.npy", mmap_mode="r")
W, H = np.load(folder + "/W.npy"), np.load(folder + "/H.npy")
args = parse()
args.size, args.rank, args.comm1, args.comm = world.size, world.rank, grid.comm, grid
args.p_r, args.p_c = world.size, 1
args.m, args.n, args.k, args.itr, args.init, args.verbose = *X.shape, k, iterations, "rand", False
args.row_comm, args.col_comm = grid.cart_1d_row(), grid.cart_1d_column()
args.norm, args.method = "fro", method
blocks = determine_block_params(world.rank, (world.size, 1), X.shape)
(first, _), (last, _) = blocks.determine_block_index_range_asymm()
part = np.array(X[first : last + 1])
world.Barrier()
started = time.perf_counter()
W, H, error = PyNMF(part, factors=(W[first : last + 1], H), params=args).fit()
seconds = world.allreduce(time.perf_counter() - started, op=MPI.MAX)
if world.rank == 0:
    print("RESULT", seconds, float(error))
"""

Run = Callable[[int], tuple[float, float]]


def half_squares(X: np.ndarray, W: np.ndarray, H: np.ndarray) -> float:
    """Return the Frobenius loss, relative to that of zero factors."""
    total = float(np.einsum("ij,ij->", X, X))
    cross = float(((X @ H.T) * W).sum())
    return (total - 2 * cross + float(((W.T @ W) * (H @ H.T)).sum())) / total


def peer(name: str, task: Task) -> Run:
    """Return a peer of the races, as a function of the number of iterations."""

    def run(iterations: int) -> tuple[float, float]:
        outcome = PEERS[name](task, iterations)
        return outcome.seconds, half_squares(task.X, outcome.W, outcome.H)

    return run


def pydnmfk(words: list[str], folder: Path, task: Task, method: str) -> Run:
    """Return pyDNMFk with one process per core."""

    def run(iterations: int) -> tuple[float, float]:
        command = [words[0], "-n", str(task.threads), words[1], str(folder / "run.py"), str(folder)]
        command += [str(task.n_components), str(iterations), method]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
        )
        for line in done.stdout.splitlines():
            if line.startswith("RESULT"):
                seconds, error = map(float, line.split()[1:])
                return seconds, error**2
        raise CannotRunError(done.stderr[-300:])

    return run


def ours(task: Task, target: float) -> tuple[float, float]:
    """Fit until the loss is at most the target; the final encoding is part of the time."""
    half = 0.5 * target * float(np.einsum("ij,ij->", task.X, task.X))
    outcome = nonneg_factorize(task, half, 600.0)
    return outcome.seconds, half_squares(task.X, outcome.W, outcome.H)


def to_target(run: Run, target: float) -> dict[str, Any]:
    """Return the run with about the smallest number of iterations whose loss is at most the target."""
    low, high = 0, 1
    best = run(high)
    while best[1] > target:
        low, high = high, 2 * high
        if high > MOST:
            return {"status": f"not reached in {low} iterations", "seconds": best[0], "loss": best[1]}
        best = run(high)
    while high - low > max(1, high // 8):
        middle = (low + high) // 2
        tried = run(middle)
        low, high, best = (low, middle, tried) if tried[1] <= target else (middle, high, best)
    return {"status": "reached", "seconds": best[0], "loss": best[1], "iterations": high}


def race(
    shape: tuple[int, int], k: int, cores: int, words: list[str] | None, peers: list[str]
) -> list[dict[str, Any]]:
    """Run everybody."""
    rng = np.random.default_rng(0)
    X = rng.random((shape[0], k)) @ rng.random((k, shape[1]))
    for begin in range(0, shape[0], 1000):
        part = X[begin : begin + 1000]
        part *= 1 + 0.1 * rng.standard_normal(part.shape)
    np.maximum(X, 0, out=X)
    scale = np.sqrt(X.mean() / k)
    task = Task(
        X=X, W=scale * rng.random((shape[0], k)), H=scale * rng.random((k, shape[1])), loss="frobenius",
        threads=cores,
    )  # fmt: skip
    about = {"shape": list(shape), "k": k, "cores": cores}
    rows: list[dict[str, Any]] = []

    def add(row: dict[str, Any]) -> None:
        rows.append(about | row)
        print(json.dumps(rows[-1]), flush=True)

    with limited(cores), tempfile.TemporaryDirectory() as name:
        seconds, target = peer("scikit-learn cd", task)(30)
        target *= 1 + 1e-9
        add(
            {
                "method": "scikit-learn cd",
                "status": "reached",
                "seconds": seconds,
                "loss": target,
                "iterations": 30,
            }
        )
        ours(task, target)
        taken, reached = ours(task, target)
        status = "reached" if reached <= target else "missed"
        add({"method": "nonneg", "seconds": taken, "loss": reached, "status": status})
        runs = {each: peer(each, task) for each in peers}
        if words:
            folder = Path(name)
            for letter, array in (("X", task.X), ("W", task.W), ("H", task.H)):
                np.save(folder / f"{letter}.npy", array)
            (folder / "run.py").write_text(PYDNMFK, encoding="utf-8")
            runs |= {f"pyDNMFk {each}": pydnmfk(words, folder, task, each) for each in ("hals", "bcd", "mu")}
        for method, run in runs.items():
            try:
                add({"method": method} | to_target(run, target))
            except CannotRunError as error:
                add({"method": method, "status": f"failed: {error}", "seconds": None})
    return rows


def tables(rows: list[dict[str, Any]]) -> str:
    """Return times over that of nonneg."""
    lines = []
    for row in rows:
        own = next(
            r
            for r in rows
            if r["method"] == "nonneg" and all(r[key] == row[key] for key in ("shape", "k", "cores"))
        )
        ratio = "-" if row["status"] != "reached" else f"{row['seconds'] / own['seconds']:.1f}"
        data = f"{row['shape'][0]} x {row['shape'][1]}, k={row['k']}"
        iterations = str(row.get("iterations", "-"))
        lines.append((data, str(row["cores"]), row["method"], ratio, iterations, row["status"]))
    return markdown(
        ("data", "cores", "method", "time to the loss, over nonneg's", "iterations", "target"), lines
    )


def main() -> None:
    """Run and print, or also write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", default="6000,4000")
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--pydnmfk", nargs=2, metavar=("MPIRUN", "PYTHON"))
    parser.add_argument("--peers", default="pyplanc anlsbpp,pyplanc hals", help="PLANC's methods to run")
    parser.add_argument("--write", action="store_true", help="write the record under docs/")
    options = parser.parse_args()
    n, m = map(int, options.shape.split(","))
    rows = race((n, m), options.k, options.cores, options.pydnmfk, options.peers.split(","))
    if options.write:
        rows = merge("distributed", rows, ("shape", "k", "cores", "method"))
    sys.stdout.write(tables(rows) + "\n")


if __name__ == "__main__":
    main()
