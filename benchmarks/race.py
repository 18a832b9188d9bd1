"""The judge: time of each contender from the same initialization to the loss of the reference peer.

The reference (scikit-learn, a fixed number of passes, tol=0) is run first; the judge scores its factors in
float64, and that is the target. `nonneg` runs until its own loss is at most the target and then encodes, and
its factors are scored by the judge as well: a record says when they miss the target. Other peers, which
have no callback, are given the smallest number of passes with which they reach the target, found by
doubling and bisection, and the time of that one run counts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.cases import SEED, Case, random_init
from benchmarks.contender import CannotRunError, Ours, Outcome, Peer, Task
from benchmarks.ours import nonneg_factorize
from benchmarks.peers import PEERS
from benchmarks.score import score

MARGIN = {"float64": 1e-12, "float32": 1e-6}
"""Relative tolerance within which the judge's loss may exceed the target: rounding only."""

REST = 0.2
"""Seconds of rest before each run: the threads of a BLAS spin for some hundredths after its last product."""


@dataclass(frozen=True)
class Bar:
    """A number that the ratios of a group of cases must reach."""

    statistic: str  # of the ratios of the group
    kind: str  # the group
    land: float  # what is asked for, and what is aimed at
    goal: float
    land_on_all: float | None = None  # what is asked for on 16 threads, where it is another number


@dataclass(frozen=True)
class RaceClaim:
    """A claim of speed."""

    name: str  # the name of the file, the records and the page
    title: str  # the heading of its table
    loss: str  # what is minimized
    cases: tuple[Case, ...]  # on which data
    reference: str  # the peer that sets the target
    passes: int  # after this many passes
    bars: tuple[Bar, ...]  # what is claimed
    others: tuple[str, ...] = ()  # further peers, raced to the same target


@dataclass(frozen=True)
class Settings:
    """Settings of the races."""

    threads: int = 1  # for every contender
    dtypes: tuple[str, ...] = ("float64", "float32")  # types of the entries
    repeats: int = 3  # the reference and `nonneg` take turns this many times; medians are reported
    quick: bool = False  # only the small cases
    others: bool = True  # whether further peers race
    only_cases: tuple[str, ...] = ()  # substrings of the names of the cases to run; all if empty

    def chosen(self, cases: tuple[Case, ...]) -> list[Case]:
        """Return the cases to run."""
        return [
            case
            for case in cases
            if (case.quick or not self.quick)
            and (not self.only_cases or any(part in case.name for part in self.only_cases))
        ]

    def named(self, names: Iterable[str]) -> list[str]:
        """Return the cases of a measurement to run, in their order."""
        known = list(names)
        wanted = [
            [part] if part in known else [name for name in known if part in name] for part in self.only_cases
        ]
        return [name for name in known if not self.only_cases or any(name in some for some in wanted)]


def run_claim(
    claim: RaceClaim,
    settings: Settings,
    ours: Ours = nonneg_factorize,
    peers: dict[str, Peer] = PEERS,
    about_to_run: Callable[[dict[str, Any]], None] = lambda head: None,
) -> Iterator[dict[str, Any]]:
    """Race on every case, one record a contender."""
    for case in settings.chosen(claim.cases):
        for dtype in settings.dtypes:
            X, source = case.load(np.dtype(dtype))
            head = {
                "claim": claim.name,
                "case": case.name,
                "kind": case.kind,
                "source": source,
                "loss": claim.loss,
                "dtype": dtype,
                "threads": settings.threads,
            }
            duels = []
            for seed in range(case.n_init):
                task = Task(X, *random_init(X, case.n_components, SEED + seed), claim.loss, settings.threads)
                duels.append((_duel(claim, task, settings, ours, peers[claim.reference], dtype), task))
            duel, task = _middle(duels)
            yield head | {"contender": "nonneg", "reference": claim.reference, "passes": claim.passes} | duel
            if settings.others and duel["target"] is not None:
                for name in claim.others:
                    budget = 4 * duel["reference_seconds"] + 5
                    about_to_run(head | {"contender": name})
                    yield head | {"contender": name} | to_target(peers[name], task, duel["target"], budget)


