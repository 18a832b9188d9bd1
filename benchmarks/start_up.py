"""Claim: nothing is compiled at the first call: it takes as long as the second one, plus 0.1 s.

On one thread the clock is that of the process, which other work does not advance: on a busy machine
two calls of three seconds differ by more than 0.1 s whatever they do. Nothing in a call waits.
"""

from __future__ import annotations

import json
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
TITLE = "First and second calls in seconds"

# Public entries on small data; `X` are the digits, `rng` a generator.
ENTRIES = {
    "NMF": "NMF(8, random_state=0).fit(X)",
    "NMF, sparse": "NMF(8, random_state=0).fit(scipy.sparse.csr_array(X))",
    "NMF, Kullback-Leibler": "NMF(8, beta_loss='kullback-leibler', random_state=0).fit(X)",
    "NMF, sparse, Kullback-Leibler": (
        "NMF(8, beta_loss='kullback-leibler', random_state=0).fit(scipy.sparse.csr_array(X))"
    ),
    "NMF, Itakura-Saito": "NMF(8, beta_loss='itakura-saito', random_state=0, max_iter=50).fit(X + 1)",
    "NMF, beta = 0.5": "NMF(8, beta_loss=0.5, random_state=0, max_iter=50).fit(X + 1)",
    "non_negative_factorization": "non_negative_factorization(X, n_components=8, random_state=0)",
    "factorize": "factorize(X, 8, rng=0)",
    "estimate_rank": "estimate_rank(X[:300])",
    "ConeNMF": "ConeNMF(8, random_state=0).fit(X)",
    "SeparableNMF": "SeparableNMF(8, random_state=0).fit(X)",
    "select_anchors": "select_anchors(X, 8, rng=0)",
    "MinVolNMF": "MinVolNMF(4, max_iter=20).fit(X)",
    "PurificationNMF": "PurificationNMF(4, random_state=0, max_iter=20).fit(X)",
    "TransformNMF": "TransformNMF(3, random_state=0, max_iter=20).fit(frames)",
    "learn_transform": "learn_transform(frames, 3, rng=0, max_iter=20)",
    "joint_diagonalize": "joint_diagonalize(covariances, rng=0, max_iter=20)",
    "ConsensusNMF": "ConsensusNMF(4, n_init=5, random_state=0).fit(X[:300] + 1)",
    "TopicModel": "TopicModel(4, random_state=0).fit(scipy.sparse.csr_array(X.round()))",
    "MixedMembership": "MixedMembership(3, random_state=0).fit(graph)",
    "Unmixing": "Unmixing(3, random_state=0).fit(X[:900].reshape(30, 30, 64) + 1)",
    "SourceSeparation": "SourceSeparation(2, random_state=0).fit(sound, 8000)",
    "MutationalSignatures": "MutationalSignatures(3, random_state=0).fit(counts)",
}

CALLS = """
import json, time, warnings
warnings.simplefilter("ignore")
import numpy, scipy.sparse, sklearn.decomposition
from sklearn.datasets import load_digits
start = time.perf_counter()
from nonneg import NMF
loading = time.perf_counter() - start
from nonneg import *
from nonneg.applications import *
X, rng = load_digits().data, numpy.random.default_rng(0)
frames = rng.standard_normal((2, 40, 16))
covariances = frames.swapaxes(1, 2) @ frames
sound = rng.standard_normal(8000)
counts = rng.poisson(20.0, (40, 96)).astype(float)
blocks = scipy.sparse.block_diag([numpy.ones((20, 20)) - numpy.eye(20)] * 3).toarray()
ring = numpy.roll(numpy.eye(60), 1, 0)
graph = scipy.sparse.csr_array(numpy.maximum(blocks, ring + ring.T))
seconds, clock = [loading], time.{clock}
for _ in range(2):
    start = clock()
    {call}
    seconds.append(clock() - start)
print(json.dumps(seconds))
"""

# Seconds: an import beyond scikit-learn's, and what a first call may take beyond the second one.
IMPORT_BAR, FIRST_BAR = 0.3, 0.1


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Time the import, and two calls of every entry, each in fresh processes."""
    repeats, imports = 1 if settings.quick else 3, []
    with tempfile.TemporaryDirectory() as cache:
        # Byte code lies ready, as it does once a package is installed, whatever the shell says about it.
        ready = {"PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
        for name in settings.named(ENTRIES):
            head = {"claim": NAME, "case": name, "threads": settings.threads}
            try:
                _seconds(ENTRIES[name], settings.threads, ready)
                found = [_seconds(ENTRIES[name], settings.threads, ready) for _ in range(repeats)]
            except RuntimeError as error:
                yield head | {"failure": str(error)}
                continue
            imports += [each[0] for each in found]
            first, second = (statistics.median(each[at] for each in found) for at in (1, 2))
            extra = statistics.median(each[1] - each[2] for each in found)
            yield head | {"first": first, "second": second, "extra": extra, "met": extra <= FIRST_BAR}
    if imports:
        seconds = statistics.median(imports)
        name = "from nonneg import NMF, beyond scikit-learn"
        head = {"claim": NAME, "case": name, "threads": settings.threads}
        yield head | {"first": seconds, "second": None, "extra": None, "met": seconds <= IMPORT_BAR}


def _seconds(call: str, threads: int, environment: dict[str, str]) -> list[float]:
    """Return the seconds of the import and of two calls."""
    limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    clock = "process_time" if threads == 1 else "perf_counter"
    words = [sys.executable, "-c", CALLS.format(call=call, clock=clock)]
    variables = os.environ | limits | environment
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    return list(map(float, json.loads(done.stdout.splitlines()[-1])))


def table(records: list[dict[str, Any]]) -> str:
    """Return the table of the records."""
    rows = []
    for record in latest(records, "case", "threads"):
        if "failure" in record:
            cells = ["-", "-", "-", f"failed: {record['failure']}"]
        else:
            cells = [number(record[name]) for name in ("first", "second", "extra")]
            cells.append("met" if record["met"] else "missed")
        rows.append([record["case"], str(record["threads"]), *cells])
    head = (
        "what",
        "threads",
        "first",
        "second",
        "first - second",
        f"at most {FIRST_BAR} (import {IMPORT_BAR})",
    )
    return markdown(head, rows)
