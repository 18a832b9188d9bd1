"""Which initialization is the first to reach an error: the cases of Table V, and data sets of other kinds."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from nonneg.initializers.cone_or_random import unexplained_by_cones
from nonneg.initializers.registry import INITS as PACKAGE_INITS
from nonneg.losses.penalties import Penalties
from nonneg.solvers.registry import SOLVERS
from reproduction.artifacts import Artifact, Paragraph, Table, Verdict
from reproduction.cr1.algorithm_runs import best_multiple, run_from
from reproduction.cr1.init_times import SET_NAMES
from reproduction.cr1.initializations import Initialization, Samples, make_init, seeded
from reproduction.cr1.plain_algorithms import relative_error
from reproduction.cr1.real_sets import FOLDERS, QUICK, TIMED, load_set
from reproduction.cr1.table_5 import LEVELS
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES
from reproduction.studies.initialization_choices import choice_table
from reproduction.studies.initialization_sets import OTHER_FOLDERS, OTHERS

NAME = "studies/initialization"
RECOMMENDED = "cone-or-random"
PUBLISHED = ("rand", "cr1-nmf")
"""The initializations of Table V that are not those of the package."""
INITS = (*PUBLISHED, "random", "nndsvd", "nndsvda", "cone", RECOMMENDED, "cone-merge")
DETERMINISTIC = ("nndsvd", "nndsvda", "cone")
FOR_SLOW = "cone-merge"
"""What is recommended for alternating least squares."""
SOLVER_NAMES = {
    "nnlsb": "nnlsb, as in Table V",
    "hals": "HALS, the default of NMF",
    "anls": 'solver="anls", with extrapolation',
}
SETS = {"nnlsb": TIMED, "hals": (*TIMED, *OTHERS), "anls": (*TIMED, *OTHERS)}
N_SEEDS, FEWER_SEEDS = 10, {"ckplus48": 5}
MAX_ITER = {"nnlsb": 40, "hals": 60, "anls": 40}
SLOWEST = "ckplus48"
GRID = (*range(1, 13), 14, 16, 18, 20, 24, 28, 32, 36, 40, 45, 50, 55, 60)
"""The iterations whose errors are recorded."""
EARLY = (1, 2, 3, 5, 10, 20)
NEAR = 1.02
COSTS = {"ckplus48": 20.0, "olivetti_64x64": 6.0, "yaleB_32x32": 6.0, "orl_films": 5.0, "PBMC 3k": 5.0}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return settings per data set, solver and initialization; some of its seeds are run together."""
    settings = [
        {
            "set": name,
            "solver": solver,
            "init": init,
            "seeds": list(range(first, min(first + together(name), n_seeds))),
            "max_iter": 5 if quick else 25 if name == SLOWEST and solver != "hals" else MAX_ITER[solver],
        }
        for solver, names in SETS.items()
        for name in ((QUICK, "digits") if quick else names)
        for init in INITS
        for n_seeds in (1 if quick or init in DETERMINISTIC else FEWER_SEEDS.get(name, N_SEEDS),)
        for first in range(0, n_seeds, together(name))
    ]
    # What the study is about comes first, then the first seeds of the others, long trials first.
    return sorted(settings, key=_order)


def _order(setting: Mapping[str, Any]) -> tuple[bool, bool, float]:
    return setting["init"] != RECOMMENDED, setting["seeds"][0] > 0, -cost(setting)


def together(name: str) -> int:
    """Return how many seeds make one trial."""
    return 1 if name == "ckplus48" else 5 if name in COSTS else N_SEEDS


def cost(setting: Mapping[str, Any]) -> float:
    """Return the relative cost of a trial."""
    solver = 1.0 if setting["solver"] == "hals" else 3.0
    return COSTS.get(setting["set"], 1.0) * solver * len(setting["seeds"])


