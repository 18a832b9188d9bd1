"""Gene programs of identities and one activity: the simulation of cNMF's article.

    python -m benchmarks.others.kotliar [--cells 15000] [--restarts 20] [--cnmf PYTHON] [--write]

Kotliar et al. (2019), eLife 8:e43803, "Simulations": Splatter's model with the parameters of an organoid; 13
cell types of equal probability; one activity program that 30% of the cells of four types use for 10 to 70% of
their expression; 25,000 genes, of which 1,000 belong to the activity and 2.5% to each identity; 6% doublets;
differential expression with location 0.5, 0.75 or 1. Cells with fewer than 1,000 counts and genes in fewer
than one of 500 cells are left out, and 2,000 overdispersed genes are factorized with 14 components. A planted
program is found if its correlation with a program is above 0.8, on these genes divided by their standard
deviations. The article also measures how well the z-scores of a program find its genes: the share of those
that change at least twofold, at a false discovery rate of 5%.
`--cnmf` names an interpreter with cNMF, which then runs on the same counts with the genes that it selects;
nonneg takes the same genes. Both use two cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from benchmarks.others.records import merge
from benchmarks.tables import markdown
from nonneg import ConsensusNMF

N_TYPES, WITH_ACTIVITY, N_GENES, N_JOBS = 13, 4, 25_000, 2
LOCATIONS = (0.5, 0.75, 1.0)
CNMF = """
import os, sys, time, json
import cnmf
if __name__ == "__main__":
    counts, folder, k, restarts = sys.argv[1:]
    k = int(k)
    model = cnmf.cNMF(output_dir=folder, name="run")
    begin = time.perf_counter()
    model.prepare(counts_fn=counts, components=[k], n_iter=int(restarts), seed=1, num_highvar_genes=2000)
    prepared = time.perf_counter()
    model.factorize_multi_process(total_workers=2)
    factorized = time.perf_counter()
    model.combine(components=[k])
    model.consensus(k, density_threshold=0.5, show_clustering=False, build_ref=False)
    done = time.perf_counter()
    times = {"prepare": prepared - begin, "factorize": factorized - prepared, "consensus": done - factorized}
    for name, key in (("spectra", "consensus_spectra"), ("scores", "gene_spectra_score")):
        table = cnmf.load_df_from_npz(model.paths[key] % (k, "0_5"))
        table.to_csv(os.path.join(folder, name + ".csv"))
    with open(os.path.join(folder, "times.json"), "w") as file:
        json.dump(times, file)
