"""How low the losses of different initializations end, and whether pruning discards the best restart."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn import datasets as bundled
from sklearn import decomposition

from nonneg import NMF, datasets
from nonneg._random import spawn
from nonneg._threads import threads
from nonneg.data.checks import checked_data
from nonneg.solvers.restarts import FIRST_ROUND, hopeless, run_restarts
from reproduction.artifacts import Artifact, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.registry import TITLES
from reproduction.studies.initialization_sets import OTHERS

NAME = "studies/optima"
N_DRAWS, TOGETHER, PART = {"frobenius": 30, "kullback-leibler": 10}, 5, 0.8
DEFAULT, FIRST, MERGE, PEER = "default", "nndsvd-scaled", "merge", "scikit-learn"
METHODS = {
    DEFAULT: "`NMF(k)`",
    MERGE: '`NMF(k, init="merge")`',
    FIRST: '`NMF(k, init="nndsvd-scaled")`',
    "nndsvda": '`NMF(k, init="nndsvda")`',
    "cone": '`NMF(k, init="cone")`',
    "random": '`NMF(k, init="random")`',
    PEER: "`sklearn.decomposition.NMF(k)`; for Kullback-Leibler with its solver `mu`",
}
N_RESTARTS, GROUP, N_GROUPS = 30, 10, 50
FROBENIUS, KL = "frobenius", "kullback-leibler"
SHORT = {FROBENIUS: "", KL: " (KL)"}


def _bundled(loader: str, k: int) -> Callable[[], tuple[Any, int]]:
    return lambda: (getattr(bundled, loader)().data, k)


def _orl() -> tuple[Any, int]:
    return datasets.load_orl().X, 10


def _other(name: str) -> Callable[[], tuple[Any, int]]:
    def load() -> tuple[Any, int]:
        found = OTHERS[name]()
        return found.X, found.k

    return load


CHOOSING: dict[str, Callable[[], tuple[Any, int]]] = {
    "wine": _bundled("load_wine", 4),
    "breast cancer": _bundled("load_breast_cancer", 6),
    "digits": _bundled("load_digits", 10),
    "iris": _bundled("load_iris", 3),
}
REPORTING: dict[str, Callable[[], tuple[Any, int]]] = {
    **{name: _other(name) for name in ("BRCA signatures", "leukemia", "swimmer", "spectrogram", "Moffett")},
    "ORL faces": _orl,
    **{name: _other(name) for name in ("tr11", "re0")},
}
LOSSES = {FROBENIUS: (*CHOOSING, *REPORTING), KL: ("wine", "digits", "BRCA signatures", "re0")}
FOLDERS = (
    "brca_sbs96_wgs", "leukemia_all_aml", "swimmer", "audio_armstrong", "moffett", "orl_32x32", "cluto_tr11",
    "cluto_re0",
)  # fmt: skip
COSTS = {"ORL faces": 4.0, "swimmer": 3.0, "leukemia": 2.0}


@lru_cache(maxsize=1)
def data_set(name: str) -> tuple[Any, int]:
    """Return a matrix and its number of components."""
    X, k = (CHOOSING | REPORTING)[name]()
    return X.astype(np.float64), k


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return settings per data set, loss and some draws, and one for the restarts."""
    settings: list[dict[str, Any]] = []
    for loss, names in LOSSES.items():
        for name in ("iris",) if quick else names:
            step, n = (1, 1) if quick else (TOGETHER, N_DRAWS[loss])
            shared = {"set": name, "loss": loss, "threads": 1}
            settings += [shared | {"draws": list(range(first, first + step))} for first in range(0, n, step)]
            settings.append(shared | {"restarts": 6 if quick else N_RESTARTS})
    return sorted(settings, key=cost)


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    times = 1.5 if "restarts" in setting else 1.0
    return times * COSTS.get(setting["set"], 1.0) * (4.0 if setting["loss"] == KL else 1.0)


def run(setting: Setting) -> list[dict[str, Any]]:
    """Fit parts of a data set from every initialization, or all of it from many random ones."""
    X, k = data_set(setting["set"])
    if "restarts" in setting:
        return _restarts(X, k, setting["loss"], setting["restarts"])
    records = []
    for draw in setting["draws"]:
        rng = np.random.default_rng([20261116, draw])
        rows = np.sort(rng.permutation(X.shape[0])[: round(PART * X.shape[0])])
        part = X[rows]
        part = part[:, np.asarray(part.sum(axis=0)).ravel() > 0]
        for method in METHODS:
            started = time.process_time()
            found = fitted(method, part, k, draw, setting["loss"])
            seconds = time.process_time() - started
            records.append({"draw": draw, "method": method, "seconds": round(seconds, 4), **found})
    return records


