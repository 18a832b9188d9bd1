"""Fits under bad conditions, again and again: `make soak`, or `python -m tests.soak --minutes 30 --seed 0`.

Fits are killed and resumed, run beside each other and beside forks, lose Dask workers, are interrupted, and
meet a full disk. The answer must be that of an undisturbed fit, or an error that says what happened; what was
there before must stay. Counts end the run; the exit status is 1 if anything went wrong.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nonneg import NMF

PATIENCE = 120.0  # seconds after which a process hangs
RESTART = 120.0  # seconds for which Dask may take to start a worker again
TALLY: Counter[str] = Counter()  # what happened, over all rounds
FIT = """
import sys, warnings
import numpy as np
from nonneg import NMF
from nonneg.iteration.checkpoint import Checkpoint
Checkpoint.due = lambda self: True  # save after every iteration
warnings.simplefilter("ignore")
data, folder, out, seed, loss = sys.argv[1:]
print("go", flush=True)
model = NMF(6, init="random", random_state=int(seed), beta_loss=loss, max_iter=150, tol=0)
model.set_params(checkpoint=folder or None)
np.savez(out, W=model.fit_transform(np.load(data)), H=model.components_)
"""


def matrix(rng: np.random.Generator) -> Any:
    """Draw data of a size at which a fit takes about a second."""
    n, m = int(rng.integers(200, 900)), int(rng.integers(50, 300))
    return rng.gamma(0.5, size=(n, 6)) @ rng.gamma(0.5, size=(6, m)) + 0.01 * rng.random((n, m))


def killed_fit(rng: np.random.Generator, folder: Path) -> str:
    """Kill a fit at random moments; started again with its checkpoint, it gives the same bytes."""
    np.save(folder / "X.npy", matrix(rng))
    loss = str(rng.choice(["frobenius", "kullback-leibler"]))
    seed = str(int(rng.integers(1000)))

    def start(checkpoint: str, out: str) -> subprocess.Popen[str]:
        words = [str(folder / "X.npy"), checkpoint, str(folder / out), seed, loss]
        TALLY["fits"] += 1
        return subprocess.Popen([sys.executable, "-c", FIT, *words], stdout=subprocess.PIPE, text=True)

    assert start("", "whole.npz").wait(PATIENCE) == 0
    kills = 0
    for _ in range(int(rng.integers(1, 4))):
        process = start(str(folder / "checkpoint"), "resumed.npz")
        assert process.stdout is not None
        process.stdout.readline()
        try:
            process.wait(float(rng.uniform(0.2, 4.0)))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            TALLY["kills"] += 1
    assert start(str(folder / "checkpoint"), "resumed.npz").wait(PATIENCE) == 0
    with np.load(folder / "whole.npz") as whole, np.load(folder / "resumed.npz") as resumed:
        for name in ("W", "H"):
            assert whole[name].tobytes() == resumed[name].tobytes(), f"{name} differs after {kills} kills"
    return f"killed {kills} times"


def full_disk(rng: np.random.Generator, folder: Path) -> str:
    """Let the disk end while a command writes: one line of error, and results that are whole."""
    np.save(folder / "X.npy", matrix(rng))
    words = [
        "fit",
        str(folder / "X.npy"),
        "-k",
        "3",
        "--max-iter",
        "20",
        "--quiet",
        "-o",
        str(folder / "out"),
    ]
    command = [sys.executable, "-W", "ignore", "-m", "nonneg", *words]
    assert subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE).returncode == 0
    before = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    limit = int(rng.integers(1, 60_000))
    run = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert "Traceback" not in run.stderr, run.stderr
    TALLY["fits"] += 2
    if run.returncode == 0:
        return "enough room"
    TALLY["full disks"] += 1
    after = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    assert run.stderr.strip(), "no word of what happened"
    # The report is drawn when the new results are safe. The same fit once more has the same factors.
    whole = {"H.npy", "W.npy"} if before.keys() - after.keys() == {"report.html"} else before.keys()
    changed = sorted(name for name in whole if before[name] != after.get(name))
    assert not changed, f"the earlier results changed: {changed} of {sorted(before)}, {sorted(after)}"
    return "refused" if whole == before.keys() else "no room for the report"


def concurrent_fits(rng: np.random.Generator, folder: Path) -> str:
    """Fit in several threads at once: each gives what it gives alone, and BLAS has its threads back."""
    from threadpoolctl import threadpool_info

    X = matrix(rng)
    before = sorted((library["filepath"], library["num_threads"]) for library in threadpool_info())
    seeds = [int(seed) for seed in rng.integers(1000, size=4)]
    alone = [_factors(X, seed) for seed in seeds]
    found: dict[int, bytes] = {}
    threads = [
        threading.Thread(target=lambda at=at, seed=seed: found.__setitem__(at, _factors(X, seed)))
        for at, seed in enumerate(seeds)
    ]
    TALLY["concurrent fits"] += len(threads)
    for thread in threads:
        thread.start()
        time.sleep(float(rng.uniform(0, 0.1)))
    for thread in threads:
        thread.join(PATIENCE)
    assert [found.get(at) for at in range(4)] == alone, "a fit beside others differs"
    after = sorted((library["filepath"], library["num_threads"]) for library in threadpool_info())
    assert before == after, f"threads of BLAS before {before}, after {after}"
    return "four threads"


def _factors(X: Any, seed: int) -> bytes:
    TALLY["fits"] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NMF(4, init="random", random_state=seed, max_iter=40, tol=0)
        return bytes(model.fit_transform(X).tobytes() + model.components_.tobytes())


def forked_fits(rng: np.random.Generator, folder: Path) -> str:
    """Fork while other threads fit: every child finishes its own fit."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return "no fork here"
    X, stop = matrix(rng), threading.Event()

    def fit_on() -> None:
        while not stop.is_set():
            _factors(X, 0)

    expected = _factors(X, 1)
    threads = [threading.Thread(target=fit_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            time.sleep(float(rng.uniform(0, 0.3)))
            child = multiprocessing.get_context("fork").Process(target=_check_factors, args=(X, expected))
            child.start()
            TALLY["forked children"] += 1
            child.join(PATIENCE)
            if child.exitcode is None:
                child.kill()
                raise AssertionError("a forked fit hangs")
            assert child.exitcode == 0, f"a forked fit ended with {child.exitcode}"
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return "four children"


def _check_factors(X: Any, expected: bytes) -> None:
    os._exit(0 if _factors(X, 1) == expected else 1)


def interrupted_command(rng: np.random.Generator, folder: Path) -> str:
    """Press Ctrl-C during a command: what it leaves is whole."""
    np.save(folder / "X.npy", matrix(rng))
    words = ["fit", str(folder / "X.npy"), "-k", "6", "--max-iter", "3000", "--tol", "0"]
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "nonneg", *words, "-o", str(folder / "out")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # What a shell runs in the background ignores Ctrl-C, and so do the commands that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    process.stderr.readline()  # before that, Python loads modules
    time.sleep(float(rng.uniform(0.0, 4.0)))
    process.send_signal(signal.SIGINT)
    TALLY.update(("fits", "interruptions"))
    _, told = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in told, told
    assert process.returncode in (0, 130), f"ended with {process.returncode}: {told}"
    if not (folder / "out").exists():
        assert process.returncode == 130, told
        return "nothing written"
    record = json.loads((folder / "out" / "result.json").read_text())
    assert np.load(folder / "out" / "W.npy").shape[1] == 6
    return "interrupted" if record["result"]["stop_reason"]["name"] == "interrupted" else "finished"


def dead_worker(rng: np.random.Generator, folder: Path) -> str:
    """Kill Dask worker processes at random moments of fits: the answer stays the same to the last digit."""
    import dask
    import dask.array
    from distributed import Client, LocalCluster

    X = matrix(rng)
    loss = str(rng.choice(["frobenius", "kullback-leibler"]))
    parameters = {"init": "random", "random_state": int(rng.integers(1000)), "beta_loss": loss}
    model = NMF(4, max_iter=25, tol=0, **parameters)
    killed = 0
    with (
        # Where others keep all cores busy, a worker may take longer to start than the 15 s of the default.
        dask.config.set({"distributed.deploy.lost-worker-timeout": f"{RESTART:g}s"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit="1500MB",
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
        warnings.catch_warnings(),
    ):  # fmt: skip
        warnings.simplefilter("ignore")
        data = dask.array.from_array(X, chunks=(len(X) // 6 + 1, X.shape[1]))
        expected = model.fit_transform(data).compute()
        for _ in range(4):
            victims = _running_workers(cluster, client)
            if len(victims) < 2:
                break
            victim = victims[int(rng.integers(len(victims)))]
            timer = threading.Timer(float(rng.uniform(0.05, 3.0)), os.kill, (victim, signal.SIGKILL))
            timer.start()
            found = model.fit_transform(data).compute()
            died = not timer.is_alive()
            killed += died
            TALLY.update({"fits": 1, "worker deaths": int(died)})
            timer.cancel()
            assert found.tobytes() == expected.tobytes(), "a killed worker changed the answer"
    whole = NMF(4, max_iter=25, tol=0, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        local = whole.fit(X)
    error, wanted = float(model.reconstruction_err_), float(local.reconstruction_err_)
    assert abs(error - wanted) <= 1e-3 * wanted, f"error {error} instead of {wanted}"
    return f"killed {killed} of 4 times"


def _running_workers(cluster: Any, client: Any) -> list[int]:
    """Wait until the worker processes run, for Dask and for their nannies; return their numbers.

    A nanny gives up on a worker that dies while it is started, which takes long on a busy machine.
    """
    end = time.monotonic() + RESTART
    found: list[int] = []
    while len(found) < 2 and time.monotonic() < end:
        time.sleep(0.1)
        known = set(client.run(os.getpid, on_error="ignore").values())
        running = [nanny.process for nanny in cluster.workers.values() if nanny.process is not None]
        found = sorted(one.pid for one in running if one.status.name == "running" and one.pid in known)
    return found


ACTIONS: tuple[Callable[[np.random.Generator, Path], str], ...] = (
    *(killed_fit, full_disk, concurrent_fits, forked_fits, interrupted_command, dead_worker),
)


def main(words: list[str] | None = None) -> int:
    """Disturb fits for some minutes and print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    rng = np.random.default_rng(options.seed)
    counts: dict[str, Counter[str]] = {action.__name__: Counter() for action in ACTIONS}
    end, n_wrong, n_done = time.monotonic() + 60 * options.minutes, 0, 0
    while time.monotonic() < end:
        action = ACTIONS[n_done % len(ACTIONS)]
        n_done += 1
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome = action(rng, Path(folder))
            except Exception:
                n_wrong += 1
                outcome = "WRONG"
                print(f"{action.__name__}, round {n_done}:\n{traceback.format_exc()}", flush=True)
        counts[action.__name__][outcome] += 1
    for name, outcomes in counts.items():
        print(f"{name}: " + ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common()))
    print(", ".join(f"{count} {what}" for what, count in TALLY.most_common()))
    print(f"{n_done} rounds in {options.minutes:g} minutes, seed {options.seed}: {n_wrong} went wrong")
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
