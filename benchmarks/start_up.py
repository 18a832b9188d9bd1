"""Claim: `nonneg` starts fast: a light import, and a fast first fit from a cold kernel cache."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks.race import Settings
from benchmarks.records import latest
from benchmarks.tables import markdown, number

NAME = "start_up"
TITLE = "Start-up time in seconds"

IMPORT = """
import numpy, scipy
import time
start = time.perf_counter()
import nonneg
seconds = time.perf_counter() - start
"""

ESTIMATOR = IMPORT.replace("import nonneg\n", "from nonneg import NMF\n")

FIRST_FIT = """
import numpy, scipy.sparse, sklearn.decomposition
from sklearn.datasets import load_digits
X = load_digits().data
import time
start = time.perf_counter()
from {package} import NMF
NMF(16{words}).fit(X)
seconds = time.perf_counter() - start
"""

BARS = {
    "import nonneg, beyond NumPy and SciPy": 0.1,
    "first fit of digits, cold kernel cache": 1.0,
    "first fit of digits, warm kernel cache": 0.3,
}


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Time the imports and the first fits, each in fresh processes."""
    repeats = 3 if settings.quick else 7
    fit = FIRST_FIT.format(package="nonneg", words=f", random_state=0, n_jobs={settings.threads}")
    counts = fit.replace("random_state", "beta_loss='kullback-leibler', random_state")
    theirs = FIRST_FIT.format(package="sklearn.decomposition", words=", random_state=0")
    with tempfile.TemporaryDirectory() as cache:
        # Byte code lies ready, as it does once a package is installed, whatever the shell says about it.
        python = {"PYTHONPYCACHEPREFIX": f"{cache}/python", "PYTHONDONTWRITEBYTECODE": ""}
        kept = python | {"NUMBA_CACHE_DIR": f"{cache}/kernels"}
        for code in (fit, theirs):
            _seconds(code, settings.threads, kept)
        work = {
            "import nonneg, beyond NumPy and SciPy": (IMPORT, kept, repeats),
            "from nonneg import NMF, beyond NumPy and SciPy": (ESTIMATOR, kept, repeats),
            "first fit of digits, cold kernel cache": (fit, python, min(3, repeats)),
            "first fit of digits, warm kernel cache": (fit, kept, repeats),
            "first Kullback-Leibler fit of digits, cold kernel cache": (counts, python, 1),
            "for comparison: scikit-learn's first fit of digits": (theirs, kept, repeats),
        }
        for what, (code, environment, times) in work.items():
            head = {"claim": NAME, "case": what, "threads": settings.threads, "bar": BARS.get(what)}
            try:
                found = [_seconds(code, settings.threads, environment) for _ in range(times)]
            except RuntimeError as error:
                yield head | {"failure": str(error)}
                continue
            seconds = statistics.median(found)
            met = None if head["bar"] is None else seconds <= head["bar"]
            yield head | {"seconds": seconds, "all": found, "met": met}


def _seconds(code: str, threads: int, environment: dict[str, str]) -> float:
    """Return what the code leaves in `seconds`; where no kernel cache is named, it is empty."""
    limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    with tempfile.TemporaryDirectory() as empty:
        variables = os.environ | limits | {"NUMBA_CACHE_DIR": empty} | environment
        words = [sys.executable, "-W", "ignore", "-c", f"{code}\nimport sys\nsys.stdout.write(repr(seconds))"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    return float(done.stdout)


def table(records: list[dict[str, Any]]) -> str:
    """Return the table of the records."""
    rows = []
    for record in latest(records, "case", "threads"):
        bar = record.get("bar")
        if "failure" in record:
            cells = ["-", "-", f"failed: {record['failure']}"]
        else:
            met = {True: "met", False: "missed", None: "-"}[record["met"]]
            cells = [number(record["seconds"]), number(bar), met]
        rows.append([record["case"], str(record["threads"]), *cells])
    return markdown(("what", "threads", "s", "at most", "target"), rows)
