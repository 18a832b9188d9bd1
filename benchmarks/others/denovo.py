"""Signatures extracted de novo from planted catalogs of eight cancers.

    python -m benchmarks.others.denovo [--sizes 2000,50000] [--restarts 20] [--sigprofiler PYTHON] [--write]

The catalogs are those of `benchmarks.others.sigfittest`: 100 tumors with the exposures of real tumors,
mutations drawn from the profiles of COSMIC. Planted are the signatures active in a tumor of the cohort. As in
the benchmark of Islam et al. (2022), Cell Genomics 2(11), an extracted signature is true if its cosine
similarity with a planted one, matched one to one, is at least 0.9; F1 is the harmonic mean of precision and
recall. `--sigprofiler` names an interpreter with SigProfilerExtractor; it and nonneg then extract up to four
signatures with three restarts. `--write` replaces the rows of the record that were run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from benchmarks.others.records import merge
from benchmarks.others.sigfittest import TISSUES, cohorts, signatures
from benchmarks.tables import markdown, number
from nonneg.applications import MutationalSignatures
from nonneg.applications.signatures import CHANNELS

COSINE, N_JOBS, N_INIT, FEW = 0.9, 2, 20, 4
SIGPROFILER = """
import sys
from SigProfilerExtractor import sigpro
if __name__ == "__main__":
    catalog, folder, most = sys.argv[1:]
    sigpro.sigProfilerExtractor(
        "matrix", folder, catalog, minimum_signatures=1, maximum_signatures=int(most), nmf_replicates=3,
        min_nmf_iterations=100, max_nmf_iterations=1000, nmf_test_conv=100, cpu=2,
        make_decomposition_plots=False)
"""

Extraction = Callable[[pd.DataFrame, int], np.ndarray]


def scores(extracted: np.ndarray, planted: np.ndarray, *, most: bool = False) -> dict[str, float]:
    """Return how many signatures are extracted and true, precision, recall and F1.

    They are matched for the largest sum of the similarities, or for the most that are true.
    """
    first, second = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (extracted, planted))
    cosines = first @ second.T
    pairs = linear_sum_assignment(cosines >= COSINE if most else cosines, maximize=True)
    true = int((cosines[pairs] >= COSINE).sum())
    f1 = 2 * true / (len(extracted) + len(planted))
    return {
        "planted": len(planted), "extracted": len(extracted), "true": true,
        "P": true / len(extracted), "R": true / len(planted), "F1": f1,
    }  # fmt: skip


def ours(counts: pd.DataFrame, n_signatures: Any, n_init: int) -> np.ndarray:
    """Return the signatures of nonneg, their number by its own rule unless it is fixed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {} if n_signatures is None else {"n_signatures": n_signatures}
        model = MutationalSignatures(n_init=n_init, random_state=0, n_jobs=N_JOBS, **options).fit(counts.T)
    return np.asarray(pd.DataFrame(model.signatures_, columns=CHANNELS)[counts.columns])


def scikit_learn(counts: pd.DataFrame, k: int, n_init: int) -> np.ndarray:
    """Return the components of scikit-learn's best restart (Kullback-Leibler, multiplicative updates)."""
    best, H = np.inf, np.empty(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(n_init):
            model = NMF(
                k, beta_loss="kullback-leibler", solver="mu", init="random", max_iter=1000, random_state=seed
            ).fit(counts.to_numpy(float))
            if model.reconstruction_err_ < best:
                best, H = model.reconstruction_err_, model.components_
    return H


def sigprofiler(counts: pd.DataFrame, python: str, most: int) -> np.ndarray:
    """Return the suggested solution of SigProfilerExtractor: few restarts, as it takes long."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        counts.T.rename_axis("MutationType").to_csv(place / "catalog.tsv", sep="\t")
        (place / "run.py").write_text(SIGPROFILER, encoding="utf-8")
        words = [str(place / each) for each in ("run.py", "catalog.tsv", "out")]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        command = [python, *words, str(most)]
        subprocess.run(command, check=True, capture_output=True, env=environment, cwd=place)
        (path,) = (place / "out").rglob("Suggested_Solution/*De-Novo_Solution/Signatures/*Signatures.txt")
        return pd.read_csv(path, sep="\t", index_col=0).loc[counts.columns].to_numpy().T


def race(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Score every method on every catalog."""
    methods: dict[str, Extraction] = {
        "nonneg, 1 to 25": lambda counts, k: ours(counts, None, N_INIT),
        "nonneg, planted number": lambda counts, k: ours(counts, k, N_INIT),
        "scikit-learn, planted number": lambda counts, k: scikit_learn(counts, k, N_INIT),
    }
    if options.restarts != N_INIT:
        name = f"nonneg, 1 to 25, {options.restarts} restarts"
        methods = {name: lambda counts, k: ours(counts, None, options.restarts)}
    elif options.sigprofiler:
        methods = {
            f"nonneg, 2 to {FEW}": lambda counts, k: ours(counts, range(2, FEW + 1), 3),
            "SigProfilerExtractor": lambda counts, k: sigprofiler(counts, options.sigprofiler, FEW),
        }
    profiles = signatures("v3.3.1")
    rows = []
    for tissue in options.tissues.split(","):
        for _, size, counts, truth in cohorts(tissue, 1):
            if str(size) not in options.sizes.split(","):
                continue
            planted = profiles[truth.columns[(truth > 0).any()]].loc[counts.columns].to_numpy().T
            for name in methods:
                started = time.perf_counter()
                extracted = methods[name](counts, len(planted))
                seconds = time.perf_counter() - started
                row = {"tissue": tissue, "mutations": size, "method": name}
                rows.append(row | scores(extracted, planted) | {"seconds": seconds})
                sys.stdout.write(json.dumps(rows[-1]) + "\n")
                sys.stdout.flush()
    return rows


def tables(rows: list[dict[str, Any]]) -> str:
    """Return means over the cancers, and beside SigProfilerExtractor on one catalog."""
    frame = pd.DataFrame(rows)
    small = frame.method.isin(["SigProfilerExtractor", f"nonneg, 2 to {FEW}"])
    head = ("mutations", "method", "planted", "extracted", "true", "precision", "recall", "F1", "seconds")
    parts = []
    for part in (frame[~small], frame[small]):
        lines = []
        for (size, name), group in part.groupby(["mutations", "method"]):
            mean = group.mean(numeric_only=True)
            counts = [f"{mean[each]:.1f}" for each in ("planted", "extracted", "true")]
            shares = [f"{mean[each]:.2f}" for each in ("P", "R", "F1")]
            lines.append(
                (
                    f"{size:,}",
                    str(name),
                    *counts,
                    *shares,
                    number(None if np.isnan(mean.seconds) else mean.seconds, 2),
                )
            )
        parts.append(markdown(head, lines))
    return "\n\n".join(parts)


def main() -> None:
    """Run and print, or also write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tissues", default=",".join(TISSUES), help="cancers, separated by commas")
    parser.add_argument("--sizes", default="2000,50000", help="mutations per tumor")
    parser.add_argument("--restarts", type=int, default=N_INIT, help="others: of nonneg's default alone")
    parser.add_argument("--sigprofiler", metavar="PYTHON", help="an interpreter with SigProfilerExtractor")
    parser.add_argument("--write", action="store_true", help="write the record under docs/")
    options = parser.parse_args()
    rows = race(options)
    if options.write:
        rows = merge("denovo", rows, ("tissue", "mutations", "method"))
    sys.stdout.write(tables(rows) + "\n")


if __name__ == "__main__":
    main()
