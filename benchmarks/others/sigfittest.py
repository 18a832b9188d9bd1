"""SigFitTest: known mutational signatures assigned to synthetic tumors of eight cancers.

    python -m benchmarks.others.sigfittest [--cohorts N] [--sigprofiler PYTHON] [--write]

The protocol is that of Medo, Ng & Medova (2024), Nature Communications 15:9467: cohorts of 100 tumors whose
weights are drawn from tables of real tumors, 100, 2,000 or 50,000 mutations each from the profiles of COSMIC
v3.3.1, and all signatures of COSMIC v3 as the reference. Exposures below 10 mutations count as zero. The data
(`sigfittest` under NONNEG_DATA) are the repository's; the seed is the repository's, so the catalogs are the
same. `--sigprofiler` names an interpreter with SigProfilerAssignment, which then runs on the same catalogs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from benchmarks.machine import describe
from benchmarks.tables import markdown
from nonneg.applications.signatures import assign_signatures

TISSUES = (
    "Head-SCC", "ColoRect-AdenoCA", "Lung-AdenoCA", "Skin-Melanoma", "CNS-GBM", "Stomach-AdenoCA", "Breast",
    "Eso-AdenoCA",
)  # fmt: skip
SIZES, N_TUMORS, SMALLEST = (100, 2_000, 50_000), 100, 10
RECORD = Path(__file__).resolve().parents[2] / "docs/benchmarks/records/sigfittest.json"
SIGPROFILER = """
import sys
from SigProfilerAssignment import Analyzer
if __name__ == "__main__":
    catalog, reference, folder = sys.argv[1:]
    Analyzer.cosmic_fit(catalog, folder, input_type="matrix", signature_database=reference, make_plots=False,
                        exome=False, cpu=1)
"""


def folder() -> Path:
    """Return where the data are."""
    return Path(os.environ["NONNEG_DATA"]) / "sigfittest"


def signatures(version: str) -> pd.DataFrame:
    """Return a table of COSMIC: channels in rows, signatures in columns."""
    return pd.read_csv(folder() / f"COSMIC_{version}_SBS_GRCh38.txt", sep="\t", comment="#", index_col="Type")


def cohorts(tissue: str, n_cohorts: int) -> Iterator[tuple[int, int, pd.DataFrame, pd.DataFrame]]:
    """Draw cohorts in the order of the repository: number, mutations, counts and true exposures."""
    profiles = signatures("v3.3.1")
    rng = np.random.default_rng(0)
    table = pd.read_csv(folder() / f"tissues/{tissue}.dat", sep="\t", index_col="Sample")
    tumors = [f"S{at}" for at in range(N_TUMORS)]
    for cohort in range(n_cohorts):
        drawn = table.iloc[rng.choice(len(table), size=N_TUMORS)].to_numpy(float)
        for size in SIZES:
            weights = drawn * (size / drawn.sum(axis=1, keepdims=True))
            weights[weights < SMALLEST] = 0
            weights /= weights.sum(axis=1, keepdims=True)
            counts = np.zeros((N_TUMORS, len(profiles)), dtype=int)
            for row, each in zip(counts, weights @ profiles[table.columns].to_numpy().T, strict=True):
                np.add.at(row, rng.choice(len(profiles), p=each / each.sum(), size=size), 1)
            truth = pd.DataFrame(size * weights, index=tumors, columns=table.columns)
            yield cohort, size, pd.DataFrame(counts, index=tumors, columns=profiles.index), truth


def scores(exposures: pd.DataFrame, truth: pd.DataFrame, size: int) -> dict[str, float]:
    """Return total absolute error, precision, recall and F1, means over the tumors."""
    names = exposures.columns.union(truth.columns)
    E, T = (frame.reindex(columns=names, fill_value=0.0).to_numpy() for frame in (exposures, truth))
    E = np.where(E < SMALLEST, 0.0, E)
    hits, wrong, missed = ((E > 0) & (T > 0)).sum(1), ((E > 0) & (T == 0)).sum(1), ((E == 0) & (T > 0)).sum(1)
    precision, recall = hits / np.maximum(hits + wrong, 1), hits / (hits + missed)
    f1 = 2 * precision * recall / np.maximum(precision + recall, np.finfo(float).tiny)
    error = np.abs(E - T).sum(axis=1) / (2 * size)
    return {"TAE": error.mean(), "P": precision.mean(), "R": recall.mean(), "F1": f1.mean()}


def ours(counts: pd.DataFrame, reference: pd.DataFrame, cohort: bool) -> pd.DataFrame:
    """Assign signatures; two draws for the intervals, which no score asks for."""
    answer = assign_signatures(counts, reference, cohort=cohort, n_bootstrap=2)
    return pd.DataFrame(answer.exposures, index=answer.sample_names, columns=answer.names)


def least_squares(counts: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Plain nonnegative least squares, as the default of several tools."""
    H = reference.loc[counts.columns].to_numpy()
    W = [nnls(H, row)[0] for row in counts.to_numpy(float)]
    return pd.DataFrame(W, index=counts.index, columns=reference.columns)


