"""Claims: iterations of transform learning and joint diagonalization cost little more than their products.

An iteration is one step of the loop: kernels, measures and history included. The yardstick is the products
that an iteration cannot do without, with BLAS, in the same process on as many threads: those of the updates
of the factors, one of the data with the transform, two gradients, and one rotation (for long frames, six
products of its size make the exponential). Both take turns and the medians count; the multiplications of an
iteration are counted too. The study of Figure 2 is run whole, on two threads. The peer of the joint
diagonalization is `qndiag`, which has no orthogonal variant: its time for an iteration on the same
covariances is given.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.contender import stopwatch
from benchmarks.processes import measured_apart
from benchmarks.race import Settings
from benchmarks.records import latest
from benchmarks.tables import markdown, number

NAME = "transforms"
TITLE = (
    "Transform learning (TL) and joint diagonalization (JD): an iteration, a recording, the study of Figure 2"
)
SEED = 20240601
SMALL = {"method": "tl", "kind": "gcm", "bar": 0.25e-3, "goal": 0.16e-3}
ITERATIONS: dict[str, dict[str, Any]] = {
    **{f"tl gcm S={S}": SMALL | {"S": S} for S in (10, 100, 1000)},
    **{f"tl gcm S={S}, 100 restarts": SMALL | {"S": S, "n_init": 100} for S in (10, 100, 1000)},
    "tl music S=1": {"method": "tl", "kind": "music", "S": 1, "bar": 10e-3},
    "tl music S=100": {"method": "tl", "kind": "music", "S": 100, "bar": 20e-3},
    "jd music S=1": {"method": "jd", "kind": "music", "S": 1, "bar": 12e-3},
    "jd music S=100": {"method": "jd", "kind": "music", "S": 100, "bar": 12e-3},
}
"""Maximum seconds per iteration and restart on one thread."""
RECORDING, STUDY = "recording of 10 s", "study of Figure 2, GCM"
BARS = {RECORDING: 60.0, STUDY: 600.0}
# A recording of ten seconds: its rate, and frames of 512 samples, half of which overlap.
SAMPLE_RATE, FRAME_LENGTH, N_COMPONENTS, FIT_ITERATIONS = 16_000, 512, 8, 100
AUTHORS = {
    "tl gcm S=100, 100 restarts": 3.9e-3,
    "tl music S=1": 16.7e-3,
    "tl music S=100": 379e-3,
    "jd music S=1": 0.27,
    "jd music S=100": 0.27,
}
"""Seconds of the authors' code for the same iteration, on another machine."""