def fitted(method: str, X: Any, k: int, draw: int, loss: str) -> dict[str, Any]:
    """Return the final loss and the number of iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == PEER:
            solver = "cd" if loss == FROBENIUS else "mu"
            model: Any = decomposition.NMF(k, beta_loss=loss, solver=solver, random_state=draw)
        else:
            init = None if method == DEFAULT else method
            model = NMF(k, init=init, beta_loss=loss, random_state=draw, n_jobs=1)
        model.fit(X)
    # Both libraries: the root of twice the loss.
    value = 0.5 * float(model.reconstruction_err_) ** 2
    return {"value": float(f"{value:.9g}"), "n_iter": int(model.n_iter_)}


def _restarts(X: Any, k: int, loss: str, n: int) -> list[dict[str, Any]]:
    """Record the losses at which restarts are compared, of runs that are not pruned."""
    beta = 2.0 if loss == FROBENIUS else 1.0
    with threads(1):
        losses = run_restarts(
            checked_data(X, who=NAME), k, spawn(7, n), beta=beta, finish=lambda run: run.history.loss
        )
    return [{"restart": i, "losses": _compared(list(found))} for i, found in enumerate(losses)]


def _compared(losses: Sequence[float]) -> list[list[float]]:
    """Return the iterations that the rule looks at, and the last one, with their losses."""
    wanted, at = {len(losses)}, FIRST_ROUND
    while at < len(losses):
        wanted |= {at, (at + 1) // 2}
        at *= 2
    return [[n, float(f"{losses[n - 1]:.9g}")] for n in sorted(wanted)]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the distributions of final losses, the costs, what pruning does, and the claims."""
    fits = [record for record in records if "value" in record]
    shown: list[Artifact] = []
    claims: list[Verdict] = []
    for title, names in (("Sets used to choose", CHOOSING), ("Test sets", REPORTING)):
        some = [record for record in fits if record["set"] in names]
        if some:
            shown += [_losses(title, some), _times(title, some), _pairs(title, some)]
            claims += _claims(title, some, complete=_complete(some, names))
    pruned = [record for record in records if "losses" in record]
    if pruned:
        shown.append(_pruning(pruned))
        claims.append(_pruning_claim(pruned))
    return [*shown, *claims]


def _complete(records: Sequence[Record], names: Any) -> bool:
    found = grouped(records, "set", "loss")
    wanted = {(name, loss) for loss, some in LOSSES.items() for name in some if name in names}
    whole = all(len(group) >= N_DRAWS[loss] * len(METHODS) for (_, loss), group in found.items())
    return whole and wanted <= set(found)


def excesses(records: Sequence[Record]) -> dict[str, np.ndarray]:
    """Return for each method how far, relatively, its losses lie above the lowest of the same draw."""
    found: dict[str, list[float]] = {method: [] for method in METHODS}
    for group in grouped(records, "draw").values():
        lowest = min(record["value"] for record in group)
        for record in group:
            found[record["method"]].append(record["value"] / lowest - 1.0)
    return {method: np.array(values) for method, values in found.items() if values}


def _losses(title: str, records: Sequence[Record]) -> Table:
    rows = []
    for (name, loss), group in grouped(records, "set", "loss").items():
        row: dict[str, Any] = {"set": name + SHORT[loss], "draws": len({record["draw"] for record in group})}
        for method, values in excesses(group).items():
            quartiles = [f"{100.0 * np.quantile(values, q):.2g}" for q in (0.5, 0.9, 1.0)]
            row[method] = " / ".join(quartiles)
        rows.append(row)
    columns = {"set": "set", "draws": "draws"} | {method: method for method in METHODS}
    return Table(
        f"{title}: excess of the final loss over the lowest of the same draw, in percent: median / 90th "
        "percentile / largest.",
        columns,
        rows,
    )


def _times(title: str, records: Sequence[Record]) -> Table:
    rows = []
    for (name, loss), group in grouped(records, "set", "loss").items():
        row = {"set": name + SHORT[loss]}
        for (method,), some in grouped(group, "method").items():
            seconds, n_iter = (np.median([record[key] for record in some]) for key in ("seconds", "n_iter"))
            row[method] = f"{seconds:.2g} s; {n_iter:.0f}"
        rows.append(row)
    columns = {"set": "set"} | {method: method for method in METHODS}
    return Table(f"{title}: processor time on one thread, and iterations; medians.", columns, rows)


def _pairs(title: str, records: Sequence[Record]) -> Table:
    others = [method for method in METHODS if method not in (DEFAULT, FIRST, PEER)]
    rows = []
    for (name, loss), group in grouped(records, "set", "loss").items():
        row: dict[str, Any] = {"set": name + SHORT[loss]}
        values = excesses(group)
        for other in (FIRST, *others):
            if {FIRST, PEER, other} <= values.keys():
                better = np.minimum(values[FIRST], values[other])
                ratios = (1.0 + better) / (1.0 + values[PEER]) - 1.0
                row[other] = f"{100.0 * np.median(ratios):.2g}; {np.sum(ratios > 0.001)}"
        rows.append(row)
    columns = {"set": "set", FIRST: f"{FIRST} alone"} | {other: f"or {other}" for other in others}
    return Table(
        f"{title}: the lower loss of two fits, from {FIRST} and from another initialization, against "
        "scikit-learn's: median difference in percent, and how many draws end above it by more than 0.1%.",
        columns,
        rows,
    )