@lru_cache(maxsize=1)
def _samples(name: str) -> tuple[Samples, int]:
    real = OTHERS[name]() if name in OTHERS else load_set(name)
    return Samples.of(real.X), real.k


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run a solver from every seed of an initialization."""
    samples, k = _samples(setting["set"])
    solver, init, max_iter = setting["solver"], setting["init"], setting["max_iter"]
    _errors(solver, samples, initial_factors(init, samples, k, 0), 1)  # loads the compiled code
    found = []
    for seed in setting["seeds"]:
        initial = initial_factors(init, samples, k, seed)
        started = time.process_time()
        errors = _errors(solver, samples, initial, max_iter)
        seconds = (time.process_time() - started) / len(errors)
        kept = [i for i in GRID if i <= len(errors)]
        found.append(
            {
                "seed": seed,
                "init seconds": round(initial.seconds, 5),
                "iteration seconds": round(seconds, 6),
                "errors": [float(f"{errors[i - 1]:.5g}") for i in kept],
            }
        )
    if init == RECOMMENDED:
        for record in found:
            rng = np.random.default_rng(record["seed"])
            record["unexplained"] = round(unexplained_by_cones(samples.rows, k, rng), 5)
    return found


def initial_factors(name: str, samples: Samples, k: int, seed: int) -> Initialization:
    """Make an initialization and time it."""

    def make() -> tuple[Any, Any]:
        if name in PUBLISHED:
            found = make_init(name, samples, k, seeded(name, seed))
            return found.W, found.Ht
        return PACKAGE_INITS[name](samples.rows, k, rng=seed)

    started = time.process_time()  # of the processor, which other processes do not lengthen
    W, Ht = make()
    return Initialization(W, Ht, time.process_time() - started)


def _errors(solver: str, samples: Samples, init: Initialization, max_iter: int) -> list[float]:
    """Return the error after every iteration."""
    if solver == "nnlsb":
        return run_from(solver, samples, init, max_iter=max_iter).errors
    # The same multiple for all: the paper's pairs have no scale.
    Ht = init.Ht * best_multiple(samples, init.W, init.Ht)
    options: dict[str, Any] = {"penalties": Penalties(), "beta": 2.0, "max_iter": max_iter, "tol": 0.0}
    history = SOLVERS[solver].run(samples.rows, init.W, Ht, **options).history
    squared_norm = samples.rows.squared_norm()
    return [relative_error(loss, squared_norm) for loss in history.loss]


def work_until(record: Record, error: float, iteration_seconds: float) -> float:
    """Return the iterations until an error, those that fit into the time of the initialization included."""
    before = record["init seconds"] / iteration_seconds
    errors = record["errors"]
    for i, value in enumerate(errors):
        if value <= error:
            if i == 0:
                return before + GRID[0]
            share = math.log(errors[i - 1] / error) / math.log(errors[i - 1] / value)
            return before + GRID[i - 1] + share * (GRID[i] - GRID[i - 1])
    return math.inf


def error_after(record: Record, work: float, iteration_seconds: float) -> float:
    """Return the error after an amount of work, in iterations; that of the initialization included."""
    done = work - record["init seconds"] / iteration_seconds
    if done < GRID[0]:
        return math.inf
    logarithms = np.log(np.maximum(record["errors"], 1e-300))
    return float(np.exp(np.interp(done, GRID[: len(logarithms)], logarithms)))


class Case:
    """A data set, a solver and a target error: what each initialization needs to reach it."""

    def __init__(self, records: Sequence[Record], level: float) -> None:
        self.name, self.level = str(records[0]["set"]), level
        seconds = float(np.median([record["iteration seconds"] for record in records]))
        self.error = level * min(record["errors"][-1] for record in records)
        runs = {init: [record for record in records if record["init"] == init] for init in INITS}
        self.seconds, self.runs = seconds, {init: some for init, some in runs.items() if some}
        self.work = {
            init: float(np.median([work_until(record, self.error, seconds) for record in some]))
            for init, some in self.runs.items()
        }
        self.first = min(self.work, key=lambda init: self.work[init])
        least = self.work[self.first]
        self.ratio = {init: work / least for init, work in self.work.items()}
        self.excess = {
            init: float(np.median([error_after(record, least, seconds) for record in some])) / self.error
            for init, some in self.runs.items()
        }


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the iterations until each error, the counts and the claims."""
    shown: list[Artifact] = []
    claims: list[Verdict] = []
    for (solver,), some in grouped(records, "solver").items():
        by_set = grouped(some, "set")
        planned = [setting for setting in trials(False) if setting["solver"] == solver]
        whole = len(some) == sum(len(setting["seeds"]) for setting in planned)
        for title, chosen in (("Table V", True), ("other data", False)):
            cases = [
                Case(group, level)
                for (name,), group in by_set.items()
                if (name not in OTHERS) == chosen
                for level in LEVELS
            ]
            if cases:
                heading = f"{SOLVER_NAMES[solver]}; {title}"
                shown += [_counts(heading, cases), _works(heading, cases)]
                if whole:
                    shown.append(choice_table(heading, cases, GRID, NEAR, work_until, error_after))
                claims += _claims(heading, cases, whole, RECOMMENDED if solver == "hals" else FOR_SLOW)
        cones = _cones(SOLVER_NAMES[solver], by_set)
        shown += [cones, _ahead(SOLVER_NAMES[solver], cones), _early(SOLVER_NAMES[solver], by_set)]
    return [*shown, *claims]


def _cones(heading: str, by_set: Mapping[tuple[Any, ...], Sequence[Record]]) -> Table:
    rows = []
    for (name,), group in by_set.items():
        cases = [Case(group, level) for level in LEVELS]
        row: dict[str, Any] = {
            "set": SET_NAMES.get(name, name),
            "first": ", ".join(case.first for case in cases),
        }
        row["unexplained"] = mean_and_spread(
            [r.get("unexplained") for r in group if r["init"] == RECOMMENDED]
        )[0]
        for init in ("cone", RECOMMENDED, "rand"):
            ratios = [case.ratio.get(init, math.inf) for case in cases]
            row[init] = math.prod(ratios) ** (1 / len(ratios)) if max(ratios) < math.inf else None
        rows.append(row)
    rows.sort(key=lambda row: row["unexplained"] or 0.0)
    columns = {"set": "set", "unexplained": "left by cones", "cone": "cone", RECOMMENDED: RECOMMENDED}
    columns |= {"rand": "rand", "first": "the first at the three errors"}
    caption = (
        f"{heading}: the fraction of the squared error of a single direction that cones leave, and the time "
        "of three initializations over that of the first, geometric mean over the errors."
    )
    return Table(caption, columns, rows, digits=3)