def problem(case: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the data, initial states and options of a case."""
    from reproduction.tlnmf.both_methods import drawn_frames, options_of, parameters

    from nonneg.transforms import frame_covariances
    from nonneg.transforms.initialization import initial_state
    from nonneg.transforms.reduction import reduced_frames, reduced_state

    data = frame_covariances(drawn_frames(case["kind"], case["S"], 0))
    tl, jd = options_of(case["kind"])
    k = parameters(case["kind"])["K"]
    inits = initial_state(data, k, init=None, n_init=case.get("n_init", 1), rng=SEED)
    work = reduced_frames(data)
    return work, reduced_state(inits, work), tl if case["method"] == "tl" else jd


def bare_products(case: dict[str, Any], data: Any, options: Any) -> Callable[[], None]:
    """Return a function that makes the products of one iteration of one restart and nothing else."""
    rng = np.random.default_rng(SEED)
    rows = np.ascontiguousarray(data.rows)
    m, p, n = data.frame_length, rows.shape[1], data.n_frames
    k = 5 if case["kind"] == "gcm" else 2
    P, R = rng.normal(size=(m, p)), rng.normal(size=(m, m))
    X, G, moved = np.empty((len(rows), m)), np.empty((m, m)), np.empty((m, p))
    H, W, V = rng.random((k, m)), rng.random((n, k)), rng.random((n, m))
    model, left, right = np.empty((n, m)), np.empty((n, k)), np.empty((k, m))
    n_updates = options.n_nmf_updates if case["method"] == "tl" else 0

    def products() -> None:
        for _ in range(n_updates):
            for _ in range(2):
                np.matmul(W, H, out=model)
                np.matmul(V, H.T, out=left)
                np.matmul(W.T, V, out=right)
        np.matmul(R, P, out=moved)
        np.matmul(rows, moved.T, out=X)
        for _ in range(2 if case["method"] == "tl" else 1):
            np.matmul(X.T, X, out=G)
        # The rotation of a skew matrix: six products of its size.
        for _ in range(6):
            np.matmul(R, R, out=G)

    return products


def multiplications(case: dict[str, Any], data: Any, options: Any) -> float:
    """Count the multiply-adds of one iteration of one restart with one trial step."""
    m, n, n_rows = data.frame_length, data.n_frames, len(data.rows)
    k = 5 if case["kind"] == "gcm" else 2
    learning = case["method"] == "tl"
    updates = 6.0 * m * n * k * options.n_nmf_updates if learning else 0.0
    gradients = (2 if learning else 1) * n_rows * m * (m - 1) / 2
    return updates + float(n_rows * m * data.rows.shape[1]) + gradients + m * m * n + 7.0 * m**3


def measure_iteration(name: str, threads: int, turns: int) -> dict[str, Any]:
    """Return the record of an iteration."""
    from nonneg._threads import threads as limit
    from nonneg.transforms import LoopOptions

    case = ITERATIONS[name]
    data, inits, options = problem(case)
    products = bare_products(case, data, options)
    per_turn = 5 if case["kind"] == "music" else 20 if case.get("n_init") else 200
    ours: list[float] = []
    yardstick: list[float] = []
    with machine.limited(threads), limit(threads):
        state = LoopOptions(5).run(case["method"], inits, data, options, "").state
        products()
        for _ in range(turns):
            with stopwatch() as taken:
                state = LoopOptions(per_turn).run(case["method"], state, data, options, "").state
                ours.append(taken() / per_turn / inits.batch)
            with stopwatch() as taken:
                for _ in range(per_turn):
                    products()
                yardstick.append(taken() / per_turn)
    seconds, other = statistics.median(ours), statistics.median(yardstick)
    record = {"seconds": seconds, "products": other, "ratio": seconds / other, "bar": case["bar"]}
    record["multiplications"] = multiplications(case, data, options)
    return record | {"met": seconds <= case["bar"] if threads == 1 else None, "goal": case.get("goal")}


def recording() -> Any:
    """Return ten seconds of two notes with vibrato and noise, as frames."""
    rng = np.random.default_rng(SEED)
    t = np.arange(10 * SAMPLE_RATE) / SAMPLE_RATE
    sound = 0.003 * rng.normal(size=t.size)
    for pitch, rate in ((220.0, 5.0), (311.1, 6.0)):
        angle = 2 * np.pi * pitch * t + 2.0 * np.sin(2 * np.pi * rate * t)
        envelope = np.exp(-2.0 * np.mod(t + pitch / 500, 1.3))
        sound += sum(envelope * np.cos(r * angle) / r**2 for r in range(1, 6))
    window = np.sqrt(np.hanning(FRAME_LENGTH + 1)[:-1])
    frames = np.lib.stride_tricks.sliding_window_view(sound, FRAME_LENGTH)[:: FRAME_LENGTH // 2]
    return np.ascontiguousarray(frames * window)


def measure_recording(threads: int) -> dict[str, Any]:
    """Return the record of a fit of a recording."""
    from nonneg import learn_transform

    frames = recording()
    options: dict[str, Any] = {"tol": 0.0, "rng": 0, "n_jobs": threads}
    with machine.limited(threads):
        learn_transform(frames[:20, :64], 2, max_iter=1, **options)
        with stopwatch() as taken:
            result = learn_transform(frames, N_COMPONENTS, max_iter=FIT_ITERATIONS, **options)
            seconds = taken()
    met = seconds <= BARS[RECORDING] if threads == 1 else None
    return {
        "seconds": seconds,
        "bar": BARS[RECORDING],
        "met": met,
        "n_frames": len(frames),
        "n_iter": result.n_iter,
        "divergence": result.divergence,
    }


def measure_study(threads: int) -> dict[str, Any]:
    """Return the record of Figure 2's GCM study: seven S, 100 restarts, 1000 iterations, both methods."""
    from reproduction.tlnmf.both_methods import solve_both
    from reproduction.tlnmf.figure_2 import trials

    from nonneg._threads import threads as limit

    settings = [s for s in trials(False) if s["kind"] == "gcm" and s["draw"] == 0]
    parts: dict[str, float] = {}
    with machine.limited(threads), limit(threads):
        solve_both(settings[0] | {"n_init": 1, "max_iter": 1})
        for setting in settings:
            with stopwatch() as taken:
                solve_both(setting)
                parts[str(setting["S"])] = taken()
    seconds = sum(parts.values())
    met = seconds <= BARS[STUDY] if threads == 2 else None
    return {"seconds": seconds, "parts": parts, "bar": BARS[STUDY], "met": met}


def measure_peer(threads: int) -> dict[str, Any]:
    """Return the record of `qndiag` on the covariances of the music notes."""
    try:
        from qndiag import qndiag
    except ImportError:
        return {"failure": "qndiag is not installed"}
    from reproduction.tlnmf.both_methods import drawn_frames, parameters

    from nonneg.transforms.rotations.group import random_orthogonal

    Y = drawn_frames("music", 100, 0)
    Sigma = np.einsum("sna,snb->nab", Y, Y, optimize=True) / len(Y)
    Sigma += parameters("music")["eps0"] * np.eye(Sigma.shape[1])
    with machine.limited(threads), stopwatch() as taken:
        qndiag(Sigma, B0=random_orthogonal(Sigma.shape[1], 0), max_iter=5, tol=0.0)
        seconds = taken() / 5
    return {"seconds": seconds, "met": None}


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Measure everything, each in a process of its own."""
    cases = [*ITERATIONS, RECORDING, "qndiag, JD music S=100"]
    if not settings.quick and settings.threads == 2:
        cases.append(STUDY)
    for name in cases:
        if settings.only_cases and not any(part in name for part in settings.only_cases):
            continue
        head = {"claim": NAME, "case": name, "threads": settings.threads}
        turns = 5 if settings.quick else 21
        yield head | measured_apart("transforms", name, settings.threads, turns)


def table(records: list[dict[str, Any]]) -> str:
    """Return the table of the records."""
    rows = []
    for record in latest(records, "case", "threads"):
        cells = [record["case"], str(record["threads"])]
        if "failure" in record:
            rows.append([*cells, f"failed: {record['failure']}", "-", "-", "-", "-", "-"])
            continue
        long = record["seconds"] >= 1
        told = f"{number(record['seconds'])} s" if long else f"{number(record['seconds'] * 1e3)} ms"
        ratio = f"{record['ratio']:.2f}" if "ratio" in record else "-"
        count = f"{record['multiplications'] / 1e6:.3g} M" if "multiplications" in record else "-"
        bar = "-"
        if "bar" in record:
            bar = f"{record['bar']:g} s" if record["bar"] >= 1 else f"{record['bar'] * 1e3:g} ms"
        if record.get("goal"):
            bar += f" (goal {record['goal'] * 1e3:g})"
        authors = AUTHORS.get(record["case"])
        theirs = "-" if authors is None else f"{authors * 1e3:g} ms"
        word = {True: "met", False: "missed", None: ""}[record["met"]]
        rows.append([*cells, told, count, ratio, theirs, bar, word])
    heads = (
        "what",
        "threads",
        "measured",
        "multiplications",
        "times the products",
        "authors' code",
        "target (1 thread)",
        "",
    )
    return markdown(heads, rows)


def main() -> None:
    """Measure one thing and write its record as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("threads", type=int)
    parser.add_argument("turns", type=int, nargs="?", default=21)
    given = parser.parse_args()
    if given.name in ITERATIONS:
        record = measure_iteration(given.name, given.threads, given.turns)
    elif given.name == RECORDING:
        record = measure_recording(given.threads)
    elif given.name == STUDY:
        record = measure_study(given.threads)
    else:
        record = measure_peer(given.threads)
    sys.stdout.write(json.dumps(record))


if __name__ == "__main__":
    main()
