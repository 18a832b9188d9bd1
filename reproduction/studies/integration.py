"""Several data sets of single cells: programs found by integrative NMF and by NMF, on planted batches."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nonneg import NMF, IntegrativeNMF
from nonneg._typing import FloatArray
from nonneg.datasets import CellData, single_cells
from nonneg.metrics import match_components
from reproduction.artifacts import Artifact, Measured, Paragraph, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES

NAME = "studies/integration"
N_CHOOSING, N_REPORTING = 4, 6
FIRST_CHOOSING_SEED, FIRST_REPORTING_SEED = 30_000, 40_000
# Data sets, programs, and in what the data sets differ: factors of genes, genes of programs.
CHOOSING: dict[str, dict[str, Any]] = {
    "genes": {"n_batches": 2, "n_programs": 6, "batch_effect": 0.5, "program_effect": 0.0},
    "programs": {"n_batches": 2, "n_programs": 6, "batch_effect": 0.0, "program_effect": 1.0},
    "both": {"n_batches": 3, "n_programs": 6, "batch_effect": 0.5, "program_effect": 1.0},
}
"""Data on which the default of lam was chosen."""
REPORTING: dict[str, dict[str, Any]] = {
    "no differences": {"n_batches": 2, "n_programs": 8, "batch_effect": 0.0, "program_effect": 0.0},
    "genes, strong": {"n_batches": 3, "n_programs": 8, "batch_effect": 0.8, "program_effect": 0.0},
    "programs, some genes": {"n_batches": 4, "n_programs": 8, "batch_effect": 0.0, "program_effect": 0.5},
    "both": {"n_batches": 2, "n_programs": 8, "batch_effect": 0.5, "program_effect": 1.0},
}
"""Data on which it is judged."""
QUICK = {"quick": {"n_batches": 2, "n_programs": 4, "batch_effect": 0.5, "program_effect": 1.0}}
GROUPS = {"choosing": CHOOSING, "reporting": REPORTING, "quick": QUICK}
WEIGHTS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
N_CELLS, N_GENES = 750, 160
OURS = "IntegrativeNMF"
JOINT, SCALED = "NMF of all cells", "NMF of all cells, genes scaled by data set"
LIGER = "IntegrativeNMF, lam 5 (LIGER's)"
ONLINE = "IntegrativeNMF, partial_fit"


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return the draws."""
    if quick:
        return [{"group": "quick", "data": "quick", "seed": 0}]
    return [
        {"group": group, "data": data, "seed": seed}
        for group, first, n_draws in (
            ("choosing", FIRST_CHOOSING_SEED, N_CHOOSING),
            ("reporting", FIRST_REPORTING_SEED, N_REPORTING),
        )
        for data in GROUPS[group]
        for seed in range(first, first + n_draws)
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Fit all candidates to one draw."""
    kind = GROUPS[setting["group"]][setting["data"]]
    quick = setting["group"] == "quick"
    n_cells, n_genes = (200, 60) if quick else (N_CELLS, N_GENES)
    cells = single_cells(n_cells, n_genes, n_activities=1, library_size=600.0, rng=setting["seed"], **kind)
    X = np.asarray(cells.X.toarray(), dtype=np.float64)
    X *= np.median(X.sum(axis=1)) / X.sum(axis=1, keepdims=True)
    candidates = _candidates(cells, kind["n_programs"])
    if setting["group"] == "choosing":
        candidates |= {
            f"lam {weight:g}": _integrative(cells, kind["n_programs"], lam=weight) for weight in WEIGHTS
        }
    records = []
    for name, fit in candidates.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            started = time.perf_counter()
            H, W, scale = fit(X)
            seconds = time.perf_counter() - started
        records.append({"candidate": name, **_scores(cells, H, W, scale), "s": round(seconds, 3)})
    return records


Fit = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]


def _candidates(cells: CellData, k: int) -> dict[str, Fit]:
    def joint(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        scale = _rms(X)
        model = NMF(k, max_iter=1000)
        W = model.fit_transform(X / scale)
        return model.components_, W, scale

    def scaled(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        scales = np.stack([_rms(X[cells.batch == at]) for at in range(cells.batch.max() + 1)])
        model = NMF(k, max_iter=1000)
        W = model.fit_transform(X / scales[cells.batch])
        return model.components_, W, np.sqrt(np.mean(scales**2, axis=0))

    def online(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        model = IntegrativeNMF(k)
        order = np.random.default_rng(0).permutation(len(X))
        for _ in range(3):
            for rows in np.array_split(order, max(len(X) // 150, 1)):
                model.partial_fit(X[rows], batch=cells.batch[rows])
        return model.components_, model.transform(X, batch=cells.batch), _pooled(model)

    return {
        JOINT: joint, SCALED: scaled, OURS: _integrative(cells, k), LIGER: _integrative(cells, k, lam=5.0),
        ONLINE: online,
    }  # fmt: skip


def _integrative(cells: CellData, k: int, **options: Any) -> Fit:
    def fit(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        model = IntegrativeNMF(k, **options)
        W = model.fit_transform(X, batch=cells.batch)
        return model.components_, W, _pooled(model)

    return fit


def _pooled(model: IntegrativeNMF) -> FloatArray:
    return np.sqrt(np.mean(model.batch_scale_.astype(np.float64) ** 2, axis=0))


def _rms(X: FloatArray) -> FloatArray:
    scale = np.sqrt(np.mean(X**2, axis=0))
    return np.where(scale > 0, scale, 1.0)


def _scores(cells: CellData, H: FloatArray, W: FloatArray, scale: FloatArray) -> dict[str, float]:
    """Correlations of matched programs in scaled units, and of usages over the cells of all data sets."""
    true = cells.H / scale
    found = H[match_components(true, H).permutation]
    usage = W * np.linalg.norm(H, axis=1)
    usage /= np.maximum(usage.sum(axis=1, keepdims=True), 1e-12)
    matched = usage.T[match_components(cells.W.T, usage.T).permutation]
    return {
        "programs": round(float(np.mean(_correlations(true, found))), 4),
        "usages": round(float(np.mean(_correlations(cells.W.T, matched))), 4),
    }


def _correlations(a: FloatArray, b: FloatArray) -> FloatArray:
    a, b = (one - one.mean(axis=1, keepdims=True) for one in (a, b))
    size = np.sqrt(np.sum(a * a, axis=1) * np.sum(b * b, axis=1))
    return np.sum(a * b, axis=1) / np.where(size > 0, size, 1.0)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the comparison."""
    shown: list[Artifact] = [
        Paragraph(
            "Planted gene programs (`nonneg.datasets.single_cells`): 750 cells of several data sets and 160 "
            "genes with negative binomial counts, divided by the totals of the cells. Data sets differ in "
            "depth and cell types, and by factors of genes, by genes that a program has in one data set "
            "alone, or both. Scores are correlations with the truth, means over matched programs. The "
            "default of lam is the largest of the weights whose mean correlation of programs, over the data "
            "used to choose it, is within 0.01 of the best."
        )
    ]
    for group, title in (
        ("choosing", "Data used to choose the default of lam"),
        ("reporting", "Test data"),
        ("quick", "Quick setting"),
    ):
        some = [record for record in records if record["group"] == group]
        for score in ("programs", "usages") if some else ():
            shown.append(_table(some, score, f"{title}: correlation of {score}"))
    judged = [record for record in records if record["group"] == "reporting"]
    return [*shown, *_verdicts(judged)]


def _table(records: Sequence[Record], score: str, title: str) -> Table:
    data = list(dict.fromkeys(record["data"] for record in records))
    groups = grouped(records, "candidate", "data")
    rows = []
    for name in dict.fromkeys(record["candidate"] for record in records):
        row: dict[str, Any] = {"candidate": name}
        for one in data:
            row[one] = Measured(*mean_and_spread([r[score] for r in groups.get((name, one), [])]))
        rows.append(row)
    return Table(f"{title}.", {"candidate": "candidate"} | {one: one for one in data}, rows, 3)


def _verdicts(records: Sequence[Record]) -> list[Verdict]:
    groups = grouped(records, "data", "candidate")
    whole = len(records) == 5 * len(REPORTING) * N_REPORTING
    verdicts = []
    for other, score, data in (
        (JOINT, "programs", ("genes, strong", "programs, some genes", "both")),
        (JOINT, "usages", ("genes, strong", "programs, some genes", "both")),
        (SCALED, "programs", ("programs, some genes", "both")),
        (LIGER, "programs", ("programs, some genes", "both")),
    ):
        means = {
            (one, name): mean_and_spread([r[score] for r in groups.get((one, name), [])])[0] or 0.0
            for one in data
            for name in (OURS, other)
        }
        verdicts.append(
            Verdict(
                f"Where data sets differ, the default is above {other} in the correlation of {score}",
                all(means[one, OURS] > means[one, other] for one in data) if whole else None,
                ", ".join(f"{one}: {means[one, OURS]:.3f} ({means[one, other]:.3f})" for one in data),
            )
        )
    return verdicts


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize)