"""


class Simulation(NamedTuple):
    """Counts of cells x genes, the mean expression of each program, and its fold changes."""

    counts: sp.csr_array
    programs: np.ndarray
    folds: np.ndarray
    usages: np.ndarray


def simulate(n_cells: int, location: float, seed: int) -> Simulation:
    """Draw a data set of the article; all parameters are its own."""
    rng = np.random.default_rng(seed)
    means = rng.gamma(0.34, 1 / 7.68, size=N_GENES)
    outlier = rng.random(N_GENES) < 0.00286
    means[outlier] = np.median(means) * rng.lognormal(6.15, 0.49, size=outlier.sum())
    active = rng.random((N_TYPES + 1, N_GENES)) < 0.025
    active[-1] = False
    active[-1, rng.choice(N_GENES, 1000, replace=False)] = True
    # No gene is less expressed: a factor below one is inverted, as in Splatter.
    folds = np.where(active, np.exp(np.abs(rng.normal(location, 1.0, size=active.shape))), 1.0)
    programs = folds * means
    programs /= programs.sum(axis=1, keepdims=True)
    types = rng.integers(N_TYPES, size=n_cells)
    uses = (types < WITH_ACTIVITY) & (rng.random(n_cells) < 0.3)
    share = np.where(uses, rng.uniform(0.1, 0.7, size=n_cells), 0.0)
    usages = np.zeros((n_cells, N_TYPES + 1))
    usages[np.arange(n_cells), types] = 1 - share
    usages[:, -1] = share
    sizes = rng.lognormal(7.64, 0.78, size=n_cells)
    inverse = np.sqrt(22.087 / rng.chisquare(22.087, size=N_GENES))
    blocks = []
    for at in range(0, n_cells, 500):
        part = slice(at, at + 500)
        rates = sizes[part, None] * (usages[part] @ programs)
        variation = (0.448 + 1 / np.sqrt(np.maximum(rates, np.finfo(float).tiny))) * inverse
        shape = 1 / variation**2
        blocks.append(sp.csr_array(rng.poisson(rng.gamma(shape, rates / shape)).astype(np.float64)))
    counts = sp.vstack(blocks, format="csr")
    # Doublets: two cells summed, thinned to the larger of the two sizes.
    doublets = rng.choice(n_cells, int(0.06 * n_cells), replace=False)
    partners = rng.choice(n_cells, len(doublets))
    totals = counts.sum(axis=1)
    rows = {}
    for cell, partner in zip(doublets, partners, strict=True):
        both = counts[[cell, partner]].sum(axis=0)
        size = int(max(totals[cell], totals[partner]))
        rows[cell] = rng.multivariate_hypergeometric(both.astype(int), size, method="marginals")
    order = np.setdiff1d(np.arange(n_cells), doublets)
    pairs = sp.csr_array(np.array([rows[cell] for cell in doublets], dtype=np.float64))
    counts = sp.csr_array(sp.vstack([counts[order], pairs]))
    usages = np.vstack([usages[order], (usages[doublets] + usages[partners]) / 2])
    enough = counts.sum(axis=1) >= 1000
    counts, usages = counts[enough], usages[enough]
    seen = (counts > 0).sum(axis=0) >= counts.shape[0] / 500
    return Simulation(sp.csr_array(counts[:, seen]), programs[:, seen], folds[:, seen], usages)


def scores(spectra: np.ndarray, z: np.ndarray, drawn: Simulation, genes: np.ndarray) -> dict[str, float]:
    """Return how many programs are found, and the sensitivity at a false discovery rate of 5%."""
    X = drawn.counts[:, genes]
    variance = X.multiply(X).mean(axis=0) - X.mean(axis=0) ** 2
    truth = drawn.programs[:, genes] / np.sqrt(variance)
    k = len(truth)
    table = np.nan_to_num(np.corrcoef(truth, spectra)[:k, k:])
    planted, extracted = linear_sum_assignment(table, maximize=True)
    correlations = table[planted, extracted]
    sensitivity = []
    for program, at in zip(planted, extracted, strict=True):
        fold = drawn.folds[program]
        order = np.argsort(-z[at])
        positive, null = (fold >= 2)[order], (fold == 1)[order]
        false = np.cumsum(null) / np.maximum(np.cumsum(null) + np.cumsum(positive), 1)
        below = np.flatnonzero(false <= 0.05)
        sensitivity.append(float(np.cumsum(positive)[below[-1]] / positive.sum()) if len(below) else 0.0)
    return {
        "found": int((correlations > 0.8).sum()), "activity": float(correlations[-1]),
        "lowest": float(correlations.min()), "genes": float(np.mean(sensitivity)),
        "genes of the activity": sensitivity[-1],
    }  # fmt: skip


def cnmf(drawn: Simulation, python: str, restarts: int) -> tuple[dict[str, Any], np.ndarray]:
    """Run cNMF on the counts; return its scores and times, and the genes it selects."""
    import anndata

    n, m = drawn.counts.shape
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        frames = {
            "obs": pd.DataFrame(index=[f"c{at}" for at in range(n)]),
            "var": pd.DataFrame(index=[f"g{at}" for at in range(m)]),
        }
        anndata.AnnData(drawn.counts, **frames).write_h5ad(place / "counts.h5ad")
        (place / "run.py").write_text(CNMF, encoding="utf-8")
        words = [str(place / each) for each in ("run.py", "counts.h5ad", "out")]
        (place / "out").mkdir()
        command = [python, *words, str(N_TYPES + 1), str(restarts)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        spectra, z = (
            pd.read_csv(place / "out" / f"{each}.csv", index_col=0) for each in ("spectra", "scores")
        )
        times = json.loads((place / "out" / "times.json").read_text(encoding="utf-8"))
    genes = np.array([int(name[1:]) for name in spectra.columns])
    whole = z.reindex(columns=frames["var"].index).fillna(0.0).to_numpy()
    return scores(spectra.to_numpy(), whole, drawn, genes) | {"seconds": times}, genes


def ours(drawn: Simulation, genes: np.ndarray, restarts: int) -> dict[str, Any]:
    """Run ConsensusNMF on the same genes."""
    started = time.perf_counter()
    model = ConsensusNMF(N_TYPES + 1, n_init=restarts, random_state=1, n_jobs=N_JOBS)
    W = model.fit_transform(drawn.counts[:, genes])
    fitted = time.perf_counter()
    z = model.gene_spectra(drawn.counts, W)
    times = {"factorize": fitted - started, "consensus": time.perf_counter() - fitted}
    return scores(model.components_ / model.column_scale_, np.asarray(z), drawn, genes) | {"seconds": times}


def tables(rows: list[dict[str, Any]]) -> str:
    """Return one row per signal and method, means over the draws."""
    frame = pd.DataFrame(rows)
    frame["time"] = [row["seconds"]["factorize"] + row["seconds"]["consensus"] for row in rows]
    head = ("location", "method", "draws", "programs found of 14", "correlation of the activity", "lowest",
            "genes found", "genes of the activity", "seconds")  # fmt: skip
    lines = []
    for (location, method), group in frame.groupby(["location", "method"]):
        mean = group.mean(numeric_only=True)
        digits = [f"{mean[each]:.3f}" for each in ("activity", "lowest", "genes", "genes of the activity")]
        lines.append(
            (str(location), method, str(len(group)), f"{mean.found:.1f}", *digits, f"{mean.time:.0f}")
        )
    return markdown(head, lines)


def main() -> None:
    """Run and print, or also write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=15_000)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--draws", default="0")
    parser.add_argument("--locations", default=",".join(map(str, LOCATIONS)))
    parser.add_argument("--cnmf", metavar="PYTHON", required=True, help="an interpreter with cNMF")
    parser.add_argument("--write", action="store_true", help="write the record under docs/")
    options = parser.parse_args()
    rows = []
    for location in map(float, options.locations.split(",")):
        for draw in map(int, options.draws.split(",")):
            drawn = simulate(options.cells, location, draw)
            theirs, genes = cnmf(drawn, options.cnmf, options.restarts)
            row = {"location": location, "draw": draw, "cells": options.cells, "restarts": options.restarts}
            rows.append(row | {"method": "cNMF"} | theirs)
            rows.append(row | {"method": "nonneg"} | ours(drawn, genes, options.restarts))
            sys.stdout.write("".join(json.dumps(each) + "\n" for each in rows[-2:]))
            sys.stdout.flush()
    if options.write:
        rows = merge("kotliar", rows, ("location", "draw", "cells", "method"))
    sys.stdout.write(tables(rows) + "\n")


if __name__ == "__main__":
    main()
