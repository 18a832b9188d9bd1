"""Number of components of a consensus: published rules on planted and on real data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits

from nonneg import ConsensusNMF, compare_ranks
from nonneg.consensus.certificate import recommended
from nonneg.datasets import load_brca_sbs96
from reproduction.artifacts import Artifact, Paragraph, Table, Verdict
from reproduction.data import load_leukemia, load_pbmc3k
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.registry import TITLES

NAME = "studies/consensus"
OURS = "as stable as the best"
HELD_OUT = "compare_ranks"
"""No stability: the singular-value ratio proposes, and the held-out error judges."""
RULES = (OURS, "most stable", "SigProfiler", "cophenetic", HELD_OUT)
FAMILIES = {"programs, 150 counts": 150, "programs, 1500 counts": 1500, "signatures, 1000 mutations": 1000}
RANKS, PLANTED, N_DRAWS, N_INIT = range(2, 10), (3, 5, 7), 3, 10


def planted(family: str, k: int, draw: int) -> Any:
    """Draw Poisson counts of k programs of 100 genes, or of k signatures of 96 channels."""
    rng = np.random.default_rng([20261118, draw, k])
    if family.startswith("signatures"):
        exposures = rng.gamma(0.5, FAMILIES[family] / (0.5 * k), size=(80, k))
        X = rng.poisson(exposures @ rng.dirichlet(np.full(96, 0.2), size=k))
    else:
        H = rng.gamma(0.3, size=(k, 100))
        H /= H.sum(axis=1, keepdims=True)
        depth = FAMILIES[family] * rng.lognormal(0.0, 0.3, size=(150, 1))
        X = rng.poisson(depth * (rng.dirichlet(np.full(k, 0.3), size=150) @ H))
    return X[:, X.sum(axis=0) > 0].astype(float)


def _digits() -> Any:
    X = load_digits().data
    return X[:, X.sum(axis=0) > 0]


def _cells() -> Any:
    # The thousand genes with the largest variance relative to their mean.
    counts = sp.csr_array(load_pbmc3k().X)
    mean = np.asarray(counts.mean(axis=0)).ravel()
    variance = np.asarray(counts.multiply(counts).mean(axis=0)).ravel() - mean**2
    genes = np.argsort(-variance / np.maximum(mean, 1e-9) * (mean > 0.01))[:1000]
    return counts[:, genes]


REAL: dict[str, Callable[[], Any]] = {
    "digits": _digits,
    "leukemia": lambda: np.asarray(load_leukemia().X),
    "breast cancers": lambda: np.asarray(load_brca_sbs96().X),
    "blood cells": _cells,
}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per draw and data set."""
    if quick:
        return [{"family": "programs, 1500 counts", "k": 3, "draw": 0}]
    drawn: list[dict[str, Any]] = [
        {"family": family, "k": k, "draw": draw}
        for draw in range(N_DRAWS)
        for k in PLANTED
        for family in FAMILIES
    ]
    stability = [*drawn, *({"family": "real", "set": name} for name in REAL)]
    return [*stability, *({**setting, "rule": HELD_OUT} for setting in stability)]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Apply every rule to one consensus."""
    real = setting["family"] == "real"
    X = REAL[setting["set"]]() if real else planted(setting["family"], setting["k"], setting["draw"])
    if "rule" in setting:
        return [{HELD_OUT: compare_ranks(X, candidates=list(RANKS), rng=0).rank}]
    counts = setting["family"].startswith("signatures") or setting.get("set") == "breast cancers"
    loss = "kullback-leibler" if counts else "frobenius"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConsensusNMF(RANKS, n_init=N_INIT, beta_loss=loss, random_state=0).fit(X)
    rows = [each.row() for each in model.ranks_]
    if len(rows) < len(RANKS):
        raise KeyboardInterrupt  # the fit ended early with what it had: no record of a part
    return [{"silhouettes": [round(row["stability"], 3) for row in rows]} | _choices(model, rows)]


def _choices(model: ConsensusNMF, rows: Sequence[dict[str, Any]]) -> dict[str, int | None]:
    numbers = [row["n_components"] for row in rows]
    # SigProfilerExtractor (Islam et al. 2022): the largest with a mean of 0.8 and a least of 0.2.
    stable = [r["n_components"] for r in rows if r["stability"] >= 0.8 and r["least_stable"] >= 0.2]
    return {
        OURS: recommended(model.ranks_)[0],
        "most stable": numbers[int(np.argmax([row["stability"] for row in rows]))],
        "SigProfiler": max(stable, default=None),
        "cophenetic": numbers[_first_fall([row["cophenetic"] for row in rows])],
    }


def _first_fall(values: Sequence[float]) -> int:
    """Return the place after which the cophenetic correlation begins to fall (Brunet et al. 2004)."""
    falls = np.flatnonzero(np.diff(np.round(values, 3)) < 0)
    return int(falls[0]) if len(falls) else len(values) - 1


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return how often each rule is right, and what it says of real data."""
    held_out = {_data(record): record[HELD_OUT] for record in records if HELD_OUT in record}
    records = [{**r, HELD_OUT: held_out.get(_data(r))} for r in records if "silhouettes" in r]
    drawn = [record for record in records if record["family"] != "real"]
    right = {
        family: {rule: float(np.mean([r[rule] == r["k"] for r in some])) for rule in RULES}
        for (family,), some in grouped(drawn, "family").items()
    }
    rows = []
    for family, shares in right.items():
        others = [other for other in right if other != family]
        best = max(RULES, key=lambda rule: sum(right[other][rule] for other in others)) if others else None
        row: dict[str, Any] = {"family": family} | {rule: f"{100 * shares[rule]:.0f}%" for rule in RULES}
        rows.append(row | {"chosen": best, "here": None if best is None else f"{100 * shares[best]:.0f}%"})
    columns = {"family": "family"} | {rule: rule for rule in RULES}
    columns |= {"chosen": "best in the other families", "here": "it here"}
    real = [{"set": r["set"]} | {rule: r[rule] for rule in RULES} for r in records if r["family"] == "real"]
    for row, record in zip(real, [r for r in records if r["family"] == "real"], strict=True):
        row["curve"] = ", ".join(f"{value:.2f}" for value in record["silhouettes"])
    headings = {"set": "data"} | {rule: rule for rule in RULES}
    headings["curve"] = f"mean silhouettes, {RANKS[0]} to {RANKS[-1]}"
    largest = [row["set"] for row in real if row[OURS] == RANKS[-1]]
    full = len(drawn) == N_DRAWS * len(PLANTED) * len(FAMILIES)
    return [
        Paragraph(
            f"Restarts: {N_INIT} for each of {RANKS[0]} to {RANKS[-1]} components. Rules: the largest rank "
            "as stable as the most stable one up to a standard error (the default), the most stable rank, "
            "SigProfiler's limits (mean silhouette 0.8, least 0.2), the rank after which the cophenetic "
            "correlation falls (Brunet et al.), and `compare_ranks`, which knows no stability: the "
            "singular-value ratio proposes and the held-out error judges. The last columns leave one family "
            "out."
        ),
        Table("Planted numbers found exactly.", columns, rows),
        *([Table("Real data, whose number is not known.", headings, real)] if real else []),
        Verdict(
            "the default finds the planted number in at least 90% of the draws of every family",
            min(shares[OURS] for shares in right.values()) >= 0.9 if full else None,
            ", ".join(f"{family}: {100 * shares[OURS]:.0f}%" for family, shares in right.items()),
        ),
        Verdict(
            "the default does not recommend the largest candidate on real data",
            not largest if len(real) == len(REAL) else None,
            ", ".join(f"{row['set']}: {row[OURS]}" for row in real) or "no real data",
        ),
    ]


def _data(record: Record) -> tuple[Any, ...]:
    return tuple(record.get(key) for key in ("family", "set", "k", "draw"))


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    cost=lambda setting: 20.0 if setting["family"] == "real" else 1.0,
    data_sets=("leukemia_all_aml", "brca_sbs96_wgs", "pbmc3k"),
    quick_data_sets=(),
)
