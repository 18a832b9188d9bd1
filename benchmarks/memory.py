"""Claim: a fit needs little memory beyond X: a few times the two factors, never a dense copy of sparse data.

Each measurement is made in a fresh process: load X, fit once for two iterations so that every kernel is
compiled and loaded, give freed memory back to the system, note the resident memory, reset the kernel's
high-water mark of the process (``/proc/self/clear_refs``) and fit. The peak is the new high-water mark less
the note, so that no sample can fall between two peaks. Where the mark cannot be reset, a thread samples the
resident memory every millisecond, and the record says so.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks import cases, machine
from benchmarks.contender import quiet
from benchmarks.processes import measured_apart
from benchmarks.race import Settings
from benchmarks.records import latest
from benchmarks.tables import markdown, number

NAME = "memory"
TITLE = "Peak memory of a fit beyond X and the imports, kernels warm"
MIB = 2**20
FLOOR = 64e6
"""The part of the bound that does not depend on the data, in bytes."""

MEASURED = {
    "frobenius": (cases.DIGITS, cases.FACES, cases.SCENE, cases.LOW_RANK, cases.CONES, cases.TEXT),
    "kullback-leibler": (cases.COUNTS, cases.TEXT_COUNTS),
    "itakura-saito": (cases.POSITIVE,),
}
INTEGER = (cases.SCENE, cases.TEXT_COUNTS)
"""Measured a second time with whole numbers, which a fit must cast."""


def bound(X: Any, n_components: int) -> float:
    """Return how many bytes a fit may need: 6 times the factors, 64 MB, and what the kind of X allows."""
    floating = X.dtype if np.issubdtype(X.dtype, np.floating) else np.dtype(np.float64)
    allowed = 6.0 * floating.itemsize * n_components * sum(X.shape) + FLOOR
    stored = X.nnz if scipy.sparse.issparse(X) else X.size
    if scipy.sparse.issparse(X):
        allowed += 2.0 * floating.itemsize * stored
    if floating != X.dtype:
        allowed += float(floating.itemsize) * stored
    return allowed


def peak_beyond(call: Callable[[], Any]) -> tuple[float, str]:
    """Return by how many bytes the resident memory rose at most during a call, and how that was measured."""
    gc.collect()
    # With another C library freed memory may stay and be used again, which lowers the peak a little.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
        marked = _status("VmHWM") - _status("VmRSS") < MIB
    except OSError:
        marked = False
    before = _status("VmRSS")
    if marked:
        call()
        return _status("VmHWM") - before, "high-water mark"
    highest, done = [before], threading.Event()

    def sample() -> None:
        while not done.wait(0.001):
            highest[0] = max(highest[0], _status("VmRSS"))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        call()
    finally:
        done.set()
        sampler.join()
    return highest[0] - before, "samples"


def _status(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024.0 * int(line.split()[1])
    raise OSError(f"/proc/self/status has no line {name}")


def measure(case: cases.Case, loss: str, dtype: str, threads: int) -> dict[str, Any]:
    """Return the record of one fit; to be called in a fresh process."""
    from nonneg import NMF

    X, source = case.load(np.dtype(dtype))

    def fit(max_iter: int) -> None:
        model = NMF(
            case.n_components, beta_loss=loss, tol=0, max_iter=max_iter, random_state=0, n_jobs=threads
        )
        with quiet():
            model.fit_transform(X)

    with machine.limited(threads):
        fit(2)
        peak, how = peak_beyond(lambda: fit(20))
    allowed = bound(X, case.n_components)
    return {"source": source, "peak": peak, "allowed": allowed, "met": peak <= allowed, "how": how}


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Measure every case in its own process."""
    for loss, measured in MEASURED.items():
        for case in settings.chosen(measured):
            whole = ("uint16",) if case in INTEGER else ()
            for dtype in settings.dtypes + whole:
                words = [case.name, loss, dtype, str(settings.threads)]
                head = {"claim": NAME} | dict(zip(("case", "loss", "dtype"), words, strict=False))
                head["threads"] = settings.threads
                yield head | measured_apart("memory", *words)


def table(records: list[dict[str, Any]]) -> str:
    """Return the table of the records."""
    rows = []
    for record in latest(records, "case", "loss", "dtype", "threads"):
        cells = [record["case"], record["loss"], record["dtype"], str(record["threads"])]
        if "failure" in record:
            rows.append([*cells, "-", "-", f"failed: {record['failure']}"])
            continue
        peak, allowed = number(record["peak"] / 1e6), number(record["allowed"] / 1e6)
        rows.append([*cells, peak, allowed, "met" if record["met"] else "missed"])
    return markdown(("data", "loss", "type", "threads", "peak (MB)", "bound (MB)", "target"), rows)


def main() -> None:
    """Measure one case and write its record as JSON."""
    parser = argparse.ArgumentParser()
    for name in ("case", "loss", "dtype", "threads"):
        parser.add_argument(name)
    given = parser.parse_args()
    record = measure(cases.ALL[given.case], given.loss, given.dtype, int(given.threads))
    sys.stdout.write(json.dumps(record))


if __name__ == "__main__":
    main()