def _ahead(heading: str, cones: Table) -> Paragraph:
    """Say on which data sets cones are ahead of random numbers; what never reaches an error is behind."""
    sides: dict[bool, list[str]] = {True: [], False: []}
    for row in cones.rows:
        sides[(row["cone"] or math.inf) < (row["rand"] or math.inf)].append(row["set"])
    return Paragraph(
        f"{heading}: `cone` is ahead of `rand` on {', '.join(sides[True]) or 'no data set'}; "
        f"it is not on {', '.join(sides[False]) or 'no data set'}."
    )


def _mean_ratio(cases: Sequence[Case], init: str) -> float:
    ratios = [min(case.ratio.get(init, math.inf), 10.0) for case in cases]
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _counts(heading: str, cases: Sequence[Case]) -> Table:
    rows: list[dict[str, Any]] = []
    for init in INITS:
        ratios = [case.ratio.get(init, math.inf) for case in cases]
        reached = [ratio for ratio in ratios if ratio < math.inf]
        rows.append(
            {
                "init": init,
                "first": sum(case.first == init for case in cases),
                "near": sum(ratio <= NEAR for ratio in ratios),
                "error": sum(case.excess.get(init, math.inf) <= NEAR for case in cases),
                "reached": len(reached),
                "mean": math.exp(sum(map(math.log, reached)) / len(reached)) if reached else None,
                "worst": max(ratios) if len(reached) == len(ratios) else None,
            }
        )
    columns = {
        "init": "initialization",
        "first": "first",
        "near": "first or within 2% of its time",
        "error": "error within 2% when the first is there",
        "reached": "reached",
        "mean": "time over that of the first, geometric mean",
        "worst": "worst",
    }
    return Table(f"{heading}: {len(cases)} cases.", columns, rows, digits=3)


def _works(heading: str, cases: Sequence[Case]) -> Table:
    rows = [
        {"set": SET_NAMES.get(case.name, case.name), "level": case.level, "error": case.error}
        | {init: work if work < math.inf else None for init, work in case.work.items()}
        for case in cases
    ]
    columns = {"set": "set", "level": "times the best", "error": "error"} | {init: init for init in INITS}
    return Table(f"{heading}: iterations until the error.", columns, rows, digits=3)


def _early(heading: str, by_set: Mapping[tuple[Any, ...], Sequence[Record]]) -> Table:
    rows = []
    for (name,), group in by_set.items():
        for init in ("rand", "cr1-nmf", "nndsvda", "cone", RECOMMENDED):
            errors = [record["errors"] for record in group if record["init"] == init]
            if errors:
                means = {
                    str(i): mean_and_spread([run[min(GRID.index(i), len(run) - 1)] for run in errors])[0]
                    for i in EARLY
                    if GRID.index(i) < len(errors[0])
                }
                rows.append({"set": SET_NAMES.get(name, name), "init": init} | means)
    columns = {"set": "set", "init": "initialization"} | {str(i): f"iteration {i}" for i in EARLY}
    return Table(f"{heading}: errors after few iterations, mean over seeds.", columns, rows, digits=3)


def _claims(heading: str, cases: Sequence[Case], whole: bool, init: str) -> list[Verdict]:
    late = [case for case in cases if case.ratio.get(init, math.inf) > NEAR]
    far = [case for case in late if case.excess.get(init, math.inf) > NEAR]
    claims = {
        f"{heading}: {init} is the first or within 2% of its time in all cases": (
            late,
            lambda case: f"{case.ratio.get(init, math.inf):.2f} times {case.first}",
        ),
        f"{heading}: where it is not, its error is within 2% of that of the first when the first is there": (
            far,
            lambda case: f"{case.excess.get(init, math.inf):.3f} times {case.first}",
        ),
    }
    least = {other: _mean_ratio(cases, other) for other in INITS if other in PACKAGE_INITS and other != init}
    best = min(least, key=lambda other: least[other])
    ours = _mean_ratio(cases, init)
    among = Verdict(
        f"{heading}: of the initializations of the package, {init} takes the least time, geometric "
        "mean with 10 times the first where an error is not reached",
        None if not whole else ours <= least[best],
        f"{ours:.2f} times the first; {best} {least[best]:.2f}",
    )
    return [among] + [
        Verdict(
            claim,
            None if not whole else not failed,
            f"{len(cases) - len(failed)} of {len(cases)}"
            + "".join(
                f"; {SET_NAMES.get(case.name, case.name)} {case.level:g}: {told(case)}" for case in failed
            ),
        )
        for claim, (failed, told) in claims.items()
    ]


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=(*FOLDERS, *OTHER_FOLDERS),
    quick_data_sets=(),
    cost=cost,
)
