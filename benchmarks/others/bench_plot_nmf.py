"""Loss over time on faces and texts: the protocol of scikit-learn's `bench_plot_nmf`.

    python -m benchmarks.others.bench_plot_nmf [--threads 1] [--repeats 3] [--write]

The protocol of scikit-learn's `benchmarks/bench_plot_nmf.py`: ten components, tolerance 1e-15, no penalty;
three initializations ("nndsvd", "nndsvdar" and "random"), the same for every method; fits with 1 to 29
iterations, with times and Frobenius losses. Faces are the Olivetti faces, as there. Texts are TDT2 (9,394
x 36,771), because 20 Newsgroups (11,314 x 39,116) has to be downloaded. Its projected gradient has left
scikit-learn and is no peer here. Methods take turns within a repeat.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import sklearn.decomposition
from reproduction.data import load_olivetti, load_tdt2
from sklearn.feature_extraction.text import TfidfTransformer

import nonneg
from benchmarks.machine import limited
from benchmarks.others.records import merge
from benchmarks.tables import markdown
from nonneg.data import as_data_matrix
from nonneg.initializers.registry import INITS

K, TOL = 10, 1e-15
ITERATIONS = (1, 2, 3, 5, 8, 12, 18, 24, 29)
METHODS: dict[str, tuple[Any, str]] = {
    "scikit-learn, cd": (sklearn.decomposition.NMF, "cd"),
    "scikit-learn, mu": (sklearn.decomposition.NMF, "mu"),
    "nonneg, default": (nonneg.NMF, "auto"),
    "nonneg, mu": (nonneg.NMF, "mu"),
}


def data(name: str) -> Any:
    """Return faces or texts."""
    if name == "faces":
        return load_olivetti().X
    return sp.csr_matrix(TfidfTransformer().fit_transform(load_tdt2().X))


def loss(X: Any, W: np.ndarray, H: np.ndarray) -> float:
    """Return the Frobenius norm of X - W H."""
    squares = float(X.multiply(X).sum()) if sp.issparse(X) else float((X**2).sum())
    value = squares - 2 * float(((X @ H.T) * W).sum()) + float(((W.T @ W) * (H @ H.T)).sum())
    return float(np.sqrt(max(value, 0.0)))


def race(name: str, repeats: int) -> list[dict[str, Any]]:
    """Fit with every number of iterations from every initialization."""
    X = data(name)
    rows = []
    for seed, init in enumerate(("nndsvd", "nndsvdar", "random")):
        W0, Ht0 = INITS[init](as_data_matrix(X), K, **({} if init == "nndsvd" else {"rng": seed}))
        H0 = np.ascontiguousarray(Ht0.T)
        for n_iter in ITERATIONS:
            turns: dict[str, list[tuple[float, float]]] = {method: [] for method in METHODS}
            for _ in range(repeats):
                for method, (estimator, solver) in METHODS.items():
                    model = estimator(K, init="custom", solver=solver, tol=TOL, max_iter=n_iter)
                    W, H = np.array(W0), H0.copy()
                    started = time.perf_counter()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        W = model.fit_transform(X, W=W, H=H)
                    seconds = time.perf_counter() - started
                    turns[method].append((seconds, loss(X, W, model.components_)))
            for method, turn in turns.items():
                row = {"data": name, "init": init, "method": method, "iterations": n_iter}
                seconds, losses = (float(each) for each in np.median(turn, axis=0))
                rows.append(row | {"repeats": repeats, "seconds": seconds, "loss": losses})
        sys.stdout.write(f"{name} {init} {rows[-1]}\n")
        sys.stdout.flush()
    return rows


def tables(rows: list[dict[str, Any]]) -> str:
    """Return the loss after 29 iterations, and the time until coordinate descent's loss after 29."""
    frame = pd.DataFrame(rows)
    head = ("data", "initialization", "method", "loss after 29, over cd's", "time of 29, over cd's",
            "time to cd's loss, over cd's")  # fmt: skip
    lines = []
    for (name, init), part in frame.groupby(["data", "init"], sort=False):
        curves = part.groupby(["method", "iterations"], sort=False)[["seconds", "loss"]].first()
        target = curves.loc["scikit-learn, cd", ITERATIONS[-1]]
        for method in METHODS:
            curve = curves.loc[method]
            last = curve.loc[ITERATIONS[-1]]
            reached = curve[curve.loss <= target.loss * (1 + 1e-9)].seconds
            time_to = f"{reached.min() / target.seconds:.2f}" if len(reached) else "not reached"
            lines.append((name, init, method, f"{last.loss / target.loss:.4f}",
                          f"{last.seconds / target.seconds:.2f}", time_to))  # fmt: skip
    return markdown(head, lines)


def main() -> None:
    """Run and print, or also write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", default="faces,texts")
    parser.add_argument("--write", action="store_true", help="write the record under docs/")
    options = parser.parse_args()
    rows = []
    with limited(options.threads):
        for name in options.data.split(","):
            rows += race(name, options.repeats)
    if options.write:
        rows = merge("bench_plot_nmf", rows, ("data", "init", "method", "iterations"))
    sys.stdout.write(tables(rows) + "\n")


if __name__ == "__main__":
    main()