def _claims(title: str, records: Sequence[Record], *, complete: bool) -> list[Verdict]:
    medians: dict[str, dict[str, float]] = {}
    above = {}
    for (name, loss), group in grouped(records, "set", "loss").items():
        values = excesses(group)
        medians[name + SHORT[loss]] = {method: float(np.median(one)) for method, one in values.items()}
        if {DEFAULT, PEER} <= values.keys():
            ratios = (1.0 + values[DEFAULT]) / (1.0 + values[PEER]) - 1.0
            above[name + SHORT[loss]] = (float(np.median(ratios)), int(np.sum(ratios > 0.001)), len(ratios))
    worst = {method: max(one.get(method, 0.0) for one in medians.values()) for method in METHODS}
    lowest = min(worst, key=lambda method: worst[method])
    better = sum(one.get(MERGE, 0.0) < one.get(FIRST, 0.0) for one in medians.values())
    over = {name: found for name, found in above.items() if found[0] > 0.001}
    draws = {name: found for name, found in above.items() if found[1]}
    told = "; ".join(f"{name} {count} of {n} draws" for name, (_, count, n) in draws.items())
    return [
        Verdict(
            f"{title}: the default does not end above scikit-learn's default by more than 0.1% (medians)",
            not over if complete else None,
            f"single draws above it by more: {told or 'none'}",
        ),
        Verdict(
            f"{title}: of all of them, the largest median excess is smallest for the default",
            lowest == DEFAULT if complete else None,
            ", ".join(f"{method} {100.0 * value:.2g}%" for method, value in worst.items()),
        ),
        Verdict(
            f"{title}: `merge` has a smaller median excess than `{FIRST}` on most of them",
            better > len(medians) / 2 if complete else None,
            f"{better} of {len(medians)}",
        ),
    ]


def replay(restarts: Sequence[Sequence[Sequence[float]]]) -> tuple[bool, float, float]:
    """Return whether the winner survives pruning, the excess of the best survivor, and the share of work."""
    full = [{int(n): loss for n, loss in one} for one in restarts]
    last = [max(one) for one in full]
    final = [one[n] for one, n in zip(full, last, strict=True)]
    until = dict(enumerate(last))
    live = set(range(len(full)))
    at = FIRST_ROUND
    while at < max(last):
        reached = [full[i][min(at, until[i])] for i in range(len(full))]
        for i in sorted(live):
            if last[i] > at and hopeless(full[i][(at + 1) // 2], full[i][at], min(reached)):
                live.discard(i)
                until[i] = at
        at *= 2
    best = min(final)
    return (
        final.index(best) in live,
        min(final[i] for i in live) / best - 1.0,
        sum(until.values()) / sum(last),
    )


def _groups(group: Sequence[Record]) -> list[tuple[bool, float, float]]:
    rng = np.random.default_rng(0)
    losses = [record["losses"] for record in group]
    size, n = min(GROUP, len(losses)), N_GROUPS if len(losses) > GROUP else 1
    return [replay([losses[i] for i in rng.permutation(len(losses))[:size]]) for _ in range(n)]


def _pruning(records: Sequence[Record]) -> Table:
    rows = []
    for (name, loss), group in grouped(records, "set", "loss").items():
        found = _groups(group)
        final = [record["losses"][-1][1] for record in group]
        rows.append(
            {
                "set": name + SHORT[loss],
                "role": "choosing" if name in CHOOSING else "test",
                "spread": f"{100.0 * (max(final) / min(final) - 1.0):.2g}%",
                "kept": f"{sum(kept for kept, _, _ in found)} of {len(found)}",
                "excess": f"{100.0 * max(excess for _, excess, _ in found):.2g}%",
                "work": f"{100.0 * float(np.mean([work for _, _, work in found])):.0f}%",
            }
        )
    columns = {
        "set": "set",
        "role": "role",
        "spread": "largest over lowest final loss",
        "kept": "winner kept",
        "excess": "largest excess where lost",
        "work": "iterations done",
    }
    return Table(
        f"Pruning, replayed on the recorded losses: groups of {GROUP} of {N_RESTARTS} random restarts.",
        columns,
        rows,
    )


def _pruning_claim(records: Sequence[Record]) -> Verdict:
    reporting = [record for record in records if record["set"] in REPORTING]
    groups = grouped(reporting, "set", "loss")
    found = [one for group in groups.values() for one in _groups(group)]
    wanted = sum(name in REPORTING for names in LOSSES.values() for name in names)
    decided = len(groups) == wanted and all(len(group) == N_RESTARTS for group in groups.values())
    kept = sum(one[0] for one in found)
    return Verdict(
        "Test sets: pruning keeps the winner in at least 95% of the groups",
        kept >= 0.95 * len(found) if decided else None,
        f"{kept} of {len(found)}" + (f"; {100.0 * np.mean([one[2] for one in found]):.0f}% of the iterations"
        if found else ""),
    )  # fmt: skip


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials,
    run,
    summarize,
    data_sets=FOLDERS,
    quick_data_sets=(),
    cost=cost,
)