def sigprofiler(counts: pd.DataFrame, reference: pd.DataFrame, python: str) -> pd.DataFrame:
    """Run SigProfilerAssignment with its defaults in its own environment, on one thread."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        counts.T.rename_axis("Type").to_csv(place / "catalog.tsv", sep="\t")
        reference.to_csv(place / "reference.tsv", sep="\t")
        (place / "run.py").write_text(SIGPROFILER, encoding="utf-8")
        words = [str(place / each) for each in ("run.py", "catalog.tsv", "reference.tsv", "out")]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run([python, *words], check=True, capture_output=True, env=environment)
        (path,) = (place / "out").rglob("Assignment_Solution_Activities.txt")
        return pd.read_csv(path, sep="\t", index_col=0).loc[counts.index]


def race(n_cohorts: int, python: str | None, tissues: tuple[str, ...]) -> list[dict[str, Any]]:
    """Score every method on every cohort."""
    reference = signatures("v3")
    methods: dict[str, Callable[..., pd.DataFrame]] = {
        "nonneg": lambda *each: ours(*each, cohort=True),
        "nonneg, tumor by tumor": lambda *each: ours(*each, cohort=False),
        "nonnegative least squares": least_squares,
    }
    if python is not None:
        methods["SigProfilerAssignment"] = lambda *each: sigprofiler(*each, python)
    rows = []
    for tissue in tissues:
        for cohort, size, counts, truth in cohorts(tissue, n_cohorts):
            for name, method in methods.items():
                started = time.perf_counter()
                exposures = method(counts, reference)
                seconds = time.perf_counter() - started
                row = {"tissue": tissue, "cohort": cohort, "mutations": size, "method": name}
                rows.append(row | scores(exposures, truth, size) | {"seconds": seconds})
                sys.stdout.write(json.dumps(rows[-1]) + "\n")
                sys.stdout.flush()
    return rows


def tables(rows: list[dict[str, Any]]) -> str:
    """Return means over the cancers as a table."""
    frame = pd.DataFrame(rows)
    head = ("mutations", "method", "total absolute error", "precision", "recall", "F1", "seconds per cohort")
    lines = []
    for (size, method), group in sorted(frame.groupby(["mutations", "method"]), key=lambda item: item[0]):
        mean = group[["TAE", "P", "R", "F1", "seconds"]].mean()
        numbers = (
            f"{mean.TAE:.4f}",
            f"{mean.P:.3f}",
            f"{mean.R:.3f}",
            f"{mean.F1:.3f}",
            f"{mean.seconds:.1f}",
        )
        lines.append((f"{size:,}", method, *numbers))
    return markdown(head, lines)


def main() -> None:
    """Run and print, or also write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cohorts", type=int, default=1, help="cohorts per cancer")
    parser.add_argument("--tissues", default=",".join(TISSUES), help="cancers, separated by commas")
    parser.add_argument("--sigprofiler", metavar="PYTHON", help="an interpreter with SigProfilerAssignment")
    parser.add_argument("--write", action="store_true", help="write the record under docs/")
    options = parser.parse_args()
    rows = race(options.cohorts, options.sigprofiler, tuple(options.tissues.split(",")))
    sys.stdout.write(tables(rows) + "\n")
    if options.write:
        RECORD.write_text(
            json.dumps({"machine": describe(), "rows": rows}, indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
