"""Signatures extracted de novo from the catalogs of mSigHdp's article, beside the results that it published.

    python -m benchmarks.others.msighdp FOLDER [--sets SBS_set1] [--most 40] [--restarts 20] [--write]

Liu, Wu, Jiang, Boot & Rozen (2023), NAR Genomics and Bioinformatics 5(1), lqad005. FOLDER is a copy of its
repository, github.com/steverozen/mSigHdp_paper_sup_files_x1: synthetic tumors of several cancers in one
catalog ("Realistic" noise), their signatures, and the precision and recall of five runs of each program
(Supplementary Table S4). As there, an extracted signature is true if its cosine similarity with a planted one
is at least 0.9, matched one to one so that as many as possible are.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.others.denovo import N_INIT, N_JOBS, scores
from benchmarks.others.records import merge
from benchmarks.tables import markdown
from nonneg.applications import MutationalSignatures
from nonneg.applications.signatures import CHANNELS
from nonneg.applications.signatures.model import MOST

SETS = ("SBS_set1", "SBS_set2")
PROGRAMS = ("mSigHdp_ds_3k", "mSigHdp", "SigProfilerExtractor", "SP_default", "signeR", "SignatureAnalyzer")


def table(path: Path) -> pd.DataFrame:
    """Return one of its tables with channels as columns."""
    read = pd.read_csv(path)
    three = read["Trinucleotide"]
    read.index = pd.Index(three.str[0] + "[" + read["Mutation type"] + "]" + three.str[2])
    return read.drop(columns=["Mutation type", "Trinucleotide"]).T


def published(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of Supplementary Table S4."""
    read = pd.read_csv(folder / "output_for_paper/supplementary_table_s4.csv")
    chosen = read[(read.Data_set == name) & (read.Noise_level == "Realistic") & read.Approach.isin(PROGRAMS)]
    return [
        {"set": name, "method": run.Approach, "run": run.Run, "extracted": int(run.N_Sigs), "P": run.PPV,
         "R": run.TPR, "F1": 2 * run.PPV * run.TPR / (run.PPV + run.TPR), "published": True}
        for run in chosen.itertuples()
    ]  # fmt: skip


def extracted(folder: Path, name: str, most: int, n_init: int, seed: int) -> dict[str, Any]:
    """Score nonneg, which chooses among one and `most` signatures."""
    data = folder / name / "input" / "Realistic"
    counts, truth = (table(data / f"ground.truth.syn.{each}.csv") for each in ("catalog", "sigs"))
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MutationalSignatures(range(1, most + 1), n_init=n_init, random_state=seed, n_jobs=N_JOBS)
        model.fit(counts.T)
    seconds = round(time.perf_counter() - started, 1)
    found = pd.DataFrame(model.signatures_, columns=CHANNELS)[counts.columns].to_numpy()
    method = f"nonneg, 1 to {most}" + (f", {n_init} restarts" if n_init != N_INIT else "")
    row = {"set": name, "run": f"seed.{seed}", "seconds": seconds, "method": method}
    return row | scores(found, truth[counts.columns].to_numpy(), most=True)


def tables(rows: list[dict[str, Any]]) -> str:
    """Return means over the runs, the largest F1 first."""
    groups = pd.DataFrame(rows).groupby(["set", "method"])
    means = groups[["extracted", "P", "R", "F1"]].mean().assign(runs=groups.size()).reset_index()
    lines = [
        (row.set, row.method, str(row.runs), f"{row.extracted:.1f}", *(f"{row[at]:.2f}" for at in (4, 5, 6)))
        for row in means.sort_values(["set", "F1"], ascending=[True, False]).itertuples()
    ]
    return markdown(("catalog", "method", "runs", "extracted", "precision", "recall", "F1"), lines)


def main() -> None:
    """Run and print, or also write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument(
        "--most", type=int, nargs="+", default=[MOST], help="the largest number of signatures"
    )
    parser.add_argument("--restarts", type=int, default=N_INIT)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--write", action="store_true", help="write the record under docs/")
    options = parser.parse_args()
    rows = [row for name in options.sets for row in published(options.folder, name)]
    for name in options.sets:
        for most in options.most:
            for seed in options.seeds:
                rows.append(extracted(options.folder, name, most, options.restarts, seed))
                sys.stderr.write(json.dumps(rows[-1]) + "\n")
    if options.write:
        rows = merge("msighdp", rows, ("set", "method", "run"))
    sys.stdout.write(tables(rows) + "\n")


if __name__ == "__main__":
    main()
