"""Brunet et al. (2004): consensus clustering of 38 leukemia samples, two to five clusters.

    python -m benchmarks.others.brunet [--restarts 50] [--nimfa] [--write]

Brunet, Tamayo, Golub & Mesirov (2004), PNAS 101(12): NMF with the Kullback-Leibler divergence from random
initializations; a sample belongs to the component with its largest weight; the consensus matrix is the share
of restarts in which two samples belong together; its cophenetic correlation tells how stable the clusters
are. The data are the 5000 genes of the paper (`leukemia_all_aml` under NONNEG_DATA; nimfa ships them).
`--nimfa` runs nimfa's implementation beside it, where it is installed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import cophenet, fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score

from benchmarks.others.records import merge
from benchmarks.tables import markdown
from nonneg import factorize

RANKS = (2, 3, 4, 5)
MAX_ITER = 500
SCORES = ("cophenetic correlation", "dispersion", "adjusted Rand index")


def ours(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Return the cluster of each sample in one restart."""
    fit = factorize(X, k, beta_loss=1.0, init="random", rng=seed, max_iter=MAX_ITER)
    return np.asarray((fit.W * fit.H.sum(axis=1)).argmax(axis=1))


def nimfa_restart(X: np.ndarray, k: int, _: int) -> np.ndarray:
    """Return the same with nimfa: matrices are transposed, Brunet's rule stops it, and it takes no seed."""
    vars(np)["mat"] = np.asmatrix  # which NumPy 2 no longer has, and nimfa 1.4 needs
    import nimfa

    fit = nimfa.Nmf(X.T, seed="random_vcol", rank=k, max_iter=MAX_ITER, update="divergence",
                    objective="conn", conn_change=40)()  # fmt: skip
    return np.asarray(fit.coef()).argmax(axis=0)


def consensus(clusters: np.ndarray) -> np.ndarray:
    """Return the share of restarts in which two samples are in the same cluster."""
    return (clusters[:, :, None] == clusters[:, None, :]).mean(axis=0)


def row(
    name: str, restart: Callable[..., np.ndarray], X: np.ndarray, y: np.ndarray, k: int, n: int
) -> dict[str, Any]:
    """Run the restarts for one number of clusters."""
    started = time.perf_counter()
    matrix = consensus(np.stack([restart(X, k, seed) for seed in range(n)]))
    seconds = time.perf_counter() - started
    distances = squareform(1.0 - matrix, checks=False)
    tree = linkage(distances, "average")
    correlation = float(cophenet(tree, distances)[0])
    labels = fcluster(tree, k, "maxclust")
    # For two clusters the known classes are ALL and AML, for more the B and T cells apart.
    truth = y == 2 if k == 2 else y
    dispersion = float((4 * (matrix - 0.5) ** 2).mean())
    numbers = (correlation, dispersion, float(adjusted_rand_score(truth, labels)))
    scores = {title: round(number, 4) for title, number in zip(SCORES, numbers, strict=True)}
    return {"k": k, "package": name, "restarts": n, **scores, "seconds": round(seconds, 1)}


def tables(rows: list[dict[str, Any]]) -> str:
    """Return the scores by number of clusters."""
    lines = [
        [str(each["k"]), each["package"], str(each["restarts"]), *(f"{each[title]:.3f}" for title in SCORES)]
        for each in sorted(rows, key=lambda each: (each["k"], each["package"]))
    ]
    return markdown(("k", "package", "restarts", *SCORES), lines)


def main() -> None:
    """Run and print, or also write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--restarts", type=int, default=50)
    parser.add_argument("--nimfa", action="store_true")
    parser.add_argument("--write", action="store_true", help="write the record under docs/")
    options = parser.parse_args()
    with np.load(Path(os.environ["NONNEG_DATA"]) / "leukemia_all_aml" / "data.npz") as stored:
        X, y = np.ascontiguousarray(stored["V"].T, dtype=float), stored["y"]
    methods = {"nonneg": ours} | ({"nimfa": nimfa_restart} if options.nimfa else {})
    rows = [row(name, restart, X, y, k, options.restarts) for k in RANKS for name, restart in methods.items()]
    if options.write:
        rows = merge("brunet", rows, ("k", "package"))
    sys.stdout.write(tables(rows) + "\n")


if __name__ == "__main__":
    main()
