"""Claim: greedy selection of anchors is right, and quicker than the libraries that offer it.

All get the same separable points. A peer is tried as it is; where it stops at a name that NumPy or SciPy no
longer has, that is recorded, and it is tried again with the name put back, so that its answer and its time
can be seen too.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
import scipy.linalg

from benchmarks import machine
from benchmarks.contender import quiet, stopwatch
from benchmarks.race import Settings
from benchmarks.records import latest
from benchmarks.tables import markdown, number

NAME = "anchor_peers"
TITLE = "Greedy anchor selection compared with nimfa and pysptools: anchors found, and seconds"
VERSIONS = {"nimfa": "1.4.0", "pysptools": "0.15.0"}
OLD_NAMES = "old names put back"
LONG = 20.0
"""A run of this many seconds is neither repeated nor used to warm up: loading is a small part of it."""


@dataclass(frozen=True)
class PointsCase:
    """Separable points."""

    name: str  # what it is called
    n_samples: int  # its size
    n_features: int
    n_anchors: int
    snr: float | None = None  # signal-to-noise ratio in dB; None for no noise
    # Parameter of the Dirichlet distribution: far below 1 most points lie close to an anchor.
    alpha: float = 1.0
    quick: bool = False  # whether it belongs to the small cases

    def load(self, dtype: Any) -> tuple[Any, set[int]]:
        """Return the points and the true anchors."""
        from nonneg.datasets import separable_dirichlet

        data = separable_dirichlet(
            self.n_samples, self.n_features, self.n_anchors, snr=self.snr, alpha=self.alpha, rng=0
        )
        return np.maximum(data.X, 0.0).astype(dtype), set(data.anchors.tolist())


CASES = (
    PointsCase("500 x 50, 10 anchors", 500, 50, 10, quick=True),
    PointsCase("500 x 50, 10 anchors, points close to them", 500, 50, 10, alpha=0.05),
    PointsCase("500 x 50, 10 anchors, 20 dB", 500, 50, 10, snr=20.0),
    PointsCase("20000 x 100, 30 anchors", 20_000, 100, 30),
)


def _nonneg(method: str) -> Callable[[Any, int, int], Any]:
    def run(X: Any, k: int, threads: int) -> Any:
        from nonneg import select_anchors

        return select_anchors(X, k, method=method, rng=0, n_jobs=threads).anchors

    return run


def _nimfa(selection: str) -> Callable[[Any, int, int], Any]:
    def run(X: Any, k: int, threads: int) -> Any:
        import nimfa

        model = nimfa.SepNmf(X.T.copy(), rank=k, selection=selection)
        # Its public call also solves for the weights; the selection alone is what is compared.
        return [int(place) for place in model.selection(model.V)]

    return run


def _pysptools(name: str) -> Callable[[Any, int, int], Any]:
    def run(X: Any, k: int, threads: int) -> Any:
        import pysptools.eea

        method = getattr(pysptools.eea, name)()
        method.extract(X.reshape(1, *X.shape), k)
        return [int(place[0]) for place in method.get_idx()]

    return run


CONTENDERS: dict[str, Callable[[Any, int, int], Any]] = {
    **{f"nonneg {name}": _nonneg(name) for name in ("spa", "snpa", "xray", "fast-anchor", "vca")},
    "nimfa SPA": _nimfa("spa"),
    "nimfa XRAY": _nimfa("xray"),
    "pysptools ATGP": _pysptools("ATGP"),
    "pysptools NFINDR": _pysptools("NFINDR"),
    "pysptools PPI": _pysptools("PPI"),
}


class _Determinants:
    """Stand-in for a SciPy module that pysptools needs and SciPy no longer has."""

    @staticmethod
    def sdet_c(matrix: Any) -> tuple[float, int]:
        return float(np.linalg.det(matrix)), 0

    ddet_r = ddet_c = sdet_r = sdet_c


@contextmanager
def old_names() -> Iterator[None]:
    """Put back the names that NumPy and SciPy have removed since the peers were written."""
    wanted = [(np, "mat", np.asmatrix), (np, "int", int), (np, "float", float), (np, "bool", bool)]
    wanted.append((scipy.linalg, "_flinalg", _Determinants))
    missing = [entry for entry in wanted if entry[1] not in vars(entry[0])]
    for home, name, value in missing:
        setattr(home, name, value)
    try:
        yield
    finally:
        for home, name, _ in missing:
            delattr(home, name)


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Race the contenders on every case."""
    with machine.limited(settings.threads) as told:
        for case in settings.chosen(CASES):
            X, true = case.load(np.float64)
            for name, contender in CONTENDERS.items():
                for record in _race(name, contender, X, true, case.n_anchors, settings):
                    head = {"claim": NAME, "case": case.name, "dtype": "float64", "threads": settings.threads}
                    yield head | record | {"libraries": told}


def _race(
    name: str, contender: Callable[[Any, int, int], Any], X: Any, true: set[int], k: int, settings: Settings
) -> Iterator[dict[str, Any]]:
    ours = name.startswith("nonneg")
    record = {"contender": name, "version": None if ours else _version(name.split()[0].lower())}
    outcome = _timed(contender, X, true, k, settings)
    yield record | outcome
    if "no attribute" in outcome.get("failure", "") or "was removed" in outcome.get("failure", ""):
        with old_names():
            yield record | {"contender": f"{name}, {OLD_NAMES}"} | _timed(contender, X, true, k, settings)


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def _timed(
    contender: Callable[[Any, int, int], Any], X: Any, true: set[int], k: int, settings: Settings
) -> dict[str, Any]:
    times, found = [], None
    try:
        for turn in range(settings.repeats + 1):
            with quiet(), stopwatch() as seconds:
                found = contender(X.copy(), k, settings.threads)
                taken = seconds()
            if turn > 0 or taken > LONG:  # the first turn compiles and loads
                times.append(taken)
            if taken > LONG:
                break
    except Exception as error:  # whatever a peer raises is its result
        lines = [line for line in str(error).splitlines() if line.strip()]
        return {"failure": f"{type(error).__name__}: {lines[0] if lines else 'no message'}"}
    share = len(true & {int(place) for place in found}) / len(true)
    return {"seconds": statistics.median(times), "all": times, "found": share}


def table(records: list[dict[str, Any]]) -> str:
    """Return the table of the records."""
    rows = []
    for record in latest(records, "case", "threads", "contender"):
        cells = [record["case"], str(record["threads"]), record["contender"], record.get("version") or "-"]
        if "failure" in record:
            rows.append([*cells, "-", "-", record["failure"]])
        else:
            rows.append([*cells, f"{record['found']:.2f}", number(record["seconds"]), "-"])
    return markdown(("data", "threads", "contender", "version", "anchors found", "s", "failed because"), rows)