def _middle(duels: list[tuple[dict[str, Any], Task]]) -> tuple[dict[str, Any], Task]:
    """Return the duel with the median ratio over the initializations, with zero for a missed target."""

    def ratio(duel: dict[str, Any]) -> float:
        return duel["ratio"] if duel.get("reached") else 0.0

    duel, task = sorted(duels, key=lambda pair: ratio(pair[0]))[(len(duels) - 1) // 2]
    ratios = [ratio(other) for other, _ in duels]
    return duel | {"n_init": len(duels), "init_ratios": ratios}, task


def _duel(
    claim: RaceClaim, task: Task, settings: Settings, ours: Ours, reference: Peer, dtype: str
) -> dict[str, Any]:
    """Return the medians of the reference and of `nonneg`, taking turns."""
    tiny = tiny_task(task)
    warm_up: list[str] = []
    for what, call in (
        ("reference", lambda: (reference(tiny, 2), reference(task, 1))),
        # A target that cannot be reached: a few iterations on both tasks, those in float32 included.
        ("nonneg", lambda: (ours(tiny, -np.inf, 0.2), ours(task, -np.inf, 0.2))),
    ):
        try:
            call()
        except Exception as error:  # a failure of a contender belongs in the record
            warm_up.append(f"{what}: {type(error).__name__}: {error}")
    theirs: list[Outcome] = []
    own: list[Outcome] = []
    target = None
    failure = None
    for _ in range(settings.repeats):
        time.sleep(REST)
        theirs.append(reference(task, claim.passes))
        if target is None:
            target = score(task.X, theirs[0].W, theirs[0].H, task.loss)
        if failure is None:
            try:
                time.sleep(REST)
                own.append(ours(task, target, max(5 * theirs[0].seconds, 2.0)))
            except Exception as error:  # as above
                failure = f"{type(error).__name__}: {error}"
    reference_seconds = statistics.median(outcome.seconds for outcome in theirs)
    record = {
        "repeats": settings.repeats,
        "target": target,
        "reference_seconds": reference_seconds,
        "reference_all": [outcome.seconds for outcome in theirs],
        "warm_up_failures": warm_up,
        "failure": failure,
    }
    return record | (_own_record(task, own, target, reference_seconds, dtype) if own else {})


def _own_record(
    task: Task, own: list[Outcome], target: float | None, reference_seconds: float, dtype: str
) -> dict[str, Any]:
    assert target is not None
    middle = sorted(own, key=lambda outcome: outcome.seconds)[len(own) // 2]
    seconds = statistics.median(outcome.seconds for outcome in own)
    loss = score(task.X, middle.W, middle.H, task.loss)
    clock = middle.notes.get("clock_seconds", float("nan"))
    return {
        "seconds": seconds,
        "all": [outcome.seconds for outcome in own],
        "ratio": reference_seconds / seconds,
        "clock_ratio": reference_seconds / clock if clock else float("nan"),
        "n_iter": middle.n_iter,
        "final_loss": loss,
        "excess": (loss - target) / abs(target),
        "reached": bool(loss <= target + MARGIN[dtype] * abs(target)),
    } | middle.notes


def tiny_task(task: Task, n_samples: int = 48, n_features: int = 36, n_components: int = 4) -> Task:
    """Return a small task of the same kind, on which compiled code is compiled before any clock starts."""
    rng = np.random.default_rng(0)
    X: Any = (rng.random((n_samples, n_features)) + 0.1).astype(task.X.dtype)
    if scipy.sparse.issparse(task.X):
        X = type(task.X)(scipy.sparse.csr_array(np.where(rng.random(X.shape) < 0.3, X, 0)))
    W, H = random_init(X, n_components)
    return Task(X, W, H, task.loss, task.threads)


def to_target(peer: Peer, task: Task, target: float, budget: float, first: int = 16) -> dict[str, Any]:
    """Return how long a peer takes to the target with the fewest passes that reach it."""
    try:
        peer(tiny_task(task), 2)
        return _search(peer, task, target, budget, first)
    except CannotRunError as error:
        return {"status": "cannot run", "reason": str(error)}
    except Exception as error:  # a failure of a peer is recorded, not hidden
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}"}


def _search(peer: Peer, task: Task, target: float, budget: float, passes: int) -> dict[str, Any]:
    spent, missed, best = 0.0, 0, None
    while True:
        outcome = peer(task, passes)
        loss = score(task.X, outcome.W, outcome.H, task.loss)
        spent += outcome.seconds
        if loss <= target:
            best = {"passes": passes, "seconds": outcome.seconds, "final_loss": loss}
        else:
            missed = passes
        if best is None:
            if spent + 2 * outcome.seconds > budget:
                reason = f"loss {loss:.6g} after {passes} passes and {outcome.seconds:.3g} s"
                return {"status": "not reached", "reason": reason, "final_loss": loss}
            passes *= 2
            continue
        if best["passes"] - missed <= max(1, best["passes"] // 20) or spent + best["seconds"] > 2 * budget:
            return {"status": "reached"} | best
        passes = (best["passes"] + missed) // 2
